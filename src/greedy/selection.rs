//! Which candidate comes next: the best score first, as far as scores can be trusted.

use crate::candidates::{Candidates, Grid};
use crate::error::SolveError;
use crate::network::Neuron;
use crate::sums::{Accuracy, Rho, Scores};

/// Scores that differ by less than this part of the best count as equal …
const SMALLEST_TIE: f64 = 1e-7;
/// … and so do those within the rounding of their sums, but never by more than this part.
const LARGEST_TIE: f64 = 1e-3;
/// A best score below this many times the error of scores means nothing.
const ERROR_MARGIN: f64 = 16.0;
/// More candidates than this within the error of the best: full accuracy for all is cheaper.
const LARGEST_BAND: usize = 4096;

/// How accurately grids are scored, step after step. Whatever does the sums, it begins with what is fastest
/// and goes over to full accuracy for good when the best score comes near the error of the scores, so that
/// noise is never picked as a neuron.
pub(super) struct Scanner {
    accuracy: Accuracy,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            accuracy: Accuracy::Fast,
            notes: Vec::new(),
        }
    }

    /// ⟨ρ, g⟩ for the neurons of a grid. `neurons` is how many there are so far.
    pub(super) fn scan(&mut self, rho: &dyn Rho, grid: &Grid, neurons: usize) -> Result<Scores, SolveError> {
        let along = Candidates::Grid(grid);
        let mut scores = rho.scores(along, self.accuracy)?;
        if self.accuracy == Accuracy::Fast && !trusted(&scores) {
            self.accuracy = Accuracy::Full;
            let best = largest(&scores.values);
            let error = scores.error;
            scores = rho.scores(along, Accuracy::Full)?;
            self.notes.push(format!(
                "from {neurons} neurons on scores are computed in double precision: the best, {best:.1e}, came \
                 near the error of single precision, {error:.1e}"
            ));
        }
        if scores.values.iter().any(|score| !score.is_finite()) {
            return Err(SolveError::Breakdown { neurons });
        }
        Ok(scores)
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// Whether the error leaves the best candidate to be found among a few.
fn trusted(scores: &Scores) -> bool {
    if scores.error == 0.0 {
        return true;
    }
    let best = largest(&scores.values);
    let near = scores
        .values
        .iter()
        .filter(|value| value.abs() >= best - 2.0 * scores.error);
    scores.error.is_finite() && best >= ERROR_MARGIN * scores.error && near.count() <= LARGEST_BAND
}

/// Candidates from the best score down. Of those that tie the one less active at the domain's centre comes
/// first, so that rounding does not choose between neurons that mirror each other.
///
/// A candidate is handed out only with a score of full accuracy: whatever could be the best by the error of
/// its score is scored again first.
pub struct Ranking<'a> {
    rho: Option<&'a dyn Rho>,
    grid: &'a Grid,
    center: &'a [f64],
    /// By which scores are multiplied before they are compared, where they are.
    weights: Option<Vec<f64>>,
    /// Candidates besides the grid's.
    listed: Vec<Neuron>,
    scores: Vec<f64>,
    /// How far scores are off that are not exact.
    error: f64,
    exact: Vec<bool>,
    rounding: f64,
    taken: Vec<bool>,
}

impl<'a> Ranking<'a> {
    /// The neurons of a grid with these scores of ρ, which are sums with a rounding error of about `rounding`.
    pub fn new(rho: &'a dyn Rho, grid: &'a Grid, scores: Scores, rounding: f64, center: &'a [f64]) -> Self {
        let count = scores.values.len();
        Self {
            rho: Some(rho),
            grid,
            center,
            weights: None,
            listed: Vec::new(),
            exact: vec![scores.error == 0.0; count],
            error: scores.error,
            scores: scores.values,
            rounding,
            taken: vec![false; count],
        }
    }

    /// The neurons of a grid by |score| times weight, all of full accuracy.
    pub fn weighted(grid: &'a Grid, scores: Vec<f64>, weights: Vec<f64>, center: &'a [f64]) -> Self {
        let count = scores.len();
        Self {
            rho: None,
            grid,
            center,
            weights: Some(weights),
            listed: Vec::new(),
            exact: vec![true; count],
            error: 0.0,
            scores,
            rounding: 0.0,
            taken: vec![false; count],
        }
    }

    /// One more candidate, with a score of full accuracy.
    pub fn push(&mut self, neuron: Neuron, score: f64) {
        self.push_weighted(neuron, score, 1.0);
    }

    /// One more candidate, with its weight.
    pub fn push_weighted(&mut self, neuron: Neuron, score: f64, weight: f64) {
        self.listed.push(neuron);
        self.scores.push(score);
        self.exact.push(true);
        self.taken.push(false);
        if let Some(weights) = &mut self.weights {
            weights.push(weight);
        }
    }

    /// The best neuron of each of the best `count` lines of the grid with their scores, the best first. They
    /// stay among the candidates.
    pub fn best_of_lines(&mut self, count: usize) -> Result<Vec<(Neuron, f64)>, SolveError> {
        let taken = self.taken.clone();
        let mut best = Vec::new();
        while best.len() < count
            && let Some(index) = self.next_index()?
        {
            best.push((self.neuron(index), self.scores[index]));
            self.taken[self.grid.line_of(index)].fill(true);
        }
        self.taken = taken;
        Ok(best)
    }

    /// The best of those left, with its score.
    pub fn take_best(&mut self) -> Result<Option<(Neuron, f64)>, SolveError> {
        let index = self.next_index()?;
        Ok(index.map(|index| (self.neuron(index), self.scores[index])))
    }

    fn neuron(&self, index: usize) -> Neuron {
        match index.checked_sub(self.grid.len()) {
            Some(place) => self.listed[place].clone(),
            None => self.grid.neuron(index),
        }
    }

    fn left(&self) -> impl Iterator<Item = (usize, f64)> {
        let pairs = self.scores.iter().zip(&self.taken).enumerate();
        pairs
            .filter(|(_, (_, taken))| !**taken)
            .map(|(index, (score, _))| (index, score.abs() * self.weight(index)))
    }

    fn weight(&self, index: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[index])
    }

    fn next_index(&mut self) -> Result<Option<usize>, SolveError> {
        let mut best = self.best();
        while self.error > 0.0 {
            let near = best - 2.0 * self.error;
            let unsure = self
                .left()
                .filter(|&(index, size)| size >= near && !self.exact[index]);
            let unsure: Vec<usize> = unsure.map(|(index, _)| index).collect();
            if unsure.is_empty() {
                break;
            }
            self.score_again(&unsure)?;
            best = self.best();
        }
        if best == 0.0 && self.weights.is_some() {
            return Ok(None);
        }
        let tie = self.rounding.clamp(SMALLEST_TIE * best, LARGEST_TIE * best);
        let tied = self.left().filter(|(_, size)| *size >= best - tie);
        let first = tied
            .map(|(index, _)| (self.neuron(index).argument(self.center), index))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Ok(first.map(|(_, index)| {
            self.taken[index] = true;
            index
        }))
    }

    fn score_again(&mut self, which: &[usize]) -> Result<(), SolveError> {
        let list: Vec<Neuron> = which.iter().map(|&index| self.neuron(index)).collect();
        let Some(rho) = self.rho else {
            return Ok(());
        };
        for (&index, score) in which.iter().zip(rho.list_scores(&list)?) {
            self.scores[index] = score;
            self.exact[index] = true;
        }
        Ok(())
    }

    fn best(&self) -> f64 {
        self.left().map(|(_, size)| size).fold(0.0, f64::max)
    }
}
