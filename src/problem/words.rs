//! A problem told back to whoever wrote its file.

use super::file::{Condition, File, FileBoundary, FileEquation, Formulation};
use toml::Spanned;

/// The equation and its boundary conditions in words and formulas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    /// The equation.
    pub equation: String,
    /// What its letters stand for.
    pub letters: Vec<String>,
    /// A line for each condition.
    pub boundary: Vec<String>,
}

impl Words {
    pub(super) fn of(file: &File, half_order: usize) -> Self {
        let boundary = file
            .boundary
            .0
            .iter()
            .map(|given| condition(given, &file.equation));
        let mut boundary: Vec<String> = boundary.collect();
        if boundary.is_empty() {
            boundary.push("natural on all of the boundary: nothing to enforce".to_string());
        }
        let (equation, letters) = equation(&file.equation, half_order);
        Self {
            equation,
            letters,
            boundary,
        }
    }
}

fn text(given: &Option<Spanned<String>>) -> Option<&str> {
    given.as_ref().map(|text| text.get_ref().trim())
}

fn equation(given: &FileEquation, half_order: usize) -> (String, Vec<String>) {
    let exact = text(&given.exact);
    let mut letters = Vec::new();
    let equation = match given.formulation {
        Formulation::Fit => {
            let target = exact.or(text(&given.source)).unwrap_or_default();
            return (format!("fit u = {target} in the mean square"), letters);
        }
        Formulation::Residual => format!(
            "{} = f, as a least-squares residual",
            text(&given.operator).unwrap_or("u")
        ),
        Formulation::Energy => {
            let diffusion = text(&given.diffusion).unwrap_or("1");
            let leading = match (half_order, diffusion) {
                (1, "1") => "−Δu",
                (1, _) => "−∇·(a ∇u)",
                (_, "1") => "Σ ∂^2α u over |α| = 2",
                _ => "Σ ∂^α(a ∂^α u) over |α| = 2",
            };
            if diffusion != "1" {
                letters.push(format!("a = {diffusion}"));
            }
            let rest = match (text(&given.potential), text(&given.reaction)) {
                (Some(potential), _) => {
                    letters.push(format!("F = {potential}"));
                    " + ∂F/∂u"
                }
                (None, Some("1")) => " + u",
                (None, Some("0") | None) => "",
                (None, Some(reaction)) => {
                    letters.push(format!("c = {reaction}"));
                    " + c u"
                }
            };
            format!("{leading}{rest} = f, as the minimum of its energy")
        }
    };
    letters.push(match (text(&given.source), exact) {
        (Some(source), _) => format!("f = {source}"),
        (None, Some(exact)) => format!("f such that u = {exact} solves it"),
        (None, None) => "f = 0".to_string(),
    });
    (equation, letters)
}

fn condition(given: &FileBoundary, equation: &FileEquation) -> String {
    let place = match &given.faces {
        Some(faces) => {
            let names: Vec<&str> = faces
                .get_ref()
                .iter()
                .map(|face| face.get_ref().as_str())
                .collect();
            format!("on {}", names.join(", "))
        }
        None => "on all of the boundary".to_string(),
    };
    let value = match (text(&given.value), &equation.exact) {
        (Some(value), _) => format!("is {value}"),
        (None, Some(_)) => "is that of the exact solution".to_string(),
        (None, None) => "is 0".to_string(),
    };
    let energy = equation.formulation == Formulation::Energy;
    match given.condition.get_ref() {
        Condition::None => format!("nothing is asked for {place}"),
        Condition::Neumann if energy => format!("the flux {value} {place}, naturally: nothing to enforce"),
        Condition::Neumann => format!("the normal derivative {value} {place}, as a residual"),
        Condition::Dirichlet if energy => {
            let penalty = text(&given.penalty).unwrap_or("its default");
            format!("the value {value} {place}, by a penalty with δ = {penalty}")
        }
        Condition::Dirichlet => format!("the value {value} {place}, as a residual"),
    }
}
