//! The neurons to choose from: the dictionary, and what of it a step looks at.

mod dictionary;
mod grid;
mod seen;

pub use dictionary::{Dictionary, DirectionKind};
pub use grid::{DEFAULT_OFFSETS, Draw, axis_bins, grid, is_fixed, resolution};
pub use seen::Seen;

use crate::network::Neuron;
use std::ops::Range;

/// Offsets at even distances along a direction: the knots τ where a neuron's argument is zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knots {
    /// The first knot.
    pub first: f64,
    /// The distance between two.
    pub step: f64,
    /// How many.
    pub count: usize,
}

impl Knots {
    /// The j-th knot.
    #[inline]
    pub fn at(&self, j: usize) -> f64 {
        self.first + j as f64 * self.step
    }
}

/// A direction with the offsets to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// ω.
    pub omega: Vec<f64>,
    /// The knots along ω·x.
    pub knots: Knots,
}

/// Directions × offsets. Where the grid is mirrored, each knot τ of a line stands for two neurons:
/// σ(ω·x − τ) and σ(τ − ω·x).
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The directions and their offsets.
    pub lines: Vec<Line>,
    /// Whether −ω is looked at too.
    pub mirrored: bool,
    starts: Vec<usize>,
}

impl Grid {
    /// A grid of these lines.
    pub fn new(lines: Vec<Line>, mirrored: bool) -> Self {
        let sides = if mirrored { 2 } else { 1 };
        let mut starts = vec![0];
        for line in &lines {
            starts.push(starts[starts.len() - 1] + sides * line.knots.count);
        }
        Self {
            lines,
            mirrored,
            starts,
        }
    }

    /// The number of neurons.
    pub fn len(&self) -> usize {
        self.starts[self.lines.len()]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the scores of a line start: those of ω first, then those of −ω.
    pub fn start(&self, line: usize) -> usize {
        self.starts[line]
    }

    /// The numbers of all neurons on the line of one.
    pub fn line_of(&self, index: usize) -> Range<usize> {
        let line = self.starts.partition_point(|&start| start <= index) - 1;
        self.starts[line]..self.starts[line + 1]
    }

    /// The neuron with this number.
    pub fn neuron(&self, index: usize) -> Neuron {
        let line = self.starts.partition_point(|&start| start <= index) - 1;
        let Line { omega, knots } = &self.lines[line];
        let place = index - self.starts[line];
        if place < knots.count {
            Neuron {
                omega: omega.clone(),
                bias: -knots.at(place),
            }
        } else {
            Neuron {
                omega: omega.iter().map(|o| -o).collect(),
                bias: knots.at(place - knots.count),
            }
        }
    }
}

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
    /// The bin of a place and the distance from its left edge, in parts of 2⁻³² of its width.
    #[inline(always)]
    pub(crate) fn bin(&self, place: u32) -> (usize, u32) {
        let wide = u64::from(place) * self.count as u64;
        ((wide >> 32) as usize, wide as u32)
    }

    /// The left edge of a bin, or the end of the last.
    pub fn edge(&self, bin: usize) -> f64 {
        self.low + bin as f64 * self.step
    }
}

/// How finely neurons are told apart: what is smaller than a cell of the quadrature is not worth
/// knowing, and an argmax that knows it chooses quadrature errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// Between two offsets.
    pub offset: f64,
    /// Between two components of ω.
    pub angle: f64,
}

/// What to score.
#[derive(Debug, Clone, Copy)]
pub enum Candidates<'a> {
    /// Directions × offsets.
    Grid(&'a Grid),
    /// Neurons one by one.
    List(&'a [Neuron]),
}

impl Candidates<'_> {
    /// The number of neurons.
    pub fn len(&self) -> usize {
        match self {
            Candidates::Grid(grid) => grid.len(),
            Candidates::List(list) => list.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
