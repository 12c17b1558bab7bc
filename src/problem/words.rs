//! A problem told back to whoever wrote its file.

use super::Kernel;
use super::boundary::{Held, Kind};
use super::file::{Condition, File, FileBoundary, FileEquation, Formulation};
use super::typed::{Real, Text};
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
    /// `unnamed` are the faces that no table says anything about.
    pub(super) fn of(file: &File, kind: Kind, unnamed: &[String], kernel: &Kernel) -> Self {
        let exact = file.equation.exact.is_some();
        let tables = file.boundary.0.iter();
        let mut boundary: Vec<String> = tables.map(|given| condition(given, kind, exact)).collect();
        boundary.extend(unsaid(kind, unnamed, boundary.is_empty(), exact));
        if !kernel.is_empty() {
            boundary.push(format!(
                "u is free up to {}: fixed by {}",
                kernel.what(),
                kernel.fixed_by()
            ));
        }
        let (equation, letters) = equation(&file.equation, kind.order / 2);
        Self {
            equation,
            letters,
            boundary,
        }
    }
}

/// What holds on faces that no table names.
fn unsaid(kind: Kind, unnamed: &[String], everywhere: bool, exact: bool) -> Option<String> {
    if unnamed.is_empty() {
        return None;
    }
    let place = match everywhere {
        true => "on all of the boundary".to_string(),
        false => format!("on {}", unnamed.join(", ")),
    };
    Some(match kind.formulation {
        Formulation::Fit => "none: a fit asks for nothing there".to_string(),
        Formulation::Residual => format!("nothing is asked for {place}"),
        Formulation::Energy => format!("{} {place}, naturally: nothing to enforce", natural(kind, exact)),
    })
}

/// The natural conditions of an energy with their data.
fn natural(kind: Kind, exact: bool) -> String {
    let (what, are) = match kind.order {
        0..=2 => ("the flux", "is"),
        _ => ("bending moment and shear", "are"),
    };
    let those = if kind.order <= 2 { "that" } else { "those" };
    match exact {
        true => format!("{what} {are} {those} of the exact solution"),
        false => format!("{what} {are} 0"),
    }
}

fn text(given: &Option<Spanned<Text>>) -> Option<&str> {
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

fn condition(given: &FileBoundary, kind: Kind, exact: bool) -> String {
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
    let energy = kind.formulation == Formulation::Energy;
    let condition = *given.condition.get_ref();
    let held = kind.held(condition).unwrap_or_default();
    if held.is_empty() {
        return match energy {
            true => format!("{} {place}, naturally: nothing to enforce", natural(kind, exact)),
            false => format!("nothing is asked for {place}"),
        };
    }
    let is_natural = |held: &Held| energy && matches!(held, Held::Flux | Held::Moment | Held::Robin);
    if condition == Condition::Periodic {
        return format!("periodic {place}: opposite faces are one");
    }
    let told = |wanted: bool| -> Vec<String> {
        let chosen = held.iter().filter(|held| is_natural(held) == wanted);
        chosen.map(|&held| quantity(given, kind, held, exact)).collect()
    };
    let (enforced, natural) = (told(false).join(" and "), told(true).join(" and "));
    let how = match (energy, text(&given.penalty), &given.weight) {
        (true, Some(penalty), _) => format!("by a penalty with δ = {penalty}"),
        (true, None, _) => "by a multiplier".to_string(),
        (false, _, None) => "as a residual".to_string(),
        (false, _, Some(weight)) => match weight.get_ref() {
            Real::Number(weight) => format!("as a residual with weight {weight}"),
            Real::Formula(weight) => format!("as a residual with weight {}", &**weight),
        },
    };
    let name = match (condition, kind.order) {
        (Condition::Clamped, _) => "clamped: ",
        (Condition::Dirichlet, 4) if energy => "clamped: ",
        (Condition::SimplySupported, _) => "simply supported: ",
        (Condition::Free, _) => "free: ",
        _ => "",
    };
    match (enforced.is_empty(), natural.is_empty()) {
        (true, _) => format!("{name}{natural} {place}, naturally: nothing to enforce"),
        (_, true) => format!("{name}{enforced} {place}, {how}"),
        _ => format!("{name}{enforced} {place}, {how}; {natural}, naturally"),
    }
}

/// A quantity on the boundary and its data.
fn quantity(given: &FileBoundary, kind: Kind, held: Held, exact: bool) -> String {
    let what = match held {
        Held::Value => "the value",
        Held::Slope => "the normal derivative",
        Held::Moment => "the bending moment",
        Held::Flux if kind.order <= 2 => "the flux",
        Held::Flux => "the shear",
        Held::Robin => "a ∂u/∂n + coefficient·u",
        Held::Periodic => "the value on the opposite face",
    };
    match (kind.text(given, held), exact) {
        (Some((_, value)), _) => format!("{what} is {}", value.get_ref().trim()),
        (None, true) => format!("{what} is that of the exact solution"),
        (None, false) => format!("{what} is 0"),
    }
}
