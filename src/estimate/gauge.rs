//! Norms of networks and what the loss's gradient does to them, on points that training never sees.

use crate::cluster::Cluster;
use crate::domain::Region;
use crate::error::SolveError;
use crate::expression::{Graph, NodeId, Program, Workspace};
use crate::loss::{Density, DensityLayout, Formula, Loss, Term, TermSpec, TermTile};
use crate::network::Network;
use crate::points::{Rule, in_parallel};
use crate::problem::{Formulation, Problem, Purpose};
use crate::ridge::{EvaluationScratch, Evaluator};
use crate::symbol::Symbol;

/// An estimate needs one digit: so many points of a sequence are enough …
const SEQUENCE: usize = 1 << 16;
/// … and so many of a mesh.
const MESH: f64 = 131_072.0;

/// ‖v‖ in several norms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sizes {
    pub(super) l2: f64,
    pub(super) h1: f64,
    /// The norm that the loss's curvature makes: of the energy, or of the residual of v.
    pub(super) energy: f64,
}

/// How far the boundary data held by a penalty are missed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mismatch {
    /// The root of the mean of (u − g)² on the faces concerned; slopes count times the domain's width.
    pub(super) mean: f64,
    /// ∫ (u − g)²/δ.
    pub(super) energy: f64,
    /// The part of the boundary that is held.
    pub(super) part: f64,
}

/// What the gradient of the loss at u does to a function v.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pairing {
    /// ⟨∇L(u), v⟩.
    pub(super) slope: f64,
    /// ‖v‖² in the norm of the loss.
    pub(super) square: f64,
}

/// A function along which the gradient is taken.
enum Along<'a> {
    Network(Evaluator),
    /// One program per term.
    Formula(&'a [Program]),
}

/// The terms of the loss and the H¹ norm on points of their own.
pub(super) struct Gauge<'a> {
    problem: &'a Problem,
    /// The processes that share the points.
    cluster: &'a Cluster,
    sobolev: Term,
    terms: Vec<Term>,
    /// Which of the terms hold data on the boundary.
    constraints: std::ops::Range<usize>,
    /// The terms of a residual that give values on the boundary, and their faces.
    given: Vec<(usize, Region)>,
    /// Functions that no neuron makes, each by its jets in every term.
    probes: Vec<(Vec<Program>, Program)>,
}

type Scratch = (Workspace, EvaluationScratch, TermTile);

impl<'a> Gauge<'a> {
    pub(super) fn new(problem: &'a Problem, cluster: &'a Cluster) -> Result<Self, SolveError> {
        let (mut graph, mut specs) = problem.terms_and_held(problem.settings.neurons);
        let constraints = problem.unpenalised_terms()..specs.len();
        let given = specs.iter().enumerate().filter(|(_, spec)| gives_values(spec));
        let given = given.map(|(index, spec)| (index, spec.region)).collect();
        specs.extend(problem.data_terms(&mut graph, Purpose::Validation));
        let rule = |region| {
            let rule = problem
                .quadrature
                .rule(&problem.domain, region, Purpose::Validation);
            few(rule, problem.dimension())
        };
        let sobolev = sobolev(&mut graph, problem.dimension());
        let h1 = Loss::new(&graph, &problem.domain, &[sobolev], rule)?;
        let loss = Loss::new(&graph, &problem.domain, &specs, rule)?;
        let mut gauge = Self {
            problem,
            cluster,
            sobolev: h1.terms.into_iter().next().expect("one term was asked for"),
            terms: loss.terms,
            constraints,
            given,
            probes: Vec::new(),
        };
        if problem.formulation == Formulation::Energy {
            let nodes = super::probe::functions(problem, &mut graph, &specs);
            gauge.probes = nodes
                .into_iter()
                .map(|node| gauge.probe(&mut graph, node))
                .collect();
        }
        Ok(gauge)
    }

    /// How many points are inside the domain.
    pub(super) fn points(&self) -> usize {
        self.sobolev.points.len()
    }

