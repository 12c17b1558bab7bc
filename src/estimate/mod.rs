//! How large the error of a run is, estimated from what is at hand: no exact solution is needed.
//!
//! The neurons of u_m are the first of those of u_n, so that u_n − u_m is a network, too. For projections
//! ‖u − u_m‖² = ‖u − u_n‖² + ‖u_n − u_m‖² in the norm of the loss (Pythagoras), and nearly so in others.
//! - The loss of a residual or a fit is ‖u − u_n‖² in its norm; what a unit of it means in L² or H¹
//!   is seen at u_n − u_(n/2).
//! - An energy has an unknown minimum; the errors at n/8, n/4, n/2, n are taken for a power of n.
//!
//! What neither can see is added: boundary data that a penalty holds loosely, the noise of a sequence of points, and what
//! functions other than neurons find in the gradient of the loss.

mod gauge;
mod probe;
mod verdict;

pub use verdict::{Measured, Verdict};

use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::greedy::is_moved_at;
use crate::network::{Network, Neuron};
use crate::points::Rule;
use crate::problem::{Algorithm, Formulation, Problem};
use gauge::{Gauge, Mismatch, Pairing, Sizes};
use serde::{Deserialize, Serialize};

/// The estimated error of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// ‖u − u_n‖ in L².
    pub l2: f64,
    /// ‖u − u_n‖ in the full H¹ norm.
    pub h1: f64,
    /// ‖u − u_n‖ in the energy norm, for an energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// ‖u_n‖ in L².
    #[serde(default)]
    pub norm_l2: f64,
    /// ‖u_n‖ in H¹.
    #[serde(default)]
    pub norm_h1: f64,
    /// ‖u_n‖ in the energy norm, for an energy.
    #[serde(default)]
    pub norm_energy: f64,
    /// `l2` as a part of the solution's norm ‖u‖, as far as it is known.
    pub relative_l2: f64,
    /// `h1` as a part of the solution's norm.
    pub relative_h1: f64,
    /// `energy` as a part of the solution's norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_energy: Option<f64>,
    /// p, where the error in the energy norm (H¹ for others) falls like n^−p at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<f64>,
    /// ‖Au − f‖ / ‖f‖ on independent points, boundary included, for a residual or a fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Whether the loss of a residual or a fit has hardly fallen since n/4 neurons.
    #[serde(default)]
    pub stalled: bool,
    /// What of `l2` comes from the penalty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty_l2: Option<f64>,
    /// What of the energy norm comes from the noise of a sequence of points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
}

impl Estimate {
    /// For people.
    pub fn in_words(&self) -> String {
        let percent = |part: f64| format!("{:.2} %", 100.0 * part);
        let energy = self
            .energy
            .zip(self.relative_energy)
            .map(|(error, part)| format!(", energy {error:.1e} ({})", percent(part)));
        format!(
            "estimated error: L2 {:.1e} ({}), H1 {:.1e} ({}){}",
            self.l2,
            percent(self.relative_l2),
            self.h1,
            percent(self.relative_h1),
            energy.unwrap_or_default()
        )
    }
}

/// A network on the way, kept for comparison with the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// aᵢ.
    pub coefficients: Vec<f64>,
    /// (ω, b) of each neuron, where neurons are moved; else they are the first ones of the last network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    neurons: Vec<(Vec<f64>, f64)>,
}

impl Snapshot {
    /// A network on the way, whose neurons may be moved later.
    fn of(network: &Network, moves: bool) -> Self {
        let neurons = network.neurons.iter().filter(|_| moves);
        Self {
            coefficients: network.coefficients.clone(),
            neurons: neurons.map(|g| (g.omega.clone(), g.bias)).collect(),
        }
    }

    /// Keeps a network with those before it, if it is one to keep; the one before it with as many neurons goes.
    pub fn keep(kept: &mut Vec<Snapshot>, network: &Network, moves: bool) {
        if is_kept(network.len()) {
            kept.pop_if(|last| last.coefficients.len() == network.len());
            kept.push(Self::of(network, moves));
        }
    }

