//! How a density is evaluated: from columns of numbers per point.

/// How a density uses columns of numbers per point.
///
/// A tile of a term holds the columns without weights, the one of 2w left out; who evaluates the density elsewhere
/// gets them [weighted](super::Term::weighted_columns).
#[derive(Debug, Clone, PartialEq)]
pub enum DensityLayout {
    /// Columns w a_c and w l_c.
    Energy {
        /// The column of w a_c for each symbol.
        quadratic: Vec<usize>,
        /// The column of w l_c for each symbol, where there is one.
        load: Vec<Option<usize>>,
        /// How many columns there are.
        columns: usize,
    },
    /// Columns c_c and f, and 2w in the last.
    Residual {
        /// The column of c_c for each symbol.
        coefficients: Vec<usize>,
        /// The column of f.
        source: usize,
        /// How many columns there are.
        columns: usize,
    },
}

impl DensityLayout {
    /// How many columns there are.
    pub fn columns(&self) -> usize {
        match self {
            DensityLayout::Energy { columns, .. } | DensityLayout::Residual { columns, .. } => *columns,
        }
    }

    /// The column that multiplies each symbol.
    pub fn quadratic(&self) -> &[usize] {
        match self {
            DensityLayout::Energy { quadratic, .. } => quadratic,
            DensityLayout::Residual { coefficients, .. } => coefficients,
        }
    }

    /// The column of each symbol's load; the number of columns where there is none.
    pub fn load(&self) -> Vec<usize> {
        match self {
            DensityLayout::Energy { load, columns, .. } => {
                load.iter().map(|column| column.unwrap_or(*columns)).collect()
            }
            DensityLayout::Residual {
                coefficients,
                columns,
                ..
            } => vec![*columns; coefficients.len()],
        }
    }

    /// The column of a residual's source.
    pub fn source(&self) -> usize {
        match self {
            DensityLayout::Energy { .. } => 0,
            DensityLayout::Residual { source, .. } => *source,
        }
    }

    /// Whether this is a residual.
    pub fn is_residual(&self) -> bool {
        matches!(self, DensityLayout::Residual { .. })
    }
}