    fn probe(&self, graph: &mut Graph, node: NodeId) -> (Vec<Program>, Program) {
        let dimension = self.problem.dimension();
        let terms = self.terms.iter();
        let programs = terms.map(|term| jets_of_formula(graph, node, &term.symbols, term.points.inputs()));
        (programs.collect(), Program::new(graph, &[node], dimension, &[]))
    }

    /// The norms of v; where the energy is not quadratic, its curvature is taken at u.
    pub(super) fn sizes(&self, v: &Network, u: &Network) -> Result<Sizes, SolveError> {
        let (along, at) = (Evaluator::new(v), Evaluator::new(u));
        let parts = self.over(&self.sobolev, |(_, scratch, tile)| {
            let jets = along.jets(&self.sobolev.symbols, &tile.tile, scratch);
            let rows = self.sobolev.embed(tile, &jets);
            let square = |rows: &[f64]| rows.iter().map(|row| row * row).sum::<f64>();
            Ok([square(&rows[..tile.tile.len()]), square(&rows)])
        })?;
        let sum = |k: usize| parts.iter().map(|part| part[k]).sum::<f64>();
        let mut energy = 0.0;
        for term in &self.terms {
            let squares = self.over(term, |(workspace, scratch, tile)| {
                let jets = along.jets(&term.symbols, &tile.tile, scratch);
                let u = at.jets(&term.symbols[..1], &tile.tile, scratch);
                let rows = term.embed_at(tile, Some(&u[0]), &jets, workspace)?;
                Ok([rows.iter().map(|row| row * row).sum::<f64>()])
            })?;
            energy += squares.iter().flatten().sum::<f64>();
        }
        // The curvature of a square is twice it.
        let factor = match self.problem.formulation {
            Formulation::Energy => 1.0,
            _ => 0.5,
        };
        Ok(Sizes {
            l2: sum(0).sqrt(),
            h1: sum(1).sqrt(),
            energy: (factor * energy).sqrt(),
        })
    }

    /// L(u).
    pub(super) fn risk(&self, u: &Network) -> Result<f64, SolveError> {
        let evaluator = Evaluator::new(u);
        let mut risk = 0.0;
        for term in &self.terms {
            let parts = self.over(term, |(workspace, scratch, tile)| {
                let jets = evaluator.jets(&term.symbols, &tile.tile, scratch);
                Ok([term.risk(tile, &jets, workspace)?])
            })?;
            risk += parts.iter().flatten().sum::<f64>();
        }
        Ok(risk)
    }

    /// The gradient at u along a network.
    pub(super) fn along(&self, u: &Network, v: &Network) -> Result<Pairing, SolveError> {
        self.pairing(u, &Along::Network(Evaluator::new(v)))
    }

    /// The gradient at u along each function that no neuron makes, and the function's L² norm.
    pub(super) fn along_probes(&self, u: &Network) -> Result<Vec<(Pairing, f64)>, SolveError> {
        let probes = self.probes.iter().map(|(programs, values)| {
            let pairing = self.pairing(u, &Along::Formula(programs))?;
            Ok((pairing, self.l2_of(values)?))
        });
        probes.collect()
    }

    fn l2_of(&self, values: &Program) -> Result<f64, SolveError> {
        let parts = self.over(&self.sobolev, |(workspace, _, tile)| {
            let values = &evaluated(values, 1, tile, workspace)[0];
            let squares = values.iter().zip(&tile.tile.weights).map(|(v, w)| v * v * w);
            Ok([squares.sum::<f64>()])
        })?;
        Ok(parts.iter().flatten().sum::<f64>().sqrt())
    }

