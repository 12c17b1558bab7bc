//! Errors against the exact solution, on points that no training run sees.

use crate::cluster::Cluster;
use crate::domain::Region;
use crate::error::SolveError;
use crate::expression::{Graph, NodeId, Program, Workspace};
use crate::loss::{Density, Formula, Loss, Term, TermSpec, TermTile};
use crate::network::Network;
use crate::points::{Rule, in_parallel};
use crate::problem::{Affine, Formulation, Problem, Purpose};
use crate::ridge::{EvaluationScratch, Evaluator};
use crate::symbol::Symbol;
use std::ops::Range;

/// ‖u − u_n‖ in several norms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// L².
    pub l2: f64,
    /// The full H¹ norm.
    pub h1: f64,
    /// The energy norm, with the penalty's part (‖·‖_(a,δ)), for an energy; for a relaxed run or a
    /// potential the relative excess (L(u_n) − L(u)) / (L(0) − L(u)).
    pub energy: Option<f64>,
    /// That excess, by its own name; nothing where the energy has a norm.
    pub excess: Option<f64>,
    /// The standard deviations of `l2` and `h1` as parts of them, where the points are a sequence: by
    /// the scatter between its stretches, as if they were independent.
    pub uncertainty: Option<[f64; 2]>,
}

/// Measures errors against the exact solution.
pub struct ErrorMeter {
    h1: MeteredTerm,
    energy: Option<Vec<MeteredTerm>>,
    /// L(u) and L(0), where the error is measured by the excess of the loss.
    excess: Option<(f64, f64)>,
    /// Whether the points are a sequence, not a mesh.
    scattered: bool,
    /// What the equation leaves free: errors are measured up to it.
    free: Vec<Affine>,
    cluster: Cluster,
}

type Scratch = (Workspace, EvaluationScratch, TermTile);

/// A term whose own norm of u_n − u is measured.
struct MeteredTerm {
    term: Term,
    exact: Program,
}

impl ErrorMeter {
    /// A meter for a run with `neurons` neurons, if the exact solution is known.
    pub fn new(problem: &Problem, neurons: usize) -> Result<Option<Self>, SolveError> {
        Self::shared(problem, neurons, Cluster::nobody_else())
    }

    /// The same, shared with other processes.
    pub fn shared(problem: &Problem, neurons: usize, cluster: &Cluster) -> Result<Option<Self>, SolveError> {
        let Some(exact) = problem.exact else {
            return Ok(None);
        };
        let (mut graph, specs) = problem.terms_and_held(neurons);
        let dimension = problem.dimension();
        let one = Formula::new("1", graph.number(1.0));
        let zero = Formula::new("0", graph.number(0.0));
        let symbols = std::iter::once(Symbol::value()).chain((0..dimension).map(|i| Symbol::derivative([i])));
        let sobolev = TermSpec {
            region: Region::Interior,
            scale: 1.0,
            listed: None,
            density: Density::Energy {
                parts: symbols
                    .map(|symbol| (symbol, one.clone(), zero.clone()))
                    .collect(),
                potential: None,
            },
        };
        let metered = |specs: &[TermSpec], graph: &mut Graph| -> Result<Vec<MeteredTerm>, SolveError> {
            let loss = Loss::new(graph, &problem.domain, specs, |region| {
                problem.quadrature.rule(&problem.domain, region, Purpose::Errors)
            })?;
            Ok(loss
                .terms
                .into_iter()
                .map(|term| MeteredTerm::new(graph, term, exact))
                .collect())
        };
        let h1 = metered(&[sobolev], &mut graph)?.swap_remove(0);
        let energy = match problem.formulation {
            Formulation::Energy => Some(metered(&specs, &mut graph)?),
            _ => None,
        };
        let rule = problem
            .quadrature
            .rule(&problem.domain, Region::Interior, Purpose::Errors);
        let excess = match &energy {
            Some(terms) if problem.measures_excess() => {
                let zero = Network::zero(problem.dictionary.activation, dimension);
                Some((risk_of_exact(terms, cluster)?, risk(terms, &zero, cluster)?))
            }
            _ => None,
        };
        Ok(Some(Self {
            h1,
            energy,
            excess,
            scattered: !matches!(rule, Rule::Gauss { .. }),
            free: problem.kernel.functions.clone(),
            cluster: cluster.clone(),
        }))
    }

    /// The number of points inside the domain.
    pub fn points(&self) -> usize {
        self.h1.term.points.len()
    }

