//! A loss whose equation leaves something free, fixed by a term of rank one for each free function.

use super::{
    Accuracy, CurvatureRoot, Field, Multipliers, PointValues, Remainders, Rho, Scores, Slopes, Sums,
    SumsReport, held_here,
};
use crate::activation::Activation;
use crate::candidates::Candidates;
use crate::cluster::{Cluster, Share};
use crate::error::SolveError;
use crate::network::{Network, Neuron};
use crate::ridge::LocalScore;

/// L(u) + ½κ Σ ℓ(u)².
///
/// −Δu = f with fluxes all around leaves the mean of u free. With ½κ mean(u)² added the Gram matrix is
/// definite again and, where the data are compatible, the minimum is the solution of mean zero: for v = 1
/// the derivative of L vanishes and that of the new term must.
pub struct PinnedSums {
    loss: Box<dyn Sums>,
    /// Losses −ℓ(u): their derivative along g is −ℓ(g).
    functionals: Vec<Box<dyn Sums>>,
    /// κ.
    stiffness: f64,
    /// d.
    dimension: usize,
}

impl PinnedSums {
    /// `loss` with the functionals of which `functionals` are the negatives.
    pub fn new(
        loss: Box<dyn Sums>,
        functionals: Vec<Box<dyn Sums>>,
        stiffness: f64,
        dimension: usize,
    ) -> Self {
        Self {
            loss,
            functionals,
            stiffness,
            dimension,
        }
    }

    /// The functionals −ℓ.
    fn negatives(&self) -> Result<Vec<Box<dyn Rho + '_>>, SolveError> {
        let zero = Network::zero(self.activation(), self.dimension);
        let functionals = self.functionals.iter();
        functionals.map(|functional| functional.gradient(&zero)).collect()
    }

    /// −ℓ(g) for each functional.
    fn negatives_of(&self, g: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.negatives_of_network(&Network::single(self.activation(), g))
    }

    /// −ℓ(v) for each functional.
    fn negatives_of_network(&self, v: &Network) -> Result<Vec<f64>, SolveError> {
        let functionals = self.negatives()?;
        let values = functionals.iter().map(|negative| {
            let scores = negative.list_scores(&v.neurons)?;
            Ok(crate::vector::dot(&scores, &v.coefficients))
        });
        values.collect()
    }

    /// ρ + κ Σ ℓ(v) ℓ, from −ℓ(v).
    fn pinned<'a>(&'a self, rho: Box<dyn Rho + 'a>, of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let factors = of_v.iter().map(|value| self.stiffness * value);
        Ok(Box::new(Combined {
            rho,
            parts: factors.zip(self.negatives()?).collect(),
        }))
    }
}

impl Sums for PinnedSums {
    fn activation(&self) -> Activation {
        self.loss.activation()
    }

    fn points(&self) -> usize {
        self.loss.points()
    }

    fn at<'a>(&'a self, u: &Network) -> Result<Box<dyn Field<'a> + 'a>, SolveError> {
        let functionals = self.functionals.iter();
        let of_u: Result<Vec<f64>, SolveError> = functionals.map(|functional| functional.risk(u)).collect();
        Ok(Box::new(PinnedField {
            field: self.loss.at(u)?,
            sums: self,
            of_u: of_u?,
        }))
    }

    fn values(&self) -> Option<&dyn PointValues> {
        self.loss.values().map(|_| self as &dyn PointValues)
    }

    fn remainders(&self) -> Option<&dyn Remainders> {
        None
    }

    fn multipliers(&self) -> Option<&dyn Multipliers> {
        self.loss.multipliers()
    }

    fn report(&self) -> SumsReport {
        self.loss.report()
    }
}

struct PinnedField<'a> {
    field: Box<dyn Field<'a> + 'a>,
    sums: &'a PinnedSums,
    /// −ℓ(u) for each functional.
    of_u: Vec<f64>,
}

impl<'a> Field<'a> for PinnedField<'a> {
    fn gradient(&self) -> Result<Box<dyn Rho + 'a>, SolveError> {
        self.sums.pinned(self.field.gradient()?, &self.of_u)
    }

    fn curvature(&self, v: &Network) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let of_v = self.sums.negatives_of_network(v)?;
        self.sums.pinned(self.field.curvature(v)?, &of_v)
    }

    fn squares(&self, along: Candidates) -> Result<Vec<f64>, SolveError> {
        let mut squares = self.field.squares(along)?;
        for negative in self.sums.negatives()? {
            let scores = negative.scores(along, Accuracy::Full)?.values;
            let pairs = squares.iter_mut().zip(scores);
            pairs.for_each(|(square, score)| *square += self.sums.stiffness * score * score);
        }
        Ok(squares)
    }

    fn risk(&self) -> Result<f64, SolveError> {
        let squares: f64 = self.of_u.iter().map(|value| value * value).sum();
        Ok(self.field.risk()? + 0.5 * self.sums.stiffness * squares)
    }

    fn root(&self) -> Option<Box<dyn CurvatureRoot + 'a>> {
        let sums = self.sums;
        let inner = self.field.root()?;
        Some(Box::new(PinnedRoot { inner, sums }))
    }

    fn advance(&mut self, factor: f64, g: &Neuron, coefficient: f64) -> Result<(), SolveError> {
        self.field.advance(factor, g, coefficient)?;
        let of_g = self.sums.negatives_of(g)?;
        for (of_u, of_g) in self.of_u.iter_mut().zip(of_g) {
            *of_u = factor * *of_u + coefficient * of_g;
        }
        Ok(())
    }
}

