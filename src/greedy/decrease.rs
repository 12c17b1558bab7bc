//! The choice by decrease: the neuron that lowers the loss most after the projection.
//!
//! Adding g to the span lowers a quadratic loss by exactly ½⟨∇L(u), g⟩² / ‖P⊥g‖², P⊥ the projection off the
//! span of the neurons chosen so far in the inner product of the energy. With q the normalised new part of the
//! neuron added last and p = ⟨∇²L q, g⟩ for all candidates g, one sweep, both parts follow from those of the
//! step before: ⟨∇L(u), g⟩ changes by y p, where u changed by y q, and ‖P⊥g‖² by −p².

use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::{Addition, Cholesky, Newest, Projection};
use crate::refine::Landscape;
use crate::sums::{Accuracy, LocalScore, Rho, Slopes, Sums};

/// Candidates of whose square norm less than this part is new are closed: the difference has no digits below.
const CLOSED: f64 = 1e-7;
/// Scores are taken afresh after so many neurons, to keep their digits.
pub(crate) const REFRESH: usize = 32;

/// The square of a norm is known when two sets of points agree on it to this factor.
const AGREEMENT: f64 = 1.5;

/// Whether two sets of points agree on the square of a neuron's norm. Where few points see a neuron, in a corner
/// of many dimensions, its norm may vanish on them while its load does not, and the quotient knows no bounds.
pub(super) fn is_known(square: f64, other: f64) -> bool {
    square > 0.0 && square <= AGREEMENT * other && other <= AGREEMENT * square
}

/// What is known of every candidate of a grid that stays the same.
pub(crate) struct Board {
    /// ⟨∇L(u), g⟩.
    scores: Vec<f64>,
    /// ‖g‖².
    squares: Vec<f64>,
    /// ‖P⊥g‖².
    left: Vec<f64>,
    /// Whether the points know the candidate's norm.
    known: Vec<bool>,
    /// The neurons of u that are accounted for.
    neurons: usize,
}

impl Board {
    /// The norms of the candidates, whose scores are zero as yet. `validation` has a second opinion on their norms.
    pub(crate) fn unscored(
        sums: &dyn Sums,
        validation: Option<&dyn Sums>,
        grid: &Grid,
        zero: &Network,
    ) -> Result<Self, SolveError> {
        let squares = sums.at(zero)?.squares(Candidates::Grid(grid))?;
        let known = match validation {
            Some(validation) => {
                let others = validation.at(zero)?.squares(Candidates::Grid(grid))?;
                let pairs = squares.iter().zip(others);
                pairs.map(|(&square, other)| is_known(square, other)).collect()
            }
            None => vec![true; squares.len()],
        };
        Ok(Self {
            scores: vec![0.0; squares.len()],
            left: squares.clone(),
            squares,
            known,
            neurons: 0,
        })
    }

    /// Closes the candidates that are not seen.
    pub(super) fn close(&mut self, seen: &[bool]) {
        self.known
            .iter_mut()
            .zip(seen)
            .for_each(|(known, seen)| *known &= seen);
    }

    /// How many neurons are accounted for.
    pub(super) fn neurons(&self) -> usize {
        self.neurons
    }

    /// Takes the scores of ∇L(u) afresh.
    pub(super) fn refresh(&mut self, gradient: &dyn Rho, grid: &Grid) -> Result<(), SolveError> {
        self.rescore(gradient.scores(Candidates::Grid(grid), Accuracy::Full)?.values)
    }

    /// Takes these scores of another gradient.
    pub(crate) fn rescore(&mut self, scores: Vec<f64>) -> Result<(), SolveError> {
        self.scores = scores;
        match self.scores.iter().all(|score| score.is_finite()) {
            true => Ok(()),
            false => Err(SolveError::Breakdown {
                neurons: self.neurons,
            }),
        }
    }

    /// Accounts for the neuron added last.
    pub(crate) fn absorb(&mut self, newest: &Newest, grid: &Grid) -> Result<(), SolveError> {
        let along = newest.rho.scores(Candidates::Grid(grid), Accuracy::Full)?.values;
        let candidates = self.scores.iter_mut().zip(&mut self.left);
        for ((score, left), p) in candidates.zip(along) {
            *score += newest.component * p;
            *left -= p * p;
        }
        self.neurons += 1;
        Ok(())
    }

