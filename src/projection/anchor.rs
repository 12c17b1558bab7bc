//! Two sets of points: the gradient from many, its changes from few.
//!
//! The load of an energy is a difference of large parts, and the quadrature's error in it does not shrink with
//! the error of u: it wants many points. The curvature only tells how the gradient changes from one u to another
//! near by: few points do. With ∇L_F(u₀) from the many at an anchor u₀ and ∇²L_C from the few,
//!
//!   ∇L(u) = ∇L_F(u₀) + ∇²L_C (u − u₀),
//!
//! whose error is that of the many points plus that of the few times |u − u₀|. Where the anchor follows u now and
//! then, every step costs what the few points cost.

use crate::candidates::Candidates;
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::sums::{Accuracy, LocalScore, Rho, Scores, Slopes, Sums};
use std::rc::Rc;

/// ∇L_F at an anchor u₀.
pub struct Anchor<'a> {
    fine: &'a dyn Sums,
    at: Network,
    gradient: Rc<dyn Rho + 'a>,
}

impl<'a> Anchor<'a> {
    /// ∇L_F(u).
    pub fn new(fine: &'a dyn Sums, u: &Network) -> Result<Self, SolveError> {
        Ok(Self {
            fine,
            at: u.clone(),
            gradient: Rc::from(fine.gradient(u)?),
        })
    }

    /// The anchor of the same points at another u.
    pub fn moved(&self, u: &Network) -> Result<Self, SolveError> {
        Self::new(self.fine, u)
    }

    /// ⟨∇L_F(u₀), g⟩ of neurons.
    pub fn scores(&self, neurons: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        self.gradient.list_scores(neurons)
    }

    /// L_F.
    pub fn sums(&self) -> &'a dyn Sums {
        self.fine
    }

    /// ∇L_F(u₀) + ∇²L_C (u − u₀). The neurons of u₀ are the first of u.
    pub fn gradient(&self, coarse: &'a dyn Sums, u: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let first = Rc::clone(&self.gradient);
        let mut change = u.clone();
        for (a, before) in change.coefficients.iter_mut().zip(&self.at.coefficients) {
            *a -= before;
        }
        let second = match change.coefficients.iter().all(|&a| a == 0.0) {
            true => None,
            false => {
                let zero = Network::zero(u.activation, u.dimension);
                Some(coarse.at(&zero)?.curvature(&change)?)
            }
        };
        Ok(Box::new(Sum { first, second }))
    }
}

/// The sum of two functionals.
struct Sum<'a> {
    first: Rc<dyn Rho + 'a>,
    second: Option<Box<dyn Rho + 'a>>,
}

impl Rho for Sum<'_> {
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError> {
        let mut sum = self.first.scores(along, accuracy)?;
        if let Some(second) = &self.second {
            let part = second.scores(along, accuracy)?;
            sum.values
                .iter_mut()
                .zip(part.values)
                .for_each(|(sum, part)| *sum += part);
            sum.error += part.error;
        }
        Ok(sum)
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        self.first.slopes()?;
        match &self.second {
            Some(second) if second.slopes().is_none() => None,
            _ => Some(self),
        }
    }
}

impl Slopes for Sum<'_> {
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        let parts = [
            self.first.slopes(),
            self.second.as_ref().and_then(|second| second.slopes()),
        ];
        let mut sum: Vec<LocalScore> = neurons.iter().map(|g| LocalScore::zero(g.omega.len())).collect();
        for part in parts.into_iter().flatten() {
            for (sum, part) in sum.iter_mut().zip(part.slopes_at(neurons)?) {
                sum.value += part.value;
                let slopes = sum.gradient.iter_mut().zip(part.gradient);
                slopes.for_each(|(sum, part)| *sum += part);
            }
        }
        Ok(sum)
    }
}
