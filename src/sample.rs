//! Values of networks and formulas at listed points: for files, tables and pictures.

use crate::expression::{MultiIndex, Program, Workspace};
use crate::network::Network;
use crate::points::{TILE, Tile, in_parallel};
use crate::problem::Problem;
use crate::ridge::{EvaluationScratch, Evaluator};
use crate::symbol::Symbol;
use rayon::prelude::*;
use std::convert::Infallible;

/// The Laplacian in d dimensions.
pub fn laplacian(dimension: usize) -> Symbol {
    Symbol::new((0..dimension).map(|i| (1.0, MultiIndex::new([i, i]))).collect())
}

/// u under each symbol at every point; `coordinates[i]` holds the i-th coordinate of every point.
pub fn of_network(network: &Network, symbols: &[Symbol], coordinates: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let evaluator = Evaluator::new(network);
    in_tiles(coordinates, symbols.len(), |tile| {
        evaluator.jets(symbols, tile, &mut EvaluationScratch::default())
    })
}

/// u under each symbol at points that stand one after the other, each with all its coordinates: the values of a point
/// stand together, too. `look` sees the number of the first point of every tile and its points, while they are at hand.
pub fn of_network_by_point(
    network: &Network,
    symbols: &[Symbol],
    points: &[f64],
    look: impl Fn(usize, &[f64]) + Sync,
) -> Vec<f64> {
    let (d, width) = (network.dimension, symbols.len());
    let evaluator = Evaluator::new(network);
    let mut values = vec![0.0; points.len() / d * width];
    let pieces = points
        .par_chunks(TILE * d)
        .zip(values.par_chunks_mut(TILE * width));
    let pieces = pieces.enumerate();
    pieces.for_each_init(
        EvaluationScratch::default,
        |scratch, (number, (points, values))| {
            look(number * TILE, points);
            let column = |i: usize| points.chunks_exact(d).map(|point| point[i]).collect();
            let tile = Tile {
                coordinates: (0..d).map(column).collect(),
                weights: vec![0.0; points.len() / d],
                ..Tile::default()
            };
            let jets = evaluator.jets(symbols, &tile, scratch);
            if let [jet] = jets.as_slice() {
                values.copy_from_slice(jet);
                return;
            }
            for (c, jet) in jets.iter().enumerate() {
                let places = values.chunks_exact_mut(width);
                places.zip(jet).for_each(|(place, value)| place[c] = *value);
            }
        },
    );
    values
}

/// u at every point.
pub fn values(network: &Network, coordinates: &[Vec<f64>]) -> Vec<f64> {
    of_network(network, &[Symbol::value()], coordinates).swap_remove(0)
}

/// The exact solution at every point, if the problem has one.
pub fn of_exact(problem: &Problem, coordinates: &[Vec<f64>]) -> Option<Vec<f64>> {
    let program = Program::new(&problem.graph, &[problem.exact?], problem.dimension(), &[]);
    let mut columns = in_tiles(coordinates, 1, |tile| {
        let mut values = vec![0.0; tile.len()];
        let mut outputs = [values.as_mut_slice()];
        program.evaluate(
            &mut Workspace::default(),
            &tile.columns(),
            tile.len(),
            &mut outputs,
        );
        vec![values]
    });
    columns.pop()
}

/// Columns of values, computed tile by tile.
fn in_tiles(
    coordinates: &[Vec<f64>],
    columns: usize,
    values: impl Fn(&Tile) -> Vec<Vec<f64>> + Sync,
) -> Vec<Vec<f64>> {
    let count = coordinates.first().map_or(0, Vec::len);
    let starts: Vec<usize> = (0..count).step_by(TILE).collect();
    let Ok(parts) = in_parallel(starts, |_: &mut (), start| {
        let range = start..(start + TILE).min(count);
        let tile = Tile {
            coordinates: coordinates
                .iter()
                .map(|column| column[range.clone()].to_vec())
                .collect(),
            weights: vec![0.0; range.len()],
            ..Tile::default()
        };
        Ok::<_, Infallible>(values(&tile))
    });
    (0..columns)
        .map(|c| parts.iter().flat_map(|part| part[c].iter().copied()).collect())
        .collect()
}