    /// The squares of the norms under another curvature, with no neuron accounted for.
    fn restart(&mut self, squares: Vec<f64>) {
        self.left = squares.clone();
        self.squares = squares;
        self.neurons = 0;
    }

    /// The scores of all candidates.
    pub(crate) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// 1/‖P⊥g‖ of all candidates, zero for those that are closed: |score| times it is the root of twice the
    /// decrease.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let weight = |((&left, &square), &known): ((&f64, &f64), &bool)| match known && left > CLOSED * square
        {
            true => left.sqrt().recip(),
            false => 0.0,
        };
        let candidates = self.left.iter().zip(&self.squares).zip(&self.known);
        candidates.map(weight).collect()
    }
}

/// ⟨∇L(u), g⟩ / ‖P⊥g‖ as a function of g, whose square is twice the decrease.
pub(super) struct DecreaseLandscape<'r, 'a> {
    pub(super) gradient: &'r dyn Rho,
    pub(super) slopes: &'r dyn Slopes,
    pub(super) projection: &'r Projection<'a>,
    pub(super) neurons: &'r [Neuron],
}

impl DecreaseLandscape<'_, '_> {
    /// The score of a neuron as it is, and what turns it into the root of the decrease.
    pub(super) fn weight(&self, g: &Neuron) -> Result<f64, SolveError> {
        let remainder = self.projection.remainder(self.neurons, g)?;
        Ok(remainder.map_or(0.0, |(square, _)| match square > 0.0 {
            true => square.sqrt().recip(),
            false => 0.0,
        }))
    }
}

/// s r^(−½) with its slopes, from a score s and a square r with half its slopes:
/// d(s r^(−½)) = r^(−½) (ds − ½ s dr / r).
fn quotient(score: &LocalScore, square: &LocalScore) -> LocalScore {
    if square.value <= 0.0 {
        return LocalScore::zero(score.gradient.len() - 1);
    }
    let root = square.value.sqrt();
    let part = score.value / square.value;
    let pairs = score.gradient.iter().zip(&square.gradient);
    LocalScore {
        value: score.value / root,
        gradient: pairs.map(|(ds, half)| (ds - part * half) / root).collect(),
    }
}

impl Landscape for DecreaseLandscape<'_, '_> {
    fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        let scores = self.gradient.list_scores(neurons)?;
        let pairs = neurons.iter().zip(scores);
        pairs.map(|(g, score)| Ok(score * self.weight(g)?)).collect()
    }

    fn slopes(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        let scores = self.slopes.slopes_at(neurons)?;
        let Some(squares) = self.projection.remainders(self.neurons, neurons)? else {
            return Ok(scores
                .iter()
                .map(|score| LocalScore::zero(score.gradient.len() - 1))
                .collect());
        };
        Ok(scores
            .iter()
            .zip(&squares)
            .map(|(score, square)| quotient(score, square))
            .collect())
    }
}

/// For losses that are not quadratic: the inner product ∇²L at an earlier u, with the chosen neurons
/// orthonormalised in it. It is taken anew when the neurons have doubled.
pub(super) struct Metric {
    u: Network,
    factor: Cholesky,
}

impl Metric {
    /// Brings the board up to the neurons of u.
    pub(super) fn account(
        place: &mut Option<Metric>,
        board: &mut Board,
        sums: &dyn Sums,
        u: &Network,
        grid: &Grid,
    ) -> Result<(), SolveError> {
        if board.neurons < u.len() {
            if u.len().is_power_of_two() || place.is_none() {
                *place = Some(Metric {
                    u: u.clone(),
                    factor: Cholesky::default(),
                });
                board.restart(sums.at(u)?.squares(Candidates::Grid(grid))?);
            }
            if let Some(metric) = place {
                while board.neurons < u.len() {
                    metric.add(board, sums, &u.neurons[..=board.neurons], grid)?;
                }
            }
        }
        board.refresh(&*sums.gradient(u)?, grid)
    }