/// ρ + Σ factor · part.
pub(super) struct Combined<'a> {
    pub(super) rho: Box<dyn Rho + 'a>,
    pub(super) parts: Vec<(f64, Box<dyn Rho + 'a>)>,
}

impl Rho for Combined<'_> {
    fn scores(&self, along: Candidates, accuracy: Accuracy) -> Result<Scores, SolveError> {
        let mut scores = self.rho.scores(along, accuracy)?;
        for (factor, part) in &self.parts {
            let part = part.scores(along, Accuracy::Full)?;
            let pairs = scores.values.iter_mut().zip(part.values);
            pairs.for_each(|(score, part)| *score += factor * part);
        }
        Ok(scores)
    }

    fn slopes(&self) -> Option<&dyn Slopes> {
        let everywhere = self.parts.iter().all(|(_, part)| part.slopes().is_some());
        self.rho
            .slopes()
            .filter(|_| everywhere)
            .map(|_| self as &dyn Slopes)
    }
}

impl Slopes for Combined<'_> {
    fn slopes_at(&self, neurons: &[Neuron]) -> Result<Vec<LocalScore>, SolveError> {
        let slopes = |rho: &dyn Rho| match rho.slopes() {
            Some(slopes) => slopes.slopes_at(neurons),
            None => Err(SolveError::Unsupported("slopes of these scores")),
        };
        let mut scores = slopes(&*self.rho)?;
        for (factor, part) in &self.parts {
            for (score, part) in scores.iter_mut().zip(slopes(&**part)?) {
                score.value += factor * part.value;
                let pairs = score.gradient.iter_mut().zip(part.gradient);
                pairs.for_each(|(slope, part)| *slope += factor * part);
            }
        }
        Ok(scores)
    }
}

impl PinnedSums {
    fn inner_values(&self) -> Result<&dyn PointValues, SolveError> {
        self.loss
            .values()
            .ok_or(SolveError::Unsupported("values at the points"))
    }
}

/// The values of the loss, and √κ ℓ(v) for each functional.
struct PinnedRoot<'a> {
    inner: Box<dyn CurvatureRoot + 'a>,
    sums: &'a PinnedSums,
}

impl CurvatureRoot for PinnedRoot<'_> {
    fn length(&self) -> usize {
        self.inner.length() + self.sums.functionals.len()
    }

    fn cluster(&self) -> &Cluster {
        self.inner.cluster()
    }

    fn shares(&self) -> Vec<Share> {
        self.sums.with_own(&*self.inner)
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.sums.with_functionals(self.inner.of(v)?, v)
    }
}

impl PinnedSums {
    /// The shares of the loss's values, and the functionals', which every process has and the last one adds.
    fn with_own(&self, inner: &dyn CurvatureRoot) -> Vec<Share> {
        let here = held_here(inner);
        let mut shares = inner.shares();
        shares.push(Share {
            here: match inner.cluster().is_last() {
                true => here..here + self.functionals.len(),
                false => here..here,
            },
            first: inner.length(),
        });
        shares
    }

    fn with_functionals(&self, mut values: Vec<f64>, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        let root = self.stiffness.sqrt();
        values.extend(self.negatives_of(v)?.iter().map(|of_v| root * of_v));
        Ok(values)
    }
}

impl PinnedSums {
    /// The values of the loss, and −ℓ of the function they belong to.
    fn split<'v>(&self, values: &'v [f64]) -> (&'v [f64], Vec<f64>) {
        let (inner, pinned) = values.split_at(values.len() - self.functionals.len());
        let root = self.stiffness.sqrt();
        (inner, pinned.iter().map(|value| value / root).collect())
    }
}

impl CurvatureRoot for PinnedSums {
    fn length(&self) -> usize {
        let inner = self.loss.values().map_or(0, |values| values.length());
        inner + self.functionals.len()
    }

    fn cluster(&self) -> &Cluster {
        self.loss
            .values()
            .map_or(Cluster::nobody_else(), |values| values.cluster())
    }

    fn shares(&self) -> Vec<Share> {
        self.loss
            .values()
            .map_or_else(Vec::new, |values| self.with_own(values))
    }

    fn of(&self, v: &Neuron) -> Result<Vec<f64>, SolveError> {
        self.with_functionals(self.inner_values()?.of(v)?, v)
    }
}

impl PointValues for PinnedSums {
    fn gradient_from<'a>(&'a self, values_of_u: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let (inner, of_u) = self.split(values_of_u);
        self.pinned(self.inner_values()?.gradient_from(inner)?, &of_u)
    }

    fn curvature_from<'a>(&'a self, values_of_v: &[f64]) -> Result<Box<dyn Rho + 'a>, SolveError> {
        let (inner, of_v) = self.split(values_of_v);
        self.pinned(self.inner_values()?.curvature_from(inner)?, &of_v)
    }
}
