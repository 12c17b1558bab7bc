//! What a linear differential operator does to a ridge function.

use crate::expression::MultiIndex;

/// A homogeneous differential operator with constant coefficients, p(∂).
///
/// Applied to a ridge function it is a number times one derivative of the profile:
/// p(∂) σ(ω·x + b) = p(ω) σ^(m)(ω·x + b), with m the order. The whole Laplacian is one symbol.
#[derive(Debug, Clone, PartialEq)]
pub struct Symbol {
    order: usize,
    terms: Vec<(f64, MultiIndex)>,
}

impl Symbol {
    /// Σ cₖ ∂^αₖ. All the αₖ have one order.
    pub fn new(terms: Vec<(f64, MultiIndex)>) -> Self {
        let order = terms.first().map_or(0, |(_, alpha)| alpha.order());
        debug_assert!(terms.iter().all(|(_, alpha)| alpha.order() == order));
        Self { order, terms }
    }

    /// The function itself.
    pub fn value() -> Self {
        Self::derivative([])
    }

    /// One derivative, by the coordinates given (from 0).
    pub fn derivative(coordinates: impl IntoIterator<Item = usize>) -> Self {
        Self::new(vec![(1.0, MultiIndex::new(coordinates))])
    }

    /// The derivative of order m of a ridge function's profile by itself: p = 1 for every ω.
    pub(crate) fn of_profile(order: usize) -> Self {
        Self {
            order,
            terms: vec![(1.0, MultiIndex::default())],
        }
    }

    /// m, the order of the operator.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The terms cₖ ∂^αₖ.
    pub fn terms(&self) -> &[(f64, MultiIndex)] {
        &self.terms
    }

    /// p(ω).
    pub fn at(&self, omega: &[f64]) -> f64 {
        self.terms
            .iter()
            .map(|(c, alpha)| c * alpha.coordinates().map(|i| omega[i]).product::<f64>())
            .sum()
    }

    /// ∇p(ω), for Newton's method on ω.
    pub fn gradient_at(&self, omega: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; omega.len()];
        for (c, alpha) in &self.terms {
            let coordinates: Vec<usize> = alpha.coordinates().collect();
            for (place, &i) in coordinates.iter().enumerate() {
                gradient[i] += c * product_without(&coordinates, &[place], omega);
            }
        }
        gradient
    }
}

/// Π ω over all places but some.
fn product_without(coordinates: &[usize], skipped: &[usize], omega: &[f64]) -> f64 {
    let left = coordinates
        .iter()
        .enumerate()
        .filter(|(place, _)| !skipped.contains(place));
    left.map(|(_, &i)| omega[i]).product()
}
