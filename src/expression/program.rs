//! The graph laid out as instructions on blocks of points.

use super::graph::power;
use super::trigonometry;
use super::{Function, Graph, MultiIndex, Node, NodeId};
use multiversion::multiversion;

/// Points per block: a register is 2 KiB, a dozen of them fit the first-level cache.
pub const REGISTER_POINTS: usize = 256;

type Register = [f64; REGISTER_POINTS];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Constant(f64),
    /// Input column: the coordinates first, then the unknown's derivatives.
    Input(usize),
    Add(usize, usize),
    Multiply(usize, usize),
    Scale(f64, usize),
    Divide(usize, usize),
    PowerInteger(usize, i32),
    Power(usize, usize),
    Minimum(usize, usize),
    Maximum(usize, usize),
    Angle(usize, usize),
    Select(usize, usize, usize),
    Apply(Function, usize),
}

/// Several expressions compiled for evaluation over blocks of points.
#[derive(Debug, Clone)]
pub struct Program {
    dimension: usize,
    unknowns: Vec<MultiIndex>,
    instructions: Vec<(Operation, usize)>,
    outputs: Vec<usize>,
    registers: usize,
}

/// The registers of a running program; one per thread, reused from block to block.
#[derive(Debug, Default)]
pub struct Workspace {
    registers: Vec<Register>,
}

impl Program {
    /// Compiles `roots`, functions of `dimension` coordinates and of the unknown's derivatives `unknowns`.
    pub fn new(graph: &Graph, roots: &[NodeId], dimension: usize, unknowns: &[MultiIndex]) -> Self {
        let order = graph.order(roots);
        let mut last_use = vec![0usize; graph.len()];
        for (time, &id) in order.iter().enumerate() {
            for operand in graph.operands(id).into_iter().flatten() {
                last_use[operand.0 as usize] = time;
            }
        }
        for root in roots {
            last_use[root.0 as usize] = usize::MAX;
        }
        let mut allocator = Allocator::default();
        let mut register_of = vec![usize::MAX; graph.len()];
        let mut instructions = Vec::with_capacity(order.len());
        for (time, &id) in order.iter().enumerate() {
            let operation = operation(graph, id, &register_of, dimension, unknowns);
            let operands = graph.operands(id);
            let mut freed: Vec<usize> = operands
                .into_iter()
                .flatten()
                .filter(|operand| last_use[operand.0 as usize] == time)
                .map(|operand| register_of[operand.0 as usize])
                .collect();
            freed.dedup();
            // The target is taken before the operands are freed: no instruction writes what it reads.
            let target = allocator.take();
            register_of[id.0 as usize] = target;
            instructions.push((operation, target));
            allocator.free.extend(freed);
        }
        Self {
            dimension,
            unknowns: unknowns.to_vec(),
            instructions,
            outputs: roots.iter().map(|root| register_of[root.0 as usize]).collect(),
            registers: allocator.count,
        }
    }

    /// The number of results.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The unknown's derivatives that must be passed after the coordinates.
    pub fn unknowns(&self) -> &[MultiIndex] {
        &self.unknowns
    }

    /// Evaluates at `count` points. `inputs[i]` holds the i-th coordinate (then the unknown's
    /// derivatives) of every point and `outputs[k]` receives the k-th result.
    pub fn evaluate(
        &self,
        workspace: &mut Workspace,
        inputs: &[&[f64]],
        count: usize,
        outputs: &mut [&mut [f64]],
    ) {
        debug_assert_eq!(inputs.len(), self.dimension + self.unknowns.len());
        workspace.registers.resize(self.registers, [0.0; REGISTER_POINTS]);
        let registers = &mut workspace.registers;
        for start in (0..count).step_by(REGISTER_POINTS) {
            let length = REGISTER_POINTS.min(count - start);
            for &(operation, target) in &self.instructions {
                // The target is never an operand, so it can leave the array while it is written.
                let mut result = registers[target];
                execute(operation, registers, inputs, start, length, &mut result);
                registers[target] = result;
            }
            for (output, &register) in outputs.iter_mut().zip(&self.outputs) {
                output[start..start + length].copy_from_slice(&registers[register][..length]);
            }
        }
    }

    /// Evaluates at one point.
    pub fn evaluate_at(&self, inputs: &[f64]) -> Vec<f64> {
        let columns: Vec<[f64; 1]> = inputs.iter().map(|&x| [x]).collect();
        let columns: Vec<&[f64]> = columns.iter().map(|column| &column[..]).collect();
        let mut results = vec![0.0; self.outputs()];
        let mut outputs: Vec<&mut [f64]> = results.chunks_mut(1).collect();
        self.evaluate(&mut Workspace::default(), &columns, 1, &mut outputs);
        results
    }
}

