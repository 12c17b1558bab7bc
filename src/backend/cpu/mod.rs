//! The sums over the points on the CPU: the reference and the fallback.

mod kept;
mod local;

use self::kept::values_at;
use super::plan::{LineSum, Plan};
use super::{Backend, BackendReport, LocalScore};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::evaluate::{EvaluationScratch, Evaluator, blocks, combine, project};
use crate::expression::Workspace;
use crate::loss::{Loss, Term, TermTile};
use crate::network::{Network, Neuron};
use crate::ridge::SweepScratch;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// The points are cut into at most this many runs, whatever the number of threads: the sums come
/// out the same on every machine.
const RUNS: usize = 32;
/// Up to this many tiles the work is done on the calling thread.
const SERIAL_TILES: usize = 4;

/// Settings of the CPU path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuOptions {
    /// Points and coefficients are kept in memory if they take at most this many bytes; else they
    /// are generated anew in every pass.
    pub cache_bytes: usize,
}

impl Default for CpuOptions {
    fn default() -> Self {
        Self { cache_bytes: 1 << 30 }
    }
}

/// [`Backend`] on the CPU.
pub struct CpuBackend {
    loss: Loss,
    activation: Activation,
    /// Every tile of the loss.
    tiles: Vec<TileSpec>,
    cache: Option<Vec<TermTile>>,
    /// ∇L(u) at every tile for the u last asked for, where the points are kept, too.
    channels: Option<(Network, Vec<Channels>)>,
    /// u for the u at which the curvature was last asked for, where the loss is not quadratic.
    values: Option<(Network, Vec<Channels>)>,
    /// The jets of that u, where evaluating it anew costs much.
    jets: Option<(Network, Vec<Channels>)>,
}

/// ρ_c at the points of a tile, one column per symbol.
pub(super) type Channels = Vec<Vec<f64>>;

/// Which points a tile has.
struct TileSpec {
    term: usize,
    range: Range<usize>,
    /// Where its numbers are in an embedding.
    embedded: Range<usize>,
}

/// Scratch memory of one thread.
#[derive(Default)]
struct Scratch {
    workspace: Workspace,
    tile: TermTile,
    /// The tile at hand: its number, its term, and its place in an embedding.
    index: usize,
    term: usize,
    embedded: Range<usize>,
    evaluation: EvaluationScratch,
    t: Vec<f64>,
    channels: Vec<Vec<f64>>,
    sweep: SweepScratch,
}

impl CpuBackend {
    /// The sums of `loss` for a dictionary with this activation.
    pub fn new(loss: Loss, activation: Activation, options: CpuOptions) -> Result<Self, SolveError> {
        let mut tiles = Vec::new();
        let mut embedded = 0;
        for (index, term) in loss.terms.iter().enumerate() {
            for range in term.points.tiles() {
                let width = range.len() * term.embedding_width();
                tiles.push(TileSpec {
                    term: index,
                    range,
                    embedded: embedded..embedded + width,
                });
                embedded += width;
            }
        }
        let bytes = loss.bytes();
        let mut backend = Self {
            loss,
            activation,
            tiles,
            cache: None,
            channels: None,
            values: None,
            jets: None,
        };
        if bytes <= options.cache_bytes {
            let filled: Vec<Result<TermTile, SolveError>> = backend
                .tiles
                .par_iter()
                .map_init(Workspace::default, |workspace, spec| {
                    let mut tile = TermTile::default();
                    backend.loss.terms[spec.term].fill(spec.range.clone(), workspace, &mut tile)?;
                    Ok(tile)
                })
                .collect();
            // The first error in the order of the points, whichever thread met one first.
            backend.cache = Some(filled.into_iter().collect::<Result<_, _>>()?);
        }
        Ok(backend)
    }