    fn pairing(&self, u: &Network, v: &Along) -> Result<Pairing, SolveError> {
        let evaluator = Evaluator::new(u);
        let mut total = Pairing {
            slope: 0.0,
            square: 0.0,
        };
        for (index, term) in self.terms.iter().enumerate() {
            let parts = self.over(term, |(workspace, scratch, tile)| {
                let along = match v {
                    Along::Network(evaluator) => evaluator.jets(&term.symbols, &tile.tile, scratch),
                    Along::Formula(programs) => {
                        evaluated(&programs[index], term.symbols.len(), tile, workspace)
                    }
                };
                let mut jets = evaluator.jets(&term.symbols, &tile.tile, scratch);
                let rows = term.embed_at(tile, Some(&jets[0].clone()), &along, workspace)?;
                term.gradient(tile, &mut jets, workspace)?;
                let products = jets.iter().zip(&along).flat_map(|(rho, v)| rho.iter().zip(v));
                let slope = products.map(|(rho, v)| rho * v).sum::<f64>();
                Ok([slope, rows.iter().map(|row| row * row).sum::<f64>()])
            })?;
            total.slope += parts.iter().map(|part| part[0]).sum::<f64>();
            total.square += parts.iter().map(|part| part[1]).sum::<f64>();
        }
        Ok(total)
    }

    /// What comes of every tile of a term's points, in their order.
    fn over<const WIDTH: usize>(
        &self,
        term: &Term,
        work: impl Fn(&mut Scratch) -> Result<[f64; WIDTH], SolveError> + Sync + Send,
    ) -> Result<Vec<[f64; WIDTH]>, SolveError> {
        let tiles: Vec<_> = term.points.tiles().collect();
        let mine = tiles[self.cluster.share(tiles.len())].to_vec();
        let mine = in_parallel(mine, |scratch: &mut Scratch, range| {
            term.fill(range, &mut scratch.0, &mut scratch.2)?;
            work(scratch)
        });
        self.cluster.in_order(tiles.len(), mine)
    }

    /// How far u misses the data that penalties hold.
    pub(super) fn mismatch(&self, u: &Network) -> Result<Mismatch, SolveError> {
        let evaluator = Evaluator::new(u);
        let (mut squares, mut measure, mut energy) = (0.0, 0.0, 0.0);
        for term in &self.terms[self.constraints.clone()] {
            if self.problem.formulation != Formulation::Energy || term.is_paired() {
                continue;
            }
            let DensityLayout::Energy { quadratic, .. } = term.layout() else {
                continue;
            };
            let parts = self.over(term, |(workspace, scratch, tile)| {
                let mut jets = evaluator.jets(&term.symbols, &tile.tile, scratch);
                term.gradient(tile, &mut jets, workspace)?;
                let stiffness = term.weighted_columns(tile);
                Ok(self.missed(term, tile, &jets, (&stiffness, quadratic)))
            })?;
            for [missed, held, part] in parts {
                squares += missed;
                measure += held;
                energy += part;
            }
        }
        Ok(self.mean_mismatch(squares, measure, energy, measure))
    }

    /// How far u misses values on the boundary that a residual gives, however little they weigh in the loss.
    pub(super) fn missed_values(&self, u: &Network) -> Result<Mismatch, SolveError> {
        let evaluator = Evaluator::new(u);
        let (mut squares, mut weights, mut measure) = (0.0, 0.0, 0.0);
        for &(index, region) in &self.given {
            let term = &self.terms[index];
            let DensityLayout::Residual {
                coefficients, source, ..
            } = term.layout()
            else {
                continue;
            };
            let parts = self.over(term, |(_, scratch, tile)| {
                let jets = evaluator.jets(&term.symbols, &tile.tile, scratch);
                let columns = term.weighted_columns(tile);
                let (factors, given) = (&columns[coefficients[0]], &columns[*source]);
                let mut sums = [0.0; 2];
                for (i, w) in tile
                    .tile
                    .weights
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| factors[*i] != 0.0)
                {
                    sums[0] += w * (jets[0][i] - given[i] / factors[i]).powi(2);
                    sums[1] += w;
                }
                Ok(sums)
            })?;
            for [missed, weight] in parts {
                squares += missed;
                weights += weight;
            }
            measure += self.problem.domain.measure(region);
        }
        Ok(self.mean_mismatch(squares, weights, 0.0, measure))
    }

    fn mean_mismatch(&self, squares: f64, weights: f64, energy: f64, measure: f64) -> Mismatch {
        let domain = &self.problem.domain;
        let faces = domain.faces();
        let boundary: f64 = faces
            .iter()
            .map(|&face| domain.measure(Region::Boundary(face)))
            .sum();
        Mismatch {
            mean: if weights > 0.0 {
                (squares / weights).sqrt()
            } else {
                0.0
            },
            energy,
            part: (measure / boundary).min(1.0),
        }
    }

    /// ∫(Bu − g)², the measure of the points concerned and ∫(Bu − g)²/δ, from the gradient's channels w(Bu − g)/δ.
    fn missed(
        &self,
        term: &Term,
        tile: &TermTile,
        channels: &[Vec<f64>],
        (stiffness, quadratic): (&[Vec<f64>], &[usize]),
    ) -> [f64; 3] {
        let (low, high) = self.problem.domain.side(0);
        let mut sums = [0.0; 3];
        for ((rho, &column), symbol) in channels.iter().zip(quadratic).zip(&term.symbols) {
            let width = (high - low).powi(symbol.order() as i32);
            let values = rho.iter().zip(&stiffness[column]).zip(&tile.tile.weights);
            for ((rho, stiffness), w) in values.filter(|((_, stiffness), _)| **stiffness > 0.0) {
                let missed = rho / stiffness;
                sums[0] += (missed * width).powi(2) * w;
                sums[1] += w;
                sums[2] += missed * rho;
            }
        }
        sums
    }
}

