//! Syntax tree to graph: names get their meaning, sums are written out.

use super::parse::{Ast, AstKind, LONG_CHAIN};
use super::{ExpressionError, Function, Graph, MultiIndex, NodeId, Program};
use std::collections::BTreeMap;
use std::ops::Range;

/// More nodes than any sensible formula needs; bounds memory and time.
const MAX_NODES: usize = 200_000;

/// What the names in a formula mean.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The number of coordinates.
    pub dimension: usize,
    /// Named numbers.
    pub constants: BTreeMap<String, f64>,
    /// Whether `u` may occur.
    pub unknown: bool,
    /// Whether `t` may occur.
    pub time: bool,
    /// Whether `d`, `laplacian`, `bilaplacian`, `grad` and `div` may occur.
    pub operators: bool,
}

/// A scalar or a vector field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One expression.
    Scalar(NodeId),
    /// One expression per coordinate.
    Vector(Vec<NodeId>),
    /// 1 where it holds, 0 elsewhere.
    Condition(NodeId),
}

impl Scope {
    /// The formula as a scalar node of `graph`.
    pub fn scalar(&self, graph: &mut Graph, ast: &Ast) -> Result<NodeId, ExpressionError> {
        let mut lowering = Lowering {
            scope: self,
            graph,
            indices: Vec::new(),
        };
        lowering.scalar(ast)
    }

    /// The value of a formula of a scope without coordinates.
    pub fn constant(&self, ast: &Ast) -> Result<f64, ExpressionError> {
        let mut graph = Graph::new();
        let node = self.scalar(&mut graph, ast)?;
        let value =
            Program::new(&graph, &[node], self.dimension, &[]).evaluate_at(&vec![0.0; self.dimension])[0];
        match value.is_finite() {
            true => Ok(value),
            false => Err(ExpressionError::new(
                format!("this is {value}, not a finite number"),
                ast.span.clone(),
            )),
        }
    }
}

pub(super) struct Lowering<'a> {
    pub(super) scope: &'a Scope,
    pub(super) graph: &'a mut Graph,
    /// The summation indices in force, innermost last.
    indices: Vec<(String, usize)>,
}

pub(super) type Lowered<T> = Result<T, ExpressionError>;

