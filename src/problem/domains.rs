//! From the keys of `[domain]` to a domain.

use super::ProblemError;
use super::attachment::Attachment;
use super::build::{Built, MAX_DIMENSION};
use super::file::{Corners, File, FileDomain, OneOrMany, Shape};
use super::source::{Source, count, positive, real};
use super::typed::Real;
use crate::domain::{Blame, Corner, Domain, DomainError, Inside, Mesh, Part, Union, polygon, read_gmsh};
use crate::expression::{Graph, Scope, parse};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// The keys that each shape has.
fn allowed(shape: Shape) -> &'static [&'static str] {
    match shape {
        Shape::Box => &["lower", "upper"],
        Shape::Ball => &["center", "radius"],
        Shape::Polygon => &["vertices", "holes", "edges"],
        Shape::Union => &["parts"],
        Shape::Mesh => &["file"],
        Shape::Inside => &["lower", "upper", "inside"],
    }
}

/// The domain of a file, and the files it was read from.
pub(super) fn domain(
    source: &Source,
    file: &File,
    constants: &BTreeMap<String, f64>,
) -> Built<(Domain, Vec<Attachment>)> {
    let given = &file.domain;
    let reader = Reader {
        source,
        given,
        constants,
    };
    reader.require_keys_in_use()?;
    Ok(match given.shape {
        Shape::Box => (reader.a_box()?, Vec::new()),
        Shape::Ball => (reader.ball()?, Vec::new()),
        Shape::Polygon => (reader.polygon(file)?, Vec::new()),
        Shape::Union => (reader.union()?, Vec::new()),
        Shape::Mesh => {
            let (mesh, attachment) = reader.mesh()?;
            (mesh, vec![attachment])
        }
        Shape::Inside => (reader.inside()?, Vec::new()),
    })
}

struct Reader<'a> {
    source: &'a Source<'a>,
    given: &'a FileDomain,
    constants: &'a BTreeMap<String, f64>,
}

