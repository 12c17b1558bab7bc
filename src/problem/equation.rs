//! From formulas to the terms of the loss.

use crate::domain::{Domain, Face, Normal, Region};
use crate::expression::{Graph, MultiIndex, NodeId, Program};
use crate::loss::{Density, Formula, TermSpec};
use crate::points::{PointSet, Rule, Tile};
use crate::symbol::Symbol;

/// −∇·(a∇u) + …: the data of an energy ½ Σ_(|α|=m) a (∂^α u)² + ½ a₀ u² (or F(x, u)) − f u.
#[derive(Debug, Clone)]
pub(super) struct Energy {
    /// m.
    pub half_order: usize,
    pub diffusion: NodeId,
    pub reaction: NodeId,
    pub potential: Option<NodeId>,
}

/// The multi-indices of order m with how often each occurs in the m-th derivative tensor.
fn derivatives(half_order: usize, dimension: usize) -> Vec<(f64, MultiIndex)> {
    match half_order {
        1 => (0..dimension).map(|i| (1.0, MultiIndex::new([i]))).collect(),
        _ => (0..dimension)
            .flat_map(|i| {
                (i..dimension).map(move |j| (if i == j { 1.0 } else { 2.0 }, MultiIndex::new([i, j])))
            })
            .collect(),
    }
}

impl Energy {
    /// L u in strong form, as an expression in the unknown:
    /// Σ (−1)^m ∂^α(a ∂^α u) + a₀ u, or + ∂F/∂u.
    pub fn strong_form(&self, graph: &mut Graph, dimension: usize) -> NodeId {
        let u = graph.unknown(MultiIndex::default());
        let mut sum = match self.potential {
            Some(potential) => graph.differentiate_by_unknown(potential, &MultiIndex::default()),
            None => graph.multiply(self.reaction, u),
        };
        let sign = if self.half_order.is_multiple_of(2) {
            1.0
        } else {
            -1.0
        };
        for (times, alpha) in derivatives(self.half_order, dimension) {
            let flux = self.flux(graph, &alpha);
            let divergence = graph.differentiate_by(flux, &alpha);
            let factor = graph.number(sign * times);
            let term = graph.multiply(factor, divergence);
            sum = graph.add(sum, term);
        }
        sum
    }

    /// a ∂^α u.
    fn flux(&self, graph: &mut Graph, alpha: &MultiIndex) -> NodeId {
        let derivative = graph.unknown(alpha.clone());
        graph.multiply(self.diffusion, derivative)
    }

    /// The term inside Ω, with the source f.
    pub fn interior(&self, graph: &mut Graph, dimension: usize, source: NodeId) -> TermSpec {
        let zero = Formula::new("0", graph.number(0.0));
        let mut parts = vec![(
            Symbol::value(),
            Formula::new("reaction", self.reaction),
            Formula::new("source", source),
        )];
        for (times, alpha) in derivatives(self.half_order, dimension) {
            let factor = graph.number(times);
            let a = graph.multiply(factor, self.diffusion);
            parts.push((
                Symbol::new(vec![(1.0, alpha)]),
                Formula::new("diffusion", a),
                zero.clone(),
            ));
        }
        TermSpec {
            region: Region::Interior,
            scale: 1.0,
            listed: None,
            density: Density::Energy {
                parts,
                potential: self.potential.map(|node| Formula::new("potential", node)),
            },
        }
    }

    /// What the exact solution puts on a natural boundary: for m = 1 the flux a ∂u/∂n against v; for
    /// m = 2, with M = a D²u, M n against ∇v and −div M · n against v.
    pub fn natural_load(&self, graph: &mut Graph, normal: &[NodeId], exact: NodeId) -> Vec<(Symbol, NodeId)> {
        let dimension = normal.len();
        if self.half_order == 1 {
            let flux = normal_derivative(graph, normal, exact);
            return vec![(Symbol::value(), graph.multiply(self.diffusion, flux))];
        }
        let mut against_value = graph.number(0.0);
        let mut loads = Vec::new();
        for j in 0..dimension {
            let mut against_slope = graph.number(0.0);
            for (i, &n_i) in normal.iter().enumerate() {
                let bend = graph.differentiate_by(exact, &MultiIndex::new([i, j]));
                let moment = graph.multiply(self.diffusion, bend);
                let term = graph.multiply(n_i, moment);
                against_slope = graph.add(against_slope, term);
                let shear = graph.differentiate(moment, j);
                let term = graph.multiply(n_i, shear);
                against_value = graph.subtract(against_value, term);
            }
            loads.push((Symbol::derivative([j]), against_slope));
        }
        loads.insert(0, (Symbol::value(), against_value));
        loads
    }

    /// nᵀ a D²u n of the exact solution, the bending moment for m = 2.
    pub fn moment(&self, graph: &mut Graph, normal: &[NodeId], exact: NodeId) -> NodeId {
        let mut sum = graph.number(0.0);
        for (i, &n_i) in normal.iter().enumerate() {
            for (j, &n_j) in normal.iter().enumerate() {
                let bend = graph.differentiate_by(exact, &MultiIndex::new([i, j]));
                let term = graph.multiply(n_i, bend);
                let term = graph.multiply(n_j, term);
                sum = graph.add(sum, term);
            }
        }
        graph.multiply(self.diffusion, sum)
    }
}

