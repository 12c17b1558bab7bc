//! The domain Ω and its boundary.
//!
//! A domain is added here: a variant of [`Domain`] that knows its size, its faces and their normals. Points on it are made by
//! the module `points`.

mod element;
mod gmsh;
mod inside;
mod locate;
mod mesh;
mod msh_bytes;
mod overlap;
mod polygon;
mod union;

pub use element::{Element, Local, Place};
pub use gmsh::read as read_gmsh;
pub use inside::{Crossing, Inside};
pub use mesh::{Mesh, MeshFace, RawMesh, UNNAMED};
pub use polygon::{Corner, polygon};
pub use union::{Part, Union};

use std::f64::consts::PI;
use std::sync::Arc;

/// Why there is no such domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DomainError {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// The line of the file, if it has lines.
    pub line: Option<usize>,
    /// Which part of what was given is to blame, if not all of it.
    pub blame: Option<Blame>,
}

/// A part of what a domain is given by, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// A hole of a polygon.
    Hole(usize),
    /// The names of its edges.
    Edges,
    /// A box of a union.
    Part(usize),
}

impl DomainError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
            line: None,
            blame: None,
        }
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Blames a part of what was given.
    #[must_use]
    pub fn blame(mut self, blame: Option<Blame>) -> Self {
        self.blame = blame;
        self
    }

    /// Names a line, unless one is named already.
    #[must_use]
    fn line_or(mut self, line: Option<usize>) -> Self {
        self.line = self.line.or(line);
        self
    }
}

/// Ω.
#[derive(Debug, Clone)]
pub enum Domain {
    /// A product of intervals.
    Box {
        /// The lower end in each coordinate.
        lower: Vec<f64>,
        /// The upper end in each coordinate.
        upper: Vec<f64>,
    },
    /// A ball.
    Ball {
        /// Its centre.
        center: Vec<f64>,
        /// Its radius.
        radius: f64,
    },
    /// Boxes side by side.
    Union(Arc<Union>),
    /// Cells: a mesh, or the triangles of a polygon.
    Mesh(Arc<Mesh>),
    /// Where a function is negative.
    Inside(Arc<Inside>),
}

/// A piece of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Face {
    /// The face of a box where the coordinate takes its lower (or upper) end; of a union all pieces whose outer normal points
    /// down (or up) the coordinate.
    Side {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// Whether it is the upper end.
        upper: bool,
    },
    /// The sphere around a ball.
    Sphere,
    /// A piece with a name, numbered from 0.
    Piece(usize),
}

/// Where points are: inside or on a piece of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Region {
    /// Ω itself.
    Interior,
    /// A piece of ∂Ω.
    Boundary(Face),
    /// The two sides of a box across a coordinate: their points in pairs, one after the other. What is integrated there is a
    /// function of the jump.
    Pairs(usize),
}

/// How the outer normal of a face is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Normal {
    /// It is ± a unit vector.
    Axis {
        /// Which coordinate.
        coordinate: usize,
        /// 1 or −1.
        sign: f64,
    },
    /// It points away from the centre of a ball.
    Radial {
        /// The radius of the ball.
        radius: f64,
    },
    /// It comes with each point.
    AtPoints,
}

impl Domain {
    /// d.
    pub fn dimension(&self) -> usize {
        match self {
            Domain::Box { lower, .. } => lower.len(),
            Domain::Ball { center, .. } => center.len(),
            Domain::Union(union) => union.parts()[0].lower.len(),
            Domain::Mesh(mesh) => mesh.dimension(),
            Domain::Inside(inside) => inside.dimension(),
        }
    }

    /// The centre, or that of the box around.
    pub fn center(&self) -> Vec<f64> {
        match self {
            Domain::Ball { center, .. } => center.clone(),
            _ => (0..self.dimension())
                .map(|axis| {
                    let (low, high) = self.side(axis);
                    0.5 * (low + high)
                })
                .collect(),
        }
    }