    /// Visits every tile in runs and folds the results in order.
    fn reduce<T: Send>(
        &self,
        new: impl Fn() -> T + Sync,
        visit: impl Fn(&mut T, &Term, &TermTile, &mut Scratch) -> Result<(), SolveError> + Sync,
        merge: impl Fn(&mut T, T),
    ) -> Result<T, SolveError> {
        let count = self.tiles.len();
        let run_length = count.div_ceil(RUNS).max(1);
        let run = |start: usize| -> Result<T, SolveError> {
            let mut scratch = Scratch::default();
            let mut sum = new();
            for index in start..(start + run_length).min(count) {
                let spec = &self.tiles[index];
                let term = &self.loss.terms[spec.term];
                let mut tile = std::mem::take(&mut scratch.tile);
                let filled: Cow<'_, TermTile> = match &self.cache {
                    Some(cache) => Cow::Borrowed(&cache[index]),
                    None => {
                        term.fill(spec.range.clone(), &mut scratch.workspace, &mut tile)?;
                        Cow::Owned(tile)
                    }
                };
                scratch.index = index;
                scratch.term = spec.term;
                scratch.embedded = spec.embedded.clone();
                visit(&mut sum, term, &filled, &mut scratch)?;
                if let Cow::Owned(tile) = filled {
                    scratch.tile = tile;
                }
            }
            Ok(sum)
        };
        let starts: Vec<usize> = (0..count).step_by(run_length).collect();
        let sums: Vec<Result<T, SolveError>> = if count <= SERIAL_TILES {
            starts.into_iter().map(run).collect()
        } else {
            starts.into_par_iter().map(run).collect()
        };
        let mut total = new();
        for sum in sums {
            merge(&mut total, sum?);
        }
        Ok(total)
    }

    /// Scores of channels that `channels` computes at each tile.
    fn scores<'a>(
        &self,
        along: Candidates,
        channels: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Cow<'a, [Vec<f64>]>, SolveError> + Sync,
    ) -> Result<Vec<f64>, SolveError> {
        self.scores_of_derivative(0, along, channels)
    }

    /// The same for the neurons' derivative of this order along their line: ∂ᵏ/∂tᵏ σ(±t + b).
    fn scores_of_derivative<'a>(
        &self,
        derivative: usize,
        along: Candidates,
        channels: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Cow<'a, [Vec<f64>]>, SolveError> + Sync,
    ) -> Result<Vec<f64>, SolveError> {
        let plan = Plan::new(self.activation, along);
        let sums = self.reduce(
            || plan.sums(),
            |sums, term, tile, scratch| {
                let rho = channels(term, tile, scratch)?;
                let factors: Vec<Vec<f64>> = plan
                    .lines
                    .iter()
                    .map(|line| term.symbols.iter().map(|symbol| symbol.at(&line.omega)).collect())
                    .collect();
                for block in blocks(tile.tile.len()) {
                    for (line, (sum, factors)) in sums.iter_mut().zip(&factors).enumerate() {
                        project(&plan.lines[line].omega, &tile.tile, block.clone(), &mut scratch.t);
                        combine(factors, &term.symbols, &rho, block.clone(), &mut scratch.channels);
                        for _ in 0..derivative {
                            scratch.channels.insert(0, Vec::new());
                        }
                        plan.add(line, sum, &scratch.t, &scratch.channels, &mut scratch.sweep);
                    }
                }
                Ok(())
            },
            |total: &mut Vec<LineSum>, sums| {
                total
                    .iter_mut()
                    .zip(&sums)
                    .for_each(|(total, sum)| total.merge(sum));
            },
        )?;
        Ok(plan.scores(&sums))
    }
}

impl Backend for CpuBackend {
    fn activation(&self) -> Activation {
        self.activation
    }

    fn points(&self) -> usize {
        self.loss.points()
    }

    fn gradient(&mut self, u: &Network, along: Candidates) -> Result<Vec<f64>, SolveError> {
        self.keep_channels(u)?;
        let prepared = Evaluator::new(u);
        self.scores(along, |term, tile, scratch| {
            self.channels_at(&prepared, term, tile, scratch)
        })
    }

    fn curvature(&mut self, u: &Network, v: &Neuron, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let single = Network::single(self.activation, v);
        let direction = Evaluator::new(&single);
        let at = match self.loss.is_quadratic() {
            true => None,
            false => {
                self.keep_values(u)?;
                Some(Evaluator::new(u))
            }
        };
        self.scores(along, |term, tile, scratch| {
            let at = at.as_ref().map(|at| match &self.values {
                Some((_, kept)) => Cow::Borrowed(&kept[scratch.index][0]),
                None => Cow::Owned(values_at(at, term, tile, scratch).swap_remove(0)),
            });
            let at = at.as_deref().map(Vec::as_slice);
            let mut jets = direction.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
            term.curvature(tile, at, &mut jets, &mut scratch.workspace)?;
            Ok(Cow::Owned(jets))
        })
    }

    fn risk(&mut self, u: &Network) -> Result<f64, SolveError> {
        let prepared = Evaluator::new(u);
        self.reduce(
            || 0.0,
            |sum, term, tile, scratch| {
                let jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
                *sum += term.risk(tile, &jets, &mut scratch.workspace)?;
                Ok(())
            },
            |total, sum| *total += sum,
        )
    }

    fn local_scores(&mut self, u: &Network, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        self.scores_with_slopes(u, neurons)
    }

    fn report(&self) -> BackendReport {
        BackendReport::cpu()
    }

    fn embedding(&mut self, v: &Neuron) -> Result<Option<Vec<f64>>, SolveError> {
        if self.embedding_length().is_none() {
            return Ok(None);
        }
        let single = Network::single(self.activation, v);
        let prepared = Evaluator::new(&single);
        self.reduce(
            Vec::new,
            |rows: &mut Vec<f64>, term, tile, scratch| {
                rows.extend(term.embed(
                    tile,
                    &prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation),
                ));
                Ok(())
            },
            |total, rows| total.extend(rows),
        )
        .map(Some)
    }

    fn embedding_adjoint(&mut self, values: &[f64], along: Candidates) -> Result<Vec<f64>, SolveError> {
        self.scores(along, |term, tile, scratch| {
            Ok(Cow::Owned(
                term.embed_adjoint(tile, &values[scratch.embedded.clone()]),
            ))
        })
    }

    fn embedding_length(&self) -> Option<usize> {
        self.loss
            .is_quadratic()
            .then(|| self.tiles.last().map_or(0, |spec| spec.embedded.end))
    }
}