    /// Accounts for the last of these neurons.
    fn add(
        &mut self,
        board: &mut Board,
        sums: &dyn Sums,
        neurons: &[Neuron],
        grid: &Grid,
    ) -> Result<(), SolveError> {
        let field = sums.at(&self.u)?;
        let single = Network::single(self.u.activation, &neurons[neurons.len() - 1]);
        let column = field.curvature(&single)?.list_scores(neurons)?;
        board.neurons += 1;
        // What the others span in this metric takes nothing off any candidate.
        let orthogonal = self.factor.try_add(&column, 0.0);
        if let (Addition::Added, Some((coefficients, _))) = (orthogonal, self.factor.newest()) {
            let q = Network {
                neurons: neurons.to_vec(),
                coefficients,
                ..Network::zero(self.u.activation, self.u.dimension)
            };
            let along = field
                .curvature(&q)?
                .scores(Candidates::Grid(grid), Accuracy::Full)?;
            let parts = board.left.iter_mut().zip(along.values);
            parts.for_each(|(left, p)| *left -= p * p);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Overrides, Problem, Purpose};
    use crate::sums::{CpuOptions, CpuSums};

    fn problem(formulation: &str, power: usize) -> Problem {
        let equation = match formulation {
            "energy" => "diffusion = \"1 + x\"\nreaction = \"2\"",
            _ => "formulation = \"residual\"\noperator = \"-laplacian(u) + d(u, x) + u\"",
        };
        let text = format!(
            "name = \"t\"\n[domain]\ndimension = 2\n[equation]\n{equation}\nexact = \"exp(x)*cos(3*y)\"\n\
             [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^{power}\"\ncandidates = 12\n\
             offsets = 16\n[quadrature]\nrule = \"gauss\"\ncells = 12\n[solver]\nneurons = 12\n"
        );
        Problem::from_toml(&text, "t", &Overrides::default()).unwrap()
    }

    /// Twelve neurons chosen by decrease: at every step ‖P⊥g‖² and the scores are those of a direct projection,
    /// and the loss falls by what was predicted.
    #[test]
    fn downdates_are_projections_and_predictions_come_true() {
        for (formulation, power) in [("energy", 2), ("residual", 3)] {
            let problem = problem(formulation, power);
            let loss = problem.loss(12, Purpose::Training).unwrap();
            let sums = CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap();
            let grid = problem.grid(0);
            let mut projection = Projection::cholesky(&sums);
            let mut u = Network::zero(problem.dictionary.activation, 2);
            let gradient = sums.gradient(&u).unwrap();
            let mut board = Board::unscored(&sums, None, &grid, &u).unwrap();
            board.refresh(&*gradient, &grid).unwrap();
            for _ in 0..12 {
                let (scores, weights) = (board.scores().to_vec(), board.weights());
                let gradient = sums.gradient(&u).unwrap();
                for index in (0..grid.len()).step_by(17).filter(|&index| weights[index] > 0.0) {
                    let g = grid.neuron(index);
                    let (square, _) = projection.remainder(&u.neurons, &g).unwrap().unwrap();
                    let left = weights[index].powi(-2);
                    assert!(
                        (left - square).abs() < 1e-9 * board.squares[index],
                        "{left} {square}"
                    );
                    let score = gradient.list_scores(&[g]).unwrap()[0];
                    assert!((score - scores[index]).abs() < 1e-9 * (1.0 + score.abs()));
                }
                let best = (0..grid.len())
                    .max_by(|&a, &b| {
                        let size = |i: usize| scores[i].abs() * weights[i];
                        size(a).total_cmp(&size(b))
                    })
                    .unwrap();
                let predicted = 0.5 * (scores[best] * weights[best]).powi(2);
                let before = sums.risk(&u).unwrap();
                let g = grid.neuron(best);
                assert_eq!(projection.try_add(&u, &g, scores[best]).unwrap(), Addition::Added);
                u = u.advanced(1.0, &g, 0.0);
                u.coefficients = projection.coefficients(&u.neurons).unwrap();
                let fallen = before - sums.risk(&u).unwrap();
                assert!((fallen / predicted - 1.0).abs() < 1e-6, "{fallen} {predicted}");
                board
                    .absorb(&projection.newest(&u.neurons).unwrap().unwrap(), &grid)
                    .unwrap();
            }
        }
    }
}