impl Reader<'_> {
    fn require_keys_in_use(&self) -> Built<()> {
        let given = self.given;
        let place = |span: Option<Range<usize>>| span;
        let present = [
            ("lower", place(given.lower.as_ref().map(Spanned::span))),
            ("upper", given.upper.as_ref().map(Spanned::span)),
            ("center", given.center.as_ref().map(Spanned::span)),
            ("radius", given.radius.as_ref().map(Spanned::span)),
            ("vertices", given.vertices.as_ref().map(Spanned::span)),
            ("holes", given.holes.as_ref().map(Spanned::span)),
            ("edges", given.edges.as_ref().map(Spanned::span)),
            ("parts", given.parts.as_ref().map(Spanned::span)),
            ("file", given.file.as_ref().map(Spanned::span)),
            ("inside", given.inside.as_ref().map(Spanned::span)),
        ];
        let allowed = allowed(given.shape);
        for (key, span) in present {
            if let Some(span) = span.filter(|_| !allowed.contains(&key)) {
                let names: Vec<String> = allowed.iter().map(|name| format!("`{name}`")).collect();
                let message = format!("this shape has {}, not `{key}`", names.join(" and "));
                return Err(self.source.error(&format!("domain.{key}"), span, message));
            }
        }
        Ok(())
    }

    /// The number of dimensions; where the shape implies it, the key may be left out and must not contradict.
    fn dimension(&self, implied: Option<usize>) -> Built<usize> {
        let Some(given) = &self.given.dimension else {
            return implied.ok_or_else(|| {
                ProblemError::new(self.source.name, "missing key `dimension`")
                    .key("domain.dimension")
                    .help("[domain] needs the number of coordinates: dimension = 2")
            });
        };
        let dimension = count(self.source, "domain.dimension", given, 1, MAX_DIMENSION)?;
        match implied {
            Some(implied) if implied != dimension => Err(self.source.error(
                "domain.dimension",
                given.span(),
                format!("the domain has {implied} dimensions, not {dimension}"),
            )),
            _ => Ok(dimension),
        }
    }

    fn number(&self, key: &str, span: Range<usize>, number: &Real) -> Built<f64> {
        let number = Spanned::new(span.clone(), number.clone());
        match real(self.source, key, &number, self.constants)? {
            number if number.is_finite() => Ok(number),
            _ => Err(self.source.error(key, span, "must be finite")),
        }
    }

    fn list(&self, key: &str, value: &Spanned<OneOrMany>, dimension: usize) -> Built<Vec<f64>> {
        let key = format!("domain.{key}");
        let number = |number: &Real| self.number(&key, value.span(), number);
        let list = match value.get_ref() {
            OneOrMany::One(one) => vec![number(one)?; dimension],
            OneOrMany::Many(list) => list.iter().map(number).collect::<Built<Vec<f64>>>()?,
        };
        match list.len() == dimension {
            true => Ok(list),
            false => Err(self.source.error(
                &key,
                value.span(),
                format!("{} numbers for {dimension} dimensions", list.len()),
            )),
        }
    }

    fn ends(&self, dimension: usize) -> Built<(Vec<f64>, Vec<f64>)> {
        let given = self.given;
        let or = |key: &str, value: &Option<Spanned<OneOrMany>>, default: f64| match value {
            Some(value) => self.list(key, value, dimension),
            None => Ok(vec![default; dimension]),
        };
        let (lower, upper) = (or("lower", &given.lower, 0.0)?, or("upper", &given.upper, 1.0)?);
        if let Some(i) = (0..dimension).find(|&i| lower[i] >= upper[i]) {
            let span = given.upper.as_ref().or(given.lower.as_ref());
            return Err(self.source.error(
                "domain.upper",
                span.map_or(0..0, Spanned::span),
                format!(
                    "lower = {} is not below upper = {} in x[{}]",
                    lower[i],
                    upper[i],
                    i + 1
                ),
            ));
        }
        Ok((lower, upper))
    }

    fn a_box(&self) -> Built<Domain> {
        let (lower, upper) = self.ends(self.dimension(None)?)?;
        Ok(Domain::Box { lower, upper })
    }

    fn ball(&self) -> Built<Domain> {
        let dimension = self.dimension(None)?;
        let center = match &self.given.center {
            Some(center) => self.list("center", center, dimension)?,
            None => vec![0.0; dimension],
        };
        let radius = match &self.given.radius {
            Some(radius) => positive(self.source, "domain.radius", radius, self.constants)?,
            None => 1.0,
        };
        Ok(match dimension {
            // A ball in 1-D is an interval.
            1 => Domain::Box {
                lower: vec![center[0] - radius],
                upper: vec![center[0] + radius],
            },
            _ => Domain::Ball { center, radius },
        })
    }

    fn missing(&self, key: &str, example: &str) -> ProblemError {
        ProblemError::new(self.source.name, format!("this shape needs `{key}`"))
            .key(format!("domain.{key}"))
            .help(example)
    }

    /// An error of the domain, at its place in the file.
    fn refused(&self, key: &str, span: Range<usize>, error: DomainError) -> ProblemError {
        let given = self.given;
        let blamed = match error.blame {
            Some(Blame::Hole(hole)) => {
                let hole = given.holes.as_ref().and_then(|holes| holes.get_ref().get(hole));
                hole.map(|hole| ("holes", hole.span()))
            }
            Some(Blame::Edges) => given.edges.as_ref().map(|edges| ("edges", edges.span())),
            Some(Blame::Part(part)) => {
                let part = given.parts.as_ref().and_then(|parts| parts.get_ref().get(part));
                part.map(|part| ("parts", part.lower.span()))
            }
            None => None,
        };
        let (key, span) = blamed.unwrap_or((key, span));
        let refused = self.source.error(&format!("domain.{key}"), span, error.message);
        match error.help {
            Some(help) => refused.help(help),
            None => refused,
        }
    }

    fn polygon(&self, file: &File) -> Built<Domain> {
        let given = self.given;
        self.dimension(Some(2))?;
        let Some(vertices) = &given.vertices else {
            return Err(self.missing("vertices", "vertices = [[0, 0], [1, 0], [1, 1]]"));
        };
        let outline = self.corners("vertices", vertices.get_ref())?;
        let mut holes = Vec::new();
        for hole in given.holes.iter().flat_map(Spanned::get_ref) {
            holes.push(self.corners("holes", hole.get_ref())?);
        }
        let edges = outline.len() + holes.iter().map(Vec::len).sum::<usize>();
        let names = self.edge_names(file, edges)?;
        let mesh = polygon(&outline, &holes, &names)
            .map_err(|error| self.refused("vertices", vertices.span(), error))?;
        Ok(Domain::Mesh(Arc::new(mesh)))
    }

    fn corners(&self, key: &str, corners: &Corners) -> Built<Vec<Corner>> {
        let key = format!("domain.{key}");
        let corner = |corner: &Spanned<Vec<Real>>| match corner.get_ref().as_slice() {
            [x, y] => Ok([
                self.number(&key, corner.span(), x)?,
                self.number(&key, corner.span(), y)?,
            ]),
            numbers => Err(self
                .source
                .error(
                    &key,
                    corner.span(),
                    format!("a corner has two coordinates, not {}", numbers.len()),
                )
                .help("vertices = [[0, 0], [1, 0], [1, 1]]")),
        };
        corners.iter().map(corner).collect()
    }

    /// The names of edges: those given, and `edge 0` … for those that a boundary table singles out. The others are one
    /// face.
    fn edge_names(&self, file: &File, edges: usize) -> Built<Vec<(String, Vec<usize>)>> {
        let mut names = Vec::new();
        if let Some(given) = &self.given.edges {
            for (name, list) in given.get_ref() {
                let number = |&edge: &i64| usize::try_from(edge).ok().filter(|edge| *edge < edges);
                let Some(list) = list.iter().map(number).collect::<Option<Vec<usize>>>() else {
                    return Err(self.source.error(
                        "domain.edges",
                        given.span(),
                        format!(
                            "`{name}`: the edges are numbered from 0 to {}",
                            edges.saturating_sub(1)
                        ),
                    ));
                };
                names.push((name.clone(), list));
            }
        }
        let tables = file.boundary.0.iter().filter_map(|table| table.faces.as_ref());
        for face in tables.flat_map(|faces| faces.get_ref()) {
            let name = face.get_ref().trim().to_string();
            let number = name
                .strip_prefix("edge ")
                .and_then(|number| number.trim().parse().ok());
            if let Some(edge) = number.filter(|&edge: &usize| edge < edges) {
                let known = names.iter().any(|(_, list)| list.contains(&edge));
                if !known {
                    names.push((format!("edge {edge}"), vec![edge]));
                }
            }
        }
        Ok(names)
    }

    fn union(&self) -> Built<Domain> {
        const EXAMPLE: &str =
            "parts = [ { lower = [-1, -1], upper = [0, 1] }, { lower = [0, 0], upper = [1, 1] } ]";
        let Some(parts) = &self.given.parts else {
            return Err(self.missing("parts", EXAMPLE));
        };
        if parts.get_ref().is_empty() {
            let message = "a union has at least one part";
            let empty = self.source.error("domain.parts", parts.span(), message);
            return Err(empty.help(EXAMPLE));
        }
        let implied = parts
            .get_ref()
            .iter()
            .find_map(|part| match part.lower.get_ref() {
                OneOrMany::Many(list) => Some(list.len()),
                OneOrMany::One(_) => None,
            });
        let dimension = self.dimension(implied.filter(|_| self.given.dimension.is_none()))?;
        let boxes = parts.get_ref().iter().map(|part| {
            Ok(Part {
                lower: self.list("parts", &part.lower, dimension)?,
                upper: self.list("parts", &part.upper, dimension)?,
            })
        });
        let boxes = boxes.collect::<Built<Vec<Part>>>()?;
        let union = Union::new(boxes).map_err(|error| self.refused("parts", parts.span(), error))?;
        Ok(Domain::Union(Arc::new(union)))
    }

    fn mesh(&self) -> Built<(Domain, Attachment)> {
        let Some(file) = &self.given.file else {
            return Err(self.missing("file", "file = \"lshape.msh\""));
        };
        let attachment = Attachment::read(self.source, "domain.file", file)?;
        let read = |dimension: usize| {
            let raw = read_gmsh(&attachment.bytes, dimension)?;
            Mesh::new(dimension, raw)
        };
        let refused = |error: DomainError| attachment.refused(self.source, "domain.file", file, error);
        let mesh = match &self.given.dimension {
            Some(given) => {
                let dimension = count(self.source, "domain.dimension", given, 2, 3)?;
                read(dimension).map_err(refused)?
            }
            // A mesh of space has cells of space.
            None => match read_gmsh(&attachment.bytes, 3).map(|raw| raw.cells.is_empty()) {
                Ok(false) => read(3).map_err(refused)?,
                _ => read(2).map_err(refused)?,
            },
        };
        Ok((Domain::Mesh(Arc::new(mesh)), attachment))
    }

    fn inside(&self) -> Built<Domain> {
        let Some(text) = &self.given.inside else {
            return Err(self.missing(
                "inside",
                "inside = \"x^2 + y^2 - 1\", the domain is where it is negative",
            ));
        };
        let implied = [&self.given.lower, &self.given.upper].into_iter().flatten();
        let implied = implied.into_iter().find_map(|ends| match ends.get_ref() {
            OneOrMany::Many(list) => Some(list.len()),
            OneOrMany::One(_) => None,
        });
        let dimension = self.dimension(implied.filter(|_| self.given.dimension.is_none()))?;
        let (lower, upper) = self.ends(dimension)?;
        let scope = Scope {
            dimension,
            constants: self.constants.clone(),
            ..Scope::default()
        };
        let mut graph = Graph::new();
        let node = parse(text.get_ref())
            .and_then(|ast| scope.scalar(&mut graph, &ast))
            .map_err(|error| self.source.formula("domain.inside", text, &error))?;
        let inside = Inside::new(&mut graph, node, lower, upper)
            .map_err(|error| self.refused("inside", text.span(), error))?;
        Ok(Domain::Inside(Arc::new(inside)))
    }
}