    /// A point inside where sections are taken: the centre of a ball; a third of the way along each side of a box, as
    /// products of waves vanish at its centre.
    pub fn section_point(&self) -> Vec<f64> {
        match self {
            Domain::Box { lower, upper } => lower.iter().zip(upper).map(|(l, u)| l + (u - l) / 3.0).collect(),
            Domain::Ball { center, .. } => center.clone(),
            Domain::Union(union) => {
                let largest = union.parts().iter();
                let largest = largest.max_by(|a, b| a.measure(None).total_cmp(&b.measure(None)));
                let ends = largest
                    .into_iter()
                    .flat_map(|part| part.lower.iter().zip(&part.upper));
                ends.map(|(l, u)| l + (u - l) / 3.0).collect()
            }
            Domain::Mesh(mesh) => mesh.inner_point(),
            Domain::Inside(inside) => inside.inner_point().to_vec(),
        }
    }

    /// The pieces of the boundary.
    pub fn faces(&self) -> Vec<Face> {
        match self {
            Domain::Box { .. } | Domain::Union(_) => (0..self.dimension())
                .flat_map(|coordinate| [false, true].map(|upper| Face::Side { coordinate, upper }))
                .collect(),
            Domain::Ball { .. } => vec![Face::Sphere],
            Domain::Mesh(mesh) => (0..mesh.faces().len()).map(Face::Piece).collect(),
            Domain::Inside(_) => vec![Face::Piece(0)],
        }
    }

    /// The name of a face in a problem file: `x[1]-`, `x[2]+`, or that of its group.
    pub fn face_name(&self, face: Face) -> String {
        match (face, self) {
            (Face::Side { coordinate, upper }, _) => {
                format!("x[{}]{}", coordinate + 1, if upper { '+' } else { '-' })
            }
            (Face::Sphere, _) => "sphere".to_string(),
            (Face::Piece(piece), Domain::Mesh(mesh)) => mesh.faces()[piece].name.clone(),
            (Face::Piece(_), _) => "boundary".to_string(),
        }
    }

    /// How the outer normal of a face is known.
    pub fn normal(&self, face: Face) -> Normal {
        match (face, self) {
            (Face::Side { coordinate, upper }, _) => Normal::Axis {
                coordinate,
                sign: if upper { 1.0 } else { -1.0 },
            },
            (_, Domain::Ball { radius, .. }) => Normal::Radial { radius: *radius },
            _ => Normal::AtPoints,
        }
    }

    /// The measure of a region: volume, area, length, or 1 for a point.
    pub fn measure(&self, region: Region) -> f64 {
        match (self, region) {
            (_, Region::Pairs(coordinate)) => self.measure(Region::Boundary(Face::Side {
                coordinate,
                upper: false,
            })),
            (Domain::Box { lower, upper }, Region::Interior) => {
                lower.iter().zip(upper).map(|(l, u)| u - l).product()
            }
            (Domain::Box { lower, upper }, Region::Boundary(Face::Side { coordinate, .. })) => (0..lower
                .len())
                .filter(|&i| i != coordinate)
                .map(|i| upper[i] - lower[i])
                .product(),
            (Domain::Ball { center, radius }, Region::Interior) => {
                unit_ball_volume(center.len()) * radius.powi(center.len() as i32)
            }
            (Domain::Ball { center, radius }, Region::Boundary(_)) => {
                let d = center.len();
                d as f64 * unit_ball_volume(d) * radius.powi(d as i32 - 1)
            }
            (Domain::Union(union), Region::Interior) => {
                union.parts().iter().map(|part| part.measure(None)).sum()
            }
            (Domain::Union(union), Region::Boundary(Face::Side { coordinate, upper })) => {
                let pieces = union.pieces(coordinate, upper).iter();
                pieces.map(|piece| piece.measure(Some(coordinate))).sum()
            }
            (Domain::Mesh(mesh), Region::Interior) => mesh.volumes().iter().sum(),
            (Domain::Mesh(mesh), Region::Boundary(Face::Piece(piece))) => {
                mesh.faces()[piece].areas.iter().sum()
            }
            (Domain::Inside(inside), Region::Interior) => inside.measure(),
            (Domain::Inside(inside), Region::Boundary(_)) => inside.boundary(),
            (Domain::Box { .. } | Domain::Union(_) | Domain::Mesh(_), Region::Boundary(_)) => 0.0,
        }
    }