impl Lowering<'_> {
    pub(super) fn scalar(&mut self, ast: &Ast) -> Lowered<NodeId> {
        match self.value(ast)? {
            Value::Scalar(node) => Ok(node),
            Value::Vector(_) => Err(ExpressionError::new(
                "a scalar is needed here, this is a vector; use div(…) or dot(…, …)",
                ast.span.clone(),
            )),
            Value::Condition(_) => Err(ExpressionError::new(
                "a number is needed here, this is a condition; use if(condition, a, b)",
                ast.span.clone(),
            )),
        }
    }

    pub(super) fn value(&mut self, ast: &Ast) -> Lowered<Value> {
        if self.graph.len() > MAX_NODES {
            return Err(ExpressionError::new(
                format!("the formula grows to more than {MAX_NODES} operations"),
                ast.span.clone(),
            ));
        }
        match &ast.kind {
            AstKind::Number(value) => Ok(Value::Scalar(self.graph.number(*value))),
            AstKind::Name(name) => self.name(name, &ast.span).map(Value::Scalar),
            AstKind::Index(name, index) => self.indexed(name, index, &ast.span).map(Value::Scalar),
            AstKind::Negate(inner) => {
                let value = self.value(inner)?;
                let minus_one = self.graph.number(-1.0);
                self.scale(minus_one, value, &ast.span)
            }
            AstKind::Not(inner) => {
                let condition = self.condition(inner)?;
                Ok(Value::Condition(self.negation(condition)))
            }
            AstKind::Vector(parts) => self.vector_literal(parts, &ast.span),
            AstKind::Binary('&' | '|' | '<' | '>' | '≤' | '≥', ..) => {
                self.condition(ast).map(Value::Condition)
            }
            AstKind::Binary(operator, left, right) => self.binary(*operator, left, right, &ast.span),
            AstKind::Call(name, arguments) => self.call(name, arguments, &ast.span),
        }
    }

    fn scale(&mut self, factor: NodeId, value: Value, span: &Range<usize>) -> Lowered<Value> {
        match value {
            Value::Scalar(node) => Ok(Value::Scalar(self.graph.multiply(factor, node))),
            Value::Vector(nodes) => Ok(Value::Vector(
                nodes
                    .into_iter()
                    .map(|node| self.graph.multiply(factor, node))
                    .collect(),
            )),
            Value::Condition(_) => Err(ExpressionError::new(
                "a condition is no number; use if(condition, a, b)",
                span.clone(),
            )),
        }
    }

    fn name(&mut self, name: &str, span: &Range<usize>) -> Lowered<NodeId> {
        if let Some(&(_, index)) = self.indices.iter().rev().find(|(known, _)| known == name) {
            return Ok(self.graph.number((index + 1) as f64));
        }
        if let Some(&value) = self.scope.constants.get(name) {
            return Ok(self.graph.number(value));
        }
        if name == "u" && self.scope.unknown {
            return Ok(self.graph.unknown(MultiIndex::default()));
        }
        if name == "t" && self.scope.time {
            return Ok(self.graph.time_node());
        }
        if let Some(index) = ["x", "y", "z"].iter().position(|&alias| alias == name)
            && self.scope.dimension <= 3
            && index < self.scope.dimension
        {
            return Ok(self.graph.coordinate(index));
        }
        match name {
            "pi" => Ok(self.graph.number(std::f64::consts::PI)),
            "e" => Ok(self.graph.number(std::f64::consts::E)),
            _ => Err(ExpressionError::new(self.unknown_name(name), span.clone())),
        }
    }

    fn unknown_name(&self, name: &str) -> String {
        let dimension = self.scope.dimension;
        if dimension == 0 && ["x", "y", "z"].contains(&name) {
            return format!("a number is needed here: `{name}` and other coordinates cannot stand in it");
        }
        if name == "x" {
            return format!("in {dimension} dimensions write x[1] … x[{dimension}], or sum(i, … x[i] …)");
        }
        if name == "u" {
            return "the unknown `u` cannot stand here".to_string();
        }
        if name == "t" {
            return "`t` is known where there is a [time] table, and not in numbers".to_string();
        }
        if Function::NAMES.iter().any(|(known, _)| *known == name) {
            return format!("the function `{name}` needs an argument: {name}(…)");
        }
        let mut names: Vec<&str> = vec!["pi", "e"];
        names.extend(
            ["x", "y", "z"]
                .iter()
                .take(if dimension <= 3 { dimension } else { 0 }),
        );
        names.extend(self.scope.constants.keys().map(String::as_str));
        if self.scope.unknown {
            names.push("u");
        }
        if self.scope.time {
            names.push("t");
        }
        format!("`{name}` is not known here; there are {}", names.join(", "))
    }

    fn indexed(&mut self, name: &str, index: &Ast, span: &Range<usize>) -> Lowered<NodeId> {
        if name != "x" {
            return Err(ExpressionError::new(
                format!("only x can have an index: x[1], not {name}[…]"),
                span.clone(),
            ));
        }
        Ok({
            let coordinate = self.coordinate_number(index)?;
            self.graph.coordinate(coordinate)
        })
    }

    /// The value of an index, from 0.
    fn coordinate_number(&mut self, index: &Ast) -> Lowered<usize> {
        let node = self.scalar(index)?;
        let dimension = self.scope.dimension;
        if dimension == 0 {
            return Err(ExpressionError::new(
                "a number is needed here: coordinates cannot stand in it",
                index.span.clone(),
            ));
        }
        match self.graph.as_number(node) {
            Some(value) if value.fract() == 0.0 && value >= 1.0 && value <= dimension as f64 => {
                Ok(value as usize - 1)
            }
            Some(value) => Err(ExpressionError::new(
                format!("x[{value}] does not exist: the dimension is {dimension}"),
                index.span.clone(),
            )),
            None => Err(ExpressionError::new(
                "an index must be a whole number",
                index.span.clone(),
            )),
        }
    }

    fn binary(&mut self, operator: char, left: &Ast, right: &Ast, span: &Range<usize>) -> Lowered<Value> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        match (operator, a, b) {
            ('+', Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(self.graph.add(a, b))),
            ('-', Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(self.graph.subtract(a, b))),
            ('*', Value::Scalar(a), b) => self.scale(a, b, span),
            ('*', a, Value::Scalar(b)) => self.scale(b, a, span),
            ('/', Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(self.graph.divide(a, b))),
            ('^', Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(self.graph.power(a, b))),
            ('+' | '-', Value::Vector(a), Value::Vector(b)) => Ok(Value::Vector(
                a.into_iter()
                    .zip(b)
                    .map(|(a, b)| match operator {
                        '+' => self.graph.add(a, b),
                        _ => self.graph.subtract(a, b),
                    })
                    .collect(),
            )),
            ('/', Value::Vector(a), Value::Scalar(b)) => Ok(Value::Vector(
                a.into_iter().map(|a| self.graph.divide(a, b)).collect(),
            )),
            _ => Err(ExpressionError::new(
                format!("`{operator}` cannot join a scalar and a vector like this"),
                span.clone(),
            )),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Ast], span: &Range<usize>) -> Lowered<Value> {
        if let Some(&(_, function)) = Function::NAMES.iter().find(|(known, _)| *known == name) {
            let [argument] = arguments else {
                return Err(wrong_count(name, "one argument", span));
            };
            let argument = self.scalar(argument)?;
            return Ok(Value::Scalar(self.graph.apply(function, argument)));
        }
        match name {
            "min" | "max" => self.extremum(name, arguments, span).map(Value::Scalar),
            "if" => self.choice(arguments, span).map(Value::Scalar),
            "atan2" => match arguments {
                [y, x] => {
                    let (y, x) = (self.scalar(y)?, self.scalar(x)?);
                    Ok(Value::Scalar(self.graph.angle(y, x)))
                }
                _ => Err(wrong_count(name, "two arguments, atan2(y, x)", span)),
            },
            "sum" | "prod" => self.series(name, arguments, span).map(Value::Scalar),
            "d" | "laplacian" | "bilaplacian" | "grad" | "div" | "dot" if self.scope.operators => {
                self.operator(name, arguments, span)
            }
            "d" | "laplacian" | "bilaplacian" | "grad" | "div" => Err(ExpressionError::new(
                format!("`{name}` can only be used in an operator"),
                span.clone(),
            )),
            _ => Err(ExpressionError::new(
                unknown_function(name),
                span.start..span.start + name.len(),
            )),
        }
    }

    fn extremum(&mut self, name: &str, arguments: &[Ast], span: &Range<usize>) -> Lowered<NodeId> {
        if arguments.len() < 2 {
            return Err(wrong_count(name, "two arguments or more", span));
        }
        let values: Lowered<Vec<NodeId>> = arguments.iter().map(|argument| self.scalar(argument)).collect();
        let mut values = values?;
        let mut fold = |values: &[NodeId]| {
            values[1..].iter().fold(values[0], |a, &b| match name {
                "min" => self.graph.minimum(a, b),
                _ => self.graph.maximum(a, b),
            })
        };
        // As with long sums: what walks the graph goes as deep as it is.
        while values.len() > LONG_CHAIN {
            values = values.chunks(2).map(&mut fold).collect();
        }
        Ok(fold(&values))
    }

    fn series(&mut self, name: &str, arguments: &[Ast], span: &Range<usize>) -> Lowered<NodeId> {
        let [index, body] = arguments else {
            return Err(wrong_count(
                name,
                "an index and a body, as in sum(i, x[i]^2)",
                span,
            ));
        };
        let AstKind::Name(index_name) = &index.kind else {
            return Err(ExpressionError::new(
                "the first argument must be an index name, as in sum(i, x[i]^2)",
                index.span.clone(),
            ));
        };
        let mut result = self.graph.number(if name == "sum" { 0.0 } else { 1.0 });
        for coordinate in 0..self.scope.dimension {
            self.indices.push((index_name.clone(), coordinate));
            let term = self.scalar(body);
            self.indices.pop();
            let term = term?;
            result = match name {
                "sum" => self.graph.add(result, term),
                _ => self.graph.multiply(result, term),
            };
        }
        Ok(result)
    }
}

pub(super) fn wrong_count(name: &str, wanted: &str, span: &Range<usize>) -> ExpressionError {
    ExpressionError::new(format!("`{name}` takes {wanted}"), span.clone())
}

fn unknown_function(name: &str) -> String {
    let known = Function::NAMES.iter().map(|(known, _)| *known).chain([
        "min",
        "max",
        "atan2",
        "if",
        "sum",
        "prod",
        "d",
        "laplacian",
        "bilaplacian",
        "grad",
        "div",
        "dot",
    ]);
    let nearest = known
        .clone()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, candidate)) if distance <= 2 => {
            format!("there is no function `{name}`; did you mean `{candidate}`?")
        }
        _ => format!(
            "there is no function `{name}`; there are {}",
            known.collect::<Vec<_>>().join(", ")
        ),
    }
}
