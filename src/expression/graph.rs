//! Expressions as a graph in which equal sub-expressions are one node.

use std::collections::HashMap;

/// A node's place in its [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

/// Which derivative: the coordinates (from 0) differentiated by, in ascending order; `[0, 0, 1]` is ∂³/∂x₁²∂x₂.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MultiIndex(Vec<u8>);

impl MultiIndex {
    /// The multi-index with these coordinates, in any order.
    pub fn new(coordinates: impl IntoIterator<Item = usize>) -> Self {
        let mut list: Vec<u8> = coordinates.into_iter().map(|c| c as u8).collect();
        list.sort_unstable();
        Self(list)
    }

    /// |α|, the number of derivatives.
    pub fn order(&self) -> usize {
        self.0.len()
    }

    /// The coordinates, ascending, each as often as it is differentiated by.
    pub fn coordinates(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|&c| usize::from(c))
    }

    /// One more derivative by `coordinate`.
    pub fn and(&self, coordinate: usize) -> Self {
        Self::new(self.coordinates().chain([coordinate]))
    }
}

/// The functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Function {
    Sin,
    Cos,
    Tan,
    Exp,
    Log,
    Sqrt,
    Abs,
    Sign,
    Sinh,
    Cosh,
    Tanh,
    Atan,
    Erf,
    /// 1 above 0, else 0: what conditions are made of.
    Step,
}

impl Function {
    /// Names as typed in a formula.
    pub const NAMES: [(&'static str, Function); 13] = [
        ("sin", Function::Sin),
        ("cos", Function::Cos),
        ("tan", Function::Tan),
        ("exp", Function::Exp),
        ("log", Function::Log),
        ("sqrt", Function::Sqrt),
        ("abs", Function::Abs),
        ("sign", Function::Sign),
        ("sinh", Function::Sinh),
        ("cosh", Function::Cosh),
        ("tanh", Function::Tanh),
        ("atan", Function::Atan),
        ("erf", Function::Erf),
    ];

    /// The function's value.
    pub fn value(self, x: f64) -> f64 {
        match self {
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tan => x.tan(),
            Function::Exp => x.exp(),
            Function::Log => x.ln(),
            Function::Sqrt => x.sqrt(),
            Function::Abs => x.abs(),
            // f64::signum(0.0) is 1; the derivative of |x| at 0 is taken as 0.
            Function::Sign if x == 0.0 => 0.0,
            Function::Sign => x.signum(),
            Function::Sinh => x.sinh(),
            Function::Cosh => x.cosh(),
            Function::Tanh => x.tanh(),
            Function::Atan => x.atan(),
            Function::Erf => libm::erf(x),
            Function::Step if x.is_nan() => x,
            Function::Step => f64::from(u8::from(x > 0.0)),
        }
    }
}

/// One operation on earlier nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Node {
    /// A number, by its bits so that nodes can be compared and hashed.
    Number(u64),
    /// xᵢ, counted from 0.
    Coordinate(usize),
    /// ∂^α u of the unknown.
    Unknown(MultiIndex),
    /// t.
    Time,
    Add(NodeId, NodeId),
    Multiply(NodeId, NodeId),
    Divide(NodeId, NodeId),
    Power(NodeId, NodeId),
    Minimum(NodeId, NodeId),
    Maximum(NodeId, NodeId),
    /// The angle of the point (second, first).
    Angle(NodeId, NodeId),
    /// The second where the first is above ½, else the third.
    Select(NodeId, NodeId, NodeId),
    Apply(Function, NodeId),
}

