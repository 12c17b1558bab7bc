//! A block of points: where they lie along the axes, sorted by bin, and their sums.

use crate::candidates::AxisBins;
use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{Term, TermTile};
use crate::points::{Fractions, TILE, in_parallel};
use crate::vector::rounded;
use rayon::prelude::*;
use std::ops::Range;

/// 2³²: places along an axis are whole numbers of this part of its width. That is finer than any sum
/// over points can tell, and the places of a block fit the second-level cache.
pub(crate) const PLACES: f64 = (1_u64 << 32) as f64;

/// The points of a block in the order of their bins along one axis.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sorted {
    /// The distance from the left edge of the bin, in parts of the bin's width; the point; w a₀.
    pub(crate) points: Vec<(u32, u32, f64)>,
    /// Where each bin begins.
    pub(crate) starts: Vec<u32>,
}

/// The numbers of a block of points, kept from block to block.
#[derive(Default)]
pub struct Block {
    /// The number of the first point.
    pub(crate) first: usize,
    /// The place of each point along each axis.
    pub(crate) places: Vec<Vec<u32>>,
    pub(crate) columns: Vec<Vec<f64>>,
    /// In the order of each axis but the last.
    pub(crate) sorted: Vec<Sorted>,
}

/// One tile's part of a block.
#[derive(Default)]
struct BlockTile<'a> {
    places: Vec<&'a mut [u32]>,
    columns: Vec<&'a mut [f64]>,
}

impl Block {
    /// Generates the points of a range and finds their places along the axes, from whole numbers if there are any.
    pub(crate) fn fill(
        &mut self,
        term: &Term,
        range: Range<usize>,
        axes: &[AxisBins],
        fractions: Option<&Fractions>,
    ) -> Result<(), SolveError> {
        self.resize(axes.len(), term.layout().columns(), range.len());
        self.first = range.start;
        let fill = |(workspace, scratch): &mut (Workspace, TermTile), (index, tile): (usize, BlockTile)| {
            let start = range.start + index * TILE;
            term.fill(start..(start + TILE).min(range.end), workspace, scratch)?;
            for (out, column) in tile.columns.into_iter().zip(term.weighted_columns(scratch)) {
                out.copy_from_slice(&column);
            }
            for (i, (out, axis)) in tile.places.into_iter().zip(axes).enumerate() {
                match fractions {
                    Some(fractions) => fractions.fill(i, start, out),
                    None => find_places(axis, &scratch.tile.coordinates[i], out),
                }
            }
            Ok::<(), SolveError>(())
        };
        in_parallel(self.tiles().into_par_iter().enumerate(), fill)?;
        Ok(())
    }

    fn resize(&mut self, axes: usize, columns: usize, length: usize) {
        self.places.resize(axes, Vec::new());
        self.columns.resize(columns, Vec::new());
        self.sorted.resize(axes - 1, Sorted::default());
        self.places.iter_mut().for_each(|places| places.resize(length, 0));
        self.columns
            .iter_mut()
            .for_each(|column| column.resize(length, 0.0));
    }

    /// Sorts the points along every axis but the last.
    pub(crate) fn sort(&mut self, axes: &[AxisBins], weights: usize) {
        let weights = &self.columns[weights];
        let of_axes = self.places.par_iter().zip(axes);
        self.sorted
            .par_iter_mut()
            .zip(of_axes)
            .for_each(|(sorted, (places, axis))| sorted.sort(axis, places, weights));
    }

    fn tiles(&mut self) -> Vec<BlockTile<'_>> {
        let length = self.places.first().map_or(0, Vec::len);
        let mut tiles: Vec<BlockTile> = Vec::new();
        tiles.resize_with(length.div_ceil(TILE), BlockTile::default);
        for places in &mut self.places {
            for (tile, part) in tiles.iter_mut().zip(places.chunks_mut(TILE)) {
                tile.places.push(part);
            }
        }
        for column in &mut self.columns {
            for (tile, part) in tiles.iter_mut().zip(column.chunks_mut(TILE)) {
                tile.columns.push(part);
            }
        }
        tiles
    }
}

/// Numbers per row of a cell, padded so that vector instructions fit.
pub(crate) fn row_width(power: usize) -> usize {
    (power + 1).next_power_of_two()
}

/// Where each x lies along an axis, in parts of 2⁻³² of its width.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn find_places(axis: &AxisBins, xs: &[f64], places: &mut [u32]) {
    let scale = PLACES / (axis.step * axis.count as f64);
    for (&x, place) in xs.iter().zip(places) {
        *place = rounded(((x - axis.low) * scale).clamp(0.0, PLACES - 1.0));
    }
}

