//! The parts of a problem file that say how it is solved: domain, dictionary, points, algorithm.

use super::build::{Builder, Built, MAX_COUNT, MAX_NEURONS, MAX_POINTS, constant_for};
use super::file::{File, Formulation, RuleKind, SelectionKind, Shape};
use super::settings::{Overrides, Quadrature, Settings};
use super::source::{count, interval, optional_count, positive};
use super::typed::Count;
use super::{Algorithm, PenaltySpec, ProblemError};
use crate::activation::{Activation, MAX_RELU_POWER};
use crate::candidates::{Dictionary, DirectionKind};
use crate::domain::{Domain, Region};
use crate::greedy::Selection;
use crate::loss::{Density, TermSpec};
use crate::points::{MAX_HALTON_DIMENSION, PointSet, Rule};
use crate::projection::ProjectionKind;
use toml::Spanned;

/// Steps across the domain for each ω of a box whose biases follow its weights.
const BOX_OFFSETS: usize = 40;

/// Steps that all neurons are moved by, each time, at most.
const MAX_POLISH: i64 = 1000;

impl Builder<'_> {
    pub(super) fn dictionary(&mut self, file: &File, selection: Selection) -> Built<Dictionary> {
        let source = &self.source;
        let given = &file.dictionary;
        let activation = Activation::from_name(given.activation.get_ref()).ok_or_else(|| {
            source
                .error(
                    "dictionary.activation",
                    given.activation.span(),
                    format!("there is no activation `{}`", given.activation.get_ref()),
                )
                .help(format!(
                    "relu^k with k from 1 to {MAX_RELU_POWER}, sigmoid or tanh"
                ))
        })?;
        let directions = match &given.directions {
            Some(directions) => *directions.get_ref(),
            None if self.dimension == 1 => DirectionKind::Axes,
            None => DirectionKind::Sphere,
        };
        let weights = match (&given.weights, directions) {
            (Some(weights), DirectionKind::Box) => interval(source, "dictionary.weights", weights)?,
            (Some(weights), _) => {
                return Err(source.error(
                    "dictionary.weights",
                    weights.span(),
                    "`weights` belongs to directions = \"box\"",
                ));
            }
            (None, DirectionKind::Box) => {
                return Err(ProblemError::new(
                    source.name,
                    "directions = \"box\" needs `weights = [lo, hi]`",
                )
                .key("dictionary.weights"));
            }
            (None, _) => [-1.0, 1.0],
        };
        let bias = match &given.bias {
            Some(bias) => interval(source, "dictionary.bias", bias)?,
            None if directions == DirectionKind::Box => self.bias_for(weights),
            None => {
                let reach = self.reach();
                [-reach, reach]
            }
        };
        let offsets = optional_count(source, "dictionary.offsets", &given.offsets, 1, 10_000_000)?;
        // A long ω crosses many cells; its neurons are no finer for that.
        let follows_weights = directions == DirectionKind::Box && given.bias.is_none();
        let offsets = offsets.or(follows_weights.then_some(BOX_OFFSETS));
        // A pool of directions that stays is only where the climb begins.
        let refines =
            self.dimension > 2 && selection == Selection::Decrease && directions == DirectionKind::Sphere;
        let default_candidates = if self.dimension <= 2 { 100 } else { 256 };
        Ok(Dictionary {
            activation,
            directions,
            bias,
            weights,
            offsets,
            candidates: optional_count(source, "dictionary.candidates", &given.candidates, 1, 10_000_000)?
                .unwrap_or(default_candidates),
            refine: given.refine.unwrap_or(refines),
        })
    }

    /// The largest |x| in the domain.
    fn reach(&self) -> f64 {
        let sides = (0..self.dimension).map(|i| self.domain.side(i));
        let squares = sides.map(|(low, high)| low.abs().max(high.abs()).powi(2));
        squares.sum::<f64>().sqrt()
    }

    /// The biases −ω·x of all ω with components in `weights` and all x in the domain (or the box around it).
    fn bias_for(&self, [low, high]: [f64; 2]) -> [f64; 2] {
        let mut range = [0.0, 0.0];
        for axis in 0..self.dimension {
            let (left, right) = self.domain.side(axis);
            let products = [low * left, low * right, high * left, high * right];
            range[0] -= products.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            range[1] -= products.iter().copied().fold(f64::INFINITY, f64::min);
        }
        range
    }

    pub(super) fn require_smoothness(
        &self,
        file: &File,
        dictionary: &Dictionary,
        terms: &[TermSpec],
        penalties: &[PenaltySpec],
        order: usize,
    ) -> Built<()> {
        let in_terms = terms.iter().flat_map(|term| match &term.density {
            Density::Energy { parts, .. } => parts
                .iter()
                .map(|(symbol, ..)| symbol.order())
                .collect::<Vec<_>>(),
            Density::Residual { parts, .. } => parts.iter().map(|(symbol, _)| symbol.order()).collect(),
        });
        let in_penalties = penalties.iter().map(PenaltySpec::order);
        let needed = in_terms.chain(in_penalties).max().unwrap_or(0);
        let smoothness = dictionary.activation.smoothness();
        if needed <= smoothness {
            return Ok(());
        }
        Err(self
            .source
            .error(
                "dictionary.activation",
                file.dictionary.activation.span(),
                format!(
                    "{} is not smooth enough: this {} of order {order} takes derivatives of order {needed}, and the {} derivative of {} is not a function",
                    dictionary.activation,
                    match file.equation.formulation {
                        Formulation::Energy => "energy",
                        Formulation::Residual => "residual",
                        Formulation::Fit => "fit",
                    },
                    ordinal(smoothness + 1),
                    dictionary.activation,
                ),
            )
            .help(format!("use relu^{needed} or higher, sigmoid or tanh")))
    }

    pub(super) fn quadrature(
        &mut self,
        file: &File,
        overrides: &Overrides,
        (neurons, seed): (usize, u64),
    ) -> Built<Quadrature> {
        let source = &self.source;
        let given = &file.quadrature;
        let given_mesh = file.domain.shape == Shape::Mesh;
        let kind = *given.rule.get_ref();
        let gauss = kind == RuleKind::Gauss;
        let misplaced = match (gauss, &given.points, &given.cells, &given.order) {
            (true, Some(points), ..) => Some((
                "quadrature.points",
                points.span(),
                "a gauss rule has `cells` and `order`, not `points`",
            )),
            (false, _, Some(cells), _) => Some((
                "quadrature.cells",
                cells.span(),
                "`cells` belongs to rule = \"gauss\"; this rule has `points`",
            )),
            (false, _, _, Some(order)) => Some((
                "quadrature.order",
                order.span(),
                "`order` belongs to rule = \"gauss\"; this rule has `points`",
            )),
            _ => None,
        };
        if let Some((key, span, message)) = misplaced {
            return Err(source.error(key, span, message));
        }
        if gauss && overrides.points.is_some() {
            return Err(ProblemError::new(
                source.name,
                "this problem has a gauss rule: use --cells, not --points",
            ));
        }
        if !gauss && overrides.cells.is_some() {
            return Err(ProblemError::new(
                source.name,
                "this problem has no gauss rule: use --points, not --cells",
            ));
        }
        let missing = |key: &str| {
            source.error(
                &format!("quadrature.{key}"),
                given.rule.span(),
                format!("this rule needs `{key}`"),
            )
        };
        let points = match overrides.points {
            Some(points) => Some(points),
            None => self.point_count(&given.points, neurons)?,
        };
        let source = &self.source;
        let cells = match overrides.cells {
            Some(cells) => Some(cells),
            None => optional_count(source, "quadrature.cells", &given.cells, 1, MAX_COUNT)?,
        };
        let order = optional_count(source, "quadrature.order", &given.order, 1, 64)?.unwrap_or(2);
        if kind == RuleKind::Halton && self.dimension > MAX_HALTON_DIMENSION {
            return Err(source.error(
                "quadrature.rule",
                given.rule.span(),
                format!(
                    "the Halton sequence is provided up to {MAX_HALTON_DIMENSION} dimensions; use monte_carlo"
                ),
            ));
        }
        // Points whose number depends on n are drawn afresh for each n.
        let seed = match given.points.as_ref().map(Spanned::get_ref) {
            Some(Count::Formula(_)) => seed ^ ((neurons as u64) << 32),
            _ => seed,
        };
        let rule = match kind {
            RuleKind::Gauss => Rule::Gauss {
                cells: match (cells, &self.domain) {
                    (Some(cells), _) => cells,
                    // A mesh brings its own.
                    (None, Domain::Mesh(mesh)) if given_mesh => mesh.cells_across(),
                    _ => return Err(missing("cells")),
                },
                order,
            },
            RuleKind::Halton => Rule::Halton {
                points: points.ok_or_else(|| missing("points"))?,
                shift: None,
            },
            RuleKind::Lattice => Rule::Lattice {
                points: points.ok_or_else(|| missing("points"))?,
                shift: seed,
            },
            RuleKind::MonteCarlo => Rule::MonteCarlo {
                points: points.ok_or_else(|| missing("points"))?,
                seed,
            },
        };
        let key = if gauss {
            "quadrature.cells"
        } else {
            "quadrature.points"
        };
        let span = given.points.as_ref().map(Spanned::span);
        let span = span.or(given.cells.as_ref().map(Spanned::span));
        let span = span.unwrap_or(given.rule.span());
        let set = PointSet::new(&self.domain, Region::Interior, rule, 0)
            .map_err(|error| source.error(key, span.clone(), error.to_string()))?;
        if set.len() > MAX_POINTS {
            let message = format!(
                "{:.0e} points: one pass over them would take about {:.0} hours at a microsecond each",
                set.len() as f64,
                set.len() as f64 / 3.6e9
            );
            let help = format!("at most {:.0e} are accepted", MAX_POINTS as f64);
            return Err(source.error(key, span, message).help(help));
        }
        let boundary_points = match optional_count(
            source,
            "quadrature.boundary_points",
            &given.boundary_points,
            1,
            MAX_COUNT,
        )? {
            Some(count) => count,
            // The same density along the boundary as inside, but on all faces together no more than inside: in
            // many dimensions they would be nearly all there are.
            None => {
                let (points, d) = (points.unwrap_or(1), self.dimension);
                let dense = (points as f64).powf(1.0 - 1.0 / d as f64).round() as usize;
                let count = dense.min(points.div_ceil(2 * d)).max(1);
                match kind {
                    RuleKind::Lattice => count.next_power_of_two(),
                    _ => count,
                }
            }
        };
        let cache_mib = optional_count(source, "quadrature.cache_mib", &given.cache_mib, 0, 1 << 30)?;
        let points_follow_n = overrides.points.is_none()
            && matches!(
                given.points.as_ref().map(Spanned::get_ref),
                Some(Count::Formula(_))
            );
        Ok(Quadrature {
            points_follow_n,
            rule,
            // What it depends on is known later.
            curvature: None,
            boundary_points,
            cache_bytes: cache_mib.unwrap_or(1024) << 20,
        })
    }

    /// How many points the file asks for, with this many neurons.
    fn point_count(&self, given: &Option<Spanned<Count>>, neurons: usize) -> Built<Option<usize>> {
        const KEY: &str = "quadrature.points";
        let Some(given) = given else {
            return Ok(None);
        };
        match given.get_ref() {
            Count::Number(number) => {
                let number = Spanned::new(given.span(), *number);
                count(&self.source, KEY, &number, 1, MAX_COUNT).map(Some)
            }
            Count::Formula(formula) => {
                let formula = Spanned::new(given.span(), formula.clone());
                let ast = self.ast(KEY, &formula)?;
                let value = constant_for(&ast, &self.constants, neurons);
                match value.map(f64::ceil) {
                    Some(value) if (1.0..=MAX_COUNT as f64).contains(&value) => Ok(Some(value as usize)),
                    _ => Err(self.source.error(
                        KEY,
                        given.span(),
                        format!("must be a number of points for n = {neurons}, at least 1"),
                    )),
                }
            }
        }
    }

    pub(super) fn settings(&mut self, file: &File, overrides: &Overrides) -> Built<Settings> {
        let source = &self.source;
        let given = &file.solver;
        let seed = optional_count(source, "solver.seed", &given.seed, 0, i64::MAX)?.unwrap_or(0);
        let in_file = count(source, "solver.neurons", &given.neurons, 1, MAX_NEURONS)?;
        if let Some(neurons) = overrides.neurons.filter(|n| *n > MAX_NEURONS as usize) {
            let message = format!("--neurons {neurons}: at most {MAX_NEURONS} are accepted");
            return Err(ProblemError::new(source.name, message));
        }
        let algorithm = given
            .algorithm
            .as_ref()
            .map_or(Algorithm::Oga, |algorithm| *algorithm.get_ref());
        Ok(Settings {
            algorithm,
            neurons: overrides.neurons.unwrap_or(in_file),
            seed: overrides.seed.unwrap_or(seed as u64),
            tolerance: given
                .tolerance
                .as_ref()
                .map(|tolerance| positive(source, "solver.tolerance", tolerance, &self.constants))
                .transpose()?,
            radius: given
                .radius
                .as_ref()
                .map(|radius| positive(source, "solver.radius", radius, &self.constants))
                .transpose()?,
            step: given.step,
            guard: given.guard,
            projection: given.projection,
            // Whether there are penalties is known later.
            selection: Selection::Slope,
            polish: optional_count(source, "solver.polish", &given.polish, 0, MAX_POLISH)?
                .filter(|&steps| steps > 0),
        })
    }
}

