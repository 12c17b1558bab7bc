//! One pass over the points: sums per bin and per pair of bins.

use super::block::{
    Block, PLACES, Pair, add_axis, add_pair_1, add_pair_2, add_pair_3, add_pair_any, row_width,
};
use super::file::TableStore;
use super::pass::{POINTS_PER_GROUP, Pass, PassObserver, groups};
use crate::candidates::AxisBins;
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::loss::{DensityLayout, Term};
use crate::points::TILE;
use rayon::prelude::*;

/// Points per block of the pass. All tables together are far larger than any cache and go through it
/// once per block; sorted by bin, thousands of points share a row of a table while it is there.
pub(crate) const PASS_BLOCK: usize = 64 * TILE;

/// Sums of a term −l·j + ½ Σ a_c j_c² over the points, from which every product of neurons with knots
/// on the bins' edges follows exactly.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentTables {
    /// k of ReLU^k.
    pub power: usize,
    /// The bins of each axis.
    pub axes: Vec<AxisBins>,
    /// Per pair i < j: Σ w a₀ δᵢᵖ δⱼ^q with p, q ≤ k, for bin of i, bin of j, p, q (rows of q padded).
    pub(crate) pairs: Vec<PairTable>,
    /// Per axis and bin: Σ w a₀ δᵖ with p ≤ 2k.
    pub values: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w aᵢ δᵖ with p ≤ 2k − 2, aᵢ the coefficient of (∂ᵢu)².
    pub slopes: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w l₀ δᵖ with p ≤ k.
    pub loads: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w lᵢ δᵖ with p ≤ k − 1, lᵢ the load on ∂ᵢu.
    pub slope_loads: Vec<Vec<f64>>,
    /// The device that made them, if one did.
    pub adapter: Option<String>,
    /// Whether they are sums of whole numbers.
    pub whole: bool,
}

/// A device that adds up the sums over pairs of axes.
pub trait PairSums {
    /// Points per block, at most.
    fn block_length(&self) -> usize;

    /// Adds a block of points whose weights are a column of it; `sums` takes what the device has so far if they
    /// outgrow its numbers.
    fn add(&mut self, block: &mut Block, weights: usize, sums: &mut [PairTable]) -> Result<(), SolveError>;

    /// Adds what the device has summed up to `sums`, and starts from zero.
    fn drain(&mut self, sums: &mut [PairTable]) -> Result<(), SolveError>;

    /// Its name.
    fn adapter(&self) -> Option<String>;
}

/// How the pass over the points is made.
pub struct PassOptions<'a> {
    /// On which device, if not on the CPU.
    pub device: Option<Box<dyn PairSums>>,
    /// Where the sums are kept on the way, to be taken up from there, by the first of several processes.
    pub store: Option<&'a TableStore>,
    /// The processes that share the pass.
    pub cluster: Cluster,
    /// Points of a group, at least: the sums of groups are added in order.
    pub points_per_group: usize,
}

impl Default for PassOptions<'_> {
    fn default() -> Self {
        Self {
            device: None,
            store: None,
            cluster: Cluster::alone(),
            points_per_group: POINTS_PER_GROUP,
        }
    }
}

/// The sums of a pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub enum PairTable {
    /// As the pass makes them, rows padded.
    Double(Vec<f64>),
    /// In short.
    Single(Vec<f32>),
}

/// Which columns of a term mean what.
#[derive(Debug, Clone)]
pub(super) struct Roles {
    pub(super) value: usize,
    load: Option<usize>,
    /// Per axis: the columns of aᵢ and lᵢ.
    slopes: Vec<(Option<usize>, Option<usize>)>,
}

/// All pairs i < j of d axes, in the order of their tables.
pub(crate) fn axis_pairs(d: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..d).flat_map(move |i| (i + 1..d).map(move |j| (i, j)))
}

/// The place of the pair i < j among d axes.
fn pair_place(i: usize, j: usize, d: usize) -> usize {
    i * d - i * (i + 1) / 2 + j - i - 1
}

impl MomentTables {
    /// The memory that tables take, in bytes.
    pub fn bytes(power: usize, axes: &[AxisBins]) -> usize {
        let cell = 8 * (power + 1) * row_width(power);
        axis_pairs(axes.len())
            .map(|(i, j)| axes[i].count.saturating_mul(axes[j].count).saturating_mul(cell))
            .fold(0, usize::saturating_add)
    }

    /// The memory of tables as a pass makes them, and of those kept in [single
    /// precision](Self::to_single_precision), in bytes.
    pub fn bytes_held(power: usize, axes: &[AxisBins]) -> (usize, usize) {
        let double = Self::bytes(power, axes);
        // Half the digits, and no padding.
        let single = double / (2 * row_width(power)) * (power + 1);
        (double, single)
    }