/// A set of expressions that share their common parts.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, NodeId>,
    pub(super) derivatives: HashMap<(NodeId, usize), NodeId>,
    /// The t of programs that are made now.
    pub(super) time: f64,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The operation at a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(super) fn intern(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// The value of a node that is a plain number.
    pub fn as_number(&self, id: NodeId) -> Option<f64> {
        match self.node(id) {
            Node::Number(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// A number.
    pub fn number(&mut self, value: f64) -> NodeId {
        // -0.0 and 0.0 are one node.
        self.intern(Node::Number((value + 0.0).to_bits()))
    }

    /// The coordinate xᵢ, counted from 0.
    pub fn coordinate(&mut self, index: usize) -> NodeId {
        self.intern(Node::Coordinate(index))
    }

    /// ∂^α of the unknown.
    pub fn unknown(&mut self, alpha: MultiIndex) -> NodeId {
        self.intern(Node::Unknown(alpha))
    }

    /// a + b.
    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) => self.number(x + y),
            (Some(0.0), _) => b,
            (_, Some(0.0)) => a,
            _ => self.intern(Node::Add(a.min(b), a.max(b))),
        }
    }

    /// The sum of a list.
    pub fn sum(&mut self, terms: &[NodeId]) -> NodeId {
        let zero = self.number(0.0);
        terms.iter().fold(zero, |sum, &term| self.add(sum, term))
    }

    /// a − b.
    pub fn subtract(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if a == b {
            return self.number(0.0);
        }
        let minus = self.negate(b);
        self.add(a, minus)
    }

    /// −a.
    pub fn negate(&mut self, a: NodeId) -> NodeId {
        let minus_one = self.number(-1.0);
        self.multiply(minus_one, a)
    }

    /// a · b; numbers are gathered in front.
    pub fn multiply(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) => return self.number(x * y),
            (Some(0.0), _) | (_, Some(0.0)) => return self.number(0.0),
            (Some(1.0), _) => return b,
            (_, Some(1.0)) => return a,
            (None, Some(_)) => return self.multiply(b, a),
            (Some(x), None) => {
                if let Node::Multiply(c, rest) = *self.node(b)
                    && let Some(y) = self.as_number(c)
                {
                    let factor = self.number(x * y);
                    return self.multiply(factor, rest);
                }
                return self.intern(Node::Multiply(a, b));
            }
            (None, None) => {}
        }
        // c·f times g is c·(f·g): so that equal terms are recognised whatever their factors.
        for (f, g) in [(a, b), (b, a)] {
            if let Node::Multiply(c, rest) = *self.node(f)
                && self.as_number(c).is_some()
            {
                let product = self.multiply(rest, g);
                return self.multiply(c, product);
            }
        }
        self.intern(Node::Multiply(a.min(b), a.max(b)))
    }

    /// a / b.
    pub fn divide(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) if y != 0.0 => self.number(x / y),
            (Some(0.0), None) => a,
            (_, Some(1.0)) => a,
            // 0/0 stays as it is, to be met where it is evaluated.
            _ => self.intern(Node::Divide(a, b)),
        }
    }

    /// a ^ b.
    pub fn power(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) => self.number(power(x, y)),
            (_, Some(0.0)) => self.number(1.0),
            (_, Some(1.0)) => a,
            _ => self.intern(Node::Power(a, b)),
        }
    }

    /// The smaller of two.
    pub fn minimum(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) => self.number(x.min(y)),
            _ => self.intern(Node::Minimum(a, b)),
        }
    }

    /// The larger of two.
    pub fn maximum(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_number(a), self.as_number(b)) {
            (Some(x), Some(y)) => self.number(x.max(y)),
            _ => self.intern(Node::Maximum(a, b)),
        }
    }

    /// atan2(y, x).
    pub fn angle(&mut self, y: NodeId, x: NodeId) -> NodeId {
        match (self.as_number(y), self.as_number(x)) {
            (Some(y), Some(x)) => self.number(y.atan2(x)),
            _ => self.intern(Node::Angle(y, x)),
        }
    }

    /// a where the condition is 1, b where it is 0.
    pub fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> NodeId {
        match self.as_number(condition) {
            Some(condition) if condition > 0.5 => a,
            Some(_) => b,
            None if a == b => a,
            None => self.intern(Node::Select(condition, a, b)),
        }
    }

    /// A function of one argument.
    pub fn apply(&mut self, function: Function, a: NodeId) -> NodeId {
        match self.as_number(a) {
            Some(x) => self.number(function.value(x)),
            None => self.intern(Node::Apply(function, a)),
        }
    }

    /// The expression with each ∂^α u replaced by ∂^α of `by`.
    pub fn substitute_unknown(&mut self, id: NodeId, by: NodeId) -> NodeId {
        let mut done = HashMap::new();
        self.substitute_memo(id, by, &mut done)
    }

    fn substitute_memo(&mut self, id: NodeId, by: NodeId, done: &mut HashMap<NodeId, NodeId>) -> NodeId {
        if let Some(&known) = done.get(&id) {
            return known;
        }
        let mut inner = |graph: &mut Self, node: NodeId| graph.substitute_memo(node, by, done);
        let result = match self.node(id).clone() {
            Node::Number(_) | Node::Coordinate(_) | Node::Time => id,
            Node::Unknown(alpha) => self.differentiate_by(by, &alpha),
            Node::Add(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.add(a, b)
            }
            Node::Multiply(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.multiply(a, b)
            }
            Node::Divide(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.divide(a, b)
            }
            Node::Power(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.power(a, b)
            }
            Node::Minimum(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.minimum(a, b)
            }
            Node::Maximum(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.maximum(a, b)
            }
            Node::Angle(a, b) => {
                let (a, b) = (inner(self, a), inner(self, b));
                self.angle(a, b)
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (inner(self, c), inner(self, a), inner(self, b));
                self.select(c, a, b)
            }
            Node::Apply(function, a) => {
                let a = inner(self, a);
                self.apply(function, a)
            }
        };
        done.insert(id, result);
        result
    }

    /// The constant factor in front of an expression, and the rest.
    pub fn split_factor(&mut self, id: NodeId) -> (f64, NodeId) {
        let one = self.number(1.0);
        match *self.node(id) {
            Node::Number(bits) => (f64::from_bits(bits), one),
            Node::Multiply(c, rest) => match self.as_number(c) {
                Some(factor) => (factor, rest),
                None => (1.0, id),
            },
            _ => (1.0, id),
        }
    }

    /// The nodes that `roots` are made of, operands before what uses them.
    pub fn order(&self, roots: &[NodeId]) -> Vec<NodeId> {
        // Operands are always created before the node that uses them.
        let mut needed = vec![false; self.nodes.len()];
        for root in roots {
            needed[root.0 as usize] = true;
        }
        for index in (0..self.nodes.len()).rev() {
            if needed[index] {
                for operand in self.operands(NodeId(index as u32)).into_iter().flatten() {
                    needed[operand.0 as usize] = true;
                }
            }
        }
        (0..self.nodes.len())
            .filter(|&index| needed[index])
            .map(|index| NodeId(index as u32))
            .collect()
    }

    /// The operands of a node.
    pub fn operands(&self, id: NodeId) -> [Option<NodeId>; 3] {
        match *self.node(id) {
            Node::Number(_) | Node::Coordinate(_) | Node::Unknown(_) | Node::Time => [None; 3],
            Node::Apply(_, a) => [Some(a), None, None],
            Node::Select(c, a, b) => [Some(c), Some(a), Some(b)],
            Node::Add(a, b)
            | Node::Multiply(a, b)
            | Node::Divide(a, b)
            | Node::Power(a, b)
            | Node::Minimum(a, b)
            | Node::Maximum(a, b)
            | Node::Angle(a, b) => [Some(a), Some(b), None],
        }
    }

    /// The derivatives of the unknown that occur in an expression.
    pub fn unknowns(&self, id: NodeId) -> Vec<MultiIndex> {
        let mut found: Vec<MultiIndex> = self
            .order(&[id])
            .into_iter()
            .filter_map(|node| match self.node(node) {
                Node::Unknown(alpha) => Some(alpha.clone()),
                _ => None,
            })
            .collect();
        found.sort();
        found
    }
}

/// x^y, with whole exponents by repeated multiplication so that (−2)^3 is exact.
pub(super) fn power(x: f64, y: f64) -> f64 {
    if y.fract() == 0.0 && y.abs() <= 64.0 {
        x.powi(y as i32)
    } else {
        x.powf(y)
    }
}