    /// The errors of a network.
    pub fn errors(&self, network: &Network) -> Result<Errors, SolveError> {
        let cluster = &self.cluster;
        let free = match self.free.is_empty() {
            true => None,
            false => Affine::combination(&self.h1.free_parts(network, &self.free, cluster)?, &self.free),
        };
        let parts = self.h1.squares(network, free.as_ref(), cluster)?;
        let [l2, h1] = sums(&parts);
        let energy = match (&self.energy, self.excess) {
            (None, _) => None,
            (Some(terms), Some((exact, zero))) => {
                Some((risk(terms, network, cluster)? - exact) / (zero - exact))
            }
            (Some(terms), None) => {
                let mut sum = 0.0;
                for term in terms {
                    sum += sums(&term.squares(network, free.as_ref(), cluster)?)[1];
                }
                Some(sum.sqrt())
            }
        };
        Ok(Errors {
            l2: l2.sqrt(),
            h1: h1.sqrt(),
            energy,
            excess: energy.filter(|_| self.excess.is_some()),
            uncertainty: self.scattered.then(|| relative_deviations(&parts)),
        })
    }
}

impl MeteredTerm {
    fn new(graph: &mut Graph, term: Term, exact: NodeId) -> Self {
        let roots: Vec<NodeId> = term
            .symbols
            .iter()
            .map(|symbol| {
                let parts: Vec<NodeId> = symbol
                    .terms()
                    .iter()
                    .map(|(c, alpha)| {
                        let factor = graph.number(*c);
                        let derivative = graph.differentiate_by(exact, alpha);
                        graph.multiply(factor, derivative)
                    })
                    .collect();
                graph.sum(&parts)
            })
            .collect();
        Self {
            exact: Program::new(graph, &roots, term.points.inputs(), &[]),
            term,
        }
    }

    /// The square of the term's norm of the error, stretch by stretch of the points: the first symbol's
    /// part and the whole.
    fn squares(
        &self,
        network: &Network,
        free: Option<&Affine>,
        cluster: &Cluster,
    ) -> Result<Vec<[f64; 2]>, SolveError> {
        let evaluator = Evaluator::new(network);
        self.at_tiles(cluster, |(workspace, scratch, tile), range| {
            self.tile_squares((&evaluator, free), range, workspace, scratch, tile)
        })
    }

    /// Numbers of every tile, in order.
    fn at_tiles<const WIDTH: usize>(
        &self,
        cluster: &Cluster,
        of_tile: impl Fn(&mut Scratch, Range<usize>) -> Result<[f64; WIDTH], SolveError> + Sync + Send,
    ) -> Result<Vec<[f64; WIDTH]>, SolveError> {
        let tiles: Vec<_> = self.term.points.tiles().collect();
        let mine = &tiles[cluster.share(tiles.len())];
        cluster.in_order(tiles.len(), in_parallel(mine.to_vec(), of_tile))
    }

    /// L of a function given by its jets at a tile, summed over all.
    fn risk(
        &self,
        jets: impl Fn(&TermTile, &mut Workspace, &mut EvaluationScratch) -> Vec<Vec<f64>> + Sync + Send,
        cluster: &Cluster,
    ) -> Result<f64, SolveError> {
        let parts = self.at_tiles(cluster, |(workspace, scratch, tile), range| {
            self.term.fill(range, workspace, tile)?;
            let jets = jets(tile, workspace, scratch);
            Ok([self.term.risk(tile, &jets, workspace)?])
        })?;
        Ok(parts.into_iter().flatten().sum())
    }

    fn exact_jets(&self, tile: &TermTile, workspace: &mut Workspace) -> Vec<Vec<f64>> {
        let count = tile.tile.len();
        let mut exact = vec![vec![0.0; count]; self.term.symbols.len()];
        let mut outputs: Vec<&mut [f64]> = exact.iter_mut().map(Vec::as_mut_slice).collect();
        self.exact
            .evaluate(workspace, &tile.tile.columns(), count, &mut outputs);
        exact
    }

