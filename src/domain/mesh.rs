//! A domain made of cells: a mesh from a file, or the triangles of a polygon.

use super::DomainError;
use super::element::{Element, Place, difference, dot};
use super::locate::Locator;
use super::overlap::require_no_overlap;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A cell below this part of the mean volume has none.
const NO_VOLUME: f64 = 1e-12;
/// The face of all facets that no group names.
pub const UNNAMED: &str = "unnamed";

/// Cells, and the facets on the boundary by the name of their group.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    dimension: usize,
    nodes: Vec<Place>,
    cells: Vec<Element>,
    volumes: Vec<f64>,
    faces: Vec<MeshFace>,
    ends: Vec<(f64, f64)>,
    locator: Locator,
    /// What it is, for people.
    what: String,
}

/// A named piece of the boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshFace {
    /// Its name.
    pub name: String,
    /// Its facets …
    pub facets: Vec<Element>,
    /// … and their sizes.
    pub areas: Vec<f64>,
    /// A point on the inner side of each facet.
    inner: Vec<Place>,
}

/// A mesh before it was looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawMesh {
    /// The nodes.
    pub nodes: Vec<Place>,
    /// The cells.
    pub cells: Vec<Element>,
    /// Facets and the names of the groups they are in.
    pub named: Vec<(String, Element)>,
    /// What it is, for people.
    pub what: String,
}

/// Nodes of a facet in ascending order: the same for the cells on both of its sides.
pub(super) fn key(facet: &Element) -> Vec<u32> {
    let mut nodes = facet.nodes().to_vec();
    nodes.sort_unstable();
    nodes
}