    /// The smallest and largest value of a coordinate.
    pub fn side(&self, axis: usize) -> (f64, f64) {
        match self {
            Domain::Box { lower, upper } => (lower[axis], upper[axis]),
            Domain::Ball { center, radius } => (center[axis] - radius, center[axis] + radius),
            Domain::Union(union) => union.side(axis),
            Domain::Mesh(mesh) => mesh.side(axis),
            Domain::Inside(inside) => inside.side(axis),
        }
    }

    /// Whether a Gauss rule can be made: up to three dimensions.
    pub fn has_cells(&self) -> bool {
        !matches!(self, Domain::Inside(_))
    }

    /// The width of a cell along an axis where `cells` are asked for.
    pub fn cell_width(&self, axis: usize, cells: usize) -> f64 {
        match self {
            Domain::Ball { radius, .. } => radius / cells as f64,
            Domain::Mesh(mesh) => mesh.width() / cells as f64,
            _ => {
                let (low, high) = self.side(axis);
                (high - low) / cells as f64
            }
        }
    }

    /// Whether a point is in the domain or on its boundary, to rounding.
    pub fn contains(&self, mut point: impl Iterator<Item = f64>) -> bool {
        const ROUNDING: f64 = 1e-12;
        let mut is_in = |lower: &[f64], upper: &[f64]| {
            let mut sides = lower.iter().zip(upper);
            sides.all(|(l, u)| {
                let slack = ROUNDING * (u - l);
                point.next().is_some_and(|x| (l - slack..=u + slack).contains(&x))
            })
        };
        match self {
            Domain::Box { lower, upper } => is_in(lower, upper),
            Domain::Ball { center, radius } => {
                let square: f64 = point.zip(center).map(|(x, c)| (x - c) * (x - c)).sum();
                square <= radius * radius * (1.0 + ROUNDING)
            }
            Domain::Union(union) => {
                let point: Vec<f64> = point.collect();
                union.parts().iter().any(|part| part.contains(&point))
            }
            Domain::Mesh(mesh) => mesh.contains(&point.collect::<Vec<f64>>()),
            Domain::Inside(inside) => inside.contains(&point.collect::<Vec<f64>>()),
        }
    }

