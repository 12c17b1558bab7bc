//! One term of the loss at its points: coefficients, channels, risk.

use super::column::{Column, Constant};
use super::{Density, DensityLayout, Formula, TermSpec};
use crate::domain::{Domain, Region};
use crate::error::SolveError;
use crate::expression::{Graph, MultiIndex, NodeId, Program, Workspace};
use crate::points::{PointSet, PointsError, Rule, Tile};
use crate::symbol::Symbol;
use std::borrow::Cow;
use std::sync::Arc;

/// A term with its points.
#[derive(Debug, Clone)]
pub struct Term {
    /// Where the integral is taken.
    pub points: PointSet,
    /// The symbols of the jet.
    pub symbols: Vec<Symbol>,
    scale: f64,
    pub(super) layout: DensityLayout,
    /// Those coefficients that are not constant.
    program: Program,
    constants: Vec<Option<Constant>>,
    names: Vec<String>,
    potential: Option<Potential>,
    /// Whether it has no curvature: boundary data that only load.
    load_only: bool,
    /// Whether points come in pairs, and the density is one of the jumps between the two.
    paired: bool,
}

#[derive(Debug, Clone)]
struct Potential {
    name: String,
    /// F, ∂F/∂u, ∂²F/∂u².
    program: Program,
}

/// A tile of points with the term's coefficients there.
#[derive(Debug, Clone, Default)]
pub struct TermTile {
    /// Coordinates and (scaled) weights.
    pub tile: Tile,
    pub(super) columns: Vec<Column>,
}

/// Collects formulas, each node once.
#[derive(Default)]
struct Columns {
    nodes: Vec<NodeId>,
    names: Vec<String>,
}

impl Columns {
    fn place(&mut self, formula: &Formula) -> usize {
        self.nodes
            .iter()
            .position(|&node| node == formula.node)
            .unwrap_or_else(|| {
                self.nodes.push(formula.node);
                self.names.push(formula.name.clone());
                self.nodes.len() - 1
            })
    }
}

impl Term {
    pub(super) fn new(
        graph: &mut Graph,
        domain: &Domain,
        spec: &TermSpec,
        rule: Rule,
        stream: u32,
    ) -> Result<Self, PointsError> {
        let points = match &spec.listed {
            Some(listed) => PointSet::listed(Arc::clone(listed)),
            None => PointSet::new(domain, spec.region, rule, stream)?,
        };
        let inputs = points.inputs();
        let mut columns = Columns::default();
        let (symbols, layout, potential) = match &spec.density {
            Density::Energy { parts, potential } => {
                let symbols = parts.iter().map(|(symbol, ..)| symbol.clone()).collect();
                let quadratic = parts.iter().map(|(_, a, _)| columns.place(a)).collect();
                let load = parts
                    .iter()
                    .map(|(_, _, l)| (graph.as_number(l.node) != Some(0.0)).then(|| columns.place(l)))
                    .collect();
                let layout = DensityLayout::Energy {
                    quadratic,
                    load,
                    columns: columns.nodes.len(),
                };
                (symbols, layout, potential.as_ref())
            }
            Density::Residual { parts, source } => {
                let symbols = parts.iter().map(|(symbol, _)| symbol.clone()).collect();
                let coefficients = parts.iter().map(|(_, c)| columns.place(c)).collect();
                let layout = DensityLayout::Residual {
                    coefficients,
                    source: columns.place(source),
                    columns: columns.nodes.len() + 1,
                };
                (symbols, layout, None)
            }
        };
        let load_only = match &spec.density {
            Density::Energy { parts, potential } => {
                let mut quadratic = parts.iter().map(|(_, a, _)| graph.as_number(a.node));
                potential.is_none() && quadratic.all(|a| a == Some(0.0))
            }
            Density::Residual { .. } => false,
        };
        let potential = potential.map(|formula| {
            let u = MultiIndex::default();
            let slope = graph.differentiate_by_unknown(formula.node, &u);
            let bend = graph.differentiate_by_unknown(slope, &u);
            Potential {
                name: formula.name.clone(),
                program: Program::new(graph, &[formula.node, slope, bend], inputs, &[u]),
            }
        });
        let numbers = columns.nodes.iter().map(|&node| graph.as_number(node));
        let varying = columns.nodes.iter().zip(numbers.clone());
        let varying = varying.filter(|(_, number)| number.is_none());
        let varying: Vec<NodeId> = varying.map(|(&node, _)| node).collect();
        Ok(Self {
            program: Program::new(graph, &varying, inputs, &[]),
            points,
            symbols,
            scale: spec.scale,
            layout,
            constants: numbers.map(|number| number.map(Constant::new)).collect(),
            names: columns.names,
            potential,
            load_only,
            paired: matches!(spec.region, Region::Pairs(_)),
        })
    }

