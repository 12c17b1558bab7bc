//! One pass over the points: sums per bin and per pair of bins.

use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{DensityLayout, Term, TermTile};
use crate::points::TILE;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Points per block of the pass: sorted by bin, a few hundred share a row of a table.
const BLOCK: usize = 16 * TILE;

/// The bins of one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisBins {
    /// The lower end of the domain.
    pub low: f64,
    /// The width of a bin.
    pub step: f64,
    /// How many.
    pub count: usize,
}

impl AxisBins {
    /// The left edge of a bin, or the end of the last.
    pub fn edge(&self, bin: usize) -> f64 {
        self.low + bin as f64 * self.step
    }
}

/// Sums of a term −l·j + ½ Σ a_c j_c² over the points, from which every product of neurons with knots
/// on the bins' edges follows exactly.
#[derive(Debug, Clone)]
pub struct MomentTables {
    /// k of ReLU^k.
    pub power: usize,
    /// The bins of each axis.
    pub axes: Vec<AxisBins>,
    /// Per pair i < j: Σ w a₀ δᵢᵖ δⱼ^q with p, q ≤ k, for bin of i, bin of j, p, q.
    pairs: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w a₀ δᵖ with p ≤ 2k.
    pub values: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w aᵢ δᵖ with p ≤ 2k − 2, aᵢ the coefficient of (∂ᵢu)².
    pub slopes: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w l₀ δᵖ with p ≤ k.
    pub loads: Vec<Vec<f64>>,
    /// Per axis and bin: Σ w lᵢ δᵖ with p ≤ k − 1, lᵢ the load on ∂ᵢu.
    pub slope_loads: Vec<Vec<f64>>,
}

/// Which columns of a term mean what.
#[derive(Debug, Clone)]
struct Roles {
    value: usize,
    load: Option<usize>,
    /// Per axis: the columns of aᵢ and lᵢ.
    slopes: Vec<(Option<usize>, Option<usize>)>,
}

/// The numbers of a block of points, column by column.
struct Block {
    /// Per axis: bin and distance from its left edge.
    bins: Vec<Vec<u16>>,
    deltas: Vec<Vec<f64>>,
    /// Per axis: the points in the order of their bins.
    orders: Vec<Vec<u32>>,
    columns: Vec<Vec<f64>>,
}

/// The place of the pair i < j among d axes.
fn pair_place(i: usize, j: usize, d: usize) -> usize {
    i * d - i * (i + 1) / 2 + j - i - 1
}