/// Whether a term of a residual gives the values of u on a face.
fn gives_values(spec: &TermSpec) -> bool {
    let Density::Residual { parts, .. } = &spec.density else {
        return false;
    };
    let value = matches!(parts.as_slice(), [(symbol, _)] if symbol.order() == 0);
    value && spec.listed.is_none() && matches!(spec.region, Region::Boundary(_))
}

/// Values of formulas at the points of a tile.
fn evaluated(program: &Program, count: usize, tile: &TermTile, workspace: &mut Workspace) -> Vec<Vec<f64>> {
    let points = tile.tile.len();
    let mut values = vec![vec![0.0; points]; count];
    let mut outputs: Vec<&mut [f64]> = values.iter_mut().map(Vec::as_mut_slice).collect();
    program.evaluate(workspace, &tile.tile.columns(), points, &mut outputs);
    values
}

/// The jets of a formula under symbols.
fn jets_of_formula(graph: &mut Graph, node: NodeId, symbols: &[Symbol], inputs: usize) -> Program {
    let of_symbol = |symbol: &Symbol| {
        let parts: Vec<NodeId> = symbol
            .terms()
            .iter()
            .map(|(c, alpha)| {
                let factor = graph.number(*c);
                let derivative = graph.differentiate_by(node, alpha);
                graph.multiply(factor, derivative)
            })
            .collect();
        graph.sum(&parts)
    };
    let roots: Vec<NodeId> = symbols.iter().map(of_symbol).collect();
    Program::new(graph, &roots, inputs, &[])
}

/// ½‖v‖² in H¹.
fn sobolev(graph: &mut Graph, dimension: usize) -> TermSpec {
    let one = Formula::new("1", graph.number(1.0));
    let zero = Formula::new("0", graph.number(0.0));
    let symbols = std::iter::once(Symbol::value()).chain((0..dimension).map(|i| Symbol::derivative([i])));
    let parts = symbols.map(|symbol| (symbol, one.clone(), zero.clone()));
    TermSpec {
        region: Region::Interior,
        scale: 1.0,
        listed: None,
        density: Density::Energy {
            parts: parts.collect(),
            potential: None,
        },
    }
}

/// As many points as a digit needs.
fn few(rule: Rule, dimension: usize) -> Rule {
    match rule {
        Rule::Gauss { cells, order } => {
            let most = MESH.powf(1.0 / dimension as f64) / order as f64;
            Rule::Gauss {
                cells: cells.min(most.max(1.0) as usize),
                order,
            }
        }
        Rule::Halton { points, shift } => Rule::Halton {
            points: points.min(SEQUENCE),
            shift,
        },
        Rule::Lattice { points, shift } => Rule::Lattice {
            points: points.min(SEQUENCE),
            shift,
        },
        Rule::MonteCarlo { points, seed } => Rule::MonteCarlo {
            points: points.min(SEQUENCE),
            seed,
        },
    }
}