impl Mesh {
    /// Checks a mesh and finds its boundary.
    pub fn new(dimension: usize, raw: RawMesh) -> Result<Self, DomainError> {
        let RawMesh {
            nodes,
            cells,
            named,
            what,
        } = raw;
        if cells.is_empty() {
            return Err(DomainError::new(format!(
                "has no cell of dimension {dimension}: {} are needed",
                match dimension {
                    2 => "triangles or quadrilaterals",
                    _ => "tetrahedra or hexahedra",
                }
            )));
        }
        let volumes = volumes(dimension, &nodes, &cells)?;
        let used = cells.iter().flat_map(|cell| cell.nodes());
        let used: Vec<&Place> = used.map(|&node| &nodes[node as usize]).collect();
        let ends: Vec<(f64, f64)> = (0..dimension)
            .map(|axis| {
                let values = used.iter().map(|place| place[axis]);
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                    (low.min(x), high.max(x))
                })
            })
            .collect();
        let faces = faces(dimension, &nodes, &cells, named)?;
        let locator = Locator::new(&ends, &nodes, &cells);
        require_no_overlap(dimension, &nodes, &cells, &locator)?;
        Ok(Self {
            dimension,
            nodes,
            cells,
            volumes,
            faces,
            ends,
            locator,
            what,
        })
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Place] {
        &self.nodes
    }

    /// The cells.
    pub fn cells(&self) -> &[Element] {
        &self.cells
    }

    /// Their volumes.
    pub fn volumes(&self) -> &[f64] {
        &self.volumes
    }

    /// The pieces of the boundary.
    pub fn faces(&self) -> &[MeshFace] {
        &self.faces
    }

    /// What it is, for people.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The smallest and largest value of a coordinate.
    pub fn side(&self, axis: usize) -> (f64, f64) {
        self.ends[axis]
    }

    /// The width of the widest side.
    pub fn width(&self) -> f64 {
        self.ends.iter().map(|(low, high)| high - low).fold(0.0, f64::max)
    }

    /// How many cells of the mean size lie across the widest side.
    pub fn cells_across(&self) -> usize {
        let mean = self.volumes.iter().sum::<f64>() / self.volumes.len() as f64;
        let across = self.width() / mean.powf(1.0 / self.dimension as f64);
        across.round().max(1.0) as usize
    }

    /// The smallest and largest ω·x.
    pub fn extent(&self, omega: &[f64]) -> (f64, f64) {
        let corners = self.cells.iter().flat_map(|cell| cell.nodes());
        corners.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &node| {
            let place = &self.nodes[node as usize];
            let t: f64 = omega.iter().zip(place).map(|(o, x)| o * x).sum();
            (low.min(t), high.max(t))
        })
    }

    /// Whether a point is in a cell, to rounding.
    pub fn contains(&self, point: &[f64]) -> bool {
        self.locator.finds(&self.nodes, &self.cells, point)
    }

    /// Whether a point is in a cell and at least this part of it away from its surface.
    pub fn is_within_a_cell(&self, point: &[f64], away: f64) -> bool {
        self.locator.finds_within(&self.nodes, &self.cells, point, away)
    }

    /// The cells by the pieces of the domain they are in: within a piece one can go from cell to cell through shared facets.
    pub fn pieces_apart(&self) -> Vec<Vec<usize>> {
        // Each cell points to one of its piece; the last in the chain stands for all.
        fn last(next: &mut [usize], mut cell: usize) -> usize {
            while next[cell] != cell {
                next[cell] = next[next[cell]];
                cell = next[cell];
            }
            cell
        }
        let mut next: Vec<usize> = (0..self.cells.len()).collect();
        let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
        for (index, cell) in self.cells.iter().enumerate() {
            for facet in cell.facets() {
                if let Some(other) = seen.insert(key(&facet), index) {
                    let (a, b) = (last(&mut next, index), last(&mut next, other));
                    next[a] = b;
                }
            }
        }
        let mut pieces: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cell in 0..self.cells.len() {
            let piece = last(&mut next, cell);
            pieces.entry(piece).or_default().push(cell);
        }
        pieces.into_values().collect()
    }

    /// Some of the cells as a mesh of their own. Its faces are those of this one, in the same order; some may be empty.
    pub fn only(&self, cells: &[usize]) -> Result<Self, DomainError> {
        let cells: Vec<Element> = cells.iter().map(|&cell| self.cells[cell]).collect();
        let known: HashSet<Vec<u32>> = cells
            .iter()
            .flat_map(Element::facets)
            .map(|facet| key(&facet))
            .collect();
        let mut named = Vec::new();
        for face in &self.faces {
            let facets = face.facets.iter().filter(|facet| known.contains(&key(facet)));
            named.extend(facets.map(|facet| (face.name.clone(), *facet)));
        }
        let mut only = Self::new(
            self.dimension,
            RawMesh {
                nodes: self.nodes.clone(),
                cells,
                named,
                what: self.what.clone(),
            },
        )?;
        let mut faces = std::mem::take(&mut only.faces);
        only.faces = self
            .faces
            .iter()
            .map(
                |face| match faces.iter().position(|other| other.name == face.name) {
                    Some(at) => faces.swap_remove(at),
                    None => MeshFace {
                        name: face.name.clone(),
                        facets: Vec::new(),
                        areas: Vec::new(),
                        inner: Vec::new(),
                    },
                },
            )
            .collect();
        Ok(only)
    }

    /// Some point inside.
    pub fn inner_point(&self) -> Vec<f64> {
        let largest = (0..self.cells.len()).max_by(|&a, &b| self.volumes[a].total_cmp(&self.volumes[b]));
        let center = self.cells[largest.unwrap_or(0)].center(&self.nodes);
        center[..self.dimension].to_vec()
    }
}

impl MeshFace {
    /// The outer unit normal of a facet at a place of its reference cell.
    pub fn normal(&self, facet: usize, local: &super::element::Local, dimension: usize) -> Place {
        let normal = local.normal(dimension);
        let outward = difference(&local.point, &self.inner[facet]);
        match dot(&normal, &outward) < 0.0 {
            true => normal.map(|n| -n),
            false => normal,
        }
    }
}