    /// The network, on the way to this one.
    fn network(&self, last: &Network) -> Network {
        let mut network = last.with_coefficients(&self.coefficients);
        for (neuron, (omega, bias)) in network.neurons.iter_mut().zip(&self.neurons) {
            *neuron = Neuron {
                omega: omega.clone(),
                bias: *bias,
            };
        }
        network
    }
}

/// Whether a network of n neurons is kept: n = 2^(k/4), rounded.
fn is_kept(n: usize) -> bool {
    let nearest = (4.0 * (n as f64).log2()).round();
    n > 0 && 2f64.powf(0.25 * nearest).round() as usize == n
}

/// Networks of these parts of n neurons are compared with the last.
const LOOKED_AT: [f64; 4] = [0.71, 0.5, 0.36, 0.25];
/// Below this part of the solution what functions find may be the quadrature's error.
const PROBED: f64 = 0.03;
/// What is still missing is finer than the last changes, and smaller in L² by about this factor.
const SMOOTHED_BY_ENERGY: f64 = 0.7;
const SMOOTHED_BY_RESIDUAL: f64 = 0.9;
/// The orders tried are so far apart.
const STEP: f64 = 0.05;
/// The errors fall at least like this power of n …
const SLOWEST: f64 = 0.75;
/// … and at most like this one.
const FASTEST: f64 = 6.0;

/// An earlier network compared with the last: u_n − u_m.
struct Change {
    /// m.
    before: usize,
    /// u_n − u_m …
    network: Network,
    /// … and its norms.
    sizes: Sizes,
}

/// Estimates the errors of a run that ended with `network`; there is none without networks on the way. The points are shared
/// by the processes of the run.
pub fn estimate(
    problem: &Problem,
    network: &Network,
    snapshots: &[Snapshot],
    cluster: &Cluster,
) -> Result<Option<Estimate>, SolveError> {
    let enough = |snapshot: &Snapshot| 4 * snapshot.coefficients.len() > network.len();
    if network.len() > 4
        && !snapshots
            .iter()
            .any(|kept| enough(kept) && kept.coefficients.len() < network.len())
    {
        return Ok(None);
    }
    let gauge = Gauge::new(problem, cluster)?;
    let moved = moved_alike(problem, network, snapshots);
    let changes = changes(&gauge, network, moved.as_deref().unwrap_or(snapshots))?;
    let size = gauge.sizes(network, network)?;
    let mut estimate = Estimate::default();
    let mut errors = match problem.formulation {
        Formulation::Energy => of_energy(network.len(), &changes, &mut estimate),
        _ => of_residual(problem, &gauge, network, &changes, &mut estimate)?,
    };
    // What u_n says about its own error is at most that it is all wrong.
    errors = Sizes {
        l2: errors.l2.min(size.l2),
        h1: errors.h1.min(size.h1),
        energy: errors.energy.min(size.energy),
    };
    if problem.formulation == Formulation::Residual {
        // The loss hardly knows of boundary values that weigh little in it.
        let carried = carried_inside(problem, &gauge.missed_values(network)?);
        errors.l2 = errors.l2.max(carried);
        errors.h1 = errors.h1.max(carried);
    }
    if problem.formulation == Formulation::Energy {
        add_penalty(problem, &gauge, network, &mut errors, &mut estimate)?;
        add_noise(problem, &gauge, network, &changes, &mut errors, &mut estimate)?;
        add_probes(&gauge, network, size, &mut errors)?;
    }
    let relative = |error: f64, size: f64| error / error.hypot(size).max(f64::MIN_POSITIVE);
    estimate.l2 = errors.l2;
    estimate.norm_l2 = size.l2;
    estimate.norm_h1 = size.h1;
    estimate.h1 = errors.h1;
    estimate.relative_l2 = relative(errors.l2, size.l2);
    estimate.relative_h1 = relative(errors.h1, size.h1);
    if problem.formulation == Formulation::Energy {
        estimate.energy = Some(errors.energy);
        estimate.norm_energy = size.energy;
        estimate.relative_energy = Some(relative(errors.energy, size.energy));
    }
    Ok(Some(estimate))
}

