//! Polygons with holes, cut into triangles.

use super::element::Element;
use super::mesh::{Mesh, RawMesh};
use super::{Blame, DomainError};
use spade::{AngleLimit, ConstrainedDelaunayTriangulation, Point2, RefinementParameters, Triangulation};

/// A corner.
pub type Corner = [f64; 2];

/// More corners than anybody types.
const MOST_CORNERS: usize = 20_000;
/// No triangle has a smaller angle, unless the polygon itself has.
const SMALLEST_ANGLE: f64 = 25.0;
/// A polygon has at least about so many triangles. They are cut further for the quadrature, into equal parts: kinks of neurons
/// fall in step with the parts of a large triangle, and the quadrature's errors then add up.
const TRIANGLES: f64 = 1000.0;

/// An edge of the outline or of a hole.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: Corner,
    to: Corner,
    /// Which outline it is a part of: 0 for the outer one.
    ring: usize,
}

/// A polygon as a mesh. Its edges are numbered along the outline and then along each hole; `names` says which of them
/// have a name, the others are one face.
pub fn polygon(
    outline: &[Corner],
    holes: &[Vec<Corner>],
    names: &[(String, Vec<usize>)],
) -> Result<Mesh, DomainError> {
    let rings: Vec<&[Corner]> = std::iter::once(outline)
        .chain(holes.iter().map(Vec::as_slice))
        .collect();
    let edges = edges(&rings)?;
    require_simple(&edges, &rings)?;
    let mut named = vec![None; edges.len()];
    for (name, list) in names {
        for &edge in list {
            let Some(place) = named.get_mut(edge) else {
                return Err(DomainError::new(format!(
                    "`{name}` names edge {edge}, and the edges are 0 to {}",
                    edges.len() - 1
                ))
                .blame(Some(Blame::Edges)));
            };
            if let Some(other) = place.replace(name.clone()) {
                return Err(
                    DomainError::new(format!("edge {edge} is in `{other}` and in `{name}`"))
                        .blame(Some(Blame::Edges)),
                );
            }
        }
    }
    let raw = triangles(&edges, &rings, &named)?;
    Mesh::new(2, raw)
}

/// The hole that a ring is; the outline is none.
fn hole(ring: usize) -> Option<Blame> {
    ring.checked_sub(1).map(Blame::Hole)
}

fn edges(rings: &[&[Corner]]) -> Result<Vec<Edge>, DomainError> {
    let mut edges = Vec::new();
    for (ring, corners) in rings.iter().enumerate() {
        let what = match ring {
            0 => "the outline".to_string(),
            hole => format!("hole {}", hole - 1),
        };
        if corners.len() < 3 {
            return Err(DomainError::new(format!(
                "{what} has {} corners; a polygon has at least 3",
                corners.len()
            ))
            .blame(hole(ring)));
        }
        for (i, &from) in corners.iter().enumerate() {
            let to = corners[(i + 1) % corners.len()];
            if from == to {
                return Err(
                    DomainError::new(format!("{what} has the corner {from:?} twice in a row"))
                        .blame(hole(ring)),
                );
            }
            edges.push(Edge { from, to, ring });
        }
    }
    match edges.len() > MOST_CORNERS {
        true => Err(DomainError::new(format!(
            "{} corners; at most {MOST_CORNERS} are accepted",
            edges.len()
        ))),
        false => Ok(edges),
    }
}

/// Twice the area of the triangle a, b, c: positive where it runs counter-clockwise.
fn turn(a: Corner, b: Corner, c: Corner) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Whether a point is on an edge.
fn is_on(edge: &Edge, p: Corner) -> bool {
    let between = |i: usize| {
        let (low, high) = (edge.from[i].min(edge.to[i]), edge.from[i].max(edge.to[i]));
        (low..=high).contains(&p[i])
    };
    turn(edge.from, edge.to, p) == 0.0 && between(0) && between(1)
}

fn cross(a: &Edge, b: &Edge) -> bool {
    let (s, t) = (turn(a.from, a.to, b.from), turn(a.from, a.to, b.to));
    let (u, v) = (turn(b.from, b.to, a.from), turn(b.from, b.to, a.to));
    (s * t < 0.0 && u * v < 0.0) || is_on(a, b.from) || is_on(a, b.to) || is_on(b, a.from) || is_on(b, a.to)
}