    /// The smallest and largest ω·x over the domain, or over the box around it.
    pub fn extent(&self, omega: &[f64]) -> (f64, f64) {
        match self {
            Domain::Ball { center, radius } => {
                let middle: f64 = omega.iter().zip(center).map(|(o, c)| o * c).sum();
                let reach = radius * omega.iter().map(|o| o * o).sum::<f64>().sqrt();
                (middle - reach, middle + reach)
            }
            Domain::Mesh(mesh) => mesh.extent(omega),
            Domain::Union(union) => union
                .parts()
                .iter()
                .map(|part| extent_of_box(omega, &part.lower, &part.upper))
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (l, h)| {
                    (low.min(l), high.max(h))
                }),
            Domain::Box { lower, upper } => extent_of_box(omega, lower, upper),
            Domain::Inside(inside) => {
                let sides: Vec<(f64, f64)> = (0..inside.dimension()).map(|axis| inside.side(axis)).collect();
                let (lower, upper): (Vec<f64>, Vec<f64>) = sides.into_iter().unzip();
                extent_of_box(omega, &lower, &upper)
            }
        }
    }

    /// The boundary of a domain in the plane as line segments, for pictures; none of a box, whose frame is it.
    pub fn outline(&self) -> Vec<[[f64; 2]; 2]> {
        if self.dimension() != 2 {
            return Vec::new();
        }
        match self {
            Domain::Box { .. } | Domain::Inside(_) => Vec::new(),
            Domain::Ball { center, radius } => {
                const STEPS: usize = 180;
                let at = |k: usize| {
                    let angle = 2.0 * PI * k as f64 / STEPS as f64;
                    [center[0] + radius * angle.cos(), center[1] + radius * angle.sin()]
                };
                (0..STEPS).map(|k| [at(k), at(k + 1)]).collect()
            }
            Domain::Union(union) => {
                let pieces = [(0, false), (0, true), (1, false), (1, true)]
                    .into_iter()
                    .flat_map(|(coordinate, upper)| union.pieces(coordinate, upper));
                pieces
                    .map(|piece| [[piece.lower[0], piece.lower[1]], [piece.upper[0], piece.upper[1]]])
                    .collect()
            }
            Domain::Mesh(mesh) => {
                let facets = mesh.faces().iter().flat_map(|face| &face.facets);
                let corner = |node: u32| {
                    let [x, y, _] = mesh.nodes()[node as usize];
                    [x, y]
                };
                facets
                    .map(|facet| [corner(facet.nodes()[0]), corner(facet.nodes()[1])])
                    .collect()
            }
        }
    }

    /// How many pieces it has that do not touch each other; a formula is taken to make one.
    pub fn pieces_apart(&self) -> usize {
        match self {
            Domain::Union(union) => union.pieces_apart().len(),
            Domain::Mesh(mesh) => mesh.pieces_apart().len(),
            Domain::Box { .. } | Domain::Ball { .. } | Domain::Inside(_) => 1,
        }
    }

    /// At most so many of the pieces, each as a domain with the same faces; none if there is one piece only.
    pub fn pieces(&self, at_most: usize) -> Vec<Domain> {
        let several = |mut pieces: Vec<Vec<usize>>| match pieces.len() {
            1 => Vec::new(),
            _ => {
                pieces.truncate(at_most);
                pieces
            }
        };
        match self {
            Domain::Union(union) => {
                let parts = |piece: &Vec<usize>| piece.iter().map(|&i| union.parts()[i].clone()).collect();
                let pieces = several(union.pieces_apart());
                let unions = pieces.iter().filter_map(|piece| Union::new(parts(piece)).ok());
                unions.map(|union| Domain::Union(Arc::new(union))).collect()
            }
            Domain::Mesh(mesh) => {
                let pieces = several(mesh.pieces_apart());
                let meshes = pieces.iter().filter_map(|piece| mesh.only(piece).ok());
                meshes.map(|mesh| Domain::Mesh(Arc::new(mesh))).collect()
            }
            Domain::Box { .. } | Domain::Ball { .. } | Domain::Inside(_) => Vec::new(),
        }
    }

    /// A note for a domain in pieces.
    fn apart_in_words(&self) -> String {
        match self.pieces_apart() {
            1 => String::new(),
            count => format!(", in {count} pieces that do not touch"),
        }
    }

    /// What it is, for people.
    pub fn in_words(&self) -> String {
        match self {
            Domain::Box { lower, upper } => match (
                lower.iter().all(|l| *l == lower[0]),
                upper.iter().all(|u| *u == upper[0]),
            ) {
                (true, true) if lower.len() == 1 => format!("({}, {})", lower[0], upper[0]),
                (true, true) => format!("({}, {})^{}", lower[0], upper[0], lower.len()),
                _ => format!("box from {lower:?} to {upper:?}"),
            },
            Domain::Ball { center, radius } => format!("ball of radius {radius} around {center:?}"),
            Domain::Union(union) => {
                let volume = self.measure(Region::Interior);
                let apart = self.apart_in_words();
                format!(
                    "union of {} boxes{apart}, measure {volume:.6}",
                    union.parts().len()
                )
            }
            Domain::Mesh(mesh) => {
                let names: Vec<&str> = mesh.faces().iter().map(|face| face.name.as_str()).collect();
                let faces = match names.as_slice() {
                    [UNNAMED] => String::new(),
                    names => format!("; faces {}", names.join(", ")),
                };
                format!(
                    "{}{}, measure {:.6}{faces}",
                    mesh.what(),
                    self.apart_in_words(),
                    self.measure(Region::Interior)
                )
            }
            Domain::Inside(inside) => format!(
                "the part of a box where a formula is negative: measure {:.6}, estimated, ± {:.1e} at most if its points \
                 were random",
                inside.measure(),
                inside.measure() * inside.uncertainty()
            ),
        }
    }
}

fn extent_of_box(omega: &[f64], lower: &[f64], upper: &[f64]) -> (f64, f64) {
    let ends = omega.iter().zip(lower.iter().zip(upper));
    ends.fold((0.0, 0.0), |(low, high), (&o, (&l, &u))| {
        (low + (o * l).min(o * u), high + (o * l).max(o * u))
    })
}

/// V₀ = 1, V₁ = 2, V_d = V_(d−2) 2π/d.
fn unit_ball_volume(dimension: usize) -> f64 {
    match dimension {
        0 => 1.0,
        1 => 2.0,
        d => unit_ball_volume(d - 2) * 2.0 * PI / d as f64,
    }
}
