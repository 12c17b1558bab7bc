//! A loss with conditions that are held by multipliers.

use super::pinned::Combined;
use super::{
    CurvatureRoot, Field, Multipliers, PointValues, Remainders, Rho, Sums, SumsReport, held_here,
    shares_behind,
};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::cluster::{Cluster, Share};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::vector::dot;
use std::sync::Mutex;

/// L(u) + P(u) + ⟨λ, u⟩, where P(u) = ½ ∫ s (Bu − g)² is a penalty of moderate strength s and λ the multiplier of Bu = g.
///
/// A penalty alone pulls u to g with a force that needs u ≠ g: its error is λ/s. With the multiplier as a part of the load the force is
/// there without an error. λ ← λ + s (Bu − g) (the augmented Lagrangian) changes the load only, never the curvature: factors stay.
/// λ = Σ ∇P(uₖ) over the uₖ at which it was changed, and as ∇P is affine that is a number times ∇P at their mean: a
/// network is all there is to remember, and any set of points can take it over.
pub struct HeldSums {
    loss: Box<dyn Sums>,
    /// P, less its value at zero …
    held: Box<dyn Sums>,
    /// … which is this.
    at_zero: f64,
    /// How often λ was changed and the mean of u then; none where there is no multiplier.
    multiplier: Option<Mutex<(f64, Network)>>,
}

impl HeldSums {
    /// `loss` with the conditions that `held` and `at_zero` are the penalty of; without a multiplier, that penalty is all there
    /// is.
    pub fn new(
        loss: Box<dyn Sums>,
        (held, at_zero): (Box<dyn Sums>, f64),
        with_multiplier: bool,
        dimension: usize,
    ) -> Self {
        let zero = Network::zero(loss.activation(), dimension);
        Self {
            loss,
            held,
            at_zero,
            multiplier: with_multiplier.then(|| Mutex::new((0.0, zero))),
        }
    }

    /// How often λ was changed, and the mean of u then; nothing as long as λ = 0.
    fn state(&self) -> Option<(f64, Network)> {
        let known = self.multiplier.as_ref()?.lock();
        let state = known.unwrap_or_else(std::sync::PoisonError::into_inner);
        (state.0 > 0.0).then(|| state.clone())
    }

    /// ρ + part + λ.
    fn with_multiplier<'a>(
        &'a self,
        rho: Box<dyn Rho + 'a>,
        part: Box<dyn Rho + 'a>,
    ) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let mut parts = vec![(1.0, part)];
        if let Some((count, mean)) = self.state() {
            parts.push((count, self.held.gradient(&mean)?));
        }
        Ok(Box::new(Combined { rho, parts }))
    }

    /// ⟨λ, u − g⟩, g standing for any function with Bg = g: count · (⟨∇P(m), u − m⟩ + 2 P(m)) with the mean m.
    fn work(&self, u: &Network) -> Result<f64, SolveError> {
        let Some((count, mean)) = self.state() else {
            return Ok(0.0);
        };
        let field = self.held.at(&mean)?;
        let gradient = field.gradient()?;
        let along = |v: &Network| -> Result<f64, SolveError> {
            Ok(dot(&gradient.list_scores(&v.neurons)?, &v.coefficients))
        };
        Ok(count * (along(u)? - along(&mean)? + 2.0 * (field.risk()? + self.at_zero)))
    }
}

impl Multipliers for HeldSums {
    fn update(&self, u: &Network) {
        let Some(multiplier) = &self.multiplier else {
            return;
        };
        let mut state = multiplier
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (count, mean) = &*state;
        let share = 1.0 / (count + 1.0);
        // The neurons of an earlier u are the first ones of u.
        let coefficients = u.coefficients.iter().enumerate().map(|(i, a)| {
            let before = mean.coefficients.get(i).copied().unwrap_or(0.0);
            before + share * (a - before)
        });
        let mean = Network {
            coefficients: coefficients.collect(),
            ..u.clone()
        };
        *state = (count + 1.0, mean);
    }

    fn reset(&self) {
        if let Some(multiplier) = &self.multiplier {
            let mut state = multiplier
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let (neurons, coefficients) = (Vec::new(), Vec::new());
            *state = (
                0.0,
                Network {
                    neurons,
                    coefficients,
                    ..state.1
                },
            );
        }
    }
}