impl Builder<'_> {
    /// By what neurons are chosen. In one dimension the slope is as good once splines are in their asymptotic
    /// range, and keeps more digits; above, the decrease was up to seven times more accurate, unless a stiff
    /// penalty lets no neuron gain anything by itself.
    pub(super) fn selection(&self, file: &File, penalised: bool) -> Built<Selection> {
        let given = &file.solver;
        let relaxed = given
            .algorithm
            .as_ref()
            .is_some_and(|a| *a.get_ref() == Algorithm::Rga);
        let drawn =
            matches!(&file.dictionary.directions, Some(kind) if *kind.get_ref() == DirectionKind::Box);
        match given
            .selection
            .as_ref()
            .map(|kind| (*kind.get_ref(), kind.span()))
        {
            Some((SelectionKind::Decrease, span)) if relaxed => Err(self
                .source
                .error(
                    "solver.selection",
                    span,
                    "the relaxed algorithm makes no projection whose decrease could be known",
                )
                .help("leave it out, or take algorithm = \"oga\"")),
            Some((SelectionKind::Decrease, _)) => Ok(Selection::Decrease),
            Some((SelectionKind::Slope, _)) => Ok(Selection::Slope),
            _ if relaxed || drawn || penalised || self.dimension == 1 => Ok(Selection::Slope),
            _ if self.hides_corners(file) => Ok(Selection::Slope),
            _ => Ok(Selection::Decrease),
        }
    }
}

