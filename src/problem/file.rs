//! The problem file as it is typed: keys, types and defaults, nothing checked beyond that.

use super::typed::{Count, Real, Text};
use crate::candidates::DirectionKind;
use crate::flow::Scheme;
use crate::greedy::StepRule;
use crate::projection::ProjectionKind;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub name: Spanned<String>,
    pub domain: FileDomain,
    #[serde(default)]
    pub constants: BTreeMap<String, Spanned<Real>>,
    pub equation: FileEquation,
    #[serde(default)]
    pub boundary: Boundaries,
    #[serde(default)]
    pub data: Vec<FileData>,
    pub dictionary: FileDictionary,
    pub quadrature: FileQuadrature,
    pub solver: FileSolver,
    pub time: Option<Spanned<FileTime>>,
}

/// The `[time]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTime {
    pub end: Spanned<Real>,
    pub steps: Option<Spanned<i64>>,
    pub step: Option<Spanned<Real>>,
    #[serde(default)]
    pub scheme: Scheme,
    pub initial: Option<Spanned<Text>>,
    pub initial_neurons: Option<Spanned<i64>>,
    pub neurons_per_step: Option<Spanned<i64>>,
    pub save_every: Option<Spanned<i64>>,
    pub tolerance: Option<Spanned<Real>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDomain {
    #[serde(default)]
    pub shape: Shape,
    pub dimension: Option<Spanned<i64>>,
    pub lower: Option<Spanned<OneOrMany>>,
    pub upper: Option<Spanned<OneOrMany>>,
    pub center: Option<Spanned<OneOrMany>>,
    pub radius: Option<Spanned<Real>>,
    pub vertices: Option<Spanned<Corners>>,
    pub holes: Option<Spanned<Vec<Spanned<Corners>>>>,
    pub edges: Option<Spanned<BTreeMap<String, Vec<i64>>>>,
    pub parts: Option<Spanned<Vec<FilePart>>>,
    pub file: Option<Spanned<String>>,
    pub inside: Option<Spanned<Text>>,
}

/// Corners of a polygon, two coordinates each.
pub(super) type Corners = Vec<Spanned<Vec<Real>>>;

/// A box of a union.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePart {
    pub lower: Spanned<OneOrMany>,
    pub upper: Spanned<OneOrMany>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shape {
    #[default]
    Box,
    Ball,
    Polygon,
    Union,
    Mesh,
    Inside,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub(super) enum OneOrMany {
    One(Real),
    Many(Vec<Real>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEquation {
    #[serde(default)]
    pub formulation: Formulation,
    pub order: Option<Spanned<i64>>,
    pub diffusion: Option<Spanned<Text>>,
    pub reaction: Option<Spanned<Text>>,
    pub potential: Option<Spanned<Text>>,
    pub potential_explicit: Option<Spanned<Text>>,
    pub operator: Option<Spanned<Text>>,
    pub exact: Option<Spanned<Text>>,
    pub source: Option<Spanned<Text>>,
}

/// Which functional is minimised.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Formulation {
    /// ½a(u,u) − (f,u).
    #[default]
    Energy,
    /// ‖Lu − f‖².
    Residual,
    /// ‖u − exact‖².
    Fit,
}

/// Measurements: a `[[data]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileData {
    pub file: Spanned<String>,
    pub weight: Option<Spanned<Real>>,
}

/// One `[boundary]` table or a list of `[[boundary]]` tables.
#[derive(Debug, Default)]
pub(super) struct Boundaries(pub Vec<FileBoundary>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBoundary {
    pub condition: Spanned<Condition>,
    pub penalty: Option<Spanned<Text>>,
    pub value: Option<Spanned<Text>>,
    pub slope: Option<Spanned<Text>>,
    pub moment: Option<Spanned<Text>>,
    pub weight: Option<Spanned<Real>>,
    pub coefficient: Option<Spanned<Text>>,
    pub faces: Option<Spanned<Vec<Spanned<String>>>>,
}

/// A kind of boundary condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The normal derivative (the flux) is given.
    Neumann,
    /// The value is given; in an energy of order 4 the normal derivative as well.
    Dirichlet,
    /// Nothing is asked for.
    None,
    /// The value is given.
    Value,
    /// The normal derivative is given.
    Slope,
    /// Order 4: value and normal derivative are given.
    Clamped,
    /// Order 4: the value is given, and the bending moment.
    SimplySupported,
    /// Order 4: bending moment and shear are those of a free end.
    Free,
    /// a ∂u/∂n + κ u is given.
    Robin,
    /// Two opposite faces are one.
    Periodic,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDictionary {
    pub activation: Spanned<String>,
    pub directions: Option<Spanned<DirectionKind>>,
    pub bias: Option<Spanned<[f64; 2]>>,
    pub weights: Option<Spanned<[f64; 2]>>,
    pub offsets: Option<Spanned<i64>>,
    pub candidates: Option<Spanned<i64>>,
    pub refine: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileQuadrature {
    pub rule: Spanned<RuleKind>,
    pub points: Option<Spanned<Count>>,
    pub boundary_points: Option<Spanned<i64>>,
    pub cells: Option<Spanned<i64>>,
    pub order: Option<Spanned<i64>>,
    pub curvature: Option<Spanned<i64>>,
    pub cache_mib: Option<Spanned<i64>>,
}

/// A kind of quadrature rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuleKind {
    Gauss,
    Halton,
    Lattice,
    MonteCarlo,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSolver {
    pub algorithm: Option<Spanned<Algorithm>>,
    pub neurons: Spanned<i64>,
    pub seed: Option<Spanned<i64>>,
    pub tolerance: Option<Spanned<Real>>,
    pub radius: Option<Spanned<Real>>,
    #[serde(default)]
    pub step: StepRule,
    #[serde(default = "yes")]
    pub guard: bool,
    #[serde(default)]
    pub projection: ProjectionKind,
    pub selection: Option<Spanned<SelectionKind>>,
    pub polish: Option<Spanned<i64>>,
}

/// By what neurons are chosen, as files say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SelectionKind {
    /// What measurements favour.
    #[default]
    Auto,
    Slope,
    Decrease,
}

fn yes() -> bool {
    true
}

/// Which greedy algorithm.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Orthogonal greedy.
    #[default]
    Oga,
    /// Relaxed greedy.
    Rga,
}

impl Algorithm {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Oga => "oga",
            Algorithm::Rga => "rga",
        }
    }
}

impl<'de> Deserialize<'de> for Boundaries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrList;
        impl<'de> Visitor<'de> for OneOrList {
            type Value = Boundaries;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "a [boundary] table or [[boundary]] tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Boundaries, A::Error> {
                let one = FileBoundary::deserialize(value::MapAccessDeserializer::new(map))?;
                Ok(Boundaries(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Boundaries, A::Error> {
                Vec::deserialize(value::SeqAccessDeserializer::new(seq)).map(Boundaries)
            }
        }
        deserializer.deserialize_any(OneOrList)
    }
}
