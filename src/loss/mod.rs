//! The loss as a sum of terms, each a convex density integrated over a set of points.
//!
//! The *jet* of a function at a point is its value under each [`Symbol`] of a term. A density
//! φ(x, jet) has a gradient in the jet; weighted by the quadrature it gives the *channels*
//! ρ_c = w ∂φ/∂j_c, and ⟨∇L(u), g⟩ = Σ_points Σ_c ρ_c p_c(ω) σ^(m_c)(ω·x + b) for every neuron g.

mod column;
mod layout;
mod profile;
mod term;

pub use layout::DensityLayout;
pub use profile::Profile;
pub(crate) use term::require_finite;
pub use term::{Term, TermTile};

use crate::domain::{Domain, Region};
use crate::error::SolveError;
use crate::expression::{Graph, NodeId, Workspace};
use crate::points::{Listed, PointsError, Rule};
use crate::symbol::Symbol;
use std::sync::Arc;

/// A named formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// What to call it in a message.
    pub name: String,
    /// The formula.
    pub node: NodeId,
}

impl Formula {
    /// A formula and its name.
    pub fn new(name: impl Into<String>, node: NodeId) -> Self {
        Self {
            name: name.into(),
            node,
        }
    }
}

/// φ(x, jet).
#[derive(Debug, Clone, PartialEq)]
pub enum Density {
    /// ½ Σ a_c(x) j_c² − Σ l_c(x) j_c, plus F(x, u) if there is a potential (u is then the first symbol's value).
    Energy {
        /// Symbol, a_c and l_c.
        parts: Vec<(Symbol, Formula, Formula)>,
        /// F.
        potential: Option<Formula>,
    },
    /// (Σ c_c(x) j_c − f(x))².
    Residual {
        /// Symbol and c_c.
        parts: Vec<(Symbol, Formula)>,
        /// f.
        source: Formula,
    },
}

/// A density on a region, before points are chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct TermSpec {
    /// Where it is integrated.
    pub region: Region,
    /// A factor on the weights: 1, or 1/measure for a mean.
    pub scale: f64,
    /// What is integrated.
    pub density: Density,
    /// Points of its own, in place of those that a rule makes in the region.
    pub listed: Option<Arc<Listed>>,
}

/// The loss: terms over their points.
#[derive(Debug, Clone)]
pub struct Loss {
    /// The terms.
    pub terms: Vec<Term>,
}

impl Loss {
    /// The terms of `specs` on the points of `rule(region)`.
    pub fn new(
        graph: &Graph,
        domain: &Domain,
        specs: &[TermSpec],
        rule: impl Fn(Region) -> Rule,
    ) -> Result<Self, PointsError> {
        let mut graph = graph.clone();
        let terms = specs
            .iter()
            .enumerate()
            .map(|(stream, spec)| Term::new(&mut graph, domain, spec, rule(spec.region), stream as u32))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// The number of points of all terms.
    pub fn points(&self) -> usize {
        self.terms.iter().map(|term| term.points.len()).sum()
    }

    /// The memory that all points and coefficients take, in bytes; constants take none.
    pub fn bytes(&self) -> usize {
        let terms = self.terms.iter().map(|term| {
            let numbers = 1 + term.points.dimension() + term.points.attributes() + term.varying();
            term.points.len().saturating_mul(8 * numbers)
        });
        terms.fold(0, usize::saturating_add)
    }

    /// What is to be added so that every term is a square.
    pub fn completion(&self) -> Result<f64, SolveError> {
        let (mut workspace, mut tile) = (Workspace::default(), TermTile::default());
        let mut sum = 0.0;
        for term in &self.terms {
            for range in term.points.tiles() {
                term.fill(range, &mut workspace, &mut tile)?;
                sum += term.completion(&tile);
            }
        }
        Ok(sum)
    }

    /// Whether the loss is a quadratic function.
    pub fn is_quadratic(&self) -> bool {
        self.terms.iter().all(|term| term.is_quadratic())
    }

    /// The highest derivative in any jet.
    pub fn order(&self) -> usize {
        self.terms
            .iter()
            .flat_map(|term| &term.symbols)
            .map(Symbol::order)
            .max()
            .unwrap_or(0)
    }
}