impl Builder<'_> {
    /// Refuses `polish` where neurons cannot be moved together.
    pub(super) fn require_polish(
        &self,
        file: &File,
        (settings, dictionary): (&Settings, &Dictionary),
        quadratic: bool,
        penalised: bool,
    ) -> Built<()> {
        let Some(given) = file.solver.polish.as_ref().filter(|_| settings.polish.is_some()) else {
            return Ok(());
        };
        let reason = if settings.algorithm == Algorithm::Rga {
            "moves neurons together with their projection, and the relaxed algorithm makes none"
        } else if self.dimension == 1 {
            "is for two dimensions and more: in one, offsets lie on the edges of cells"
        } else if !dictionary.activation.has_sweep() {
            "is for activation = \"relu^k\""
        } else if !matches!(
            dictionary.directions,
            DirectionKind::Sphere | DirectionKind::Pairs
        ) {
            "is for directions = \"sphere\" or \"pairs\""
        } else if !quadratic {
            "is for linear equations"
        } else if penalised || !self.held.is_empty() {
            "is not for penalties or multipliers: Dirichlet conditions of an energy, periodic ones"
        } else if settings.projection == ProjectionKind::Orthogonal {
            "needs the Gram matrix: projection = \"cholesky\" or \"auto\""
        } else if file.time.is_some() {
            "is not for problems in time: the neurons of all steps are the same"
        } else {
            return Ok(());
        };
        let message = format!("`polish` {reason}");
        Err(self
            .source
            .error("solver.polish", given.span(), message)
            .help("leave it out"))
    }

    /// Whether a neuron may live in a corner that the points of a sequence do not see while its load on the boundary
    /// is seen: then the quotient of the two, the decrease, knows no bounds.
    fn hides_corners(&self, file: &File) -> bool {
        let sequence = *file.quadrature.rule.get_ref() != RuleKind::Gauss;
        let energy = file.equation.formulation == Formulation::Energy;
        let anywhere = match &file.dictionary.directions {
            Some(kind) => *kind.get_ref() == DirectionKind::Sphere,
            None => true,
        };
        sequence && energy && anywhere
    }
}

/// 1st, 2nd, 3rd, 4th …, for the orders of derivatives (below 11).
fn ordinal(number: usize) -> String {
    let ending = match number {
        1 => "st",
        2 => "nd",
        3 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
