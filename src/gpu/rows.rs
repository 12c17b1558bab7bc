//! Candidates as rows of offsets along a direction, the shape in which a GPU scores them.

use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::domain::Domain;
use crate::ridge::{Members, candidate_lines};

/// One direction with up to a row's length of offsets.
pub(super) struct ScoreRow {
    pub(super) omega: Vec<f64>,
    /// Where the score goes, and the bias.
    pub(super) offsets: Vec<(usize, f64)>,
}

/// What is computed by sums over the points, and what follows from it.
pub(super) struct RowPlan {
    pub(super) rows: Vec<ScoreRow>,
    pub(super) count: usize,
    /// Scores that are polynomials of the knot: every point is active (ReLU^k).
    polynomials: Vec<Polynomial>,
}

/// Scores at knots outside the domain: a polynomial of degree k through k + 1 of them gives the rest.
struct Polynomial {
    nodes: Vec<(usize, f64)>,
    others: Vec<(usize, f64)>,
}

/// The offsets of one sign of a line, by what the domain makes of them.
#[derive(Default)]
struct Side {
    /// To be summed up.
    inside: Vec<(usize, f64)>,
    /// Active at every point.
    outside: Vec<(usize, f64)>,
}

impl RowPlan {
    /// Rows of at most `length` offsets.
    pub(super) fn new(
        activation: Activation,
        domain: &Domain,
        candidates: Candidates,
        length: usize,
    ) -> Self {
        let mut plan = Self {
            rows: Vec::new(),
            count: candidates.len(),
            polynomials: Vec::new(),
        };
        for line in candidate_lines(candidates) {
            let members = line.members.one_by_one();
            let is_grid = matches!(line.members, Members::Knots { .. });
            for sign in [1.0, -1.0] {
                let omega: Vec<f64> = line.omega.iter().map(|o| sign * o).collect();
                let offsets = members.iter().filter(|(_, s, _)| *s == sign);
                let offsets: Vec<(usize, f64)> =
                    offsets.map(|&(position, _, bias)| (position, bias)).collect();
                let summed = match activation.relu_power() {
                    Some(power) if is_grid => plan.by_polynomials(power, Side::new(domain, &omega, offsets)),
                    _ => offsets,
                };
                plan.add_rows(&omega, &summed, length);
            }
        }
        plan
    }

    /// Notes which scores follow from others; the offsets that are left to be summed up.
    fn by_polynomials(&mut self, power: usize, side: Side) -> Vec<(usize, f64)> {
        let Side { mut inside, outside } = side;
        let nodes = power + 1;
        if outside.len() <= nodes {
            inside.extend(outside);
            return inside;
        }
        let chosen: Vec<usize> = (0..nodes)
            .map(|i| i * (outside.len() - 1) / (nodes - 1).max(1))
            .collect();
        let polynomial = Polynomial {
            nodes: chosen.iter().map(|&i| outside[i]).collect(),
            others: (0..outside.len())
                .filter(|i| !chosen.contains(i))
                .map(|i| outside[i])
                .collect(),
        };
        inside.extend(&polynomial.nodes);
        self.polynomials.push(polynomial);
        inside
    }

    fn add_rows(&mut self, omega: &[f64], offsets: &[(usize, f64)], length: usize) {
        self.rows.extend(offsets.chunks(length).map(|offsets| ScoreRow {
            omega: omega.to_vec(),
            offsets: offsets.to_vec(),
        }));
    }

    /// Fills in the scores that follow from others.
    pub(super) fn complete(&self, scores: &mut [f64]) {
        for polynomial in &self.polynomials {
            for &(position, x) in &polynomial.others {
                // Lagrange's formula.
                scores[position] = polynomial
                    .nodes
                    .iter()
                    .map(|&(node, xi)| {
                        let factors = polynomial.nodes.iter().filter(|(other, _)| *other != node);
                        scores[node] * factors.map(|&(_, xj)| (x - xj) / (xi - xj)).product::<f64>()
                    })
                    .sum();
            }
        }
    }
}

impl Side {
    /// Sorts the offsets of σ(ω·x + b), a power of ReLU; those active nowhere have score zero and are left out.
    fn new(domain: &Domain, omega: &[f64], offsets: Vec<(usize, f64)>) -> Self {
        let (low, high) = domain.extent(omega);
        let slack = 1e-9 * (high - low);
        let mut side = Self::default();
        for (position, bias) in offsets {
            if low + bias > slack {
                side.outside.push((position, bias));
            } else if high + bias >= -slack {
                side.inside.push((position, bias));
            }
        }
        side
    }
}
