//! The sums over the points on the CPU: the reference and the fallback.

use super::local::{LocalScore, sums_per_symbol};
use super::plan::{LineSum, Plan};
use super::{Backend, BackendReport};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::evaluate::{EvaluationScratch, Evaluator, blocks, combine, project};
use crate::expression::Workspace;
use crate::loss::{Loss, Term, TermTile};
use crate::network::{Network, Neuron};
use crate::ridge::{SweepScratch, direct};
use crate::symbol::Symbol;
use crate::vector::{add_scaled, dot, multiply};
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

    /// Computes ∇L(u) at all points and keeps it, if the points are kept.
    fn keep_channels(&mut self, u: &Network) -> Result<(), SolveError> {
        let known = self.channels.as_ref().is_some_and(|(at, _)| at == u);
        if self.cache.is_none() || known {
            return Ok(());
        }
        self.channels = None;
        let channels = if self.activation.relu_power().is_some() {
            let prepared = Evaluator::new(u);
            self.at_every_tile(|term, tile, scratch| gradient_at(&prepared, term, tile, scratch))?
        } else {
            let kept = self.jets_of(u)?;
            let channels = self.at_every_tile(|term, tile, scratch| {
                let mut jets = kept[scratch.index].clone();
                term.gradient(tile, &mut jets, &mut scratch.workspace)?;
                Ok(jets)
            })?;
            self.jets = Some((u.clone(), kept));
            channels
        };
        self.channels = Some((u.clone(), channels));
        Ok(())
    }

    /// ∇L(u) at the points of each term, where the points are kept.
    pub(super) fn gradient_columns(&mut self, u: &Network) -> Result<Option<Vec<Channels>>, SolveError> {
        self.keep_channels(u)?;
        let Some((_, kept)) = &self.channels else {
            return Ok(None);
        };
        let terms = self.loss.terms.iter();
        let mut columns: Vec<Channels> = terms.map(|term| vec![Vec::new(); term.symbols.len()]).collect();
        for (spec, tile) in self.tiles.iter().zip(kept) {
            for (column, part) in columns[spec.term].iter_mut().zip(tile) {
                column.extend_from_slice(part);
            }
        }
        Ok(Some(columns))
    }

    /// Computes columns at every tile and gathers them.
    fn at_every_tile(
        &self,
        columns: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Channels, SolveError> + Sync,
    ) -> Result<Vec<Channels>, SolveError> {
        self.reduce(
            Vec::new,
            |all: &mut Vec<Channels>, term, tile, scratch| {
                all.push(columns(term, tile, scratch)?);
                Ok(())
            },
            |total, part| total.extend(part),
        )
    }

    /// Evaluates u at all points, or only its last neuron where the others only changed by a factor.
    fn jets_of(&mut self, u: &Network) -> Result<Vec<Channels>, SolveError> {
        let kept = self.jets.take();
        let known = kept.and_then(|(at, jets)| Some((u.relaxes(&at)?, jets)));
        let added = match &known {
            Some(_) => u.last_neuron(),
            None => u.clone(),
        };
        let prepared = Evaluator::new(&added);
        self.at_every_tile(|term, tile, scratch| {
            let mut jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
            if let Some((factor, known)) = &known {
                for (jet, known) in jets.iter_mut().zip(&known[scratch.index]) {
                    add_scaled(*factor, known, jet);
                }
            }
            Ok(jets)
        })
    }

    /// ∇L(u) at a tile: as it is kept, or computed.
    fn channels_at(
        &self,
        prepared: &Evaluator,
        term: &Term,
        tile: &TermTile,
        scratch: &mut Scratch,
    ) -> Result<Cow<'_, [Vec<f64>]>, SolveError> {
        Ok(match &self.channels {
            Some((_, kept)) => Cow::Borrowed(&kept[scratch.index]),
            None => Cow::Owned(gradient_at(prepared, term, tile, scratch)?),
        })
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

impl CpuBackend {
    /// Local scores in one dimension, by sweeps. The score s is homogeneous in (ω, b), so Euler's
    /// ω ∂s/∂ω + b ∂s/∂b = k s gives the derivative in ω.
    fn local_scores_on_a_line(
        &self,
        power: usize,
        prepared: &Evaluator,
        neurons: &[Neuron],
    ) -> Result<Vec<LocalScore>, SolveError> {
        let along = Candidates::List(neurons);
        let channels = |term: &Term, tile: &TermTile, scratch: &mut Scratch| {
            self.channels_at(prepared, term, tile, scratch)
        };
        let values = self.scores(along, channels)?;
        let slopes = self.scores_of_derivative(1, along, channels)?;
        let scores = neurons.iter().zip(values).zip(slopes);
        Ok(scores
            .map(|((neuron, value), slope)| {
                let omega = neuron.omega[0];
                let by_bias = slope * omega.signum();
                let by_omega = (power as f64 * value - neuron.bias * by_bias) / omega;
                LocalScore {
                    value,
                    gradient: vec![by_omega, by_bias],
                }
            })
            .collect())
    }
}

