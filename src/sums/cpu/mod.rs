//! The sums over the points on the CPU: the reference and the fallback.

mod field;
mod remainders;
mod rho;
mod scan;
mod squares;
mod values;

pub(crate) use field::CpuField;
pub(crate) use rho::CpuRho;
pub use scan::scan_bytes;

use super::{Field, PointValues, Remainders, Sums, SumsReport};
use crate::activation::Activation;
use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{Loss, Term, TermTile};
use crate::network::Network;
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
    /// Every tile of the loss.
    tiles: Vec<TileSpec>,
    /// The tiles' points and coefficients, where they are kept.
    kept: Option<Vec<TermTile>>,
}

/// Numbers at the points of a tile, one column per symbol: the jets of a function, or the channels ρ_c.
pub(super) type Channels = Vec<Vec<f64>>;

/// Which points a tile has.
struct TileSpec {
    term: usize,
    range: Range<usize>,
    /// Where its numbers are among the [values](PointValues) of a function.
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
        let kept = match loss.bytes() <= options.cache_bytes {
            true => Some(in_parallel(&tiles, |workspace: &mut Workspace, spec| {
                let mut tile = TermTile::default();
                loss.terms[spec.term].fill(spec.range.clone(), workspace, &mut tile)?;
                Ok::<_, SolveError>(tile)
            })?),
            false => None,
        };
        Ok(Self {
            loss,
            activation,
            tiles,
            kept,
        })
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

    /// Visits every tile in runs and folds the results in order.
    fn reduce<T: Send>(
        &self,
        new: impl Fn() -> T + Sync + Send,
        visit: impl Fn(&mut T, &Term, &TermTile, &mut Scratch) -> Result<(), SolveError> + Sync + Send,
        merge: impl Fn(&mut T, T),
    ) -> Result<T, SolveError> {
        let sums = self.work(scan::runs_of(self.tiles.len()), |scratch, run| {
            let mut sum = new();
            self.visit(run, scratch, |term, tile, scratch| {
                visit(&mut sum, term, tile, scratch)
            })?;
            Ok(sum)
        })?;
        let mut total = new();
        sums.into_iter().for_each(|sum| merge(&mut total, sum));
        Ok(total)
    }

    /// Computes columns at every tile and gathers them.
    fn at_every_tile(
        &self,
        columns: impl Fn(&Term, &TermTile, &mut Scratch) -> Result<Channels, SolveError> + Sync + Send,
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
}
