//! The coefficients of a step.

use super::system::System;
use crate::error::SolveError;
use crate::vector::{add_scaled, dot};

/// A solution is found when what is left is this part of what there was, in the norm that belongs to it.
const ACCURACY: f64 = 1e-13;
/// Inexact Newton: conjugate gradients end at this part.
const FORCING: f64 = 1e-3;
/// Newton's method ends there.
const NEWTON_ACCURACY: f64 = 1e-9;
const MAX_ITERATIONS: usize = 200;
const MAX_NEWTON: usize = 50;

impl System<'_, '_> {
    /// Minimises ½⟨(A + shift M) u, u⟩ + F(u) − ⟨load, u⟩ over the span of the neurons, from a guess; F where the loss of a step
    /// has a potential.
    pub(super) fn minimise(
        &self,
        load: &[f64],
        shift: f64,
        guess: &[f64],
        quadratic: bool,
    ) -> Result<Vec<f64>, SolveError> {
        match quadratic {
            true if shift == 0.0 => Ok(self.project(load)),
            true => Ok(self.conjugate_gradients(|v| Ok(self.times(v, shift)), load, ACCURACY)?),
            false => self.newton(load, shift, guess),
        }
    }

    /// A⁻¹ load by the factor, with one step of iterative refinement.
    fn project(&self, load: &[f64]) -> Vec<f64> {
        let mut a = self.factor.solve(load);
        let product = self.curvature.times(&a);
        let left: Vec<f64> = load.iter().zip(product).map(|(l, p)| l - p).collect();
        add_scaled(1.0, &self.factor.solve(&left), &mut a);
        a
    }

    fn times(&self, v: &[f64], shift: f64) -> Vec<f64> {
        let mut product = self.curvature.times(v);
        if shift != 0.0 {
            add_scaled(shift, &self.mass.times(v), &mut product);
        }
        product
    }

    /// Solves an equation whose matrix is near A, with A's factor to help.
    fn conjugate_gradients(
        &self,
        matrix: impl Fn(&[f64]) -> Result<Vec<f64>, SolveError>,
        load: &[f64],
        accuracy: f64,
    ) -> Result<Vec<f64>, SolveError> {
        let mut a = vec![0.0; load.len()];
        let mut left = load.to_vec();
        let mut better = self.factor.solve(&left);
        let mut direction = better.clone();
        let first = dot(&left, &better);
        let mut size = first;
        for _ in 0..MAX_ITERATIONS {
            if size <= accuracy * accuracy * first {
                break;
            }
            let along = matrix(&direction)?;
            let curvature = dot(&direction, &along);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let length = size / curvature;
            add_scaled(length, &direction, &mut a);
            add_scaled(-length, &along, &mut left);
            better = self.factor.solve(&left);
            let next = dot(&left, &better);
            let keep = next / size;
            direction
                .iter_mut()
                .zip(&better)
                .for_each(|(d, b)| *d = b + keep * *d);
            size = next;
        }
        Ok(a)
    }

    /// Newton's method, its directions by conjugate gradients: a pass over the points for each product.
    fn newton(&self, load: &[f64], shift: f64, guess: &[f64]) -> Result<Vec<f64>, SolveError> {
        let mut a = guess.to_vec();
        a.resize(load.len(), 0.0);
        let scale = dot(load, &self.factor.solve(load));
        let value = |a: &[f64], risk: f64| risk + 0.5 * shift * self.mass.square(a) - dot(load, a);
        for _ in 0..MAX_NEWTON {
            let field = self.step().at(&self.network(&a))?;
            let before = value(&a, field.risk()?);
            let mut slope = field.gradient()?.list_scores(&self.neurons)?;
            add_scaled(shift, &self.mass.times(&a), &mut slope);
            slope.iter_mut().zip(load).for_each(|(s, l)| *s -= l);
            let decrement = dot(&slope, &self.factor.solve(&slope));
            if decrement <= NEWTON_ACCURACY * NEWTON_ACCURACY * scale {
                break;
            }
            let against: Vec<f64> = slope.iter().map(|s| -s).collect();
            let matrix = |v: &[f64]| -> Result<Vec<f64>, SolveError> {
                let mut product = field.curvature(&self.network(v))?.list_scores(&self.neurons)?;
                add_scaled(shift, &self.mass.times(v), &mut product);
                Ok(product)
            };
            let direction = self.conjugate_gradients(matrix, &against, FORCING)?;
            let Some(next) = self.shortened(&a, &direction, (before, dot(&slope, &direction)), &value)?
            else {
                break;
            };
            a = next;
        }
        Ok(a)
    }

    /// The first of the points a + d, a + d/2, … at which the functional has fallen; none where rounding is all that is left.
    fn shortened(
        &self,
        a: &[f64],
        direction: &[f64],
        (before, slope): (f64, f64),
        value: &dyn Fn(&[f64], f64) -> f64,
    ) -> Result<Option<Vec<f64>>, SolveError> {
        // Where the promised decrease is below the rounding of the functional, the full step is taken unseen.
        let unseen = slope.abs() <= 1e-11 * before.abs();
        let mut length = 1.0;
        for _ in 0..30 {
            let mut next = a.to_vec();
            add_scaled(length, direction, &mut next);
            if unseen {
                return Ok(Some(next));
            }
            let risk = self.step().risk(&self.network(&next))?;
            if value(&next, risk) <= before + 1e-4 * length * slope {
                return Ok(Some(next));
            }
            length *= 0.5;
        }
        Ok(None)
    }
}
