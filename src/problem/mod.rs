//! What is to be solved, with which dictionary, on which points, by which algorithm.

mod attachment;
mod boundary;
mod build;
mod choices;
mod conditions;
mod curvature;
mod data;
mod domains;
mod equation;
mod error;
mod evolution;
mod file;
mod flow_losses;
mod held;
mod kernel;
mod places;
mod rough;
mod settings;
mod source;
mod terms;
mod typed;
mod words;

pub use attachment::Attachment;
pub use data::Data;
pub use error::ProblemError;
pub use evolution::Evolution;
pub use file::{Algorithm, Condition, Formulation};
pub use flow_losses::{Acting, LoadGroup};
pub use kernel::{Affine, Kernel};
pub use places::Places;
pub use settings::{Overrides, Purpose, Quadrature, Settings};
pub use words::Words;

use crate::candidates::{self, Dictionary, Draw, Grid};
use crate::domain::{Domain, Region};
use crate::expression::{Ast, Graph, NodeId};
use crate::greedy::Selection;
use crate::loss::{Formula, TermSpec};
use crate::symbol::Symbol;

/// A problem, checked and ready to be discretised.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// Ω.
    pub domain: Domain,
    /// The functional that is minimised.
    pub formulation: Formulation,
    /// 2m for an energy, the order of the operator for a residual, 0 for a fit.
    pub order: usize,
    /// Every formula of the problem.
    pub graph: Graph,
    /// The exact solution, if it is known.
    pub exact: Option<NodeId>,
    /// The dictionary.
    pub dictionary: Dictionary,
    /// The points.
    pub quadrature: Quadrature,
    /// The algorithm.
    pub settings: Settings,
    /// The equation told back.
    pub words: Words,
    /// What the equation leaves free.
    pub kernel: Kernel,
    /// Things the user should know, although the problem can be solved.
    pub warnings: Vec<String>,
    /// The files it names.
    pub files: Vec<Attachment>,
    /// Measurements that the loss takes in.
    pub data: Vec<Data>,
    /// How it moves in time, if it does.
    pub evolution: Option<Evolution>,
    /// Where its formulas stand in the file.
    pub places: Places,
    terms: Vec<TermSpec>,
    penalties: Vec<PenaltySpec>,
    /// Penalties of conditions that are held by multipliers besides.
    held: Vec<TermSpec>,
}

/// A penalty ½δ⁻¹ (Bu − g)² whose δ depends on the number of neurons.
#[derive(Debug, Clone)]
struct PenaltySpec {
    region: Region,
    /// B and g, where B is one symbol.
    parts: Vec<(Symbol, Formula)>,
    /// B as Σ c(x) p(∂) and g: a normal derivative on a curved face.
    oblique: Option<(Vec<(Symbol, Formula)>, Formula)>,
    delta: Ast,
    constants: std::collections::BTreeMap<String, f64>,
}

impl Problem {
    /// d.
    pub fn dimension(&self) -> usize {
        self.domain.dimension()
    }

    /// Whether a setting depends on the final number of neurons, so that every n needs a run of its own.
    pub fn depends_on_neurons(&self) -> bool {
        self.quadrature.points_follow_n
            || self.evolution.is_some()
            || self
                .penalties
                .iter()
                .any(|penalty| matches!((penalty.delta_for(1), penalty.delta_for(2)), (a, b) if a != b))
    }

    /// The candidates of a step, numbered from 0.
    pub fn grid(&self, step: u64) -> Grid {
        let draw = Draw {
            seed: self.settings.seed,
            // What is known of candidates is carried from step to step.
            step: (self.settings.selection == Selection::Slope).then_some(step),
        };
        let rule = self.quadrature.telling_apart(&self.domain);
        candidates::grid(&self.dictionary, &self.domain, &rule, draw)
    }

    /// Whether the candidates are the same in every step.
    pub fn has_fixed_grid(&self) -> bool {
        self.settings.selection == Selection::Decrease
            || candidates::is_fixed(&self.dictionary, self.dimension())
    }

    /// Takes the steepest neuron, as the paper does, whatever the file says; then inner products are taken on all
    /// points.
    pub fn choose_by_slope(&mut self) {
        self.settings.selection = Selection::Slope;
        self.quadrature.curvature = None;
    }

    /// The settings in force, for the report.
    pub fn settings_json(&self) -> serde_json::Value {
        let mut settings = serde_json::json!({
            "formulation": self.formulation,
            "order": self.order,
            "dictionary": self.dictionary,
            "quadrature": self.quadrature,
            "solver": self.settings,
        });
        if let Some(evolution) = &self.evolution {
            settings["time"] = evolution.settings_json();
        }
        if !self.files.is_empty() {
            let files = self.files.iter().map(|file| format!("{:016x}", file.digest()));
            settings["files"] = files.collect();
        }
        settings
    }

    /// Whether the equation has a potential: then the loss is not quadratic.
    pub fn has_potential(&self) -> bool {
        self.terms.iter().any(|term| {
            matches!(
                term.density,
                crate::loss::Density::Energy {
                    potential: Some(_),
                    ..
                }
            )
        })
    }

    /// Whether errors of the energy are relative excesses of the loss: a norm belongs to a quadratic
    /// energy, any other and the relaxed algorithm have the excess.
    pub fn measures_excess(&self) -> bool {
        self.settings.algorithm == Algorithm::Rga || self.has_potential()
    }

    /// Whether a Gram matrix would soon have no digits left: penalties are stiff, and smooth neurons are nearly
    /// dependent. Then the values at the points are orthogonalised, if they can be held.
    pub fn is_delicate(&self) -> bool {
        self.has_penalty() || !self.dictionary.activation.has_sweep()
    }

    /// Whether a boundary condition is enforced by a penalty.
    pub fn has_penalty(&self) -> bool {
        !self.penalties.is_empty()
    }
}