/// Edges meet at their common corners only, and holes lie inside.
fn require_simple(edges: &[Edge], rings: &[&[Corner]]) -> Result<(), DomainError> {
    for (i, a) in edges.iter().enumerate() {
        for (j, b) in edges.iter().enumerate().skip(i + 1) {
            let follows = a.ring == b.ring && a.to == b.from;
            let precedes = a.ring == b.ring && b.to == a.from;
            let wrong = match (follows, precedes) {
                (true, true) => true,
                // Neighbours meet at one corner; more is a needle.
                (true, false) => is_on(a, b.to) || is_on(b, a.from),
                (false, true) => is_on(a, b.from) || is_on(b, a.to),
                (false, false) => cross(a, b),
            };
            if wrong {
                return Err(DomainError::new(format!(
                    "edge {i} from {:?} to {:?} and edge {j} from {:?} to {:?} cross or touch",
                    a.from, a.to, b.from, b.to
                ))
                .help("list the corners in order along the outline; a polygon does not cross itself")
                .blame(hole(b.ring)));
            }
        }
    }
    for (k, ring) in rings.iter().enumerate() {
        let area: f64 = (0..ring.len())
            .map(|i| turn([0.0, 0.0], ring[i], ring[(i + 1) % ring.len()]))
            .sum();
        let size = ring.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
        if area.abs() <= 1e-14 * size * size {
            return Err(
                DomainError::new("the corners lie in one line: the polygon has no area").blame(hole(k)),
            );
        }
        if k == 0 {
            continue;
        }
        let others = edges.iter().filter(|edge| edge.ring != k);
        // Inside the outline and in no other hole.
        let inside = is_inside(others.copied(), ring[0]);
        if !inside {
            return Err(DomainError::new(format!(
                "hole {} is not inside the outline, or is inside another hole",
                k - 1
            ))
            .blame(hole(k)));
        }
        // No other hole inside this one.
        let this: Vec<Edge> = edges.iter().filter(|edge| edge.ring == k).copied().collect();
        for (other, corners) in rings.iter().enumerate().skip(1) {
            if other != k && is_inside(this.iter().copied(), corners[0]) {
                return Err(
                    DomainError::new(format!("hole {} is inside hole {}", other - 1, k - 1))
                        .blame(hole(other)),
                );
            }
        }
    }
    Ok(())
}

/// Whether a ray from a point crosses an odd number of edges.
fn is_inside(edges: impl Iterator<Item = Edge>, [x, y]: Corner) -> bool {
    let crossed = edges.filter(|edge| {
        let ([ax, ay], [bx, by]) = (edge.from, edge.to);
        (ay > y) != (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)
    });
    crossed.count() % 2 == 1
}

/// Triangles by a constrained Delaunay triangulation, with corners added where angles are small.
fn triangles(edges: &[Edge], rings: &[&[Corner]], named: &[Option<String>]) -> Result<RawMesh, DomainError> {
    let failed =
        |_| DomainError::new("has corners that cannot be triangulated: they are not finite, or too large");
    let mut cdt: ConstrainedDelaunayTriangulation<Point2<f64>> = ConstrainedDelaunayTriangulation::new();
    for edge in edges {
        let [a, b] = [edge.from, edge.to].map(|[x, y]| cdt.insert(Point2::new(x, y)));
        let (a, b) = (a.map_err(failed)?, b.map_err(failed)?);
        if !cdt.can_add_constraint(a, b) {
            return Err(DomainError::new("has edges that cross"));
        }
        cdt.add_constraint(a, b);
    }
    let area: f64 = edges
        .iter()
        .map(|edge| turn([0.0, 0.0], edge.from, edge.to))
        .sum::<f64>()
        .abs()
        / 2.0;
    let parameters = RefinementParameters::<f64>::new()
        .exclude_outer_faces(true)
        .with_angle_limit(AngleLimit::from_deg(SMALLEST_ANGLE))
        .with_max_allowed_area(1.5 * area / TRIANGLES)
        .with_max_additional_vertices(20 * edges.len() + 4 * TRIANGLES as usize);
    cdt.refine(parameters);
    let mut raw = RawMesh {
        nodes: cdt
            .vertices()
            .map(|v| [v.position().x, v.position().y, 0.0])
            .collect(),
        ..RawMesh::default()
    };
    for face in cdt.inner_faces() {
        let corners = face.vertices().map(|v| v.index() as u32);
        let element = Element::new(2, &corners);
        let [x, y, _] = element.center(&raw.nodes);
        if is_inside(edges.iter().copied(), [x, y]) {
            raw.cells.push(element);
        }
    }
    // Which edge of the polygon a facet lies on.
    let mut seen = std::collections::HashMap::new();
    for facet in raw.cells.iter().flat_map(Element::facets) {
        let mut key = [facet.nodes()[0], facet.nodes()[1]];
        key.sort_unstable();
        seen.entry(key)
            .and_modify(|(count, _)| *count += 1)
            .or_insert((1, facet));
    }
    let mut outer: Vec<Element> = seen
        .into_values()
        .filter(|(count, _)| *count == 1)
        .map(|(_, f)| f)
        .collect();
    outer.sort_by_key(|facet| facet.nodes().to_vec());
    for facet in outer {
        let [x, y, _] = facet.center(&raw.nodes);
        let nearest = (0..edges.len()).min_by(|&a, &b| {
            let (a, b) = (distance(&edges[a], [x, y]), distance(&edges[b], [x, y]));
            a.total_cmp(&b)
        });
        if let Some(name) = nearest.and_then(|edge| named[edge].clone()) {
            raw.named.push((name, facet));
        }
    }
    let holes = match rings.len() - 1 {
        0 => String::new(),
        1 => ", one hole".to_string(),
        holes => format!(", {holes} holes"),
    };
    raw.what = format!("polygon with {} corners{holes}", edges.len());
    Ok(raw)
}

fn distance(edge: &Edge, p: Corner) -> f64 {
    let along = [edge.to[0] - edge.from[0], edge.to[1] - edge.from[1]];
    let step = [p[0] - edge.from[0], p[1] - edge.from[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let part = ((along[0] * step[0] + along[1] * step[1]) / square).clamp(0.0, 1.0);
    (step[0] - part * along[0]).hypot(step[1] - part * along[1])
}