    /// The memory that a pass over a term's points needs beside its tables, in bytes: a block, and the sums of a group.
    pub fn pass_bytes(term: &Term, power: usize, axes: &[AxisBins]) -> usize {
        let group = match groups(term.points.len(), POINTS_PER_GROUP).len() {
            1 => 0,
            _ => Self::bytes(power, axes),
        };
        group.saturating_add(Self::block_bytes(term))
    }

    fn block_bytes(term: &Term) -> usize {
        let (d, columns) = (term.points.dimension(), term.layout().columns());
        let sorted = size_of::<(u32, u32, f64)>() * (d - 1);
        PASS_BLOCK.min(term.points.len()) * (size_of::<u32>() * d + 8 * columns + sorted)
    }

    /// Whether a term has the form that tables can hold: value and first derivatives along the axes.
    pub fn fits(term: &Term) -> bool {
        roles(term).is_some()
    }

    /// Makes the tables in one pass. The observer sees how many points are done and may end it.
    pub fn new(
        term: &Term,
        power: usize,
        axes: Vec<AxisBins>,
        options: PassOptions,
        observer: &mut PassObserver,
    ) -> Result<Self, SolveError> {
        let Some(roles) = roles(term) else {
            return Err(SolveError::Unsupported("moment tables for this equation"));
        };
        let empty = Self::empty(power, axes);
        let mut pass = Pass {
            term,
            roles,
            block: Block::default(),
            // Whole numbers from the points on.
            fractions: options.device.as_ref().and_then(|_| term.points.fractions()),
            device: options.device,
        };
        let mut tables = match groups(term.points.len(), options.points_per_group).as_slice() {
            [] | [_] => pass.whole(empty, options.store, observer),
            // Each process has a device of its own, and makes all sums there.
            many if options.cluster.is_alone() || pass.device.is_some() => {
                pass.by_groups(empty, many, options.store, observer)
            }
            many => pass.shared(empty, many, (&options.cluster, options.store), observer),
        }?;
        if let Some(device) = &pass.device {
            tables.adapter = device.adapter();
            tables.whole = true;
        }
        Ok(tables)
    }

    /// Tables of no points.
    pub(super) fn empty(power: usize, axes: Vec<AxisBins>) -> Self {
        let sizes = |width: usize| {
            axes.iter()
                .map(|axis| vec![0.0; axis.count * width])
                .collect::<Vec<_>>()
        };
        let pairs = axis_pairs(axes.len())
            .map(|(i, j)| {
                let cells = axes[i].count * axes[j].count;
                PairTable::Double(vec![0.0; cells * (power + 1) * row_width(power)])
            })
            .collect();
        let mut tables = Self {
            power,
            pairs,
            values: sizes(2 * power + 1),
            slopes: sizes(2 * power - 1),
            loads: sizes(power + 1),
            slope_loads: sizes(power),
            adapter: None,
            whole: false,
            axes,
        };
        // Pages that are read before they are written come twice from the system, and stop all threads the second time.
        tables.clear();
        tables
    }

    /// All numbers, always in the same order; those in single precision are done with.
    pub(super) fn columns(&mut self) -> Vec<&mut [f64]> {
        let pairs = self.pairs.iter_mut().filter_map(|table| match table {
            PairTable::Double(sums) => Some(sums.as_mut_slice()),
            PairTable::Single(_) => None,
        });
        let lists = [
            &mut self.values,
            &mut self.slopes,
            &mut self.loads,
            &mut self.slope_loads,
        ];
        let lists = lists.into_iter().flatten().map(Vec::as_mut_slice);
        pairs.chain(lists).collect()
    }

    /// Back to no points.
    pub(super) fn clear(&mut self) {
        self.columns().into_par_iter().for_each(|column| column.fill(0.0));
    }

