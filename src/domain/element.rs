//! Cells of a mesh and their facets: maps from a reference cell.

/// A point in the plane or in space; in the plane the last coordinate is 0.
pub type Place = [f64; 3];

/// A straight cell: a simplex (edge, triangle, tetrahedron) or the image of a cube (quadrilateral, hexahedron).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    corners: [u32; 8],
    count: u8,
    dimension: u8,
}

/// What a map from a reference cell does at a place.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    /// Where the place goes.
    pub point: Place,
    /// The derivatives of the map by each reference coordinate.
    pub tangents: [Place; 3],
}

impl Element {
    /// A cell of `dimension` dimensions with these nodes: one more than dimensions for a simplex, else 2^dimension, in the
    /// order of Gmsh.
    pub fn new(dimension: usize, nodes: &[u32]) -> Self {
        let mut corners = [0; 8];
        corners[..nodes.len()].copy_from_slice(nodes);
        Self {
            corners,
            count: nodes.len() as u8,
            dimension: dimension as u8,
        }
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[u32] {
        &self.corners[..usize::from(self.count)]
    }

    /// How many dimensions it has.
    pub fn dimension(&self) -> usize {
        usize::from(self.dimension)
    }

    /// Whether it is a simplex: its map is affine.
    pub fn is_simplex(&self) -> bool {
        self.count == self.dimension + 1
    }

    /// The facets, as lists of nodes.
    pub fn facets(&self) -> Vec<Element> {
        let of = |places: &[usize]| {
            let nodes: Vec<u32> = places.iter().map(|&place| self.corners[place]).collect();
            Element::new(self.dimension() - 1, &nodes)
        };
        match (self.dimension, self.is_simplex()) {
            (2, true) => [[0, 1], [1, 2], [2, 0]].iter().map(|f| of(f)).collect(),
            (2, false) => [[0, 1], [1, 2], [2, 3], [3, 0]].iter().map(|f| of(f)).collect(),
            (_, true) => [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]]
                .iter()
                .map(|f| of(f))
                .collect(),
            _ => [
                [0, 1, 2, 3],
                [4, 5, 6, 7],
                [0, 1, 5, 4],
                [1, 2, 6, 5],
                [2, 3, 7, 6],
                [3, 0, 4, 7],
            ]
            .iter()
            .map(|f| of(f))
            .collect(),
        }
    }

    /// The simplices it is made of, for the question whether a point is inside.
    pub fn simplices(&self) -> Vec<Element> {
        let of = |places: &[usize]| {
            let nodes: Vec<u32> = places.iter().map(|&place| self.corners[place]).collect();
            Element::new(self.dimension(), &nodes)
        };
        match (self.dimension, self.is_simplex()) {
            (_, true) => vec![*self],
            (2, _) => vec![of(&[0, 1, 2]), of(&[0, 2, 3])],
            // All along the diagonal from 0 to 6.
            _ => [
                [0, 1, 2, 6],
                [0, 2, 3, 6],
                [0, 3, 7, 6],
                [0, 7, 4, 6],
                [0, 4, 5, 6],
                [0, 5, 1, 6],
            ]
            .iter()
            .map(|s| of(s))
            .collect(),
        }
    }

    /// The middle.
    pub fn center(&self, nodes: &[Place]) -> Place {
        let count = f64::from(self.count);
        let mut sum = [0.0; 3];
        for &node in self.nodes() {
            (0..3).for_each(|i| sum[i] += nodes[node as usize][i] / count);
        }
        sum
    }

    /// The map at a place of the reference cell: of the unit simplex Σ xi ≤ 1, or of the unit cube.
    pub fn at(&self, nodes: &[Place], xi: &Place) -> Local {
        let corner = |k: usize| nodes[self.corners[k] as usize];
        let mut local = Local {
            point: [0.0; 3],
            tangents: [[0.0; 3]; 3],
        };
        if self.is_simplex() {
            let origin = corner(0);
            local.point = origin;
            for (k, (tangent, part)) in local
                .tangents
                .iter_mut()
                .zip(xi)
                .take(self.dimension())
                .enumerate()
            {
                *tangent = difference(&corner(k + 1), &origin);
                add(*part, tangent, &mut local.point);
            }
            return local;
        }
        // Corner k of the cube, in Gmsh's order.
        const CUBE: [[usize; 3]; 8] = [
            [0, 0, 0],
            [1, 0, 0],
            [1, 1, 0],
            [0, 1, 0],
            [0, 0, 1],
            [1, 0, 1],
            [1, 1, 1],
            [0, 1, 1],
        ];
        let d = self.dimension();
        for (k, signs) in CUBE.iter().enumerate().take(usize::from(self.count)) {
            let factor = |i: usize| if signs[i] == 1 { xi[i] } else { 1.0 - xi[i] };
            let slope = |i: usize| if signs[i] == 1 { 1.0 } else { -1.0 };
            let shape: f64 = (0..d).map(factor).product();
            let corner = corner(k);
            add(shape, &corner, &mut local.point);
            for (j, tangent) in local.tangents.iter_mut().take(d).enumerate() {
                let derivative: f64 = (0..d)
                    .map(|i| if i == j { slope(i) } else { factor(i) })
                    .product();
                add(derivative, &corner, tangent);
            }
        }
        local
    }
}

impl Local {
    /// The part of space that a unit of the reference cell becomes: √det TᵀT.
    pub fn density(&self, dimension: usize) -> f64 {
        let [a, b, _] = self.tangents;
        match dimension {
            1 => dot(&a, &a).sqrt(),
            2 => {
                let normal = cross(&a, &b);
                dot(&normal, &normal).sqrt()
            }
            _ => self.volume(3).abs(),
        }
    }

    /// The same with its sign, for a cell of as many dimensions as space has.
    pub fn volume(&self, dimension: usize) -> f64 {
        let [a, b, c] = self.tangents;
        match dimension {
            2 => a[0] * b[1] - a[1] * b[0],
            _ => dot(&cross(&a, &b), &c),
        }
    }

    /// The unit normal of a facet in a space of `dimension` dimensions, on one of its two sides.
    pub fn normal(&self, dimension: usize) -> Place {
        let [a, b, _] = self.tangents;
        let normal = match dimension {
            2 => [a[1], -a[0], 0.0],
            _ => cross(&a, &b),
        };
        let length = dot(&normal, &normal).sqrt().max(f64::MIN_POSITIVE);
        normal.map(|n| n / length)
    }
}

/// a · b.
pub fn dot(a: &Place, b: &Place) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// sum += factor · a.
fn add(factor: f64, a: &Place, sum: &mut Place) {
    sum.iter_mut().zip(a).for_each(|(sum, a)| *sum += factor * a);
}

/// a − b.
pub fn difference(a: &Place, b: &Place) -> Place {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// a × b.
pub fn cross(a: &Place, b: &Place) -> Place {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}
