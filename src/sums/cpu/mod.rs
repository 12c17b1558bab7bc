//! The sums over the points on the CPU: the reference and the fallback.

mod field;
mod gram;
mod remainders;
mod rho;
mod scan;
mod squares;
mod values;

pub(crate) use field::CpuField;
pub(crate) use rho::CpuRho;
pub use scan::scan_bytes;

use super::{Field, PointValues, Remainders, Sums, SumsReport, gram_by_columns};
use crate::activation::Activation;
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{Loss, Term, TermTile};
use crate::network::{Network, Neuron};
use crate::points::in_parallel;
use crate::ridge::{EvaluationScratch, SweepScratch};
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

/// [`Sums`] on the CPU.
pub struct CpuSums {
    loss: Loss,
    activation: Activation,
    cluster: Cluster,
    /// The tiles of the loss that are this process's.
    tiles: Vec<TileSpec>,
    /// Which of them each run has.
    runs: Vec<Range<usize>>,
    /// How many runs all processes have together.
    all_runs: usize,
    /// How many [values](PointValues) a function has, and how many of them come before those here.
    values: (usize, usize),
    /// The tiles' points and coefficients, where they are kept.
    kept: Option<Vec<TermTile>>,
}

/// Numbers at the points of a tile, one column per symbol: the jets of a function, or the channels ρ_c.
pub(super) type Channels = Vec<Vec<f64>>;

/// Which points a tile has.
struct TileSpec {
    term: usize,
    range: Range<usize>,
    /// Where its numbers are among the [values](PointValues) of a function that are held here.
    values: Range<usize>,
}

/// Scratch memory of one thread, and the tile at hand.
#[derive(Default)]
struct Scratch {
    workspace: Workspace,
    tile: TermTile,
    /// The tile at hand: its number, its term, and its place among values.
    index: usize,
    term: usize,
    values: Range<usize>,
    evaluation: EvaluationScratch,
    t: Vec<f64>,
    channels: Channels,
    sweep: SweepScratch,
}

impl CpuSums {
    /// The sums of `loss` for a dictionary with this activation.
    pub fn new(loss: Loss, activation: Activation, options: CpuOptions) -> Result<Self, SolveError> {
        Self::shared(loss, activation, options, Cluster::alone())
    }

    /// The same, shared with other processes.
    pub fn shared(
        loss: Loss,
        activation: Activation,
        options: CpuOptions,
        cluster: Cluster,
    ) -> Result<Self, SolveError> {
        let (mut tiles, all) = tiles_of(&loss);
        let all_runs = scan::runs_of(tiles.len());
        let (runs, own) = own_runs(&all_runs, &cluster);
        let runs = runs.iter().map(|run| run.start - own.start..run.end - own.start);
        let runs: Vec<Range<usize>> = runs.collect();
        tiles = tiles.drain(own).collect();
        let before = tiles.first().map_or(0, |tile| tile.values.start);
        for tile in &mut tiles {
            tile.values = tile.values.start - before..tile.values.end - before;
        }
        let kept = match loss.bytes() <= options.cache_bytes {
            true => Some(
                cluster.agree(in_parallel(&tiles, |workspace: &mut Workspace, spec| {
                    let mut tile = TermTile::default();
                    loss.terms[spec.term].fill(spec.range.clone(), workspace, &mut tile)?;
                    Ok::<_, SolveError>(tile)
                }))?,
            ),
            false => None,
        };
        Ok(Self {
            loss,
            activation,
            cluster,
            tiles,
            runs,
            all_runs: all_runs.len(),
            values: (all, before),
            kept,
        })
    }

    /// Which points of each term of a loss are this process's.
    pub(crate) fn own_points(loss: &Loss, cluster: &Cluster) -> Vec<Range<usize>> {
        let (tiles, _) = tiles_of(loss);
        let (_, own) = own_runs(&scan::runs_of(tiles.len()), cluster);
        let mut points = vec![0..0; loss.terms.len()];
        for tile in &tiles[own] {
            let of_term = &mut points[tile.term];
            let start = if of_term.end > 0 {
                of_term.start
            } else {
                tile.range.start
            };
            *of_term = start..tile.range.end;
        }
        points
    }

