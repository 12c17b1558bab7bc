//! Where formulas stand in a problem file: what goes wrong with one while solving is told at its place.

use super::ProblemError;
use super::boundary::{FaceConditions, Held, Kind};
use super::build::Builder;
use super::file::{File, FileBoundary};
use super::typed::Text;
use crate::domain::{Domain, Face};
use crate::error::SolveError;
use toml::Spanned;

/// The names of formulas, as the loss knows them, each with an error at its place that has no words yet.
#[derive(Debug, Clone, Default)]
pub struct Places(Vec<(String, ProblemError)>);

impl Places {
    /// The error of a run at its place in the file, if a formula is to blame.
    pub fn explain(&self, error: &SolveError) -> Option<ProblemError> {
        let (name, message) = match error {
            SolveError::NotFinite { what, value, point } => (
                what,
                format!(
                    "{what} is {value} at x = {point:?}: it must be a finite number wherever it is integrated"
                ),
            ),
            SolveError::NotFiniteInTime { what, value, time } => (
                what,
                format!("{what} is {value} at t = {time}: it must be a finite number at all times"),
            ),
            SolveError::NotConvex { what, value, point } => (
                what,
                format!(
                    "must not be negative: it is {value} at x = {point:?}, and the energy is not convex there"
                ),
            ),
            _ => return None,
        };
        let (_, place) = self.0.iter().find(|(known, _)| known == name)?;
        let mut error = place.clone();
        error.message = message;
        Some(error)
    }
}

/// The name of a formula that belongs to a face.
pub(super) fn on_face(what: &str, domain: &Domain, face: Face) -> String {
    format!("{what} on {}", domain.face_name(face))
}

impl Builder<'_> {
    /// Where the formulas of a file stand.
    pub(super) fn places(&self, file: &File, kind: Kind, faces: &[FaceConditions]) -> Places {
        let mut places = Places::default();
        let mut add = |name: &str, key: &str, text: Option<&Spanned<Text>>| {
            if let Some(text) = text {
                let place = self.source.error(key, text.span(), "");
                places.0.push((name.to_string(), place));
            }
        };
        let equation = &file.equation;
        // The first of a name counts: what the file gives itself before what is derived.
        let exact = ("equation.exact", equation.exact.as_ref());
        let given = [
            ("diffusion", "equation.diffusion", &equation.diffusion),
            ("reaction", "equation.reaction", &equation.reaction),
            ("potential", "equation.potential", &equation.potential),
            ("source", "equation.source", &equation.source),
            (
                "a coefficient of the operator",
                "equation.operator",
                &equation.operator,
            ),
            (
                "a coefficient of the operator",
                "equation.diffusion",
                &equation.diffusion,
            ),
            (
                "a coefficient of the operator",
                "equation.reaction",
                &equation.reaction,
            ),
        ];
        for (name, key, text) in given {
            add(name, key, text.as_ref());
        }
        for name in ["source", "exact", "exact (or a derivative of it)"] {
            add(name, exact.0, exact.1);
        }
        let time = file.time.as_ref().map(Spanned::get_ref);
        add(
            "initial",
            "time.initial",
            time.and_then(|time| time.initial.as_ref()),
        );
        add("initial", exact.0, exact.1);
        for conditions in faces {
            let on = |what: &str| on_face(what, &self.domain, conditions.face);
            for &table in &conditions.tables {
                add(
                    &on("coefficient"),
                    "boundary.coefficient",
                    table.coefficient.as_ref(),
                );
                for &held in kind.held(*table.condition.get_ref()).unwrap_or_default() {
                    let (key, text) = given_or(kind, table, held).unwrap_or((exact.0, exact.1));
                    add(&on(data_of(held)), key, text);
                }
            }
            // Natural data that no table gives.
            add(&on("boundary data"), exact.0, exact.1);
        }
        places
    }
}

fn given_or(kind: Kind, table: &FileBoundary, held: Held) -> Option<(&str, Option<&Spanned<Text>>)> {
    kind.text(table, held).map(|(key, text)| (key, Some(text)))
}

/// What the data of a quantity are called.
pub(super) fn data_of(held: Held) -> &'static str {
    match held {
        Held::Value => "boundary value",
        Held::Slope => "boundary slope",
        Held::Moment | Held::Flux | Held::Robin | Held::Periodic => "boundary data",
    }
}
