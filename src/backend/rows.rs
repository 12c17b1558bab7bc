//! Candidates as rows of offsets along a direction, the shape in which a GPU scores them.

use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::domain::Domain;
use crate::network::ridges;

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
        match candidates {
            Candidates::Grid(grid) => {
                for (index, line) in grid.lines.iter().enumerate() {
                    let (start, count) = (grid.start(index), line.knots.count);
                    let knots: Vec<f64> = (0..count).map(|j| line.knots.at(j)).collect();
                    plan.add_side(activation, domain, &line.omega, 1.0, start, &knots, length);
                    if grid.mirrored {
                        let minus: Vec<f64> = line.omega.iter().map(|o| -o).collect();
                        plan.add_side(activation, domain, &minus, -1.0, start + count, &knots, length);
                    }
                }
            }
            Candidates::List(list) => {
                for ridge in ridges(list) {
                    for sign in [1.0, -1.0] {
                        let members = ridge.members.iter().filter(|(_, s, _)| *s == sign);
                        let offsets: Vec<(usize, f64)> =
                            members.map(|&(position, _, bias)| (position, bias)).collect();
                        let omega: Vec<f64> = ridge.omega.iter().map(|o| sign * o).collect();
                        plan.add_rows(&omega, &offsets, length);
                    }
                }
            }
        }
        plan
    }

    /// One sign of a line: σ(±(t − τ)) at every knot τ.
    #[allow(clippy::too_many_arguments)]
    fn add_side(
        &mut self,
        activation: Activation,
        domain: &Domain,
        omega: &[f64],
        sign: f64,
        start: usize,
        knots: &[f64],
        length: usize,
    ) {
        let (low, high) = domain.extent(omega);
        let slack = 1e-9 * (high - low);
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (j, &knot) in knots.iter().enumerate() {
            let bias = -sign * knot;
            match activation.relu_power() {
                // No point is active: the score is zero.
                Some(_) if high + bias < -slack => {}
                Some(_) if low + bias > slack => outside.push((start + j, bias)),
                _ => inside.push((start + j, bias)),
            }
        }
        let nodes = activation.relu_power().unwrap_or(0) + 1;
        if outside.len() > nodes {
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
        } else {
            inside.extend(outside);
        }
        self.add_rows(omega, &inside, length);
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