/// The volume of each cell; an error for those that have none or are inside out.
fn volumes(dimension: usize, nodes: &[Place], cells: &[Element]) -> Result<Vec<f64>, DomainError> {
    let gauss = [0.211_324_865_405_187_1, 0.788_675_134_594_812_9];
    let signed: Vec<(f64, f64)> = cells
        .iter()
        .map(|cell| {
            if cell.is_simplex() {
                let factorial = if dimension == 2 { 2.0 } else { 6.0 };
                let volume = cell.at(nodes, &[0.0; 3]).volume(dimension) / factorial;
                return (volume, volume);
            }
            // Two Gauss points in each direction are exact; the least is looked for at the corners.
            let places = |ends: [f64; 2]| -> Vec<f64> {
                let count = 1 << dimension;
                let place = |k: usize| [ends[k & 1], ends[k >> 1 & 1], ends[k >> 2 & 1]];
                (0..count)
                    .map(|k| cell.at(nodes, &place(k)).volume(dimension))
                    .collect()
            };
            let inside = places(gauss);
            let volume = inside.iter().sum::<f64>() / inside.len() as f64;
            let least = places([0.0, 1.0])
                .into_iter()
                .map(|corner| corner * volume.signum())
                .fold(f64::INFINITY, f64::min);
            (volume, least * volume.signum())
        })
        .collect();
    let mean = signed.iter().map(|(volume, _)| volume.abs()).sum::<f64>() / cells.len() as f64;
    let sign = signed
        .iter()
        .map(|(volume, _)| volume.signum())
        .sum::<f64>()
        .signum();
    for (number, (&(volume, least), cell)) in signed.iter().zip(cells).enumerate() {
        let at = cell.center(nodes);
        let place = format!("cell {} at {:?}", number + 1, &at[..dimension]);
        if !volume.is_finite() || volume.abs() <= NO_VOLUME * mean {
            return Err(DomainError::new(format!("{place} has no volume")).help(
                "mesh the geometry again; every cell needs corners that do not lie in one line or plane",
            ));
        }
        if volume * sign < 0.0 || least * sign <= 0.0 {
            return Err(DomainError::new(format!(
                "{place} is inside out: its nodes run the other way round than those of the others"
            ))
            .help("mesh the geometry again, or turn its surface round"));
        }
    }
    Ok(signed.into_iter().map(|(volume, _)| volume.abs()).collect())
}

/// The facets that belong to one cell only, by the group that names them.
fn faces(
    dimension: usize,
    nodes: &[Place],
    cells: &[Element],
    named: Vec<(String, Element)>,
) -> Result<Vec<MeshFace>, DomainError> {
    let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
    for facet in cells.iter().flat_map(Element::facets) {
        *seen.entry(key(&facet)).or_default() += 1;
    }
    let mut names: HashMap<Vec<u32>, &str> = HashMap::new();
    for (name, facet) in &named {
        let place = || facet.center(nodes);
        match seen.get(&key(facet)) {
            None => {
                return Err(DomainError::new(format!(
                    "the group `{name}` has a facet at {:?} that belongs to no cell",
                    &place()[..dimension]
                )));
            }
            // A group may follow an interface inside.
            Some(2) => continue,
            Some(_) => {}
        }
        if names.insert(key(facet), name).is_some_and(|other| other != name) {
            return Err(DomainError::new(format!(
                "the facet at {:?} is in two groups, `{name}` and another",
                &place()[..dimension]
            )));
        }
    }
    let mut groups: BTreeMap<&str, MeshFace> = BTreeMap::new();
    for cell in cells {
        for facet in cell.facets() {
            match seen[&key(&facet)] {
                1 => {}
                2 => continue,
                count => {
                    return Err(DomainError::new(format!(
                        "the facet at {:?} belongs to {count} cells; it may belong to two",
                        &facet.center(nodes)[..dimension]
                    )));
                }
            }
            let name = names.get(&key(&facet)).copied().unwrap_or(UNNAMED);
            let face = groups.entry(name).or_insert_with(|| MeshFace {
                name: name.to_string(),
                facets: Vec::new(),
                areas: Vec::new(),
                inner: Vec::new(),
            });
            face.areas.push(area(&facet, nodes));
            face.inner.push(cell.center(nodes));
            face.facets.push(facet);
        }
    }
    // Those with names first, in their order.
    let mut faces: Vec<MeshFace> = groups.into_values().collect();
    faces.sort_by_key(|face| face.name == UNNAMED);
    Ok(faces)
}

fn area(facet: &Element, nodes: &[Place]) -> f64 {
    let d = facet.dimension();
    if facet.is_simplex() {
        let factorial = if d == 2 { 2.0 } else { 1.0 };
        return facet.at(nodes, &[0.0; 3]).density(d) / factorial;
    }
    // A twisted quadrilateral: Gauss points enough for twelve digits of anything sensible.
    let rule = gauss_quad::legendre::GaussLegendre::new(std::num::NonZeroUsize::new(8).expect("8 is not 0"));
    let nodes_1d: Vec<(f64, f64)> = rule.iter().map(|(x, w)| (0.5 * (1.0 + x), 0.5 * w)).collect();
    let mut sum = 0.0;
    for (x, u) in &nodes_1d {
        for (y, v) in &nodes_1d {
            sum += u * v * facet.at(nodes, &[*x, *y, 0.0]).density(2);
        }
    }
    sum
}