/// Where neurons are moved together now and then: the networks just after it, if there are any. What was gained by moving is
/// nothing that more neurons would gain once more.
fn moved_alike(problem: &Problem, network: &Network, snapshots: &[Snapshot]) -> Option<Vec<Snapshot>> {
    problem.settings.polish?;
    let alike = |kept: &&Snapshot| is_moved_at(kept.coefficients.len());
    let moved: Vec<Snapshot> = snapshots.iter().filter(alike).cloned().collect();
    let latest = looked_at(network, LOOKED_AT[0]);
    let one = moved.iter().any(|kept| kept.coefficients.len() <= latest);
    one.then_some(moved)
}

/// The last network compared with some before it, the latest first.
fn changes(gauge: &Gauge, network: &Network, snapshots: &[Snapshot]) -> Result<Vec<Change>, SolveError> {
    let mut found: Vec<Change> = Vec::new();
    for part in LOOKED_AT {
        let before = latest(network, snapshots, looked_at(network, part));
        if found.last().is_some_and(|found| found.before == before.len()) {
            continue;
        }
        let step = difference(network, &before);
        found.push(Change {
            before: before.len(),
            sizes: gauge.sizes(&step, network)?,
            network: step,
        });
    }
    Ok(found)
}

/// How many neurons a network has at most that is compared with the last as this part of it.
fn looked_at(network: &Network, part: f64) -> usize {
    let n = (part * network.len() as f64).ceil() as usize;
    n.min(network.len().saturating_sub(1))
}

/// The largest kept network of at most n neurons.
fn latest(network: &Network, snapshots: &[Snapshot], n: usize) -> Network {
    let kept = snapshots
        .iter()
        .filter(|snapshot| snapshot.coefficients.len() <= n);
    let largest = kept.max_by_key(|snapshot| snapshot.coefficients.len());
    largest.map_or_else(|| network.with_coefficients(&[]), |kept| kept.network(network))
}

/// after − before, whose neurons are the first ones of the other, unless they were moved.
fn difference(after: &Network, before: &Network) -> Network {
    let mut difference = after.clone();
    if !after.neurons.starts_with(&before.neurons) {
        difference.neurons.extend(before.neurons.iter().cloned());
        difference
            .coefficients
            .extend(before.coefficients.iter().map(|a| -a));
        return difference;
    }
    let coefficients = difference.coefficients.iter_mut().zip(&before.coefficients);
    coefficients.for_each(|(a, b)| *a -= b);
    difference
}

/// ‖u − u_n‖ and p where ‖u − u_m‖ = c m^−p for the networks looked at: c² (m^−2p − n^−2p) = ‖u_n − u_m‖².
fn power_law(n: usize, changes: &[Change], norm: fn(&Sizes) -> f64) -> (f64, f64) {
    let n = n as f64;
    // log ‖u_n − u_m‖ and log √((n/m)^2p − 1), whose difference is log ‖u − u_n‖.
    let logarithms = |p: f64| -> Vec<(f64, f64)> {
        let known = changes.iter().filter(|change| change.before > 0);
        let values = known.map(|change| {
            let ratio = n / change.before as f64;
            (
                norm(&change.sizes).ln() - 0.5 * (ratio.powf(2.0 * p) - 1.0).ln(),
                1.0 / ratio,
            )
        });
        values.filter(|(value, _)| value.is_finite()).collect()
    };
    let mean = |values: &[(f64, f64)]| {
        let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
        values.iter().map(|(value, weight)| value * weight).sum::<f64>() / weights
    };
    let misfit = |p: f64| {
        let values = logarithms(p);
        let mean = mean(&values);
        values
            .iter()
            .map(|(value, weight)| weight * (value - mean).powi(2))
            .sum::<f64>()
    };
    let steps = ((FASTEST - SLOWEST) / STEP) as usize;
    let orders = (0..=steps).map(|k| SLOWEST + k as f64 * STEP);
    let p = match logarithms(0.5).len() {
        0 => return (changes.first().map_or(0.0, |change| norm(&change.sizes)), 0.5),
        1 => 0.5,
        _ => orders
            .min_by(|a, b| misfit(*a).total_cmp(&misfit(*b)))
            .unwrap_or(0.5),
    };
    (mean(&logarithms(p)).exp(), p)
}

