//! Points on the cells of a mesh and on the facets of its faces.

use super::simplex::{Node, cube_rule, folded, simplex_rule};
use super::{PointsError, Rule, Tile, UnitRule};
use crate::domain::{Element, Face, Mesh, MeshFace, Region};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// More cells than memory should be spent on.
const MOST_NODES: usize = 1 << 26;

/// Where on a mesh points are.
#[derive(Debug, Clone)]
struct Patch {
    mesh: Arc<Mesh>,
    /// The number of a face; none inside.
    face: Option<usize>,
}

/// Gauss points: every element has a composite rule of its own.
#[derive(Debug, Clone)]
pub(super) struct CellGauss {
    patch: Patch,
    /// The number of the first point of each element, and of all.
    starts: Arc<[usize]>,
    /// The rule of each element, among the rules.
    rules: Arc<[u32]>,
    tables: Arc<[Vec<Node>]>,
}

/// A sequence spread over the elements, as many points on each as it is large.
#[derive(Debug, Clone)]
pub(super) struct CellSequence {
    patch: Patch,
    rule: UnitRule,
    /// The measure of all elements up to each, as a part of the whole.
    ends: Arc<[f64]>,
    measure: f64,
}

impl Patch {
    fn new(mesh: &Arc<Mesh>, region: Region) -> Self {
        Self {
            mesh: Arc::clone(mesh),
            face: match region {
                Region::Boundary(Face::Piece(piece)) => Some(piece),
                _ => None,
            },
        }
    }

    fn face(&self) -> Option<&MeshFace> {
        self.face.map(|face| &self.mesh.faces()[face])
    }

    fn elements(&self) -> &[Element] {
        self.face().map_or(self.mesh.cells(), |face| &face.facets)
    }

    fn measures(&self) -> &[f64] {
        self.face().map_or(self.mesh.volumes(), |face| &face.areas)
    }

    /// How many dimensions the elements have.
    fn dimension(&self) -> usize {
        self.mesh.dimension() - usize::from(self.face.is_some())
    }

    /// Writes a point and its normal, if it is on a face; how much a unit of the reference cell is there.
    fn write(&self, element: usize, at: &[f64; 3], place: usize, tile: &mut Tile) -> f64 {
        let local = self.elements()[element].at(self.mesh.nodes(), at);
        for (column, x) in tile.coordinates.iter_mut().zip(local.point) {
            column[place] = x;
        }
        if let Some(face) = self.face() {
            let normal = face.normal(element, &local, self.mesh.dimension());
            for (column, n) in tile.attributes.iter_mut().zip(normal) {
                column[place] = n;
            }
        }
        local.density(self.dimension())
    }
}

impl CellGauss {
    /// Elements larger than a cell are cut until they are not.
    pub(super) fn new(
        mesh: &Arc<Mesh>,
        region: Region,
        cells: usize,
        order: usize,
    ) -> Result<Self, PointsError> {
        let patch = Patch::new(mesh, region);
        let d = patch.dimension();
        let cell = (mesh.width() / cells as f64).powi(d as i32);
        let too_many = || PointsError::TooMany {
            cells,
            order,
            dimension: d,
        };
        let mut known: BTreeMap<(bool, usize), u32> = BTreeMap::new();
        let (mut tables, mut rules, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        let (mut count, mut held) = (0usize, 0usize);
        for (element, measure) in patch.elements().iter().zip(patch.measures()) {
            // Rounding must not cut an element that is just as large.
            let parts = ((measure / cell).powf(1.0 / d as f64) * (1.0 - 1e-9))
                .ceil()
                .max(1.0);
            let nodes = (parts * order as f64).powi(d as i32);
            if held as f64 + nodes > MOST_NODES as f64 {
                return Err(too_many());
            }
            let key = (element.is_simplex(), parts as usize);
            let number = *known.entry(key).or_insert_with(|| {
                tables.push(match key.0 {
                    true => simplex_rule(d, key.1, order),
                    false => cube_rule(d, key.1, order),
                });
                held += nodes as usize;
                tables.len() as u32 - 1
            });
            rules.push(number);
            count = count
                .checked_add(tables[number as usize].len())
                .ok_or_else(too_many)?;
            starts.push(count);
        }
        Ok(Self {
            patch,
            starts: starts.into(),
            rules: rules.into(),
            tables: tables.into(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    pub(super) fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let mut element = self.starts.partition_point(|&start| start <= range.start).max(1) - 1;
        for (place, index) in range.enumerate() {
            while index >= self.starts[element + 1] {
                element += 1;
            }
            let (at, weight) = &self.tables[self.rules[element] as usize][index - self.starts[element]];
            tile.weights[place] = weight * self.patch.write(element, at, place, tile);
        }
    }
}

impl CellSequence {
    pub(super) fn new(
        mesh: &Arc<Mesh>,
        region: Region,
        rule: Rule,
        stream: u32,
    ) -> Result<(Self, usize), PointsError> {
        let patch = Patch::new(mesh, region);
        let (rule, count) = UnitRule::new(rule, patch.dimension(), stream)?;
        let measure: f64 = patch.measures().iter().sum();
        let mut sum = 0.0;
        let ends = patch.measures().iter().map(|part| {
            sum += part / measure;
            sum
        });
        let ends: Arc<[f64]> = ends.collect();
        Ok((
            Self {
                ends,
                patch,
                rule,
                measure,
            },
            count,
        ))
    }

    pub(super) fn fill(&self, range: Range<usize>, tile: &mut Tile) {
        let d = self.patch.dimension();
        let mut parameters = vec![vec![0.0; range.len()]; d];
        self.rule.fill(range, &mut parameters, &mut tile.weights);
        for place in 0..tile.weights.len() {
            let mut s: Vec<f64> = parameters.iter().map(|column| column[place]).collect();
            // The first parameter says which element, and where it falls within its part goes on inside.
            let element = self
                .ends
                .partition_point(|&end| end <= s[0])
                .min(self.ends.len() - 1);
            let start = if element == 0 { 0.0 } else { self.ends[element - 1] };
            s[0] = ((s[0] - start) / (self.ends[element] - start)).clamp(0.0, 1.0);
            let mut at = [0.0; 3];
            let is_simplex = self.patch.elements()[element].is_simplex();
            match is_simplex {
                true => at = folded(&s),
                false => at[..d].copy_from_slice(&s),
            }
            let density = self.patch.write(element, &at, place, tile);
            tile.weights[place] *= self.measure;
            if !is_simplex {
                // The map of a cube stretches some of its parts more than others.
                tile.weights[place] *= density / self.patch.measures()[element];
            }
        }
    }
}
