//! From the best neurons of a scan to better ones near by: by Newton's method on the sphere where the slope is
//! climbed, by a quasi-Newton [ascent](ascend) where the decrease is. And from a network to a better one with as many
//! neurons, [all together](Together).

mod ascent;
mod together;

pub use ascent::ascend;
pub use together::{Move, Pulse, Room, Together};

use crate::candidates::Resolution;
use crate::error::SolveError;
use crate::network::Neuron;
use crate::sums::{LocalScore, Rho, Slopes};
use nalgebra::{DMatrix, DVector};

/// Newton steps from each start.
const ITERATIONS: usize = 4;
/// A step's length is tried whole and in these parts.
const PARTS: [f64; 4] = [1.0, 0.5, 0.25, 0.0625];
/// A start whose score grows by less than this part is done.
const ENOUGH: f64 = 1e-3;

/// What the refinement climbs on.
pub trait Landscape {
    /// The scores of some neurons.
    fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError>;
    /// Scores and their gradients.
    fn slopes(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError>;
}

/// The scores of a functional.
impl Landscape for (&dyn Rho, &dyn Slopes) {
    fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        self.0.list_scores(neurons)
    }

    fn slopes(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        self.1.slopes_at(neurons)
    }
}

/// Climbs from each start (a neuron with |ω| = 1 and its score) to a larger |score| near by, the bias
/// staying in its range, and returns those that got better, rounded to the resolution.
///
/// The second derivatives are differences of gradients over one unit of the resolution: the sum over
/// points of ReLU^k's own second derivative would miss the kink.
pub fn refine(
    landscape: &dyn Landscape,
    starts: &[(Neuron, f64)],
    resolution: Resolution,
    bias: [f64; 2],
) -> Result<Vec<(Neuron, f64)>, SolveError> {
    let mut climbers: Vec<Climber> = starts.iter().map(Climber::new).collect();
    for _ in 0..ITERATIONS {
        let active: Vec<&mut Climber> = climbers.iter_mut().filter(|climber| !climber.done).collect();
        if active.is_empty() {
            break;
        }
        climb(landscape, active, resolution, bias)?;
    }
    let rounded: Vec<Neuron> = climbers
        .iter()
        .map(|climber| resolution.round(&climber.neuron))
        .collect();
    let scores = landscape.scores(&rounded)?;
    let better = rounded.into_iter().zip(scores).zip(starts);
    Ok(better
        .filter(|((neuron, score), (_, start))| {
            score.abs() > start.abs() && (bias[0]..=bias[1]).contains(&neuron.bias)
        })
        .map(|(refined, _)| refined)
        .collect())
}

struct Climber {
    neuron: Neuron,
    score: f64,
    done: bool,
}

/// One Newton step for each climber, as far as it helps.
fn climb(
    landscape: &dyn Landscape,
    climbers: Vec<&mut Climber>,
    resolution: Resolution,
    bias: [f64; 2],
) -> Result<(), SolveError> {
    let frames: Vec<Frame> = climbers.iter().map(|c| Frame::new(&c.neuron)).collect();
    // Each climber's own place, then one unit along each coordinate of its frame.
    let probes: Vec<Neuron> = frames
        .iter()
        .flat_map(|frame| {
            (0..=frame.size()).map(|i| match i {
                0 => frame.origin.clone(),
                i => frame.at(&frame.unit(i - 1, resolution)),
            })
        })
        .collect();
    let slopes = landscape.slopes(&probes)?;
    let mut trials = Vec::new();
    let mut rest = slopes.as_slice();
    for (climber, frame) in climbers.iter().zip(&frames) {
        let (mine, others) = rest.split_at(frame.size() + 1);
        rest = others;
        let step = frame.newton_step(mine, climber.score.signum(), resolution);
        trials.extend(PARTS.iter().map(|part| {
            let mut neuron = frame.at(&(&step * *part));
            neuron.bias = neuron.bias.clamp(bias[0], bias[1]);
            neuron
        }));
    }
    let scores = landscape.scores(&trials)?;
    let results = trials.chunks(PARTS.len()).zip(scores.chunks(PARTS.len()));
    for (climber, (neurons, scores)) in climbers.into_iter().zip(results) {
        let best = (0..PARTS.len()).max_by(|&a, &b| scores[a].abs().total_cmp(&scores[b].abs()));
        let before = climber.score.abs();
        if let Some(best) = best.filter(|&best| scores[best].abs() > before) {
            climber.neuron = neurons[best].clone();
            climber.score = scores[best];
        }
        climber.done = climber.score.abs() <= (1.0 + ENOUGH) * before;
    }
    Ok(())
}

