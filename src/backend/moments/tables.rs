//! One pass over the points: sums per bin and per pair of bins.

use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{DensityLayout, Term, TermTile};
use crate::points::TILE;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Points per block of the pass. All tables together are far larger than any cache and go through it
/// once per block; sorted by bin, thousands of points share a row of a table while it is there.
const BLOCK: usize = 64 * TILE;

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
    /// Per pair i < j: Σ w a₀ δᵢᵖ δⱼ^q with p, q ≤ k, for bin of i, bin of j, p, q (rows of q padded).
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

/// Per point of a block along one axis: distance from the left edge of its bin, and the bin.
type Places = Vec<(f64, u32)>;

/// The points of a block in the order of their bins along one axis.
struct Sorted {
    /// w a₀, the distance from the left edge, the point.
    points: Vec<(f64, f64, u32)>,
    /// Where each bin begins.
    starts: Vec<u32>,
}

/// The numbers of a block of points.
struct Block {
    axes: Vec<Places>,
    columns: Vec<Vec<f64>>,
}

/// Numbers per row of a cell, padded so that vector instructions fit.
fn row_width(power: usize) -> usize {
    (power + 1).next_power_of_two()
}

/// The place of the pair i < j among d axes.
fn pair_place(i: usize, j: usize, d: usize) -> usize {
    i * d - i * (i + 1) / 2 + j - i - 1
}

impl MomentTables {
    /// The memory that tables take, in bytes.
    pub fn bytes(power: usize, axes: &[AxisBins]) -> usize {
        let cell = 8 * (power + 1) * row_width(power);
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
                    axes[i].count * axes[j].count * (power + 1) * row_width(power)
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
        let columns: Vec<Vec<f64>> = (0..term.layout().columns())
            .map(|c| weighted.iter().flat_map(|columns| &columns[c]).copied().collect())
            .collect();
        let axes = self
            .axes
            .par_iter()
            .enumerate()
            .map(|(axis, bins)| {
                let mut places = Vec::with_capacity(range.len());
                for part in &parts {
                    places.extend(part.tile.coordinates[axis].iter().map(|&x| {
                        let bin = (((x - bins.low) / bins.step) as usize).min(bins.count - 1);
                        (x - bins.edge(bin), bin as u32)
                    }));
                }
                places
            })
            .collect();
        Ok(Block { axes, columns })
    }

