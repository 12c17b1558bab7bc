//! Conditions in a formula: comparisons, `and`, `or`, `not`, `if(condition, a, b)`.

use super::lower::{Lowered, Lowering, wrong_count};
use super::parse::{Ast, AstKind};
use super::{ExpressionError, Function, NodeId, Value};
use std::ops::Range;

impl Lowering<'_> {
    /// 1 where the condition holds, 0 elsewhere.
    pub(super) fn condition(&mut self, ast: &Ast) -> Lowered<NodeId> {
        let AstKind::Binary(operator @ ('&' | '|' | '<' | '>' | '≤' | '≥'), left, right) = &ast.kind
        else {
            return match self.value(ast)? {
                Value::Condition(node) => Ok(node),
                _ => Err(ExpressionError::new(
                    "a condition is needed here, such as x < 0.5",
                    ast.span.clone(),
                )),
            };
        };
        if matches!(operator, '&' | '|') {
            let (a, b) = (self.condition(left)?, self.condition(right)?);
            return Ok(match operator {
                '&' => self.graph.multiply(a, b),
                _ => self.graph.maximum(a, b),
            });
        }
        let (a, b) = (self.scalar(left)?, self.scalar(right)?);
        let (above, below) = match operator {
            '>' | '≤' => (a, b),
            _ => (b, a),
        };
        let difference = self.graph.subtract(above, below);
        let strict = self.graph.apply(Function::Step, difference);
        Ok(match operator {
            '<' | '>' => strict,
            _ => self.negation(strict),
        })
    }

    pub(super) fn negation(&mut self, condition: NodeId) -> NodeId {
        let one = self.graph.number(1.0);
        self.graph.subtract(one, condition)
    }

    /// `if(condition, a, b)`.
    pub(super) fn choice(&mut self, arguments: &[Ast], span: &Range<usize>) -> Lowered<NodeId> {
        let [condition, yes, no] = arguments else {
            return Err(wrong_count(
                "if",
                "a condition and two values, if(x < 0, a, b)",
                span,
            ));
        };
        let condition = self.condition(condition)?;
        let (yes, no) = (self.scalar(yes)?, self.scalar(no)?);
        Ok(self.graph.select(condition, yes, no))
    }
}