    /// How many coefficients differ from point to point.
    pub(super) fn varying(&self) -> usize {
        self.program.outputs()
    }

    /// Whether the term has no curvature: boundary data that only load.
    pub fn is_load_only(&self) -> bool {
        self.load_only
    }

    /// Whether the density is one of the jumps between two points that follow each other.
    pub fn is_paired(&self) -> bool {
        self.paired
    }

    /// Whether the density is quadratic in the jet.
    pub fn is_quadratic(&self) -> bool {
        self.potential.is_none()
    }

    /// How the columns of [`weighted_columns`](Self::weighted_columns) make up the density.
    pub fn layout(&self) -> &DensityLayout {
        &self.layout
    }

    /// The columns of the [layout](Self::layout) at the points of a tile.
    pub fn weighted_columns(&self, tile: &TermTile) -> Vec<Vec<f64>> {
        let weights = &tile.tile.weights;
        match &self.layout {
            DensityLayout::Energy { .. } => tile
                .columns
                .iter()
                .map(|column| column.iter().zip(weights).map(|(value, w)| value * w).collect())
                .collect(),
            DensityLayout::Residual { .. } => {
                let mut columns: Vec<Vec<f64>> = tile.columns.iter().map(|column| column.to_vec()).collect();
                columns.push(weights.iter().map(|w| 2.0 * w).collect());
                columns
            }
        }
    }

    /// How many numbers a point has in an [embedding](Self::embed).
    pub fn embedding_width(&self) -> usize {
        match &self.layout {
            DensityLayout::Energy { quadratic, .. } => quadratic.len(),
            DensityLayout::Residual { .. } => 1,
        }
    }

    /// Points and coefficients of a range of indices.
    pub fn fill(
        &self,
        range: std::ops::Range<usize>,
        workspace: &mut Workspace,
        out: &mut TermTile,
    ) -> Result<(), SolveError> {
        self.points.fill(range, &mut out.tile);
        let count = out.tile.len();
        out.tile.weights.iter_mut().for_each(|w| *w *= self.scale);
        out.columns.resize(self.names.len(), Column::default());
        let mut outputs: Vec<&mut [f64]> = Vec::new();
        for (column, constant) in out.columns.iter_mut().zip(&self.constants) {
            match constant {
                Some(constant) => column.set_constant(constant, count),
                None => outputs.push(column.varying(count)),
            }
        }
        self.program
            .evaluate(workspace, &out.tile.columns(), count, &mut outputs);
        for (column, name) in out.columns.iter().zip(&self.names) {
            require_finite(name, column, &out.tile)?;
        }
        if let DensityLayout::Energy { quadratic, .. } = &self.layout {
            for &column in quadratic {
                require_convex(&self.names[column], &out.columns[column], &out.tile)?;
            }
        }
        Ok(())
    }

    /// Channels of the gradient: ρ_c = w ∂φ/∂j_c at the jets of u. `jets` is overwritten.
    pub fn gradient(
        &self,
        tile: &TermTile,
        jets: &mut [Vec<f64>],
        workspace: &mut Workspace,
    ) -> Result<(), SolveError> {
        let slope = self.potential_column(tile, &jets[0], 1, workspace)?;
        self.apply_to_jumps(tile, jets, slope.as_deref(), true);
        Ok(())
    }

    /// Channels of the curvature: w ∂²φ/∂j² applied to the jets of v, at the jets of u. `jets` (of v) is overwritten.
    pub fn curvature(
        &self,
        tile: &TermTile,
        at: Option<&[f64]>,
        jets: &mut [Vec<f64>],
        workspace: &mut Workspace,
    ) -> Result<(), SolveError> {
        let bend = match at {
            Some(u) => self.potential_column(tile, u, 2, workspace)?,
            None => None,
        };
        let product = bend.map(|bend| {
            bend.iter()
                .zip(&jets[0])
                .map(|(f, v)| f * v)
                .collect::<Vec<f64>>()
        });
        self.apply_to_jumps(tile, jets, product.as_deref(), false);
        Ok(())
    }