impl Sorted {
    /// Sorts the points of a block by bin.
    fn sort(&mut self, axis: &AxisBins, places: &[u32], weights: &[f64]) {
        self.starts.clear();
        self.starts.resize(axis.count + 1, 0);
        self.points.resize(places.len(), (0, 0, 0.0));
        for &place in places {
            self.starts[axis.bin(place).0 + 1] += 1;
        }
        for bin in 0..axis.count {
            self.starts[bin + 1] += self.starts[bin];
        }
        let mut next = self.starts.clone();
        for (point, (&place, &weight)) in places.iter().zip(weights).enumerate() {
            let (bin, distance) = axis.bin(place);
            let at = next[bin] as usize;
            self.points[at] = (distance, point as u32, weight);
            next[bin] += 1;
        }
    }

    /// The points of a bin.
    fn bin(&self, bin: usize) -> &[(u32, u32, f64)] {
        &self.points[self.starts[bin] as usize..self.starts[bin + 1] as usize]
    }
}

/// A block seen along two axes: sorted by the bins of the first, the rows of a table.
pub(crate) struct Pair<'a> {
    pub(crate) sorted: &'a Sorted,
    pub(crate) row_unit: f64,
    pub(crate) columns: &'a AxisBins,
    pub(crate) places: &'a [u32],
}

/// So many places are fetched before they are used: many reads under way at once hide the time that
/// each takes.
const GATHERED: usize = 512;

/// Adds w δᵢᵖ δⱼ^q to the cells of a pair of axes, `SIZE` = k + 1 rows of `WIDTH` numbers each.
#[inline(always)]
fn add_pair<const SIZE: usize, const WIDTH: usize>(table: &mut [f64], pair: &Pair) {
    let row_length = pair.columns.count * SIZE * WIDTH;
    let column_unit = pair.columns.step / PLACES;
    let mut gathered = [0; GATHERED];
    for (bin, row) in table.chunks_exact_mut(row_length).enumerate() {
        // Read in order, the row comes through the memory's prefetcher; met cell by cell it would not.
        std::hint::black_box(row.iter().step_by(8).fold(0, |bits, sum| bits | sum.to_bits()));
        let (cells, _) = row.as_chunks_mut::<WIDTH>();
        for points in pair.sorted.bin(bin).chunks(GATHERED) {
            for (across, &(_, point, _)) in gathered.iter_mut().zip(points) {
                *across = pair.places[point as usize];
            }
            for (&(distance, _, mut weight), &across) in points.iter().zip(&gathered) {
                let (column, across) = pair.columns.bin(across);
                let (delta_i, delta_j) = (
                    f64::from(distance) * pair.row_unit,
                    f64::from(across) * column_unit,
                );
                let mut powers = [0.0; WIDTH];
                powers[0] = 1.0;
                for q in 1..SIZE {
                    powers[q] = powers[q - 1] * delta_j;
                }
                for cell in &mut cells[column * SIZE..][..SIZE] {
                    for q in 0..WIDTH {
                        cell[q] += weight * powers[q];
                    }
                    weight *= delta_i;
                }
            }
        }
    }
}

macro_rules! vector_versions {
    ($($name:ident: $size:literal, $width:literal;)+) => {$(
        #[multiversion::multiversion(targets("x86_64+avx2+fma"))]
        pub(crate) fn $name(table: &mut [f64], pair: &Pair) {
            add_pair::<$size, $width>(table, pair);
        }
    )+};
}

vector_versions! {
    add_pair_1: 2, 2;
    add_pair_2: 3, 4;
    add_pair_3: 4, 4;
}

/// The same for any power.
pub(crate) fn add_pair_any(power: usize, table: &mut [f64], pair: &Pair) {
    let (size, width) = (power + 1, row_width(power));
    let row_length = pair.columns.count * size * width;
    for (bin, row) in table.chunks_exact_mut(row_length).enumerate() {
        for &(distance, point, mut weight) in pair.sorted.bin(bin) {
            let (column, across) = pair.columns.bin(pair.places[point as usize]);
            let delta_j = f64::from(across) * pair.columns.step / PLACES;
            for cell in row[column * size * width..][..size * width].chunks_mut(width) {
                let mut term = weight;
                for sum in &mut cell[..size] {
                    *sum += term;
                    term *= delta_j;
                }
                weight *= f64::from(distance) * pair.row_unit;
            }
        }
    }
}

/// Adds (column) δᵖ to the bins of an axis; `width` is the number of powers.
pub(crate) fn add_axis(sums: &mut [f64], width: usize, axis: &AxisBins, places: &[u32], column: &[f64]) {
    let unit = axis.step / PLACES;
    for (&place, &value) in places.iter().zip(column) {
        let (bin, distance) = axis.bin(place);
        let delta = f64::from(distance) * unit;
        let mut term = value;
        for sum in &mut sums[bin * width..][..width] {
            *sum += term;
            term *= delta;
        }
    }
}
