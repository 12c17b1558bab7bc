//! What a file asks for on each face, and which of its keys say it.

use super::build::{Builder, Built, Names};
use super::file::{Condition, File, FileBoundary, Formulation};
use super::typed::Text;
use crate::domain::Face;
use crate::expression::NodeId;
use toml::Spanned;

/// One quantity on the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// u.
    Value,
    /// ∂u/∂n.
    Slope,
    /// a ∂²u/∂n², natural against ∂v/∂n.
    Moment,
    /// What is natural against v: the flux for order 2, the shear for order 4.
    Flux,
    /// a ∂u/∂n + κ u.
    Robin,
    /// u and its derivatives are those on the opposite face.
    Periodic,
}

impl Held {
    /// A condition takes the place of another one: value or flux, slope or moment.
    fn excludes(self, other: Held) -> bool {
        let of_value = |held| matches!(held, Held::Value | Held::Flux | Held::Robin);
        let whole = |held| held == Held::Periodic;
        whole(self) || whole(other) || of_value(self) == of_value(other)
    }
}

/// The functional that conditions belong to: its form and order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub formulation: Formulation,
    pub order: usize,
}

impl Kind {
    /// What a condition holds.
    pub fn held(self, condition: Condition) -> Result<&'static [Held], &'static str> {
        use Condition as C;
        let energy = self.formulation == Formulation::Energy;
        match (condition, energy, self.order) {
            (C::None, ..) => Ok(&[]),
            (C::Robin, true, 3..) => Err("robin is a condition of order 2"),
            (C::Robin, ..) => Ok(&[Held::Robin]),
            (C::Periodic, ..) => Ok(&[Held::Periodic]),
            (C::Slope, true, 0..=2) => {
                Err("in an energy of order 2 the normal derivative is natural: condition = \"neumann\"")
            }
            (C::Clamped | C::SimplySupported | C::Free, true, 0..=2)
            | (C::SimplySupported | C::Free, false, 0..=3) => Err(
                "clamped, simply_supported and free are conditions of order 4; order 2 has \"dirichlet\" and \"neumann\"",
            ),
            (C::Dirichlet, true, 3..) | (C::Clamped, ..) => Ok(&[Held::Value, Held::Slope]),
            (C::Dirichlet | C::Value, ..) => Ok(&[Held::Value]),
            (C::Neumann, true, 0..=2) => Ok(&[Held::Flux]),
            (C::Neumann, true, _) | (C::Free, ..) => Ok(&[Held::Flux, Held::Moment]),
            (C::Neumann | C::Slope, ..) => Ok(&[Held::Slope]),
            (C::SimplySupported, ..) => Ok(&[Held::Value, Held::Moment]),
        }
    }

    /// The key that gives the data of a quantity, and its formula.
    pub fn text(self, table: &FileBoundary, held: Held) -> Option<(&'static str, &Spanned<Text>)> {
        let value = table.value.as_ref().map(|text| ("boundary.value", text));
        let slope = table.slope.as_ref().map(|text| ("boundary.slope", text));
        match (held, table.condition.get_ref()) {
            (Held::Value, _) => value,
            (Held::Slope, Condition::Neumann | Condition::Slope) => slope.or(value),
            (Held::Slope, _) => slope,
            (Held::Moment, Condition::SimplySupported) => {
                table.moment.as_ref().map(|text| ("boundary.moment", text))
            }
            (Held::Robin, _) => value,
            (Held::Flux, _) if self.order <= 2 => value,
            (Held::Moment | Held::Flux | Held::Periodic, _) => None,
        }
    }
}

/// A face with the tables that say something about it.
pub(super) struct FaceConditions<'f> {
    pub face: Face,
    pub tables: Vec<&'f FileBoundary>,
}

impl FaceConditions<'_> {
    /// The table that holds a quantity here.
    pub fn table(&self, kind: Kind, wanted: Held) -> Option<&FileBoundary> {
        let holds = |table: &&&FileBoundary| {
            let held = kind.held(*table.condition.get_ref());
            held.is_ok_and(|held| held.contains(&wanted))
        };
        self.tables.iter().find(holds).copied()
    }

    /// How many quantities are held here.
    pub fn count(&self, kind: Kind) -> usize {
        let held = |table: &&FileBoundary| kind.held(*table.condition.get_ref()).map_or(0, <[Held]>::len);
        self.tables.iter().map(held).sum()
    }
}