    fn add(&mut self, block: &Block, roles: &Roles) {
        let (d, power) = (self.axes.len(), self.power);
        let axes = &self.axes;
        let mut tables = self.pairs.as_mut_slice();
        for i in 0..d {
            let sorted = Sorted::new(&block.axes[i], axes[i].count, &block.columns[roles.value]);
            // Each table belongs to one thread: the sums do not depend on how many there are.
            let (now, later) = tables.split_at_mut(d - 1 - i);
            now.par_iter_mut().zip(i + 1..d).for_each(|(table, j)| {
                let (columns, places) = (axes[j].count, &block.axes[j]);
                match power {
                    1 => add_pair_1(table, columns, &sorted, places),
                    2 => add_pair_2(table, columns, &sorted, places),
                    3 => add_pair_3(table, columns, &sorted, places),
                    _ => add_pair_any(power, table, columns, &sorted, places),
                }
            });
            tables = later;
        }
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
        let (size, width) = (self.power + 1, row_width(self.power));
        let table = &self.pairs[pair_place(i.min(j), i.max(j), self.axes.len())];
        let mut sums = vec![0.0; self.axes[j].count * size];
        if i < j {
            let row = self.axes[j].count * size * width;
            for (cells, v) in table.chunks(row).zip(coefficients.chunks(size)) {
                if v.iter().all(|c| *c == 0.0) {
                    continue;
                }
                for (cell, sums) in cells.chunks_exact(size * width).zip(sums.chunks_exact_mut(size)) {
                    for (products, v) in cell.chunks_exact(width).zip(v) {
                        sums.iter_mut()
                            .zip(products)
                            .for_each(|(sum, product)| *sum += v * product);
                    }
                }
            }
        } else {
            let row = self.axes[i].count * size * width;
            for (cells, sums) in table.chunks(row).zip(sums.chunks_exact_mut(size)) {
                for (cell, v) in cells
                    .chunks_exact(size * width)
                    .zip(coefficients.chunks_exact(size))
                {
                    for (products, sum) in cell.chunks_exact(width).zip(sums.iter_mut()) {
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

impl Sorted {
    /// Sorts the points of a block by bin.
    fn new(places: &Places, bins: usize, weights: &[f64]) -> Self {
        let mut starts = vec![0u32; bins + 1];
        for &(_, bin) in places {
            starts[bin as usize + 1] += 1;
        }
        for bin in 0..bins {
            starts[bin + 1] += starts[bin];
        }
        let mut next = starts.clone();
        let mut points = vec![(0.0, 0.0, 0); places.len()];
        for (point, (&(delta, bin), &weight)) in places.iter().zip(weights).enumerate() {
            let place = &mut next[bin as usize];
            points[*place as usize] = (weight, delta, point as u32);
            *place += 1;
        }
        Self { points, starts }
    }
}

/// Adds w δᵢᵖ δⱼ^q to the cells of a pair of axes, `SIZE` = k + 1 rows of `WIDTH` numbers each.
#[inline(always)]
fn add_pair<const SIZE: usize, const WIDTH: usize>(
    table: &mut [f64],
    columns: usize,
    i: &Sorted,
    j: &Places,
) {
    let row_length = columns * SIZE * WIDTH;
    for (row, ends) in table.chunks_exact_mut(row_length).zip(i.starts.windows(2)) {
        // Read in order, the row comes through the memory's prefetcher; met cell by cell it would not.
        std::hint::black_box(row.iter().step_by(8).sum::<f64>());
        let (cells, _) = row.as_chunks_mut::<WIDTH>();
        for &(mut weight, delta_i, point) in &i.points[ends[0] as usize..ends[1] as usize] {
            let (delta_j, bin) = j[point as usize];
            let mut powers = [0.0; WIDTH];
            powers[0] = 1.0;
            for q in 1..SIZE {
                powers[q] = powers[q - 1] * delta_j;
            }
            for cell in &mut cells[bin as usize * SIZE..][..SIZE] {
                for q in 0..WIDTH {
                    cell[q] += weight * powers[q];
                }
                weight *= delta_i;
            }
        }
    }
}

macro_rules! vector_versions {
    ($($name:ident: $size:literal, $width:literal;)+) => {$(
        #[multiversion::multiversion(targets("x86_64+avx2+fma"))]
        fn $name(table: &mut [f64], columns: usize, i: &Sorted, j: &Places) {
            add_pair::<$size, $width>(table, columns, i, j);
        }
    )+};
}

vector_versions! {
    add_pair_1: 2, 2;
    add_pair_2: 3, 4;
    add_pair_3: 4, 4;
}

/// The same for any power.
fn add_pair_any(power: usize, table: &mut [f64], columns: usize, i: &Sorted, j: &Places) {
    let (size, width) = (power + 1, row_width(power));
    for (row, ends) in table
        .chunks_exact_mut(columns * size * width)
        .zip(i.starts.windows(2))
    {
        for &(mut weight, delta_i, point) in &i.points[ends[0] as usize..ends[1] as usize] {
            let (delta_j, bin) = j[point as usize];
            for cell in row[bin as usize * size * width..][..size * width].chunks_mut(width) {
                let mut term = weight;
                for sum in &mut cell[..size] {
                    *sum += term;
                    term *= delta_j;
                }
                weight *= delta_i;
            }
        }
    }
}

/// Adds (column) δᵖ to the bins of an axis; `width` is the number of powers.
fn add_axis(sums: &mut [f64], width: usize, block: &Block, axis: usize, column: Option<usize>) {
    let Some(column) = column else {
        return;
    };
    for (&(delta, bin), &value) in block.axes[axis].iter().zip(&block.columns[column]) {
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