/// n·∇f.
pub(super) fn normal_derivative(graph: &mut Graph, normal: &[NodeId], f: NodeId) -> NodeId {
    let mut sum = graph.number(0.0);
    for (i, &n_i) in normal.iter().enumerate() {
        let slope = graph.differentiate(f, i);
        let term = graph.multiply(n_i, slope);
        sum = graph.add(sum, term);
    }
    sum
}

/// The outward unit normal on a face. Where it comes with the points, formulas have it after the coordinates.
pub(super) fn normal(graph: &mut Graph, domain: &Domain, face: Face) -> Vec<NodeId> {
    let dimension = domain.dimension();
    let component = |i: usize| match domain.normal(face) {
        Normal::Axis { coordinate, sign } => graph.number(if coordinate == i { sign } else { 0.0 }),
        Normal::Radial { radius } => {
            let x = graph.coordinate(i);
            let c = graph.number(domain.center()[i]);
            let offset = graph.subtract(x, c);
            let inverse = graph.number(1.0 / radius);
            graph.multiply(inverse, offset)
        }
        Normal::AtPoints => graph.coordinate(dimension + i),
    };
    (0..dimension).map(component).collect()
}

/// Derivatives of one order that share their coefficient: order, coefficient, terms.
type Group = (usize, NodeId, Vec<(f64, MultiIndex)>);

/// A linear expression in the unknown as Σ c(x) p(∂) u. Derivatives of one order that share their
/// coefficient make one symbol: the Laplacian is a single part in any dimension.
pub(super) fn linear_operator(graph: &mut Graph, node: NodeId) -> Result<Vec<(Symbol, NodeId)>, String> {
    let unknowns = graph.unknowns(node);
    if unknowns.is_empty() {
        return Err("the operator does not contain u".to_string());
    }
    let zero = graph.number(0.0);
    let rest = graph.substitute_unknown(node, zero);
    if graph.as_number(rest) != Some(0.0) {
        return Err("every term of the operator must contain u; put the others into `source`".to_string());
    }
    let mut groups: Vec<Group> = Vec::new();
    for alpha in unknowns {
        let coefficient = graph.differentiate_by_unknown(node, &alpha);
        if !graph.unknowns(coefficient).is_empty() {
            return Err("the operator must be linear in u".to_string());
        }
        let (factor, base) = graph.split_factor(coefficient);
        let order = alpha.order();
        match groups.iter_mut().find(|(o, b, _)| (*o, *b) == (order, base)) {
            Some((_, _, terms)) => terms.push((factor, alpha)),
            None => groups.push((order, base, vec![(factor, alpha)])),
        }
    }
    Ok(groups
        .into_iter()
        .map(|(_, base, terms)| (Symbol::new(terms), base))
        .collect())
}

/// Times at which formulas are looked at, to see whether they vanish.
const LOOKED_AT: [f64; 4] = [0.0, 0.0137, 0.311, 1.73];

/// Whether formulas are zero (to rounding) all over a face: then the condition is homogeneous.
pub(super) fn vanish_on(graph: &Graph, domain: &Domain, face: Face, formulas: &[NodeId], scale: f64) -> bool {
    if formulas.iter().all(|&node| graph.as_number(node) == Some(0.0)) {
        return true;
    }
    let rule = Rule::MonteCarlo { points: 256, seed: 1 };
    let Ok(points) = PointSet::new(domain, Region::Boundary(face), rule, 0) else {
        return false;
    };
    let mut tile = Tile::default();
    points.fill(0..points.len(), &mut tile);
    let vanish_at = |time: f64| {
        let mut graph = graph.clone();
        graph.set_time(time);
        let program = Program::new(&graph, formulas, points.inputs(), &[]);
        (0..tile.len()).all(|index| {
            program
                .evaluate_at(&tile.inputs(index))
                .iter()
                .all(|value| value.abs() <= 1e-13 * scale)
        })
    };
    // What vanishes at first need not vanish later.
    match graph.depends_on_time(formulas) {
        true => LOOKED_AT.into_iter().all(vanish_at),
        false => vanish_at(0.0),
    }
}

/// Why a potential F(x, u) is not convex in u, if somewhere it is not.
pub(super) fn not_convex(graph: &mut Graph, domain: &Domain, potential: NodeId) -> Option<String> {
    /// Below this part of the largest curvature it is rounding.
    const ROUNDING: f64 = 1e-12;
    let u = MultiIndex::default();
    let slope = graph.differentiate_by_unknown(potential, &u);
    let bend = graph.differentiate_by_unknown(slope, &u);
    let rule = Rule::MonteCarlo { points: 64, seed: 3 };
    let points = PointSet::new(domain, Region::Interior, rule, 0).ok()?;
    let mut tile = Tile::default();
    points.fill(0..points.len(), &mut tile);
    let program = Program::new(graph, &[bend], domain.dimension(), &[u]);
    let mut largest = 0.0_f64;
    for index in 0..tile.len() {
        for value in [0.0, 0.1, -0.1, 0.3, -0.3, 1.0, -1.0, 2.0, -2.0, 5.0, -5.0] {
            let mut inputs = tile.point(index);
            inputs.push(value);
            let bend = program.evaluate_at(&inputs)[0];
            largest = largest.max(bend.abs());
            if bend < -ROUNDING * largest {
                return Some(format!(
                    "must be convex in u, but its second derivative is {bend:.3e} at u = {value}, x = {:?}",
                    tile.point(index)
                ));
            }
        }
    }
    None
}