    fn tile_squares(
        &self,
        (evaluator, free): (&Evaluator, Option<&Affine>),
        range: std::ops::Range<usize>,
        workspace: &mut Workspace,
        scratch: &mut EvaluationScratch,
        tile: &mut TermTile,
    ) -> Result<[f64; 2], SolveError> {
        let mut jets = self.error_jets(evaluator, range, workspace, scratch, tile)?;
        let count = tile.tile.len();
        if let Some(free) = free {
            for (jet, symbol) in jets.iter_mut().zip(&self.term.symbols) {
                let errors = jet.iter_mut().enumerate();
                errors.for_each(|(k, error)| *error -= free.jet(symbol, tile.tile.point(k).into_iter()));
            }
        }
        let rows = self.term.embed(tile, &jets);
        let square = |rows: &[f64]| rows.iter().map(|row| row * row).sum::<f64>();
        Ok([square(&rows[..count]), square(&rows)])
    }

    /// The part of u_n − u along each of some orthonormal affine functions: α mean(e) + Σ βᵢ L mean(∂e/∂xᵢ).
    /// This term is the H¹ norm: its symbols are the value and the slopes.
    fn free_parts(
        &self,
        network: &Network,
        free: &[Affine],
        cluster: &Cluster,
    ) -> Result<Vec<f64>, SolveError> {
        let evaluator = Evaluator::new(network);
        let tiles: Vec<_> = self.term.points.tiles().collect();
        let mine = &tiles[cluster.share(tiles.len())];
        let parts: Result<Vec<Vec<f64>>, SolveError> = in_parallel(mine.to_vec(), |scratch, range| {
            let (workspace, scratch, tile): &mut Scratch = scratch;
            let jets = self.error_jets(&evaluator, range, workspace, scratch, tile)?;
            let weights = &tile.tile.weights;
            let integral = |jet: &Vec<f64>| jet.iter().zip(weights).map(|(e, w)| e * w).sum::<f64>();
            let mut integrals: Vec<f64> = jets.iter().map(integral).collect();
            integrals.push(weights.iter().sum());
            Ok(integrals)
        });
        let sums = cluster.fold(tiles.len(), self.term.symbols.len() + 1, parts)?;
        let measure = sums[sums.len() - 1];
        let part = |function: &Affine| {
            let slopes = function.slopes.iter().zip(&sums[1..]);
            let slopes = slopes
                .map(|(slope, sum)| slope * function.width * sum)
                .sum::<f64>();
            (function.constant * sums[0] + slopes) / measure
        };
        Ok(free.iter().map(part).collect())
    }

    /// The jets of u_n − u at the points of a tile.
    fn error_jets(
        &self,
        evaluator: &Evaluator,
        range: std::ops::Range<usize>,
        workspace: &mut Workspace,
        scratch: &mut EvaluationScratch,
        tile: &mut TermTile,
    ) -> Result<Vec<Vec<f64>>, SolveError> {
        self.term.fill(range, workspace, tile)?;
        let mut jets = evaluator.jets(&self.term.symbols, &tile.tile, scratch);
        let exact = self.exact_jets(tile, workspace);
        for (jet, exact) in jets.iter_mut().zip(&exact) {
            crate::loss::require_finite("exact (or a derivative of it)", exact, &tile.tile)?;
            jet.iter_mut().zip(exact).for_each(|(jet, exact)| *jet -= exact);
        }
        Ok(jets)
    }
}

/// L of the exact solution.
fn risk_of_exact(terms: &[MeteredTerm], cluster: &Cluster) -> Result<f64, SolveError> {
    let risks = terms
        .iter()
        .map(|term| term.risk(|tile, workspace, _| term.exact_jets(tile, workspace), cluster));
    risks.sum()
}

/// L of a network.
fn risk(terms: &[MeteredTerm], network: &Network, cluster: &Cluster) -> Result<f64, SolveError> {
    let evaluator = Evaluator::new(network);
    let risks = terms.iter().map(|term| {
        let jets = |tile: &TermTile, _: &mut Workspace, scratch: &mut EvaluationScratch| {
            evaluator.jets(&term.term.symbols, &tile.tile, scratch)
        };
        term.risk(jets, cluster)
    });
    risks.sum()
}

fn sums(parts: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|k| parts.iter().map(|part| part[k]).sum())
}

/// The relative standard deviation of √Σ, estimated from the scatter of its terms.
fn relative_deviations(parts: &[[f64; 2]]) -> [f64; 2] {
    let count = parts.len() as f64;
    let total = sums(parts);
    [0, 1].map(|k| {
        let mean = total[k] / count;
        let variance = parts.iter().map(|part| (part[k] - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // The root halves a relative error.
        0.5 * (count * variance).sqrt() / total[k]
    })
}
