//! Candidates gathered by their directions: neurons on one line share t = ω·x.

use crate::candidates::{Candidates, Knots};
use crate::network::ridges;

/// A line of directions ±ω with the candidates on it.
pub(crate) struct CandidateLine {
    pub(crate) omega: Vec<f64>,
    pub(crate) members: Members,
}

/// The candidates of a line.
pub(crate) enum Members {
    /// σ(t − τ) at every knot, then σ(τ − t) if mirrored; their scores begin at `start`.
    Knots {
        knots: Knots,
        start: usize,
        mirrored: bool,
    },
    /// Position in the list, sign and bias of each.
    Listed(Vec<(usize, f64, f64)>),
}

/// The lines of a set of candidates.
pub(crate) fn candidate_lines(candidates: Candidates) -> Vec<CandidateLine> {
    match candidates {
        Candidates::Grid(grid) => {
            let lines = grid.lines.iter().enumerate();
            let of_line = |(index, line): (usize, &crate::candidates::Line)| CandidateLine {
                omega: line.omega.clone(),
                members: Members::Knots {
                    knots: line.knots,
                    start: grid.start(index),
                    mirrored: grid.mirrored,
                },
            };
            lines.map(of_line).collect()
        }
        Candidates::List(list) => {
            let of_ridge = |ridge: crate::network::Ridge| CandidateLine {
                omega: ridge.omega,
                members: Members::Listed(ridge.members),
            };
            ridges(list).into_iter().map(of_ridge).collect()
        }
    }
}

impl Members {
    /// Position, sign and bias of each.
    pub(crate) fn one_by_one(&self) -> Vec<(usize, f64, f64)> {
        match self {
            Members::Listed(members) => members.clone(),
            Members::Knots {
                knots,
                start,
                mirrored,
            } => {
                let (start, count) = (*start, knots.count);
                let plus = (0..count).map(|j| (start + j, 1.0, -knots.at(j)));
                let minus = (0..count).map(|j| (start + count + j, -1.0, knots.at(j)));
                let sides = if *mirrored { 2 } else { 1 };
                plus.chain(minus).take(sides * count).collect()
            }
        }
    }
}