impl Sums for HeldSums {
    fn activation(&self) -> Activation {
        self.loss.activation()
    }

    fn points(&self) -> usize {
        self.loss.points() + self.held.points()
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        Ok(Box::new(HeldField {
            field: self.loss.at(u)?,
            held: self.held.at(u)?,
            sums: self,
            u: u.clone(),
        }))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        self.loss
            .values()
            .and(self.held.values())
            .map(|_| self as &dyn PointValues)
    }

    fn remainders(&self) -> Option<&dyn Remainders> {
        None
    }

    fn multipliers(&self) -> Option<&dyn Multipliers> {
        self.multiplier.as_ref().map(|_| self as &dyn Multipliers)
    }

    fn report(&self) -> SumsReport {
        self.loss.report()
    }
}

struct HeldField<'a> {
    field: Box<dyn Field<'a> + 'a>,
    held: Box<dyn Field<'a> + 'a>,
    sums: &'a HeldSums,
    u: Network,
}

impl<'a> Field<'a> for HeldField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.sums
            .with_multiplier(self.field.gradient()?, self.held.gradient()?)
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        Ok(Box::new(Combined {
            rho: self.field.curvature(v)?,
            parts: vec![(1.0, self.held.curvature(v)?)],
        }))
    }

    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let mut squares = self.field.squares(along)?;
        let held = self.held.squares(along)?;
        squares
            .iter_mut()
            .zip(held)
            .for_each(|(square, held)| *square += held);
        Ok(squares)
    }

    fn risk(&self) -> Result<f64, SolveError> {
        Ok(self.field.risk()? + self.held.risk()? + self.sums.at_zero + self.sums.work(&self.u)?)
    }

    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        let (loss, held) = (self.field.root()?, self.held.root()?);
        Some(Box::new(HeldRoot { loss, held }))
    }

    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        self.field.advance(factor, g, coefficient)?;
        self.held.advance(factor, g, coefficient)?;
        self.u = self.u.advanced(factor, g, coefficient);
        Ok(())
    }
}

/// The values of both, one after the other.
struct HeldRoot<'a> {
    loss: Box<dyn CurvatureRoot + 'a>,
    held: Box<dyn CurvatureRoot + 'a>,
}

impl CurvatureRoot for HeldRoot<'_> {
    fn length(&self) -> usize {
        self.loss.length() + self.held.length()
    }

    fn cluster(&self) -> &Cluster {
        self.loss.cluster()
    }

    fn shares(&self) -> Vec<Share> {
        let mut shares = self.loss.shares();
        shares.extend(shares_behind(&*self.held, &*self.loss));
        shares
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        let mut values = self.loss.of(v)?;
        values.extend(self.held.of(v)?);
        Ok(values)
    }
}

impl HeldSums {
    /// The values of both parts.
    fn both(&self) -> Result<[&dyn PointValues; 2], SolveError> {
        match (self.loss.values(), self.held.values()) {
            (Some(loss), Some(held)) => Ok([loss, held]),
            _ => Err(SolveError::Unsupported("values at the points")),
        }
    }
}

impl CurvatureRoot for HeldSums {
    fn length(&self) -> usize {
        self.both()
            .map_or(0, |both| both.iter().map(|values| values.length()).sum())
    }

    fn cluster(&self) -> &Cluster {
        self.both()
            .map_or(Cluster::nobody_else(), |[loss, _]| loss.cluster())
    }

    fn shares(&self) -> Vec<Share> {
        let Ok([loss, held]) = self.both() else {
            return Vec::new();
        };
        let mut shares = loss.shares();
        shares.extend(shares_behind(held, loss));
        shares
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        let [loss, held] = self.both()?;
        let mut values = loss.of(v)?;
        values.extend(held.of(v)?);
        Ok(values)
    }
}

impl PointValues for HeldSums {
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let [loss, held] = self.both()?;
        let (inside, on_boundary) = values_of_u.split_at(held_here(loss));
        self.with_multiplier(loss.gradient_from(inside)?, held.gradient_from(on_boundary)?)
    }

    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let [loss, held] = self.both()?;
        let (inside, on_boundary) = values_of_v.split_at(held_here(loss));
        Ok(Box::new(Combined {
            rho: loss.curvature_from(inside)?,
            parts: vec![(1.0, held.curvature_from(on_boundary)?)],
        }))
    }
}
