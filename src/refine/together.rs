//! All neurons together: steps of Gauss and Newton in every a, ω and b at once.
//!
//! Near u = Σ aᵢ g(θᵢ), θ = (ω, b), a quadratic loss is
//!
//!   L(u + v) = L(u) + ⟨∇L(u), v⟩ + ½⟨∇²L v, v⟩,      v = P⊥ Σ aᵢ ∂g(θᵢ)·δθᵢ to first order,
//!
//! P⊥ the projection off the neurons, as the coefficients follow. A step minimises that plus ½λ|δθ|², in units in which
//! a neuron's own part of ∇²L is about one (Gauss, Newton, Levenberg, Marquardt; with the coefficients projected out by
//! Golub, Pereyra, Kaufman). The equations are solved by conjugate gradients. A product with their matrix is the slopes, at the
//! neurons, of ∇²L along a network of differences, and along what the neurons span of it: all that is asked of the sums.
//! Without P⊥ they would be too ill-conditioned: the neurons span most of what their derivatives do.

use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::projection::Triangle;
use crate::sums::{LocalScore, Sums};
use crate::vector::{add_scaled, dot};

/// Derivatives along θ are differences over this part of |ω| or, for b, of the domain's size.
const DIFFERENCE: f64 = 1e-5;
/// Conjugate gradients end when the residual has fallen to this part, or after so many products.
const SOLVED: f64 = 0.03;
const PRODUCTS: usize = 20;
/// No direction turns by more than this in a step, and no knot moves by more than this part of the domain.
const REACH: f64 = 0.3;

/// The domain as parameters see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Its centre: directions turn about it.
    pub center: Vec<f64>,
    /// How far coordinates are from the centre, in the mean square.
    pub spread: Vec<f64>,
    /// Whether components of ω that are zero stay zero.
    pub bound: bool,
}

impl Room {
    /// The size of the domain along all axes.
    fn size(&self) -> f64 {
        dot(&self.spread, &self.spread).sqrt()
    }
}

/// Called again and again while a step is computed; an error ends that.
pub type Pulse<'p> = dyn FnMut() -> Result<(), SolveError> + 'p;

/// How every neuron of u is moved, and what the model says of it.
pub struct Move {
    /// The neurons after it; their coefficients are to be projected.
    pub neurons: Vec<Neuron>,
    /// By how much the loss would fall if it were quadratic in θ.
    pub predicted: f64,
}

/// The equations of a step.
pub struct Together<'r> {
    sums: &'r dyn Sums,
    /// R of the Gram matrix G = RᵀR of u's neurons.
    factor: &'r Triangle,
    u: &'r Network,
    room: &'r Room,
    /// By what z of each parameter is multiplied to give its change.
    units: Vec<Vec<f64>>,
    /// Minus the slopes of the loss in z.
    descent: Vec<f64>,
}

