//! Symbolic derivatives.

use super::graph::{Function, Graph, MultiIndex, Node, NodeId};

impl Graph {
    /// ∂/∂xᵢ; the unknown is a function of x.
    pub fn differentiate(&mut self, id: NodeId, coordinate: usize) -> NodeId {
        if let Some(&known) = self.derivatives.get(&(id, coordinate)) {
            return known;
        }
        let derivative = match self.node(id).clone() {
            Node::Coordinate(i) => self.number(if i == coordinate { 1.0 } else { 0.0 }),
            Node::Unknown(alpha) => self.unknown(alpha.and(coordinate)),
            node => self.chain_rule(id, &node, |graph, inner| graph.differentiate(inner, coordinate)),
        };
        self.derivatives.insert((id, coordinate), derivative);
        derivative
    }

    /// ∂^α.
    pub fn differentiate_by(&mut self, id: NodeId, alpha: &MultiIndex) -> NodeId {
        let coordinates: Vec<usize> = alpha.coordinates().collect();
        coordinates
            .into_iter()
            .fold(id, |node, i| self.differentiate(node, i))
    }

    /// ∂/∂(∂^α u), the unknown's derivatives taken as independent variables.
    pub fn differentiate_by_unknown(&mut self, id: NodeId, alpha: &MultiIndex) -> NodeId {
        match self.node(id).clone() {
            Node::Unknown(beta) => self.number(if beta == *alpha { 1.0 } else { 0.0 }),
            Node::Coordinate(_) => self.number(0.0),
            node => self.chain_rule(id, &node, |graph, inner| {
                graph.differentiate_by_unknown(inner, alpha)
            }),
        }
    }

    /// The derivative of an operation, given how to differentiate its operands.
    pub(super) fn chain_rule(
        &mut self,
        id: NodeId,
        node: &Node,
        mut d: impl FnMut(&mut Self, NodeId) -> NodeId,
    ) -> NodeId {
        match *node {
            Node::Number(_) | Node::Coordinate(_) | Node::Unknown(_) | Node::Time => self.number(0.0),
            Node::Add(a, b) => {
                let (da, db) = (d(self, a), d(self, b));
                self.add(da, db)
            }
            Node::Multiply(a, b) => {
                let (da, db) = (d(self, a), d(self, b));
                let (left, right) = (self.multiply(da, b), self.multiply(a, db));
                self.add(left, right)
            }
            Node::Divide(a, b) => {
                // a'/b − (a/b) b'/b
                let (da, db) = (d(self, a), d(self, b));
                let first = self.divide(da, b);
                let ratio = self.divide(db, b);
                let second = self.multiply(id, ratio);
                self.subtract(first, second)
            }
            Node::Power(a, b) => {
                let (da, db) = (d(self, a), d(self, b));
                self.power_rule(id, (a, da), (b, db))
            }
            Node::Minimum(a, b) | Node::Maximum(a, b) => {
                // ½(a' + b') ∓ ½ sign(a − b)(a' − b')
                let (da, db) = (d(self, a), d(self, b));
                let half = self.number(if matches!(node, Node::Maximum(..)) {
                    0.5
                } else {
                    -0.5
                });
                let difference = self.subtract(a, b);
                let sign = self.apply(Function::Sign, difference);
                let slope = self.subtract(da, db);
                let jump = self.multiply(sign, slope);
                let jump = self.multiply(half, jump);
                let mean = self.add(da, db);
                let half = self.number(0.5);
                let mean = self.multiply(half, mean);
                self.add(mean, jump)
            }
            Node::Angle(y, x) => {
                // (x y' − y x')/(x² + y²)
                let (dy, dx) = (d(self, y), d(self, x));
                let (left, right) = (self.multiply(x, dy), self.multiply(y, dx));
                let turn = self.subtract(left, right);
                let (xx, yy) = (self.multiply(x, x), self.multiply(y, y));
                let square = self.add(xx, yy);
                self.divide(turn, square)
            }
            Node::Select(condition, a, b) => {
                let (da, db) = (d(self, a), d(self, b));
                self.select(condition, da, db)
            }
            Node::Apply(function, a) => {
                let da = d(self, a);
                if self.as_number(da) == Some(0.0) {
                    return da;
                }
                let outer = self.function_derivative(function, a, id);
                self.multiply(outer, da)
            }
        }
    }

    /// (a^b)' = b a^(b−1) a' + a^b log(a) b'
    fn power_rule(&mut self, id: NodeId, (a, da): (NodeId, NodeId), (b, db): (NodeId, NodeId)) -> NodeId {
        let minus_one = self.number(-1.0);
        let exponent = self.add(b, minus_one);
        let lowered = self.power(a, exponent);
        let first = self.multiply(b, lowered);
        let first = self.multiply(first, da);
        if self.as_number(db) == Some(0.0) {
            return first;
        }
        let log = self.apply(Function::Log, a);
        let second = self.multiply(id, log);
        let second = self.multiply(second, db);
        self.add(first, second)
    }

    /// f'(a), where `value` is f(a).
    fn function_derivative(&mut self, function: Function, a: NodeId, value: NodeId) -> NodeId {
        let two = self.number(2.0);
        match function {
            Function::Sin => self.apply(Function::Cos, a),
            Function::Cos => {
                let sine = self.apply(Function::Sin, a);
                self.negate(sine)
            }
            Function::Tan => {
                let square = self.power(value, two);
                let one = self.number(1.0);
                self.add(one, square)
            }
            Function::Exp => value,
            Function::Log => {
                let one = self.number(1.0);
                self.divide(one, a)
            }
            Function::Sqrt => {
                let half = self.number(0.5);
                self.divide(half, value)
            }
            Function::Abs => self.apply(Function::Sign, a),
            Function::Sign => self.number(0.0),
            Function::Sinh => self.apply(Function::Cosh, a),
            Function::Cosh => self.apply(Function::Sinh, a),
            Function::Tanh => {
                let square = self.power(value, two);
                let one = self.number(1.0);
                self.subtract(one, square)
            }
            Function::Atan => {
                let one = self.number(1.0);
                let square = self.power(a, two);
                let square = self.add(one, square);
                self.divide(one, square)
            }
            Function::Erf => {
                let square = self.power(a, two);
                let minus = self.negate(square);
                let bell = self.apply(Function::Exp, minus);
                let factor = self.number(std::f64::consts::FRAC_2_SQRT_PI);
                self.multiply(factor, bell)
            }
            Function::Step => self.number(0.0),
        }
    }
}
