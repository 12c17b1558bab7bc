//! Formulas in t: their derivative, what depends on t, and f(x, t) as a sum of products φ(t) ψ(x).

use super::graph::{Graph, Node, NodeId};
use std::collections::HashMap;

/// More products than this are not written out.
const MAX_PRODUCTS: usize = 64;

/// φ(t) ψ(x).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separated {
    /// φ.
    pub in_time: NodeId,
    /// ψ.
    pub in_space: NodeId,
}

impl Graph {
    /// t. Programs made from the graph have the value that [`set_time`](Self::set_time) gave it.
    pub fn time_node(&mut self) -> NodeId {
        self.intern(Node::Time)
    }

    /// The value of t in programs made from now on.
    pub fn set_time(&mut self, time: f64) {
        self.time = time;
    }

    /// ∂/∂t.
    pub fn differentiate_by_time(&mut self, id: NodeId) -> NodeId {
        let mut done = HashMap::new();
        self.time_derivative(id, &mut done)
    }

    fn time_derivative(&mut self, id: NodeId, done: &mut HashMap<NodeId, NodeId>) -> NodeId {
        if let Some(&known) = done.get(&id) {
            return known;
        }
        let derivative = match self.node(id).clone() {
            Node::Time => self.number(1.0),
            node => self.chain_rule(id, &node, |graph, inner| graph.time_derivative(inner, done)),
        };
        done.insert(id, derivative);
        derivative
    }

    /// Whether any of these formulas has t in it.
    pub fn depends_on_time(&self, roots: &[NodeId]) -> bool {
        let order = self.order(roots);
        order.into_iter().any(|id| matches!(self.node(id), Node::Time))
    }

    fn depends_on_space(&self, root: NodeId) -> bool {
        let order = self.order(&[root]);
        order
            .into_iter()
            .any(|id| matches!(self.node(id), Node::Coordinate(_) | Node::Unknown(_)))
    }

    /// A formula as Σ φ(t) ψ(x), each φ once; nothing where it has no such form that is easy to see.
    pub fn separate_time(&mut self, id: NodeId) -> Option<Vec<Separated>> {
        let mut sum: Vec<Separated> = Vec::new();
        for product in self.products(id)? {
            // Numbers belong to ψ, so that equal φ are found.
            let (factor, in_time) = self.split_factor(product.in_time);
            let factor = self.number(factor);
            let in_space = self.multiply(factor, product.in_space);
            match sum.iter_mut().find(|known| known.in_time == in_time) {
                Some(known) => known.in_space = self.add(known.in_space, in_space),
                None => sum.push(Separated { in_time, in_space }),
            }
        }
        sum.retain(|product| self.as_number(product.in_space) != Some(0.0));
        Some(sum)
    }

    fn products(&mut self, id: NodeId) -> Option<Vec<Separated>> {
        let one = self.number(1.0);
        if !self.depends_on_time(&[id]) {
            let (in_time, in_space) = (one, id);
            return Some(vec![Separated { in_time, in_space }]);
        }
        if !self.depends_on_space(id) {
            let (in_time, in_space) = (id, one);
            return Some(vec![Separated { in_time, in_space }]);
        }
        match *self.node(id) {
            Node::Add(a, b) => {
                let mut sum = self.products(a)?;
                sum.extend(self.products(b)?);
                (sum.len() <= MAX_PRODUCTS).then_some(sum)
            }
            Node::Multiply(a, b) => {
                let (left, right) = (self.products(a)?, self.products(b)?);
                if left.len() * right.len() > MAX_PRODUCTS {
                    return None;
                }
                let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
                let product = |(a, b): (Separated, Separated)| Separated {
                    in_time: self.multiply(a.in_time, b.in_time),
                    in_space: self.multiply(a.in_space, b.in_space),
                };
                Some(pairs.map(product).collect())
            }
            Node::Divide(a, b) => {
                let divisor = match self.products(b)?[..] {
                    [single] => single,
                    _ => return None,
                };
                let sum = self.products(a)?;
                let quotient = |a: Separated| Separated {
                    in_time: self.divide(a.in_time, divisor.in_time),
                    in_space: self.divide(a.in_space, divisor.in_space),
                };
                Some(sum.into_iter().map(quotient).collect())
            }
            _ => None,
        }
    }
}