impl MomentTables {
    /// The memory that tables take, in bytes.
    pub fn bytes(power: usize, axes: &[AxisBins]) -> usize {
        let cell = 8 * (power + 1) * (power + 1);
        let mut sum = 0usize;
        for (i, a) in axes.iter().enumerate() {
            for b in &axes[i + 1..] {
                sum = sum.saturating_add(a.count.saturating_mul(b.count).saturating_mul(cell));
            }
        }
        sum
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
        observer: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Self, SolveError> {
        let Some(roles) = roles(term) else {
            return Err(SolveError::Unsupported("moment tables for this equation"));
        };
        let d = axes.len();
        let sizes = |width: usize| {
            axes.iter()
                .map(|axis| vec![0.0; axis.count * width])
                .collect::<Vec<_>>()
        };
        let mut pairs = Vec::new();
        for i in 0..d {
            for j in i + 1..d {
                pairs.push(vec![
                    0.0;
                    axes[i].count * axes[j].count * (power + 1) * (power + 1)
                ]);
            }
        }
        let mut tables = Self {
            power,
            pairs,
            values: sizes(2 * power + 1),
            slopes: sizes(2 * power - 1),
            loads: sizes(power + 1),
            slope_loads: sizes(power),
            axes,
        };
        let count = term.points.len();
        for start in (0..count).step_by(BLOCK) {
            let range = start..(start + BLOCK).min(count);
            let done = range.end;
            let block = tables.block(term, range)?;
            tables.add(&block, &roles);
            if observer(done, count).is_break() {
                return Err(SolveError::Interrupted);
            }
        }
        Ok(tables)
    }

    /// Generates a block of points and finds their bins.
    fn block(&self, term: &Term, range: Range<usize>) -> Result<Block, SolveError> {
        let starts: Vec<usize> = range.clone().step_by(TILE).collect();
        let parts: Vec<Result<TermTile, SolveError>> = starts
            .into_par_iter()
            .map_init(Workspace::default, |workspace, start| {
                let mut tile = TermTile::default();
                term.fill(start..(start + TILE).min(range.end), workspace, &mut tile)?;
                Ok(tile)
            })
            .collect();
        let parts: Vec<TermTile> = parts.into_iter().collect::<Result<_, _>>()?;
        let weighted: Vec<Vec<Vec<f64>>> = parts.par_iter().map(|part| term.weighted_columns(part)).collect();
        let columns = (0..term.layout().columns())
            .map(|c| {
                weighted
                    .iter()
                    .flat_map(|columns| columns[c].iter().copied())
                    .collect()
            })
            .collect();
        let located: Vec<(Vec<u16>, Vec<f64>, Vec<u32>)> = self
            .axes
            .par_iter()
            .enumerate()
            .map(|(axis, bins)| {
                let x = parts.iter().flat_map(|part| &part.tile.coordinates[axis]);
                let (places, deltas): (Vec<u16>, Vec<f64>) = x
                    .map(|&x| {
                        let bin = (((x - bins.low) / bins.step) as usize).min(bins.count - 1);
                        (bin as u16, x - bins.edge(bin))
                    })
                    .unzip();
                let order = counting_sort(&places, bins.count);
                (places, deltas, order)
            })
            .collect();
        let mut block = Block {
            bins: Vec::new(),
            deltas: Vec::new(),
            orders: Vec::new(),
            columns,
        };
        for (bins, deltas, order) in located {
            block.bins.push(bins);
            block.deltas.push(deltas);
            block.orders.push(order);
        }
        Ok(block)
    }

    fn add(&mut self, block: &Block, roles: &Roles) {
        let (d, power) = (self.axes.len(), self.power);
        let axes = &self.axes;
        let weights = &block.columns[roles.value];
        // Each table belongs to one thread: the sums do not depend on how many there are.
        let places: Vec<(usize, usize)> = (0..d).flat_map(|i| (i + 1..d).map(move |j| (i, j))).collect();
        self.pairs
            .par_iter_mut()
            .zip(places)
            .for_each(|(table, (i, j))| match power {
                1 => add_pair::<2>(table, axes[j].count, block, weights, i, j),
                2 => add_pair::<3>(table, axes[j].count, block, weights, i, j),
                3 => add_pair::<4>(table, axes[j].count, block, weights, i, j),
                _ => add_pair_general(power + 1, table, axes[j].count, block, weights, i, j),
            });
        let per_axis = self
            .values
            .par_iter_mut()
            .zip(&mut self.slopes)
            .zip(self.loads.par_iter_mut().zip(&mut self.slope_loads))
            .enumerate();
        per_axis.for_each(|(axis, ((values, slopes), (loads, slope_loads)))| {
            let (a, l) = roles.slopes[axis];
            add_axis(values, 2 * power + 1, block, axis, Some(roles.value));
            add_axis(slopes, 2 * power - 1, block, axis, a);
            add_axis(loads, power + 1, block, axis, roles.load);
            add_axis(slope_loads, power, block, axis, l);
        });
    }

    /// Σ w a₀ v(xᵢ) δⱼᵖ per bin of axis j, for a function v of axis i ≠ j given by its coefficients in
    /// each bin (k + 1 powers of the distance).
    pub fn across(&self, i: usize, coefficients: &[f64], j: usize) -> Vec<f64> {
        let size = self.power + 1;
        let table = &self.pairs[pair_place(i.min(j), i.max(j), self.axes.len())];
        let mut sums = vec![0.0; self.axes[j].count * size];
        if i < j {
            let row = self.axes[j].count * size * size;
            for (cells, v) in table.chunks(row).zip(coefficients.chunks(size)) {
                if v.iter().all(|c| *c == 0.0) {
                    continue;
                }
                for (cell, sums) in cells.chunks_exact(size * size).zip(sums.chunks_exact_mut(size)) {
                    for (products, v) in cell.chunks_exact(size).zip(v) {
                        sums.iter_mut()
                            .zip(products)
                            .for_each(|(sum, product)| *sum += v * product);
                    }
                }
            }
        } else {
            let row = self.axes[i].count * size * size;
            for (cells, sums) in table.chunks(row).zip(sums.chunks_exact_mut(size)) {
                for (cell, v) in cells
                    .chunks_exact(size * size)
                    .zip(coefficients.chunks_exact(size))
                {
                    for (products, sum) in cell.chunks_exact(size).zip(sums.iter_mut()) {
                        *sum += products
                            .iter()
                            .zip(v)
                            .map(|(product, v)| product * v)
                            .sum::<f64>();
                    }
                }
            }
        }
        sums
    }
}

/// The points in the order of their bins.
fn counting_sort(bins: &[u16], count: usize) -> Vec<u32> {
    let mut starts = vec![0u32; count + 1];
    for &bin in bins {
        starts[bin as usize + 1] += 1;
    }
    for bin in 0..count {
        starts[bin + 1] += starts[bin];
    }
    let mut order = vec![0; bins.len()];
    for (point, &bin) in bins.iter().enumerate() {
        let place = &mut starts[bin as usize];
        order[*place as usize] = point as u32;
        *place += 1;
    }
    order
}

/// Adds w δᵢᵖ δⱼ^q to the cells of a pair of axes; `SIZE` is k + 1.
fn add_pair<const SIZE: usize>(
    table: &mut [f64],
    columns: usize,
    block: &Block,
    weights: &[f64],
    i: usize,
    j: usize,
) {
    let (bins_i, bins_j) = (&block.bins[i], &block.bins[j]);
    let (deltas_i, deltas_j) = (&block.deltas[i], &block.deltas[j]);
    for &point in &block.orders[i] {
        let point = point as usize;
        let start = (bins_i[point] as usize * columns + bins_j[point] as usize) * SIZE * SIZE;
        let cell = &mut table[start..start + SIZE * SIZE];
        let mut powers = [1.0; SIZE];
        for q in 1..SIZE {
            powers[q] = powers[q - 1] * deltas_j[point];
        }
        let mut weight = weights[point];
        for p in 0..SIZE {
            for q in 0..SIZE {
                cell[p * SIZE + q] += weight * powers[q];
            }
            weight *= deltas_i[point];
        }
    }
}

/// [`add_pair`] for any power.
fn add_pair_general(
    size: usize,
    table: &mut [f64],
    columns: usize,
    block: &Block,
    weights: &[f64],
    i: usize,
    j: usize,
) {
    for &point in &block.orders[i] {
        let point = point as usize;
        let start = (block.bins[i][point] as usize * columns + block.bins[j][point] as usize) * size * size;
        let mut row = weights[point];
        for cells in table[start..start + size * size].chunks_mut(size) {
            let mut term = row;
            for cell in cells {
                *cell += term;
                term *= block.deltas[j][point];
            }
            row *= block.deltas[i][point];
        }
    }
}

/// Adds (column) δᵖ to the bins of an axis; `width` is the number of powers.
fn add_axis(sums: &mut [f64], width: usize, block: &Block, axis: usize, column: Option<usize>) {
    let Some(column) = column else {
        return;
    };
    let points = block.bins[axis]
        .iter()
        .zip(&block.deltas[axis])
        .zip(&block.columns[column]);
    for ((&bin, &delta), &value) in points {
        let mut term = value;
        for sum in &mut sums[bin as usize * width..][..width] {
            *sum += term;
            term *= delta;
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