    /// u at the points.
    pub(crate) fn field(&self, u: &Network) -> CpuField<'_> {
        CpuField::new(self, u)
    }

    /// Does pieces of work in parallel, if there are points enough for it to pay.
    fn work<Piece: Send, T: Send>(
        &self,
        pieces: Vec<Piece>,
        work: impl Fn(&mut Scratch, Piece) -> Result<T, SolveError> + Sync + Send,
    ) -> Result<Vec<T>, SolveError> {
        if self.tiles.len() > SERIAL_TILES {
            return in_parallel(pieces, work);
        }
        let mut scratch = Scratch::default();
        pieces
            .into_iter()
            .map(|piece| work(&mut scratch, piece))
            .collect()
    }

    /// Visits some of the tiles, in order.
    fn visit(
        &self,
        tiles: Range<usize>,
        scratch: &mut Scratch,
        mut visit: impl FnMut(&Term, &TermTile, &mut Scratch) -> Result<(), SolveError>,
    ) -> Result<(), SolveError> {
        for index in tiles {
            let spec = &self.tiles[index];
            let term = &self.loss.terms[spec.term];
            let mut tile = std::mem::take(&mut scratch.tile);
            let filled: Cow<'_, TermTile> = match &self.kept {
                Some(kept) => Cow::Borrowed(&kept[index]),
                None => {
                    term.fill(spec.range.clone(), &mut scratch.workspace, &mut tile)?;
                    Cow::Owned(tile)
                }
            };
            scratch.index = index;
            scratch.term = spec.term;
            scratch.values = spec.values.clone();
            visit(term, &filled, scratch)?;
            if let Cow::Owned(tile) = filled {
                scratch.tile = tile;
            }
        }
        Ok(())
    }

    /// Visits the tiles of every run that is this process's; what comes of each run.
    fn of_runs<T: Send>(
        &self,
        new: impl Fn() -> T + Sync + Send,
        visit: impl Fn(&mut T, &Term, &TermTile, &mut Scratch) -> Result<(), SolveError> + Sync + Send,
    ) -> Result<Vec<T>, SolveError> {
        self.work(self.runs.clone(), |scratch, run| {
            let mut sum = new();
            self.visit(run, scratch, |term, tile, scratch| {
                visit(&mut sum, term, tile, scratch)
            })?;
            Ok(sum)
        })
    }

    /// `length` sums over all points.
    fn sums(
        &self,
        length: usize,
        visit: impl Fn(&mut [f64], &Term, &TermTile, &mut Scratch) -> Result<(), SolveError> + Sync + Send,
    ) -> Result<Vec<f64>, SolveError> {
        let runs = self.of_runs(
            || vec![0.0; length],
            |sums: &mut Vec<f64>, term, tile, scratch| visit(sums, term, tile, scratch),
        );
        self.cluster.fold(self.all_runs, length, runs)
    }

    /// Computes columns at every tile that is this process's and gathers them.
    fn at_every_tile(
        &self,
        columns: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Channels, SolveError> + Sync + Send,
    ) -> Result<Vec<Channels>, SolveError> {
        let runs = self.of_runs(Vec::new, |all: &mut Vec<Channels>, term, tile, scratch| {
            all.push(columns(term, tile, scratch)?);
            Ok(())
        });
        Ok(self.cluster.agree(runs)?.into_iter().flatten().collect())
    }
}

/// The runs that are this process's, and the tiles they have.
fn own_runs<'a>(all: &'a [Range<usize>], cluster: &Cluster) -> (&'a [Range<usize>], Range<usize>) {
    let runs = &all[cluster.share(all.len())];
    let tiles = match (runs.first(), runs.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    };
    (runs, tiles)
}

/// All tiles of a loss, and how many values a function has there.
fn tiles_of(loss: &Loss) -> (Vec<TileSpec>, usize) {
    let mut tiles = Vec::new();
    let mut values = 0;
    for (index, term) in loss.terms.iter().enumerate() {
        for range in term.points.tiles() {
            let width = range.len() * term.embedding_width();
            tiles.push(TileSpec {
                term: index,
                range,
                values: values..values + width,
            });
            values += width;
        }
    }
    (tiles, values)
}

impl Sums for CpuSums {
    fn activation(&self) -> Activation {
        self.activation
    }

    fn points(&self) -> usize {
        self.loss.points()
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        Ok(Box::new(self.field(u)))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        self.loss.is_quadratic().then_some(self as &dyn PointValues)
    }

    fn remainders(&self) -> Option<&dyn Remainders> {
        self.loss.is_quadratic().then_some(self as &dyn Remainders)
    }

    fn report(&self) -> SumsReport {
        SumsReport::cpu()
    }

    fn gram(&self, neurons: &[Neuron]) -> Result<Vec<Vec<f64>>, SolveError> {
        match self.loss.is_quadratic() && !self.loss.terms.iter().any(Term::is_paired) {
            true => self.gram_by_blocks(neurons),
            false => gram_by_columns(self, neurons),
        }
    }
}