    /// ∂ᵏF/∂uᵏ at the values of u, if there is a potential.
    fn potential_column(
        &self,
        tile: &TermTile,
        u: &[f64],
        derivative: usize,
        workspace: &mut Workspace,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        let Some(potential) = &self.potential else {
            return Ok(None);
        };
        let count = tile.tile.len();
        let mut results = vec![vec![0.0; count]; 3];
        let mut inputs = tile.tile.columns();
        inputs.push(u);
        let mut outputs: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
        potential
            .program
            .evaluate(workspace, &inputs, count, &mut outputs);
        let column = results.swap_remove(derivative);
        require_finite(&potential.name, &column, &tile.tile)?;
        Ok(Some(column))
    }

    /// ∇φ of the jumps, pulled back to both points of each pair; of the jets themselves where points are single.
    fn apply_to_jumps(&self, tile: &TermTile, jets: &mut [Vec<f64>], extra: Option<&[f64]>, with_load: bool) {
        if self.paired {
            jets.iter_mut().for_each(|jet| jump(jet));
        }
        self.apply(tile, jets, extra, with_load);
        if self.paired {
            jets.iter_mut().for_each(|channel| pull_back(channel));
        }
    }

    /// jets ← w (A jets + extra) − w l, the load l only if `with_load`.
    fn apply(&self, tile: &TermTile, jets: &mut [Vec<f64>], extra: Option<&[f64]>, with_load: bool) {
        let weights = &tile.tile.weights;
        match &self.layout {
            DensityLayout::Energy { quadratic, load, .. } => {
                for (c, jet) in jets.iter_mut().enumerate() {
                    let a = &tile.columns[quadratic[c]];
                    for ((j, a), w) in jet.iter_mut().zip(a).zip(weights) {
                        *j *= a * w;
                    }
                    if let (Some(column), true) = (load[c], with_load) {
                        for ((j, l), w) in jet.iter_mut().zip(&tile.columns[column]).zip(weights) {
                            *j -= l * w;
                        }
                    }
                }
                for ((j, extra), w) in jets[0].iter_mut().zip(extra.into_iter().flatten()).zip(weights) {
                    *j += extra * w;
                }
            }
            DensityLayout::Residual {
                coefficients, source, ..
            } => {
                let mut residual = self.residual(tile, jets, coefficients, with_load.then_some(*source));
                residual.iter_mut().zip(weights).for_each(|(r, w)| *r *= 2.0 * w);
                for (jet, &c) in jets.iter_mut().zip(coefficients) {
                    for ((j, r), c) in jet.iter_mut().zip(&residual).zip(&tile.columns[c]) {
                        *j = r * c;
                    }
                }
            }
        }
    }

    /// Σ c_c j_c − f.
    fn residual(
        &self,
        tile: &TermTile,
        jets: &[Vec<f64>],
        coefficients: &[usize],
        source: Option<usize>,
    ) -> Vec<f64> {
        let mut residual = match source {
            Some(column) => tile.columns[column].iter().map(|f| -f).collect(),
            None => vec![0.0; tile.tile.len()],
        };
        for (jet, &c) in jets.iter().zip(coefficients) {
            for ((r, j), c) in residual.iter_mut().zip(jet).zip(&tile.columns[c]) {
                *r += c * j;
            }
        }
        residual
    }