impl Climber {
    fn new((neuron, score): &(Neuron, f64)) -> Self {
        Self {
            neuron: neuron.clone(),
            score: *score,
            done: false,
        }
    }
}

impl Resolution {
    /// The neuron of this resolution that is nearest.
    pub fn round(&self, neuron: &Neuron) -> Neuron {
        let to = |value: f64, unit: f64| (value / unit).round() * unit;
        let omega: Vec<f64> = neuron.omega.iter().map(|&o| to(o, self.angle)).collect();
        Neuron {
            omega: normalised(omega),
            bias: to(neuron.bias, self.offset),
        }
    }
}

/// Coordinates near a neuron: along the sphere's tangent at ω, and the bias last.
struct Frame {
    origin: Neuron,
    /// d × (d − 1), orthonormal columns orthogonal to ω.
    tangent: DMatrix<f64>,
}

impl Frame {
    fn new(neuron: &Neuron) -> Self {
        let d = neuron.omega.len();
        // The Householder reflection that takes e₁ to ±ω takes the other units to a basis of the tangent.
        let omega = DVector::from_column_slice(&neuron.omega);
        let mut v = omega.clone();
        v[0] += if omega[0] >= 0.0 { 1.0 } else { -1.0 };
        let reflection = DMatrix::identity(d, d) - (&v * v.transpose()) * (2.0 / v.norm_squared());
        Self {
            origin: neuron.clone(),
            tangent: reflection.columns(1, d - 1).into_owned(),
        }
    }

    /// How many coordinates: d.
    fn size(&self) -> usize {
        self.tangent.ncols() + 1
    }

    fn unit(&self, i: usize, resolution: Resolution) -> DVector<f64> {
        let mut step = DVector::zeros(self.size());
        step[i] = self.unit_length(i, resolution);
        step
    }

    fn unit_length(&self, i: usize, resolution: Resolution) -> f64 {
        if i + 1 < self.size() {
            resolution.angle
        } else {
            resolution.offset
        }
    }

    /// The neuron at these coordinates.
    fn at(&self, step: &DVector<f64>) -> Neuron {
        let last = self.size() - 1;
        let moved = DVector::from_column_slice(&self.origin.omega) + &self.tangent * step.rows(0, last);
        Neuron {
            omega: normalised(moved.iter().copied().collect()),
            bias: self.origin.bias + step[last],
        }
    }

    /// ∂score/∂coordinates of a neuron near by, in this frame.
    fn slope(&self, score: &LocalScore) -> DVector<f64> {
        let last = self.size() - 1;
        let in_omega = DVector::from_column_slice(&score.gradient[..last + 1]);
        let mut slope = DVector::zeros(self.size());
        slope.rows_mut(0, last).copy_from(&self.tangent.tr_mul(&in_omega));
        slope[last] = score.gradient[last + 1];
        slope
    }

