//! Where an exact solution is not smooth enough for the f that is derived from it.
//!
//! The symbolic derivative of |x − c| is a sign and that of a sign is zero: what acts at c itself is lost.
//! Lines along the axes find the places where a formula may have a kink, and differences across them
//! tell whether something that an equation differentiates once more jumps there.

use super::build::Builder;
use super::equation::Energy;
use super::settings::Quadrature;
use crate::domain::{Domain, Region};
use crate::expression::{Function, MultiIndex, Node, NodeId, Program};
use crate::loss::{Density, TermSpec};
use crate::points::{PointSet, Rule, Tile, cells_of};
use std::f64::consts::PI;

/// A sample of a function that touches zero near by is at most this part of the largest.
const TOUCHING: f64 = 0.1;
/// Points looked at along a line.
const SAMPLES: usize = 160;
/// Lines along each axis.
const LINES: usize = 12;
/// How far from a place, as a part of the line, the difference across it is taken: twice.
const NEAR: [f64; 2] = [1e-5, 1e-7];
/// A jump is at least this part of the function's size.
const JUMP: f64 = 1e-3;

/// A function that must be continuous along an axis.
struct Continuous {
    node: NodeId,
    axis: usize,
    what: &'static str,
}

impl Builder<'_> {
    /// A warning where f, derived from `exact`, leaves something out.
    pub(super) fn warn_of_kinks(&mut self, functions: Vec<(NodeId, usize, &'static str)>) {
        let Some((what, point)) = self.find_jump(functions) else {
            return;
        };
        self.warnings.push(format!(
            "`exact` is not smooth enough for the f that is derived from it: near x = {point:.6?} {what} jumps, and f \
             leaves out what acts there, so that the run approaches another function. Choose a smoother solution, or \
             give `source`"
        ));
    }

    /// A function that jumps along its axis, and where.
    pub(super) fn find_jump(
        &self,
        functions: Vec<(NodeId, usize, &'static str)>,
    ) -> Option<(&'static str, Vec<f64>)> {
        let functions: Vec<Continuous> = functions
            .into_iter()
            .map(|(node, axis, what)| Continuous { node, axis, what })
            .collect();
        self.jump(&functions, &|_, _| true)
    }

    /// Warnings of coefficients that jump: inside a cell of an energy, where the quadrature smears the jump, and anywhere in a
    /// residual, which does not ask for the flux to be continuous.
    pub(super) fn warn_of_jumps(&mut self, interior: Option<&TermSpec>, quadrature: &Quadrature) {
        let nodes: Vec<(NodeId, &'static str)> = match interior.map(|term| &term.density) {
            Some(Density::Energy { parts, .. }) => {
                let coefficients = parts.iter().map(|(_, a, _)| a);
                let name = |name: &str| {
                    if name == "reaction" {
                        "`reaction`"
                    } else {
                        "`diffusion`"
                    }
                };
                coefficients.map(|a| (a.node, name(&a.name))).collect()
            }
            Some(Density::Residual { parts, .. }) => {
                let coefficients = parts.iter().map(|(_, c)| c.node);
                coefficients
                    .map(|node| (node, "a coefficient of the operator"))
                    .collect()
            }
            None => return,
        };
        let functions = (0..self.dimension).flat_map(|axis| {
            nodes
                .iter()
                .map(move |&(node, what)| Continuous { node, axis, what })
        });
        let functions: Vec<Continuous> = functions.collect();
        let is_residual = matches!(interior.map(|term| &term.density), Some(Density::Residual { .. }));
        if is_residual {
            if let Some((what, point)) = self.jump(&functions, &|_, _| true) {
                self.warnings.push(format!(
                    "{what} jumps near x = {point:.6?}, and a residual asks for nothing there: it may approach another function \
                     than the one whose flux is continuous. An energy does not have this problem"
                ));
            }
            return;
        }
        let Rule::Gauss { cells, .. } = quadrature.rule else {
            return;
        };
        let smeared = |cells: usize| {
            let inside_a_cell = |axis, point: &[f64]| !is_on_cell_edge(&self.domain, cells, axis, point);
            self.jump(&functions, &inside_a_cell)
        };
        let found = smeared(cells).map(|found| (found, "`cells`"));
        let found = found.or_else(|| smeared(quadrature.curvature?).map(|found| (found, "`curvature`")));
        if let Some(((what, point), key)) = found {
            let advice = match self.domain {
                Domain::Mesh(_) => "take a mesh whose elements end there".to_string(),
                _ => format!("choose {key} so that an edge lies there, or a mesh whose elements end there"),
            };
            self.warnings.push(format!(
                "{what} jumps near x = {point:.6?}, inside a cell of the quadrature, which smears the jump over the cell: {advice}"
            ));
        }
    }

    /// What an energy differentiates once more when f is derived: u and its flux; for m = 2 up to the shear.
    pub(super) fn continuous_in_energy(
        &mut self,
        energy: &Energy,
        exact: NodeId,
    ) -> Vec<(NodeId, usize, &'static str)> {
        let mut functions = Vec::new();
        for axis in 0..self.dimension {
            functions.push((exact, axis, "the solution"));
            let slope = self.graph.differentiate(exact, axis);
            if energy.half_order == 1 {
                let flux = self.graph.multiply(energy.diffusion, slope);
                functions.push((flux, axis, "its flux"));
                continue;
            }
            let bend = self.graph.differentiate(slope, axis);
            let moment = self.graph.multiply(energy.diffusion, bend);
            let shear = self.graph.differentiate(moment, axis);
            functions.extend([
                (slope, axis, "its slope"),
                (moment, axis, "its bending moment"),
                (shear, axis, "its shear"),
            ]);
        }
        functions
    }

    /// What the operator of a residual differentiates once more.
    pub(super) fn continuous_in_residual(
        &mut self,
        interior: &TermSpec,
        exact: NodeId,
    ) -> Vec<(NodeId, usize, &'static str)> {
        const NAMES: [&str; 4] = [
            "the solution",
            "its slope",
            "its second derivative",
            "its third derivative",
        ];
        let Density::Residual { parts, .. } = &interior.density else {
            return Vec::new();
        };
        let derivatives = parts.iter().flat_map(|(symbol, _)| symbol.terms());
        let indices: Vec<MultiIndex> = derivatives.map(|(_, alpha)| alpha.clone()).collect();
        let mut functions = Vec::new();
        for axis in 0..self.dimension {
            let by_axis = |alpha: &MultiIndex| alpha.coordinates().filter(|&i| i == axis).count();
            let order = indices.iter().map(by_axis).max().unwrap_or(0);
            let mut node = exact;
            for what in NAMES.into_iter().take(order) {
                functions.push((node, axis, what));
                node = self.graph.differentiate(node, axis);
            }
        }
        functions
    }

    /// A function that jumps, and where.
    fn jump(
        &self,
        functions: &[Continuous],
        counts: &dyn Fn(usize, &[f64]) -> bool,
    ) -> Option<(&'static str, Vec<f64>)> {
        let roots: Vec<NodeId> = functions.iter().map(|function| function.node).collect();
        let kinks = self.kinks(&roots);
        if kinks.is_empty() {
            return None;
        }
        let kinks = Program::new(&kinks.graph, &kinks.nodes, self.dimension, &[]);
        let rule = Rule::MonteCarlo {
            points: LINES,
            seed: 5,
        };
        let points = PointSet::new(&self.domain, Region::Interior, rule, 0).ok()?;
        let mut tile = Tile::default();
        points.fill(0..points.len(), &mut tile);
        for axis in 0..self.dimension {
            let along: Vec<&Continuous> = functions
                .iter()
                .filter(|function| function.axis == axis)
                .collect();
            let nodes: Vec<NodeId> = along.iter().map(|function| function.node).collect();
            let program = Program::new(&self.graph, &nodes, self.dimension, &[]);
            for through in 0..tile.len() {
                let line = Line {
                    through: tile.point(through),
                    axis,
                    ends: self.domain.side(axis),
                };
                for place in line.places(&kinks) {
                    let point = line.at(place);
                    if !counts(axis, &point) || !self.domain.contains(point.iter().copied()) {
                        continue;
                    }
                    if let Some(k) = line.jumping(&program, place) {
                        return Some((along[k].what, point));
                    }
                }
            }
        }
        None
    }

    /// Functions whose zeros are where formulas may have kinks.
    fn kinks(&self, roots: &[NodeId]) -> Kinks {
        let mut graph = self.graph.clone();
        let mut nodes = Vec::new();
        for id in self.graph.order(roots) {
            match *self.graph.node(id) {
                Node::Apply(Function::Abs | Function::Sign | Function::Step | Function::Sqrt, a) => {
                    nodes.push(a)
                }
                Node::Minimum(a, b) | Node::Maximum(a, b) => nodes.push(graph.subtract(a, b)),
                Node::Power(a, b)
                    if self
                        .graph
                        .as_number(b)
                        .is_none_or(|b| b.fract() != 0.0 || b < 0.0) =>
                {
                    nodes.push(a);
                }
                // The angle turns over where y changes its sign.
                Node::Angle(y, _) => nodes.push(y),
                _ => {}
            }
        }
        Kinks { graph, nodes }
    }
}

/// Whether a point lies on an edge of a cell of the quadrature, where an axis crosses it.
fn is_on_cell_edge(domain: &Domain, cells: usize, axis: usize, point: &[f64]) -> bool {
    const NEAR: f64 = 1e-6;
    let is_whole = |part: f64| (part - part.round()).abs() <= NEAR;
    match domain {
        Domain::Box { lower, .. } => is_whole((point[axis] - lower[axis]) / domain.cell_width(axis, cells)),
        Domain::Union(union) => union.parts().iter().any(|part| {
            let (low, high) = (part.lower[axis], part.upper[axis]);
            let cells = cells_of(domain, part, cells)[axis];
            part.contains(point) && is_whole((point[axis] - low) / (high - low) * cells as f64)
        }),
        Domain::Ball { center, radius } => {
            let r: Vec<f64> = point.iter().zip(center).map(|(x, c)| x - c).collect();
            let distance = r.iter().map(|x| x * x).sum::<f64>().sqrt();
            let angle = r[1].atan2(r[0]).rem_euclid(2.0 * PI) / (2.0 * PI);
            let height = r.get(2).map_or(0.0, |z| 0.5 * (1.0 + z / distance));
            let parts = [distance / radius, angle, height];
            let edges = parts.iter().take(point.len());
            edges.into_iter().any(|part| is_whole(part * cells as f64))
        }
        Domain::Mesh(mesh) => !mesh.is_within_a_cell(point, NEAR),
        Domain::Inside(_) => true,
    }
}

struct Kinks {
    graph: crate::expression::Graph,
    nodes: Vec<NodeId>,
}

impl Kinks {
    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// A line through the domain along an axis.
struct Line {
    through: Vec<f64>,
    axis: usize,
    ends: (f64, f64),
}

impl Line {
    fn at(&self, place: f64) -> Vec<f64> {
        let mut point = self.through.clone();
        point[self.axis] = place;
        point
    }

    fn length(&self) -> f64 {
        self.ends.1 - self.ends.0
    }

    /// Where one of some functions has a zero: a change of sign, or a minimum of its size that touches zero.
    fn places(&self, kinks: &Program) -> Vec<f64> {
        // Not at round numbers, where zeros like to be.
        let sample = |k: usize| self.ends.0 + self.length() * (k as f64 + 0.372_9) / SAMPLES as f64;
        let values: Vec<Vec<f64>> = (0..SAMPLES)
            .map(|k| kinks.evaluate_at(&self.at(sample(k))))
            .collect();
        let mut places = Vec::new();
        for f in 0..kinks.outputs() {
            let value = |place: f64| kinks.evaluate_at(&self.at(place))[f];
            let largest = values.iter().map(|values| values[f].abs()).fold(0.0, f64::max);
            for k in 1..SAMPLES {
                let (before, after) = (values[k - 1][f], values[k][f]);
                if before * after < 0.0 {
                    places.push(bisect(&value, sample(k - 1), sample(k)));
                } else if k + 1 < SAMPLES
                    // A function that is the same all along has no minimum, and one far from zero does not touch it.
                    && after.abs() < before.abs()
                    && after.abs() <= values[k + 1][f].abs()
                    && after.abs() <= TOUCHING * largest
                {
                    let lowest = lowest(&|place| value(place).abs(), sample(k - 1), sample(k + 1));
                    if value(lowest).abs() <= 1e-9 * largest {
                        places.push(lowest);
                    }
                }
            }
        }
        places
    }

    /// The first of some functions that jumps at a place.
    fn jumping(&self, program: &Program, place: f64) -> Option<usize> {
        let length = self.length();
        let inside = |t: f64| t > self.ends.0 && t < self.ends.1;
        if !inside(place - 2.0 * NEAR[0] * length) || !inside(place + 2.0 * NEAR[0] * length) {
            return None;
        }
        let [far, near] = NEAR.map(|part| {
            let step = part * length;
            let (left, right) = (self.at(place - step), self.at(place + step));
            (program.evaluate_at(&left), program.evaluate_at(&right))
        });
        let around = program.evaluate_at(&self.at(place + 0.05 * length));
        (0..program.outputs()).find(|&f| {
            let jump = |(left, right): &(Vec<f64>, Vec<f64>)| (right[f] - left[f]).abs();
            let size = near.0[f].abs().max(near.1[f].abs()).max(around[f].abs());
            !jump(&near).is_finite() || (jump(&near) > JUMP * size && jump(&near) > 0.3 * jump(&far))
        })
    }
}

/// A zero between two places where a function has different signs.
fn bisect(value: &dyn Fn(f64) -> f64, mut left: f64, mut right: f64) -> f64 {
    let sign = value(left).signum();
    for _ in 0..60 {
        let middle = 0.5 * (left + right);
        match value(middle).signum() == sign {
            true => left = middle,
            false => right = middle,
        }
    }
    0.5 * (left + right)
}

/// The minimum of a function that falls and rises between two places, by thirds.
fn lowest(value: &dyn Fn(f64) -> f64, mut left: f64, mut right: f64) -> f64 {
    for _ in 0..100 {
        let third = (right - left) / 3.0;
        match value(left + third) <= value(right - third) {
            true => right -= third,
            false => left += third,
        }
    }
    0.5 * (left + right)
}
