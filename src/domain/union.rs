//! Boxes that do not overlap.

use super::{Blame, DomainError};

/// Sides within this part of the width count as one.
const SAME: f64 = 1e-12;

/// A box, in which sides may have no width.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The lower ends.
    pub lower: Vec<f64>,
    /// The upper ends.
    pub upper: Vec<f64>,
}

/// Boxes side by side; what two of them share is inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    parts: Vec<Part>,
    /// For each coordinate the pieces of the boundary that look down it, and those that look up.
    sides: Vec<[Vec<Part>; 2]>,
}

impl Part {
    /// The product of the widths, of one coordinate left out if asked for.
    pub fn measure(&self, without: Option<usize>) -> f64 {
        let widths = self.lower.iter().zip(&self.upper).enumerate();
        let widths = widths.filter(|(axis, _)| Some(*axis) != without);
        widths.map(|(_, (low, high))| high - low).product()
    }

    fn slack(&self, axis: usize) -> f64 {
        SAME * (self.upper[axis] - self.lower[axis])
            .abs()
            .max(self.upper[axis].abs())
    }

    /// Whether the insides of two boxes have points in common, looking at some coordinates only.
    fn overlaps(&self, other: &Part, mut axes: impl Iterator<Item = usize>) -> bool {
        axes.all(|axis| {
            let slack = self.slack(axis);
            self.lower[axis] + slack < other.upper[axis] && other.lower[axis] + slack < self.upper[axis]
        })
    }

    /// What is left of a box after another is taken out, in the directions of all coordinates but one.
    fn without(&self, other: &Part, fixed: usize) -> Vec<Part> {
        let d = self.lower.len();
        if !self.overlaps(other, (0..d).filter(|&axis| axis != fixed)) {
            return vec![self.clone()];
        }
        let mut rest = self.clone();
        let mut left = Vec::new();
        for axis in (0..d).filter(|&axis| axis != fixed) {
            let slack = self.slack(axis);
            if rest.lower[axis] + slack < other.lower[axis] {
                let mut below = rest.clone();
                below.upper[axis] = other.lower[axis];
                rest.lower[axis] = other.lower[axis];
                left.push(below);
            }
            if other.upper[axis] + slack < rest.upper[axis] {
                let mut above = rest.clone();
                above.lower[axis] = other.upper[axis];
                rest.upper[axis] = other.upper[axis];
                left.push(above);
            }
        }
        left
    }
}

impl Part {
    /// Whether a point is in the box or on its boundary, to rounding.
    pub fn contains(&self, point: &[f64]) -> bool {
        let mut sides = self.lower.iter().zip(&self.upper).zip(point);
        sides.all(|((l, u), x)| {
            let slack = 1e-12 * (u - l);
            (l - slack..=u + slack).contains(x)
        })
    }
}

impl Union {
    /// The union of boxes; an error where two overlap or one has no inside.
    pub fn new(parts: Vec<Part>) -> Result<Self, DomainError> {
        let d = parts.first().map_or(0, |part| part.lower.len());
        for (i, part) in parts.iter().enumerate() {
            if let Some(axis) = (0..d).find(|&axis| part.lower[axis] >= part.upper[axis]) {
                return Err(DomainError::new(format!(
                    "part {i}: lower = {} is not below upper = {} in x[{}]",
                    part.lower[axis],
                    part.upper[axis],
                    axis + 1
                ))
                .blame(Some(Blame::Part(i))));
            }
            if let Some(j) = (0..i).find(|&j| part.overlaps(&parts[j], 0..d)) {
                return Err(DomainError::new(format!("parts {j} and {i} overlap"))
                    .help("cut one of them: parts may share sides, not more")
                    .blame(Some(Blame::Part(i))));
            }
        }
        let sides = (0..d)
            .map(|axis| [false, true].map(|upper| side(&parts, axis, upper)))
            .collect();
        Ok(Self { parts, sides })
    }

    /// The boxes.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The pieces of the boundary whose outer normal points down or up a coordinate.
    pub fn pieces(&self, coordinate: usize, upper: bool) -> &[Part] {
        &self.sides[coordinate][usize::from(upper)]
    }

    /// The smallest and largest value of a coordinate.
    pub fn side(&self, axis: usize) -> (f64, f64) {
        let low = self.parts.iter().map(|part| part.lower[axis]);
        let high = self.parts.iter().map(|part| part.upper[axis]);
        (
            low.fold(f64::INFINITY, f64::min),
            high.fold(f64::NEG_INFINITY, f64::max),
        )
    }

    /// The parts by the pieces of the domain they are in: within a piece one can go from part to part through shared sides.
    pub fn pieces_apart(&self) -> Vec<Vec<usize>> {
        let d = self.parts[0].lower.len();
        let touch = |a: &Part, b: &Part| {
            (0..d).any(|axis| {
                let slack = a.slack(axis);
                let meet = (a.upper[axis] - b.lower[axis]).abs() <= slack
                    || (b.upper[axis] - a.lower[axis]).abs() <= slack;
                meet && a.overlaps(b, (0..d).filter(|&other| other != axis))
            })
        };
        let mut left: Vec<usize> = (0..self.parts.len()).collect();
        let mut pieces = Vec::new();
        while let Some(first) = left.pop() {
            let mut piece = vec![first];
            let mut next = 0;
            while let Some(&from) = piece.get(next) {
                let (fresh, rest) = left
                    .iter()
                    .partition(|&&to| touch(&self.parts[from], &self.parts[to]));
                left = rest;
                piece.extend::<Vec<usize>>(fresh);
                next += 1;
            }
            pieces.push(piece);
        }
        pieces
    }
}

/// The sides of boxes that look down or up a coordinate, without what is shared.
fn side(parts: &[Part], axis: usize, upper: bool) -> Vec<Part> {
    let mut all = Vec::new();
    for part in parts {
        let place = if upper { part.upper[axis] } else { part.lower[axis] };
        let slack = part.slack(axis);
        let mut flat = part.clone();
        (flat.lower[axis], flat.upper[axis]) = (place, place);
        let mut left = vec![flat];
        for other in parts {
            let behind = if upper {
                other.lower[axis]
            } else {
                other.upper[axis]
            };
            if (behind - place).abs() <= slack {
                left = left.iter().flat_map(|piece| piece.without(other, axis)).collect();
            }
        }
        all.extend(left);
    }
    all
}
