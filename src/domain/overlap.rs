//! Whether cells of a mesh overlap.
//!
//! How many cells lie over a point changes only where facets of the boundary are crossed, as long as the two cells at any other
//! facet lie on its two sides. So where cells overlap, somewhere a cell at the boundary overlaps another: only those are
//! compared with their neighbours.

use super::DomainError;
use super::element::{Element, Place, cross, difference, dot};
use super::locate::Locator;
use super::mesh::key;
use std::collections::HashMap;

/// Cells overlap where they do by more than this part of the smaller one, in every direction.
const DEPTH: f64 = 1e-6;
/// Coordinates are known to this part of their size.
const ROUNDING: f64 = 1e-12;

/// An error where two cells have more in common than a part of their surfaces.
pub(super) fn require_no_overlap(
    dimension: usize,
    nodes: &[Place],
    cells: &[Element],
    locator: &Locator,
) -> Result<(), DomainError> {
    let mut seen: HashMap<Vec<u32>, (usize, Element)> = HashMap::new();
    let mut shared = vec![0; cells.len()];
    for (index, cell) in cells.iter().enumerate() {
        for facet in cell.facets() {
            let Some((other, _)) = seen.insert(key(&facet), (index, facet)) else {
                continue;
            };
            if lie_on_one_side(dimension, nodes, &facet, [&cells[other], cell]) {
                return Err(overlap(dimension, nodes, cells, (other, index)));
            }
            shared[index] += 1;
            shared[other] += 1;
        }
    }
    let at_boundary = (0..cells.len()).filter(|&index| shared[index] < cells[index].facets().len());
    for index in at_boundary {
        let near = locator.near(nodes, &cells[index]);
        let others = near.into_iter().map(|other| other as usize);
        for other in others.filter(|&other| other != index) {
            if intersect(dimension, nodes, [&cells[index], &cells[other]]) {
                return Err(overlap(dimension, nodes, cells, (index, other)));
            }
        }
    }
    Ok(())
}

fn overlap(dimension: usize, nodes: &[Place], cells: &[Element], pair: (usize, usize)) -> DomainError {
    let (first, second) = (pair.0.min(pair.1), pair.0.max(pair.1));
    let center = |cell: usize| cells[cell].center(nodes)[..dimension].to_vec();
    let message = match key(&cells[first]) == key(&cells[second]) {
        true => format!(
            "the cells {} and {} at {:?} are the same: every cell may be there once",
            first + 1,
            second + 1,
            center(first)
        ),
        false => format!(
            "the cells {} at {:?} and {} at {:?} overlap",
            first + 1,
            center(first),
            second + 1,
            center(second)
        ),
    };
    DomainError::new(message)
        .help("mesh the geometry again; in Gmsh `Coherence` removes what is there twice before meshing")
}

/// Whether the middles of two cells lie on the same side of a facet that they share.
fn lie_on_one_side(dimension: usize, nodes: &[Place], facet: &Element, cells: [&Element; 2]) -> bool {
    let middle = match facet.is_simplex() {
        true => [1.0 / dimension as f64; 3],
        false => [0.5; 3],
    };
    let local = facet.at(nodes, &middle);
    let normal = local.normal(dimension);
    let [a, b] = cells.map(|cell| dot(&normal, &difference(&cell.center(nodes), &local.point)));
    a * b > 0.0
}

/// Whether two cells have more in common than their surfaces: no direction separates them. A hexahedron whose faces are not
/// plane is taken as the simplices it is cut into.
fn intersect(dimension: usize, nodes: &[Place], [a, b]: [&Element; 2]) -> bool {
    let convex = |cell: &Element| dimension == 2 || cell.is_simplex();
    if convex(a) && convex(b) {
        return !is_separated(dimension, &corners(nodes, a), &corners(nodes, b));
    }
    // Simplices of cells with a common face may be cut along different diagonals.
    if a.facets()
        .iter()
        .any(|facet| b.facets().iter().any(|other| key(facet) == key(other)))
    {
        return false;
    }
    let pieces = b.simplices();
    a.simplices().iter().any(|one| {
        let one = corners(nodes, one);
        pieces
            .iter()
            .any(|other| !is_separated(dimension, &one, &corners(nodes, other)))
    })
}

fn corners(nodes: &[Place], cell: &Element) -> Vec<Place> {
    cell.nodes().iter().map(|&node| nodes[node as usize]).collect()
}

/// Whether a plane, or a line, separates two convex cells: it is that of a face or, in space, parallel to an edge of each.
fn is_separated(dimension: usize, a: &[Place], b: &[Place]) -> bool {
    let edges = |corners: &[Place]| -> Vec<Place> {
        match dimension {
            2 => (0..corners.len())
                .map(|k| difference(&corners[(k + 1) % corners.len()], &corners[k]))
                .collect(),
            _ => (1..corners.len())
                .flat_map(|k| (0..k).map(move |j| (j, k)))
                .map(|(j, k)| difference(&corners[k], &corners[j]))
                .collect(),
        }
    };
    let axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    if axes[..dimension].iter().any(|axis| separates(axis, a, b)) {
        return true;
    }
    let (of_a, of_b) = (edges(a), edges(b));
    if dimension == 2 {
        let mut all = of_a.iter().chain(&of_b);
        return all.any(|edge| separates(&[edge[1], -edge[0], 0.0], a, b));
    }
    // The normal of a face is the product of two of its edges.
    let within = |edges: &[Place]| {
        let pairs = (1..edges.len()).flat_map(|k| (0..k).map(move |j| (j, k)));
        pairs
            .into_iter()
            .any(|(j, k)| separates(&cross(&edges[j], &edges[k]), a, b))
    };
    let between = || {
        of_a.iter()
            .any(|one| of_b.iter().any(|other| separates(&cross(one, other), a, b)))
    };
    within(&of_a) || within(&of_b) || between()
}

fn separates(direction: &Place, a: &[Place], b: &[Place]) -> bool {
    let length = dot(direction, direction).sqrt();
    if length == 0.0 {
        return false;
    }
    let range = |corners: &[Place]| {
        corners
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), corner| {
                let t = dot(direction, corner) / length;
                (low.min(t), high.max(t))
            })
    };
    let (a, b) = (range(a), range(b));
    let depth = (a.1 - b.0).min(b.1 - a.0);
    let size = (a.1 - a.0).min(b.1 - b.0);
    let far = [a.0, a.1, b.0, b.1]
        .into_iter()
        .fold(0.0_f64, |far, t| far.max(t.abs()));
    depth <= DEPTH * size + ROUNDING * far
}