impl Builder<'_> {
    /// Each face of the domain with its conditions; a face may have none, or several that go together.
    pub(super) fn faces<'f>(&self, file: &'f File, kind: Kind) -> Built<Vec<FaceConditions<'f>>> {
        let all = self.domain.faces();
        let mut faces: Vec<FaceConditions> = all
            .iter()
            .map(|&face| FaceConditions {
                face,
                tables: Vec::new(),
            })
            .collect();
        for table in &file.boundary.0 {
            let held = self.held(table, kind)?;
            self.require_keys_in_use(table, kind, held)?;
            let chosen = match &table.faces {
                None => all.iter().map(|&face| (face, table.condition.span())).collect(),
                Some(names) => {
                    let named = names.get_ref().iter();
                    let named = named.map(|name| Ok((self.face_named(name, &all)?, name.span())));
                    named.collect::<Built<Vec<_>>>()?
                }
            };
            for (face, span) in chosen {
                let Some(place) = faces.iter_mut().find(|known| known.face == face) else {
                    continue;
                };
                let before = place
                    .tables
                    .iter()
                    .flat_map(|table| self.held(table, kind).unwrap_or_default());
                let clash = before
                    .into_iter()
                    .any(|one| held.iter().any(|other| one.excludes(*other)));
                if clash && table.faces.is_none() {
                    return Err(self.source.error(
                        "boundary.condition",
                        span,
                        "where there are several [[boundary]] tables each needs `faces`",
                    ));
                }
                if clash || place.tables.iter().any(|known| std::ptr::eq(*known, table)) {
                    return Err(self.source.error(
                        "boundary.faces",
                        span,
                        format!("the face {} already has a condition", self.domain.face_name(face)),
                    ));
                }
                place.tables.push(table);
            }
        }
        Ok(faces)
    }

    fn held(&self, table: &FileBoundary, kind: Kind) -> Built<&'static [Held]> {
        let condition = &table.condition;
        kind.held(*condition.get_ref())
            .map_err(|message| self.source.error("boundary.condition", condition.span(), message))
    }

    /// `x[1]-`, or `x-` where coordinates have letters.
    pub(super) fn face_named(&self, name: &Spanned<String>, all: &[Face]) -> Built<Face> {
        let wanted = name.get_ref().replace([' ', '\t'], "").replace('−', "-");
        let letters = (self.dimension <= 3).then_some(["x", "y", "z"]);
        let matches = |face: &&Face| {
            let alias = match (face, letters) {
                (Face::Side { coordinate, upper }, Some(letters)) => Some(format!(
                    "{}{}",
                    letters[*coordinate],
                    if *upper { '+' } else { '-' }
                )),
                _ => None,
            };
            // Names from files may have spaces, too.
            self.domain.face_name(**face).replace([' ', '\t'], "") == wanted
                || alias.is_some_and(|alias| alias == wanted)
        };
        all.iter().find(matches).copied().ok_or_else(|| {
            let known: Vec<String> = all
                .iter()
                .take(6)
                .map(|&face| self.domain.face_name(face))
                .collect();
            let more = if all.len() > known.len() { ", …" } else { "" };
            self.source
                .error(
                    "boundary.faces",
                    name.span(),
                    format!("there is no face `{}`", name.get_ref()),
                )
                .help(format!("the faces are {}{more}", known.join(", ")))
        })
    }

    /// A key that a condition has no use for is a mistake, never ignored.
    fn require_keys_in_use(&self, table: &FileBoundary, kind: Kind, held: &[Held]) -> Built<()> {
        let energy = kind.formulation == Formulation::Energy;
        let essential = held.iter().any(|held| matches!(held, Held::Value | Held::Slope));
        let used: Vec<&str> = held
            .iter()
            .filter_map(|&held| kind.text(table, held))
            .map(|(key, _)| key)
            .collect();
        let natural = held == [Held::Flux, Held::Moment];
        let given = [
            ("boundary.value", &table.value),
            ("boundary.slope", &table.slope),
            ("boundary.moment", &table.moment),
        ];
        for (key, text) in given {
            if let Some(text) = text
                && !used.contains(&key)
            {
                let message = match natural {
                    true => "natural data of order 4 can only be taken from `exact`".to_string(),
                    false => format!(
                        "this condition has no use for `{}`",
                        key.trim_start_matches("boundary.")
                    ),
                };
                return Err(self.source.error(key, text.span(), message));
            }
        }
        let robin = *table.condition.get_ref() == Condition::Robin;
        match (&table.coefficient, robin) {
            (Some(coefficient), false) => {
                return Err(self.source.error(
                    "boundary.coefficient",
                    coefficient.span(),
                    "`coefficient` belongs to condition = \"robin\": a ∂u/∂n + coefficient·u = value",
                ));
            }
            (None, true) => {
                return Err(self
                    .source
                    .error(
                        "boundary.coefficient",
                        table.condition.span(),
                        "a robin condition needs `coefficient`: a ∂u/∂n + coefficient·u = value",
                    )
                    .help("coefficient = \"2\""));
            }
            _ => {}
        }
        if let Some(penalty) = table.penalty.as_ref().filter(|_| !(energy && essential)) {
            let message = match (energy, table.condition.get_ref()) {
                (false, _) => "a residual has `weight`, not `penalty`",
                (true, Condition::Neumann) => "a Neumann condition is natural and needs no penalty",
                (true, _) => "this condition is natural and needs no penalty",
            };
            return Err(self.source.error("boundary.penalty", penalty.span(), message));
        }
        if let Some(weight) = table.weight.as_ref().filter(|_| energy) {
            return Err(self.source.error(
                "boundary.weight",
                weight.span(),
                "`weight` belongs to formulation = \"residual\"; an energy has `penalty`",
            ));
        }
        Ok(())
    }

    /// The data that a table gives for a quantity.
    pub(super) fn given(&mut self, table: &FileBoundary, kind: Kind, held: Held) -> Built<Option<NodeId>> {
        match kind.text(table, held) {
            Some((key, text)) => self.expression(key, text, Names::Coordinates).map(Some),
            None => Ok(None),
        }
    }
}