    /// The step to the maximum of sign × score by its gradient and the differences of gradients, or
    /// uphill where it is not concave.
    fn newton_step(&self, probes: &[LocalScore], sign: f64, resolution: Resolution) -> DVector<f64> {
        let size = self.size();
        let slope = self.slope(&probes[0]) * sign;
        let mut bend = DMatrix::zeros(size, size);
        for i in 0..size {
            let difference = self.slope(&probes[i + 1]) * sign - &slope;
            bend.set_column(i, &(difference / self.unit_length(i, resolution)));
        }
        // The sphere bends away from its tangent.
        let omega = DVector::from_column_slice(&self.origin.omega);
        let radial = sign * omega.dot(&DVector::from_column_slice(&probes[0].gradient[..size]));
        (0..size - 1).for_each(|i| bend[(i, i)] -= radial);
        let down = -(&bend + bend.transpose()) * 0.5;
        let size_of_bend = down.amax().max(f64::MIN_POSITIVE);
        let step = match down.cholesky() {
            Some(factor) => factor.solve(&slope),
            None => &slope / size_of_bend,
        };
        let longest = step.amax();
        // Farther than this no second-order model holds.
        const REACH: f64 = 0.3;
        if longest.is_finite() && longest > REACH {
            step * (REACH / longest)
        } else if longest.is_finite() {
            step
        } else {
            DVector::zeros(size)
        }
    }
}

fn normalised(omega: Vec<f64>) -> Vec<f64> {
    let norm = omega.iter().map(|o| o * o).sum::<f64>().sqrt();
    omega.into_iter().map(|o| o / norm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A smooth score with its maximum at a known neuron.
    struct Hill {
        top: Neuron,
    }

    impl Hill {
        fn at(&self, neuron: &Neuron) -> LocalScore {
            let d = neuron.omega.len();
            let mut gradient = vec![0.0; d + 1];
            let mut value = 2.0;
            for (slope, (o, top)) in gradient.iter_mut().zip(neuron.omega.iter().zip(&self.top.omega)) {
                value -= (o - top).powi(2);
                *slope = -2.0 * (o - top);
            }
            let difference = neuron.bias - self.top.bias;
            gradient[d] = -6.0 * difference;
            LocalScore {
                value: value - 3.0 * difference * difference,
                gradient,
            }
        }
    }

    impl Landscape for Hill {
        fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
            Ok(neurons.iter().map(|neuron| self.at(neuron).value).collect())
        }

        fn slopes(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
            Ok(neurons.iter().map(|neuron| self.at(neuron)).collect())
        }
    }

    #[test]
    fn the_top_of_a_hill_is_found_to_the_resolution() {
        for d in [1, 2, 3, 6] {
            let top = Neuron {
                omega: normalised((0..d).map(|i| 1.0 + 0.1 * i as f64).collect()),
                bias: 0.13,
            };
            let start = Neuron {
                omega: normalised((0..d).map(|i| 1.0 + 0.3 * (i % 2) as f64).collect()),
                bias: 0.2,
            };
            let hill = Hill { top: top.clone() };
            let score = hill.at(&start).value;
            let resolution = Resolution {
                offset: 0.01,
                angle: 0.01,
            };
            let found = refine(&hill, &[(start, score)], resolution, [-1.0, 1.0]).unwrap();
            assert_eq!(found.len(), 1, "dimension {d}");
            let (neuron, better) = &found[0];
            assert!(*better > score);
            assert!(
                (neuron.bias - top.bias).abs() < 0.011,
                "dimension {d}: {neuron:?}"
            );
            for (found, wanted) in neuron.omega.iter().zip(&top.omega) {
                assert!((found - wanted).abs() < 0.02, "dimension {d}: {neuron:?} {top:?}");
            }
        }
    }

    #[test]
    fn nothing_worse_is_returned() {
        let top = Neuron {
            omega: vec![0.6, 0.8],
            bias: 0.1,
        };
        let hill = Hill { top: top.clone() };
        let resolution = Resolution {
            offset: 0.07,
            angle: 0.07,
        };
        assert!(
            refine(&hill, &[(top, 2.0)], resolution, [-1.0, 1.0])
                .unwrap()
                .is_empty()
        );
    }
}
