//! Functions that no neuron makes, to see what a network has missed.
//!
//! |⟨∇L(u_n), v⟩| / ‖v‖ is a lower bound of the energy norm of the error for every v. Neurons have been
//! looked at by the algorithm; where they are poor at the shape of the solution (a bubble that is zero all around a cube in six
//! dimensions is no sum of a few ridges) other functions tell.

use crate::domain::{Domain, Face, Region};
use crate::expression::{Function, Graph, NodeId};
use crate::loss::{Density, TermSpec};
use crate::problem::Problem;

/// How many coordinates a bubble is multiplied by …
const COORDINATES: usize = 2;
/// … and from how many waves are made.
const WAVES: usize = 3;

/// b, and b times each of the first coordinates about the centre and times waves along one and two of them,
/// where the bubble b is zero wherever the boundary is held.
pub(super) fn functions(problem: &Problem, graph: &mut Graph, specs: &[TermSpec]) -> Vec<NodeId> {
    let mut bubble = graph.number(1.0);
    for face in held_faces(graph, specs) {
        // Without a formula for the distance nothing is known that is zero there.
        let Some(distance) = distance(&problem.domain, face, graph) else {
            return Vec::new();
        };
        // Where a slope is held as well, the bubble has none.
        for _ in 0..problem.order.div_ceil(2).max(1) {
            bubble = graph.multiply(bubble, distance);
        }
    }
    let mut functions = vec![bubble];
    for (axis, center) in problem.domain.center().into_iter().enumerate().take(COORDINATES) {
        let (x, center) = (graph.coordinate(axis), graph.number(center));
        let x = graph.subtract(x, center);
        functions.push(graph.multiply(bubble, x));
    }
    let waves = waves(problem, graph);
    functions.extend(waves.into_iter().map(|wave| graph.multiply(bubble, wave)));
    functions
}

/// cos πs and cos 2πs of the first coordinates, s from 0 to 1 across the domain, and products of two cos πs.
fn waves(problem: &Problem, graph: &mut Graph) -> Vec<NodeId> {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for axis in 0..problem.dimension().min(WAVES) {
        let (low, high) = problem.domain.side(axis);
        let (x, low) = (graph.coordinate(axis), graph.number(low));
        let from_low = graph.subtract(x, low);
        for (waves, turns) in [(&mut long, 1.0), (&mut short, 2.0)] {
            let factor =
                graph.number(turns * std::f64::consts::PI / (high - graph.as_number(low).unwrap_or(0.0)));
            let angle = graph.multiply(factor, from_low);
            waves.push(graph.apply(Function::Cos, angle));
        }
    }
    let pairs: Vec<(NodeId, NodeId)> = (0..long.len())
        .flat_map(|i| (i + 1..long.len()).map(move |j| (i, j)))
        .map(|(i, j)| (long[i], long[j]))
        .collect();
    long.append(&mut short);
    long.extend(pairs.into_iter().map(|(a, b)| graph.multiply(a, b)));
    long
}

/// What is zero on a face and positive inside, of the size 1; of a box or a ball.
fn distance(domain: &Domain, face: Face, graph: &mut Graph) -> Option<NodeId> {
    Some(match (face, domain) {
        (Face::Side { coordinate, upper }, Domain::Box { .. }) => {
            let (low, high) = domain.side(coordinate);
            let x = graph.coordinate(coordinate);
            let (end, width) = match upper {
                true => (graph.number(high), low - high),
                false => (graph.number(low), high - low),
            };
            let (along, width) = (graph.subtract(x, end), graph.number(2.0 / width));
            graph.multiply(along, width)
        }
        (Face::Sphere, Domain::Ball { .. }) => {
            let (low, high) = domain.side(0);
            let radius = 0.5 * (high - low);
            let mut inside = graph.number(1.0);
            for (axis, center) in domain.center().into_iter().enumerate() {
                let (x, center) = (graph.coordinate(axis), graph.number(center / radius));
                let scale = graph.number(1.0 / radius);
                let x = graph.multiply(x, scale);
                let x = graph.subtract(x, center);
                let square = graph.multiply(x, x);
                inside = graph.subtract(inside, square);
            }
            inside
        }
        _ => return None,
    })
}

/// The faces with a penalty.
fn held_faces(graph: &Graph, specs: &[TermSpec]) -> Vec<Face> {
    let held = |spec: &&TermSpec| match &spec.density {
        Density::Energy { parts, .. } => parts.iter().any(|(_, a, _)| graph.as_number(a.node) != Some(0.0)),
        Density::Residual { .. } => true,
    };
    let mut faces = Vec::new();
    for spec in specs.iter().filter(held) {
        let held = match spec.region {
            Region::Interior => Vec::new(),
            Region::Boundary(face) => vec![face],
            Region::Pairs(coordinate) => [false, true]
                .map(|upper| Face::Side { coordinate, upper })
                .to_vec(),
        };
        let fresh: Vec<Face> = held.into_iter().filter(|face| !faces.contains(face)).collect();
        faces.extend(fresh);
    }
    faces
}