    /// Adds the sums of other points.
    pub(super) fn add(&mut self, other: &mut Self) {
        let both = self.columns().into_par_iter().zip(other.columns());
        both.for_each(|(sums, more)| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += *more));
    }

    /// The sums over pairs of bins.
    pub(super) fn add_pairs(&mut self, block: &Block) {
        let (d, power) = (self.axes.len(), self.power);
        let axes = &self.axes;
        let mut rest = self.pairs.as_mut_slice();
        let mut per_axis = Vec::new();
        for i in 0..d - 1 {
            let (tables, later) = rest.split_at_mut(d - 1 - i);
            per_axis.push((i, tables));
            rest = later;
        }
        // Each table belongs to one thread: the sums do not depend on how many there are.
        per_axis.into_par_iter().with_max_len(1).for_each(|(i, tables)| {
            tables.par_iter_mut().zip(i + 1..d).for_each(|(table, j)| {
                let pair = Pair {
                    sorted: &block.sorted[i],
                    row_unit: axes[i].step / PLACES,
                    columns: &axes[j],
                    places: &block.places[j],
                };
                let PairTable::Double(table) = table else {
                    return;
                };
                match power {
                    1 => add_pair_1(table, &pair),
                    2 => add_pair_2(table, &pair),
                    3 => add_pair_3(table, &pair),
                    _ => add_pair_any(power, table, &pair),
                }
            });
        });
    }

    /// The sums over the bins of each axis.
    pub(super) fn add_axes(&mut self, block: &Block, roles: &Roles) {
        let (axes, power) = (&self.axes, self.power);
        let per_axis = self
            .values
            .par_iter_mut()
            .zip(&mut self.slopes)
            .zip(self.loads.par_iter_mut().zip(&mut self.slope_loads))
            .enumerate();
        per_axis.for_each(|(axis, ((values, slopes), (loads, slope_loads)))| {
            let (a, l) = roles.slopes[axis];
            let places = &block.places[axis];
            let add = |sums: &mut [f64], width, column: Option<usize>| {
                if let Some(column) = column {
                    add_axis(sums, width, &axes[axis], places, &block.columns[column]);
                }
            };
            add(values, 2 * power + 1, Some(roles.value));
            add(slopes, 2 * power - 1, a);
            add(loads, power + 1, roles.load);
            add(slope_loads, power, l);
        });
    }

    /// Keeps the sums over pairs in single precision: for a second opinion that is enough, as the points'
    /// own error is far larger.
    pub fn to_single_precision(mut self) -> Self {
        let (size, width) = (self.power + 1, row_width(self.power));
        for table in &mut self.pairs {
            if let PairTable::Double(sums) = table {
                let rows = sums.chunks_exact(width).flat_map(|row| &row[..size]);
                *table = PairTable::Single(rows.map(|&sum| sum as f32).collect());
            }
        }
        self
    }

    /// Σ w a₀ v(xᵢ) δⱼᵖ per bin of axis j, for a function v of axis i ≠ j given by its coefficients in
    /// each bin (k + 1 powers of the distance).
    pub fn across(&self, i: usize, coefficients: &[f64], j: usize) -> Vec<f64> {
        let size = self.power + 1;
        let mut sums = vec![0.0; self.axes[j].count * size];
        let by_rows = i < j;
        match &self.pairs[pair_place(i.min(j), i.max(j), self.axes.len())] {
            PairTable::Double(table) => {
                let shape = (size, row_width(self.power));
                contract(table, shape, by_rows, coefficients, &mut sums);
            }
            PairTable::Single(table) => contract(table, (size, size), by_rows, coefficients, &mut sums),
        }
        sums
    }
}

/// Sums over the rows (or the columns) of a table whose cells have `size` rows of `width` numbers.
fn contract<T: Copy + Into<f64>>(
    table: &[T],
    (size, width): (usize, usize),
    by_rows: bool,
    coefficients: &[f64],
    sums: &mut [f64],
) {
    let columns = if by_rows { sums.len() } else { coefficients.len() } / size;
    let rows = table.chunks_exact(columns * size * width);
    if by_rows {
        for (cells, v) in rows.zip(coefficients.chunks_exact(size)) {
            if v.iter().all(|c| *c == 0.0) {
                continue;
            }
            for (cell, sums) in cells.chunks_exact(size * width).zip(sums.chunks_exact_mut(size)) {
                for (products, v) in cell.chunks_exact(width).zip(v) {
                    for (sum, &product) in sums.iter_mut().zip(products) {
                        *sum += v * product.into();
                    }
                }
            }
        }
    } else {
        for (cells, sums) in rows.zip(sums.chunks_exact_mut(size)) {
            for (cell, v) in cells
                .chunks_exact(size * width)
                .zip(coefficients.chunks_exact(size))
            {
                for (products, sum) in cell.chunks_exact(width).zip(sums.iter_mut()) {
                    let terms = products.iter().zip(v).map(|(&product, v)| product.into() * v);
                    *sum += terms.sum::<f64>();
                }
            }
        }
    }
}

fn roles(term: &Term) -> Option<Roles> {
    let DensityLayout::Energy { quadratic, load, .. } = term.layout() else {
        return None;
    };
    let dimension = term.points.dimension();
    let mut roles = Roles {
        value: 0,
        load: None,
        slopes: vec![(None, None); dimension],
    };
    let mut has_value = false;
    for (c, symbol) in term.symbols.iter().enumerate() {
        match symbol.terms() {
            [(1.0, alpha)] if alpha.order() == 0 => {
                has_value = true;
                roles.value = quadratic[c];
                roles.load = load[c];
            }
            [(1.0, alpha)] if alpha.order() == 1 => {
                let axis = alpha.coordinates().next()?;
                roles.slopes[axis] = (Some(quadratic[c]), load[c]);
            }
            _ => return None,
        }
    }
    has_value.then_some(roles)
}