    /// The jumps at the first point of each pair and 0 at the second, or the jets themselves.
    fn jumps<'j>(&self, jets: &'j [Vec<f64>]) -> Cow<'j, [Vec<f64>]> {
        match self.paired {
            false => Cow::Borrowed(jets),
            true => {
                let mut jets = jets.to_vec();
                jets.iter_mut().for_each(|jet| jump(jet));
                Cow::Owned(jets)
            }
        }
    }

    /// Σ w φ(x, jet).
    pub fn risk(
        &self,
        tile: &TermTile,
        jets: &[Vec<f64>],
        workspace: &mut Workspace,
    ) -> Result<f64, SolveError> {
        let jets = &*self.jumps(jets);
        let weights = &tile.tile.weights;
        let mut density = match &self.layout {
            DensityLayout::Energy { quadratic, load, .. } => {
                let mut density = vec![0.0; tile.tile.len()];
                for (c, jet) in jets.iter().enumerate() {
                    let a = &tile.columns[quadratic[c]];
                    for ((sum, a), j) in density.iter_mut().zip(a).zip(jet) {
                        *sum += 0.5 * a * j * j;
                    }
                    if let Some(column) = load[c] {
                        for ((sum, l), j) in density.iter_mut().zip(&tile.columns[column]).zip(jet) {
                            *sum -= l * j;
                        }
                    }
                }
                density
            }
            DensityLayout::Residual {
                coefficients, source, ..
            } => {
                let mut residual = self.residual(tile, jets, coefficients, Some(*source));
                residual.iter_mut().for_each(|r| *r *= *r);
                residual
            }
        };
        if let Some(values) = self.potential_column(tile, &jets[0], 0, workspace)? {
            density.iter_mut().zip(values).for_each(|(sum, f)| *sum += f);
        }
        Ok(density.iter().zip(weights).map(|(d, w)| d * w).sum())
    }

    /// ½ Σ w l²/a: what makes ½ a j² − l j the square ½ a (j − l/a)²; a residual is one already.
    pub fn completion(&self, tile: &TermTile) -> f64 {
        let DensityLayout::Energy { quadratic, load, .. } = &self.layout else {
            return 0.0;
        };
        let parts = quadratic.iter().zip(load);
        let parts = parts.filter_map(|(&a, load)| Some((&tile.columns[a], &tile.columns[(*load)?])));
        let squares = parts.map(|(a, l)| {
            let numbers = a
                .iter()
                .zip(l)
                .zip(&tile.tile.weights)
                .filter(|((a, _), _)| **a > 0.0);
            numbers.map(|((a, l), w)| 0.5 * w * l * l / a).sum::<f64>()
        });
        squares.sum()
    }

    /// Numbers whose scalar product is the curvature: ⟨∇²L v, g⟩ = embed(v) · embed(g).
    pub fn embed(&self, tile: &TermTile, jets: &[Vec<f64>]) -> Vec<f64> {
        let jets = &*self.jumps(jets);
        let weights = &tile.tile.weights;
        match &self.layout {
            DensityLayout::Energy { quadratic, .. } => jets
                .iter()
                .zip(quadratic)
                .flat_map(|(jet, &a)| {
                    jet.iter()
                        .zip(&tile.columns[a])
                        .zip(weights)
                        .map(|((j, a), w)| j * (a * w).max(0.0).sqrt())
                })
                .collect(),
            DensityLayout::Residual { coefficients, .. } => self
                .residual(tile, jets, coefficients, None)
                .iter()
                .zip(weights)
                .map(|(r, w)| r * (2.0 * w).sqrt())
                .collect(),
        }
    }

    /// The same at u, where the density is not quadratic: ⟨∇²L(u) v, g⟩ = embed_at(u, v) · embed_at(u, g).
    pub fn embed_at(
        &self,
        tile: &TermTile,
        u: Option<&[f64]>,
        jets: &[Vec<f64>],
        workspace: &mut Workspace,
    ) -> Result<Vec<f64>, SolveError> {
        let mut rows = self.embed(tile, jets);
        let bend = match u {
            Some(u) => self.potential_column(tile, u, 2, workspace)?,
            None => None,
        };
        if let (Some(bend), DensityLayout::Energy { quadratic, .. }) = (bend, &self.layout) {
            // The first symbol is u itself.
            let a = &tile.columns[quadratic[0]];
            let values = rows.iter_mut().zip(&jets[0]).zip(&tile.tile.weights);
            for ((((row, v), w), a), f) in values.zip(a).zip(&bend) {
                *row = v * ((a + f) * w).max(0.0).sqrt();
            }
        }
        Ok(rows)
    }

    /// W with ⟨∇²L(u) v, v⟩ = Σ W_cd j_c j_d: the pairs of symbols c ≤ d that it is made of, and the numbers
    /// at the points (twice the entry where c < d).
    pub fn curvature_pairs(&self) -> Vec<(usize, usize)> {
        let symbols = self.symbols.len();
        match &self.layout {
            DensityLayout::Energy { .. } => (0..symbols).map(|c| (c, c)).collect(),
            DensityLayout::Residual { .. } => (0..symbols)
                .flat_map(|c| (c..symbols).map(move |d| (c, d)))
                .collect(),
        }
    }

    /// The numbers that belong to the [pairs](Self::curvature_pairs), at the values of u where they matter.
    pub fn curvature_columns(
        &self,
        tile: &TermTile,
        u: Option<&[f64]>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Vec<f64>>, SolveError> {
        let weights = &tile.tile.weights;
        let bend = match u {
            Some(u) => self.potential_column(tile, u, 2, workspace)?,
            None => None,
        };
        let mut columns: Vec<Vec<f64>> = match &self.layout {
            DensityLayout::Energy { quadratic, .. } => {
                let of = |&a: &usize| tile.columns[a].iter().zip(weights).map(|(a, w)| a * w).collect();
                quadratic.iter().map(of).collect()
            }
            DensityLayout::Residual { coefficients, .. } => {
                let of = |(c, d): (usize, usize)| {
                    let factor = if c == d { 2.0 } else { 4.0 };
                    let (a, b) = (&tile.columns[coefficients[c]], &tile.columns[coefficients[d]]);
                    let products = a.iter().zip(b).zip(weights);
                    products.map(|((a, b), w)| factor * w * a * b).collect()
                };
                self.curvature_pairs().into_iter().map(of).collect()
            }
        };
        if let Some(bend) = bend {
            // The first symbol is u itself.
            let values = columns[0].iter_mut().zip(bend).zip(weights);
            values.for_each(|((value, f), w)| *value += f * w);
        }
        Ok(columns)
    }

    /// Channels of the gradient at a u that is known by its [embedding](Self::embed); without the load those of
    /// the curvature along it.
    pub fn channels_from_values(&self, tile: &TermTile, values: &[f64], with_load: bool) -> Vec<Vec<f64>> {
        let weights = &tile.tile.weights;
        let mut channels: Vec<Vec<f64>> = match &self.layout {
            DensityLayout::Energy { quadratic, load, .. } => quadratic
                .iter()
                .zip(load)
                .zip(values.chunks(weights.len()))
                .map(|((&a, load), values)| {
                    let scaled = values.iter().zip(&tile.columns[a]).zip(weights);
                    let mut rho: Vec<f64> = scaled.map(|((v, a), w)| v * (a * w).max(0.0).sqrt()).collect();
                    if let (Some(column), true) = (load, with_load) {
                        for ((rho, l), w) in rho.iter_mut().zip(&tile.columns[*column]).zip(weights) {
                            *rho -= l * w;
                        }
                    }
                    rho
                })
                .collect(),
            DensityLayout::Residual {
                coefficients, source, ..
            } => {
                let load = if with_load { 2.0 } else { 0.0 };
                let values = values.iter().zip(&tile.columns[*source]).zip(weights);
                // 2w (Σ c j − f), where the values are √(2w) Σ c j.
                let residual: Vec<f64> = values
                    .map(|((v, f), w)| v * (2.0 * w).sqrt() - load * w * f)
                    .collect();
                let of = |&c: &usize| {
                    residual
                        .iter()
                        .zip(&tile.columns[c])
                        .map(|(r, c)| r * c)
                        .collect()
                };
                coefficients.iter().map(of).collect()
            }
        };
        if self.paired {
            channels.iter_mut().for_each(|channel| pull_back(channel));
        }
        channels
    }
}

/// (a, b) ← (a − b, 0) for each pair.
fn jump(column: &mut [f64]) {
    for pair in column.chunks_exact_mut(2) {
        pair[0] -= pair[1];
        pair[1] = 0.0;
    }
}

/// (ρ, ·) ← (ρ, −ρ) for each pair.
fn pull_back(column: &mut [f64]) {
    for pair in column.chunks_exact_mut(2) {
        pair[1] = -pair[0];
    }
}

pub(crate) fn require_finite(name: &str, column: &[f64], tile: &Tile) -> Result<(), SolveError> {
    match column.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(place) => Err(SolveError::NotFinite {
            what: name.to_string(),
            value: column[place],
            point: tile.point(place),
        }),
    }
}

/// An energy whose quadratic part is negative somewhere has no minimum.
fn require_convex(name: &str, column: &[f64], tile: &Tile) -> Result<(), SolveError> {
    match column.iter().position(|&value| value < 0.0) {
        None => Ok(()),
        Some(place) => Err(SolveError::NotConvex {
            what: name.to_string(),
            value: column[place],
            point: tile.point(place),
        }),
    }
}
