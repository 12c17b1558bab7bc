//! Differential operators and vectors in a formula.

use super::lower::{Lowered, Lowering, wrong_count};
use super::parse::Ast;
use super::{ExpressionError, MultiIndex, Node, NodeId, Value};
use std::ops::Range;

/// The highest derivative an operator may ask for.
const MAX_ORDER: usize = 4;

impl Lowering<'_> {
    /// `[a, b, …]`, one part per coordinate.
    pub(super) fn vector_literal(&mut self, parts: &[Ast], span: &Range<usize>) -> Lowered<Value> {
        let dimension = self.scope.dimension;
        if parts.len() != dimension {
            return Err(ExpressionError::new(
                format!(
                    "this vector has {} parts, and the dimension is {dimension}",
                    parts.len()
                ),
                span.clone(),
            ));
        }
        let parts: Lowered<Vec<NodeId>> = parts.iter().map(|part| self.scalar(part)).collect();
        parts.map(Value::Vector)
    }

    pub(super) fn operator(&mut self, name: &str, arguments: &[Ast], span: &Range<usize>) -> Lowered<Value> {
        match (name, arguments) {
            ("d", [inner, coordinates @ ..]) if !coordinates.is_empty() => {
                let mut node = self.scalar(inner)?;
                for coordinate in coordinates {
                    let place = self.scalar(coordinate)?;
                    let Node::Coordinate(index) = *self.graph.node(place) else {
                        return Err(ExpressionError::new(
                            "differentiate by a coordinate: d(u, x[1])",
                            coordinate.span.clone(),
                        ));
                    };
                    node = self.differentiate(node, index, span)?;
                }
                Ok(Value::Scalar(node))
            }
            ("laplacian", [inner]) => {
                let node = self.scalar(inner)?;
                self.laplacian(node, span).map(Value::Scalar)
            }
            ("bilaplacian", [inner]) => {
                let node = self.scalar(inner)?;
                let once = self.laplacian(node, span)?;
                self.laplacian(once, span).map(Value::Scalar)
            }
            ("grad", [inner]) => {
                let node = self.scalar(inner)?;
                let parts: Lowered<Vec<NodeId>> = (0..self.scope.dimension)
                    .map(|i| self.differentiate(node, i, span))
                    .collect();
                parts.map(Value::Vector)
            }
            ("div", [inner]) => {
                let parts = self.vector(inner)?;
                let mut sum = self.graph.number(0.0);
                for (i, part) in parts.into_iter().enumerate() {
                    let term = self.differentiate(part, i, span)?;
                    sum = self.graph.add(sum, term);
                }
                Ok(Value::Scalar(sum))
            }
            ("dot", [left, right]) => {
                let (a, b) = (self.vector(left)?, self.vector(right)?);
                let mut sum = self.graph.number(0.0);
                for (a, b) in a.into_iter().zip(b) {
                    let term = self.graph.multiply(a, b);
                    sum = self.graph.add(sum, term);
                }
                Ok(Value::Scalar(sum))
            }
            _ => Err(wrong_count(
                name,
                match name {
                    "d" => "an expression and coordinates, as in d(u, x[1], x[2])",
                    "dot" => "two vectors",
                    _ => "one argument",
                },
                span,
            )),
        }
    }

    fn vector(&mut self, ast: &Ast) -> Lowered<Vec<NodeId>> {
        match self.value(ast)? {
            Value::Vector(parts) => Ok(parts),
            Value::Scalar(_) | Value::Condition(_) => Err(ExpressionError::new(
                "a vector is needed here, such as grad(u) or [1, x]",
                ast.span.clone(),
            )),
        }
    }

    fn laplacian(&mut self, node: NodeId, span: &Range<usize>) -> Lowered<NodeId> {
        let mut sum = self.graph.number(0.0);
        for i in 0..self.scope.dimension {
            let once = self.differentiate(node, i, span)?;
            let twice = self.differentiate(once, i, span)?;
            sum = self.graph.add(sum, twice);
        }
        Ok(sum)
    }

    fn differentiate(&mut self, node: NodeId, index: usize, span: &Range<usize>) -> Lowered<NodeId> {
        let derivative = self.graph.differentiate(node, index);
        let order = self
            .graph
            .unknowns(derivative)
            .iter()
            .map(MultiIndex::order)
            .max();
        if order > Some(MAX_ORDER) {
            return Err(ExpressionError::new(
                format!("derivatives of u above order {MAX_ORDER} are not supported"),
                span.clone(),
            ));
        }
        Ok(derivative)
    }
}