#[derive(Default)]
struct Allocator {
    free: Vec<usize>,
    count: usize,
}

impl Allocator {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }
}

fn operation(
    graph: &Graph,
    id: NodeId,
    register_of: &[usize],
    dimension: usize,
    unknowns: &[MultiIndex],
) -> Operation {
    let at = |node: NodeId| register_of[node.0 as usize];
    match graph.node(id) {
        Node::Number(bits) => Operation::Constant(f64::from_bits(*bits)),
        Node::Time => Operation::Constant(graph.time),
        Node::Coordinate(index) => Operation::Input(*index),
        Node::Unknown(alpha) => Operation::Input(
            dimension
                + unknowns
                    .iter()
                    .position(|known| known == alpha)
                    .unwrap_or_default(),
        ),
        Node::Add(a, b) => Operation::Add(at(*a), at(*b)),
        Node::Multiply(a, b) => match graph.as_number(*a) {
            Some(factor) => Operation::Scale(factor, at(*b)),
            None => Operation::Multiply(at(*a), at(*b)),
        },
        Node::Divide(a, b) => Operation::Divide(at(*a), at(*b)),
        Node::Power(a, b) => match graph.as_number(*b) {
            Some(exponent) if exponent.fract() == 0.0 && exponent.abs() <= 64.0 => {
                Operation::PowerInteger(at(*a), exponent as i32)
            }
            _ => Operation::Power(at(*a), at(*b)),
        },
        Node::Minimum(a, b) => Operation::Minimum(at(*a), at(*b)),
        Node::Maximum(a, b) => Operation::Maximum(at(*a), at(*b)),
        Node::Angle(a, b) => Operation::Angle(at(*a), at(*b)),
        Node::Select(c, a, b) => Operation::Select(at(*c), at(*a), at(*b)),
        Node::Apply(function, a) => Operation::Apply(*function, at(*a)),
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn execute(
    operation: Operation,
    registers: &[Register],
    inputs: &[&[f64]],
    start: usize,
    length: usize,
    result: &mut Register,
) {
    match operation {
        Operation::Constant(value) => result.fill(value),
        Operation::Input(column) => result[..length].copy_from_slice(&inputs[column][start..start + length]),
        Operation::Add(a, b) => zip(result, &registers[a], &registers[b], |a, b| a + b),
        Operation::Multiply(a, b) => zip(result, &registers[a], &registers[b], |a, b| a * b),
        Operation::Divide(a, b) => zip(result, &registers[a], &registers[b], |a, b| a / b),
        Operation::Minimum(a, b) => zip(result, &registers[a], &registers[b], f64::min),
        Operation::Maximum(a, b) => zip(result, &registers[a], &registers[b], f64::max),
        Operation::Angle(a, b) => zip(result, &registers[a], &registers[b], f64::atan2),
        Operation::Select(c, a, b) => {
            let choices = registers[a].iter().zip(&registers[b]);
            for ((result, &c), (&a, &b)) in result.iter_mut().zip(&registers[c]).zip(choices) {
                *result = if c > 0.5 { a } else { b };
            }
        }
        Operation::Power(a, b) => {
            let (a, b) = (&registers[a][..length], &registers[b][..length]);
            for ((result, &a), &b) in result.iter_mut().zip(a).zip(b) {
                *result = power(a, b);
            }
        }
        Operation::Scale(factor, a) => map(result, &registers[a], |a| factor * a),
        Operation::PowerInteger(a, 2) => map(result, &registers[a], |a| a * a),
        Operation::PowerInteger(a, exponent) => {
            map(result, &registers[a], |a| a.powi(exponent));
        }
        Operation::Apply(Function::Sqrt, a) => map(result, &registers[a], f64::sqrt),
        Operation::Apply(Function::Abs, a) => map(result, &registers[a], f64::abs),
        Operation::Apply(Function::Sin, a) if trigonometry::in_range(&registers[a][..length]) => {
            map(result, &registers[a], trigonometry::sin);
        }
        Operation::Apply(Function::Cos, a) if trigonometry::in_range(&registers[a][..length]) => {
            map(result, &registers[a], trigonometry::cos);
        }
        Operation::Apply(function, a) => {
            for (result, &a) in result.iter_mut().zip(&registers[a][..length]) {
                *result = function.value(a);
            }
        }
    }
}

#[inline(always)]
fn map(result: &mut Register, a: &Register, operation: impl Fn(f64) -> f64) {
    for (result, &a) in result.iter_mut().zip(a) {
        *result = operation(a);
    }
}

#[inline(always)]
fn zip(result: &mut Register, a: &Register, b: &Register, operation: impl Fn(f64, f64) -> f64) {
    for ((result, &a), &b) in result.iter_mut().zip(a).zip(b) {
        *result = operation(a, b);
    }
}