/// ∇L(u) at a tile.
fn gradient_at(
    prepared: &Evaluator,
    term: &Term,
    tile: &TermTile,
    scratch: &mut Scratch,
) -> Result<Channels, SolveError> {
    let mut jets = prepared.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
    term.gradient(tile, &mut jets, &mut scratch.workspace)?;
    Ok(jets)
}

/// Adds the sums of a local score over a tile, symbol after symbol.
fn add_local_sums(
    (activation, neuron): (Activation, &Neuron),
    term: &Term,
    tile: &TermTile,
    rho: &[Vec<f64>],
    scratch: &mut Scratch,
    sums: &mut [f64],
) {
    let top = term.symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
    for block in blocks(tile.tile.len()) {
        project(&neuron.omega, &tile.tile, block.clone(), &mut scratch.t);
        let mut derivatives = vec![vec![0.0; block.len()]; top + 1];
        direct::add_derivatives(activation, (1.0, 1.0, neuron.bias), &scratch.t, &mut derivatives);
        let per_symbol = sums.chunks_mut(sums_per_symbol(neuron.omega.len()));
        for ((symbol, rho), sums) in term.symbols.iter().zip(rho).zip(per_symbol) {
            let rho = &rho[block.clone()];
            sums[0] += dot(rho, &derivatives[symbol.order()]);
            let mut slope = derivatives[symbol.order() + 1].clone();
            multiply(&mut slope, rho);
            sums[1] += slope.iter().sum::<f64>();
            for (sum, x) in sums[2..].iter_mut().zip(&tile.tile.coordinates) {
                *sum += dot(&slope, &x[block.clone()]);
            }
        }
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
        let at = (!self.loss.is_quadratic()).then(|| Evaluator::new(u));
        self.scores(along, |term, tile, scratch| {
            let at = at.as_ref().map(|at| {
                at.jets(&term.symbols, &tile.tile, &mut scratch.evaluation)
                    .swap_remove(0)
            });
            let mut jets = direction.jets(&term.symbols, &tile.tile, &mut scratch.evaluation);
            term.curvature(tile, at.as_deref(), &mut jets, &mut scratch.workspace)?;
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
        self.keep_channels(u)?;
        let prepared = Evaluator::new(u);
        let (activation, d) = (self.activation, u.dimension);
        let on_one_line = d == 1 && neurons.iter().all(|neuron| neuron.omega[0] != 0.0);
        if let (Some(power), true) = (activation.relu_power(), on_one_line) {
            return self.local_scores_on_a_line(power, &prepared, neurons);
        }
        // Per term: the sums of every neuron and symbol.
        let new = || {
            let sizes = self.loss.terms.iter().map(|term| term.symbols.len());
            let sums = sizes.map(|symbols| vec![0.0; neurons.len() * symbols * sums_per_symbol(d)]);
            sums.collect::<Vec<Vec<f64>>>()
        };
        let sums = self.reduce(
            new,
            |sums, term, tile, scratch| {
                let rho = self.channels_at(&prepared, term, tile, scratch)?;
                let places = sums[scratch.term].chunks_mut(term.symbols.len() * sums_per_symbol(d));
                for (neuron, sums) in neurons.iter().zip(places) {
                    add_local_sums((activation, neuron), term, tile, &rho, scratch, sums);
                }
                Ok(())
            },
            |total: &mut Vec<Vec<f64>>, sums| {
                for (total, sums) in total.iter_mut().zip(sums) {
                    total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
                }
            },
        )?;
        let mut scores = vec![LocalScore::zero(d); neurons.len()];
        for (term, sums) in self.loss.terms.iter().zip(&sums) {
            let per_neuron = sums.chunks(term.symbols.len() * sums_per_symbol(d));
            for ((score, neuron), sums) in scores.iter_mut().zip(neurons).zip(per_neuron) {
                score.add(&term.symbols, neuron, sums);
            }
        }
        Ok(scores)
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