impl<'r> Together<'r> {
    /// At u, where the scores of its neurons with their slopes are these; `sums` has the curvature.
    pub fn new(
        sums: &'r dyn Sums,
        factor: &'r Triangle,
        (u, gradient): (&'r Network, &[LocalScore]),
        room: &'r Room,
    ) -> Result<Self, SolveError> {
        let mut equations = Self {
            sums,
            factor,
            u,
            room,
            units: Vec::new(),
            descent: Vec::new(),
        };
        equations.units = equations.units()?;
        equations.descent = equations.slopes(gradient);
        equations.descent.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(equations)
    }

    /// 1 / (|a| ‖∂g/∂b‖) for each neuron, in the units of each parameter; zero for those that stay as they are.
    fn units(&self) -> Result<Vec<Vec<f64>>, SolveError> {
        let d = self.u.dimension;
        let zero = Network::zero(self.u.activation, d);
        let field = self.sums.at(&zero)?;
        let mut shift = vec![0.0; d + 1];
        shift[d] = 1.0;
        let mut units = Vec::with_capacity(self.u.len());
        for (neuron, a) in self.u.neurons.iter().zip(&self.u.coefficients) {
            let mut slope = zero.clone();
            self.add_difference(neuron, *a, &shift, &mut slope);
            let scores = field.curvature(&slope)?.list_scores(&slope.neurons)?;
            let square = dot(&scores, &slope.coefficients);
            let unit = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
            let stays = |&o: &f64| self.room.bound && o == 0.0;
            let turns = neuron.omega.iter().zip(&self.room.spread);
            let turns = turns.map(|(o, spread)| if stays(o) { 0.0 } else { unit / spread });
            units.push(turns.chain([unit]).collect());
        }
        Ok(units)
    }

    /// The change of every θ, from z. In z directions turn about the centre of the domain.
    fn changes(&self, z: &[f64]) -> Vec<Vec<f64>> {
        let rows = z.chunks(self.u.dimension + 1).zip(&self.units);
        rows.map(|(z, units)| {
            let mut row: Vec<f64> = z.iter().zip(units).map(|(z, unit)| z * unit).collect();
            let turned = dot(&row[..self.u.dimension], &self.room.center);
            row[self.u.dimension] -= turned;
            row
        })
        .collect()
    }

    /// From the slopes of the neurons' scores to those in z.
    fn slopes(&self, scores: &[LocalScore]) -> Vec<f64> {
        let d = self.u.dimension;
        let mut slopes = Vec::with_capacity(self.u.len() * (d + 1));
        for ((score, a), units) in scores.iter().zip(&self.u.coefficients).zip(&self.units) {
            let by_bias = score.gradient[d];
            let about = self.room.center.iter().chain([&0.0]);
            let parts = score.gradient.iter().zip(about).zip(units);
            slopes.extend(parts.map(|((slope, center), unit)| a * (slope - center * by_bias) * unit));
        }
        slopes
    }

    /// Adds a ∂g/∂θ·change, as a difference.
    fn add_difference(&self, neuron: &Neuron, a: f64, change: &[f64], v: &mut Network) {
        let length = self.length(neuron, change);
        if length > 0.0 {
            let h = DIFFERENCE / length;
            for side in [h, -h] {
                v.neurons.push(moved(neuron, change, side));
                v.coefficients.push(0.5 * a / side);
            }
        }
    }

    /// How far a change of θ takes a neuron, as a part of all there is room for.
    fn length(&self, neuron: &Neuron, change: &[f64]) -> f64 {
        let (omega, bias) = change.split_at(self.u.dimension);
        let slope = dot(&neuron.omega, &neuron.omega).sqrt();
        let about = bias[0] + dot(omega, &self.room.center);
        let turned = dot(omega, omega).sqrt();
        turned.max(about.abs() / self.room.size()) / slope.max(f64::MIN_POSITIVE)
    }

    /// The matrix times z, without λ: what v of z leaves when the neurons are projected out of it, seen by the slopes.
    fn product(&self, z: &[f64]) -> Result<Option<Vec<f64>>, SolveError> {
        let mut v = Network::zero(self.u.activation, self.u.dimension);
        let neurons = self.u.neurons.iter().zip(&self.u.coefficients);
        for ((neuron, &a), change) in neurons.zip(self.changes(z)) {
            self.add_difference(neuron, a, &change, &mut v);
        }
        let Some(scores) = self.scores(&v)? else {
            return Ok(None);
        };
        let values: Vec<f64> = scores.iter().map(|score| score.value).collect();
        let spanned = self.factor.backward(&self.factor.forward(&values));
        let Some(of_spanned) = self.scores(&self.u.with_coefficients(&spanned))? else {
            return Ok(None);
        };
        let mut product = self.slopes(&scores);
        add_scaled(-1.0, &self.slopes(&of_spanned), &mut product);
        Ok(Some(product))
    }

    /// ⟨∇²L v, g⟩ of the neurons, with slopes.
    fn scores(&self, v: &Network) -> Result<Option<Vec<LocalScore>>, SolveError> {
        let zero = Network::zero(self.u.activation, self.u.dimension);
        let rho = self.sums.at(&zero)?.curvature(v)?;
        let slopes = rho.slopes();
        slopes.map(|slopes| slopes.slopes_at(&self.u.neurons)).transpose()
    }

    /// The step for a damping λ, as far as conjugate gradients get; none where there are no slopes, or nothing moves.
    pub fn step(&self, damping: f64, pulse: &mut Pulse) -> Result<Option<Move>, SolveError> {
        let mut x = vec![0.0; self.descent.len()];
        let mut residual = self.descent.clone();
        let mut direction = residual.clone();
        let mut square = dot(&residual, &residual);
        let enough = SOLVED * SOLVED * square;
        for _ in 0..PRODUCTS {
            if square <= enough {
                break;
            }
            pulse()?;
            let Some(mut product) = self.product(&direction)? else {
                return Ok(None);
            };
            add_scaled(damping, &direction, &mut product);
            let along = square / dot(&direction, &product);
            if !along.is_finite() || along <= 0.0 {
                break;
            }
            add_scaled(along, &direction, &mut x);
            add_scaled(-along, &product, &mut residual);
            let before = std::mem::replace(&mut square, dot(&residual, &residual));
            let kept = square / before;
            let parts = direction.iter_mut().zip(&residual);
            parts.for_each(|(direction, residual)| *direction = residual + kept * *direction);
        }
        let predicted = 0.5 * (dot(&self.descent, &x) + dot(&residual, &x) + damping * dot(&x, &x));
        Ok((predicted > 0.0).then(|| Move {
            neurons: self.taken(&x),
            predicted,
        }))
    }

    /// The neurons after the step, none beyond its reach.
    fn taken(&self, z: &[f64]) -> Vec<Neuron> {
        let neurons = self.u.neurons.iter().zip(self.changes(z));
        let taken = neurons.map(|(neuron, change)| {
            let part = (REACH / self.length(neuron, &change)).min(1.0);
            moved(neuron, &change, part)
        });
        taken.collect()
    }
}

/// A neuron whose θ changed by a part of `change`.
fn moved(neuron: &Neuron, change: &[f64], part: f64) -> Neuron {
    let parts = neuron.omega.iter().zip(change);
    Neuron {
        omega: parts.map(|(o, change)| o + part * change).collect(),
        bias: neuron.bias + part * change[neuron.omega.len()],
    }
}