/// ‖u − u_n‖ of an energy. What a unit of the energy norm means in another is seen at the latest changes; the
/// smaller figure, for errors in weaker norms are corrected on the way.
fn of_energy(n: usize, changes: &[Change], estimate: &mut Estimate) -> Sizes {
    let (energy, order) = power_law(n, changes, |sizes| sizes.energy);
    estimate.order = Some(order);
    let error = |norm: fn(&Sizes) -> f64| {
        let units = changes
            .iter()
            .take(2)
            .map(|change| norm(&change.sizes) / change.sizes.energy);
        energy
            * units
                .filter(|unit| unit.is_finite())
                .fold(f64::INFINITY, f64::min)
    };
    match changes.is_empty() || energy == 0.0 {
        true => Sizes::default(),
        false => Sizes {
            l2: SMOOTHED_BY_ENERGY * error(|sizes| sizes.l2),
            h1: error(|sizes| sizes.h1),
            energy,
        },
    }
}

/// ‖u − u_n‖ where the loss is its square in some norm.
fn of_residual(
    problem: &Problem,
    gauge: &Gauge,
    network: &Network,
    changes: &[Change],
    estimate: &mut Estimate,
) -> Result<Sizes, SolveError> {
    let zero = Network::zero(problem.dictionary.activation, problem.dimension());
    let whole = gauge.risk(&zero)?;
    let loss = gauge.risk(network)?;
    estimate.residual = Some((loss / whole).sqrt());
    estimate.order = Some(power_law(network.len(), changes, |sizes| sizes.h1).1);
    // Where the loss hardly fell any more, its last change says little about it.
    let fell: Vec<&Change> = changes
        .iter()
        .filter(|change| change.sizes.energy.powi(2) > 0.1 * loss)
        .collect();
    estimate.stalled = fell.is_empty();
    let error = |norm: fn(&Sizes) -> f64| {
        let per_residual = |change: &Change| norm(&change.sizes) / change.sizes.energy;
        if fell.is_empty() {
            return loss.sqrt() * changes.iter().map(per_residual).fold(0.0, f64::max);
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for change in fell.iter().take(3) {
            let weight = change.before.max(1) as f64;
            sum += weight * per_residual(change).ln();
            weights += weight;
        }
        loss.sqrt() * (sum / weights).exp()
    };
    Ok(Sizes {
        l2: match problem.formulation {
            Formulation::Fit => loss.sqrt(),
            _ => SMOOTHED_BY_RESIDUAL * error(|sizes| sizes.l2),
        },
        h1: error(|sizes| sizes.h1),
        energy: loss.sqrt(),
    })
}

/// The error in L² that boundary data which are missed carry into the domain.
fn carried_inside(problem: &Problem, mismatch: &Mismatch) -> f64 {
    let volume = problem.domain.measure(crate::domain::Region::Interior);
    0.7 * mismatch.mean * volume.sqrt() * mismatch.part.sqrt()
}

/// What a penalty leaves of the boundary data.
fn add_penalty(
    problem: &Problem,
    gauge: &Gauge,
    network: &Network,
    errors: &mut Sizes,
    estimate: &mut Estimate,
) -> Result<(), SolveError> {
    if !problem.has_penalty() && !problem.has_multipliers() {
        return Ok(());
    }
    let mismatch = gauge.mismatch(network)?;
    let l2 = carried_inside(problem, &mismatch);
    estimate.penalty_l2 = Some(l2);
    errors.l2 = errors.l2.hypot(l2);
    errors.h1 = errors.h1.hypot(l2);
    errors.energy = errors.energy.hypot(mismatch.energy.sqrt());
    Ok(())
}

/// The noise of a sequence of points: on other points the gradient along what the network is made of is not zero. Each
/// of its dimensions has as much of it as the changes show.
fn add_noise(
    problem: &Problem,
    gauge: &Gauge,
    network: &Network,
    changes: &[Change],
    errors: &mut Sizes,
    estimate: &mut Estimate,
) -> Result<(), SolveError> {
    let Some(share) = share_of_training(problem, gauge.points() as f64) else {
        return Ok(());
    };
    // Multipliers are a part of the gradient that is not known here.
    if problem.settings.algorithm == Algorithm::Rga || problem.has_multipliers() {
        return Ok(());
    }
    let mut sum = Sizes::default();
    let mut add = |dimensions: f64, pairing: Pairing, sizes: Sizes| {
        let step = dimensions.sqrt() * pairing.slope / pairing.square;
        sum.l2 = sum.l2.hypot(step * sizes.l2);
        sum.h1 = sum.h1.hypot(step * sizes.h1);
        sum.energy = sum.energy.hypot(step * sizes.energy);
    };
    let mut after = network.len();
    for change in changes {
        let dimensions = (after - change.before) as f64;
        add(dimensions, gauge.along(network, &change.network)?, change.sizes);
        after = change.before;
    }
    add(
        after as f64,
        gauge.along(network, network)?,
        gauge.sizes(network, network)?,
    );
    for (pairing, l2) in gauge.along_probes(network)? {
        let sizes = Sizes {
            l2,
            h1: l2,
            energy: pairing.square.sqrt(),
        };
        add(1.0, pairing, sizes);
    }
    let part = share.sqrt();
    estimate.noise = Some(part * sum.energy);
    errors.l2 = errors.l2.hypot(part * sum.l2);
    errors.h1 = errors.h1.hypot(part * sum.h1);
    errors.energy = errors.energy.hypot(part * sum.energy);
    Ok(())
}

/// The part of the variance that is the training points', when both sets are sequences.
fn share_of_training(problem: &Problem, estimation: f64) -> Option<f64> {
    // The more dimensions, the more a sequence is like random points.
    let sequence = (1.0 + 2.0 / problem.dimension() as f64).min(2.0);
    let (training, power) = match problem.quadrature.rule {
        Rule::Gauss { .. } => return None,
        Rule::Halton { points, .. } | Rule::Lattice { points, .. } => (points as f64, sequence),
        Rule::MonteCarlo { points, .. } => (points as f64, 1.0),
    };
    let variances = (training.powf(-power), estimation.powf(-power));
    Some(variances.0 / (variances.0 + variances.1))
}

/// What functions that no neuron makes find: |⟨∇L(u_n), v⟩| / ‖v‖ is at most the error, and ⟨∇L(u_n), v⟩ v / ‖v‖²
/// the part of the error along v. Beside a stiff penalty that part may be all of the error inside and nearly
/// nothing of the energy.
fn add_probes(gauge: &Gauge, network: &Network, size: Sizes, errors: &mut Sizes) -> Result<(), SolveError> {
    for (pairing, l2) in gauge.along_probes(network)? {
        let bound = pairing.slope.abs() / pairing.square.sqrt();
        if bound.is_finite() && bound > errors.energy.max(PROBED * size.energy) {
            errors.energy = bound;
        }
        let part = pairing.slope.abs() / pairing.square * l2;
        if part.is_finite() && part > errors.l2.max(PROBED * size.l2) {
            errors.l2 = part;
            errors.h1 = errors.h1.max(part);
        }
    }
    Ok(())
}
