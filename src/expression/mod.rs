//! Formulas in a problem file: parsed with their place in the text, differentiated symbolically,
//! evaluated over blocks of points.
//!
//! A formula goes through three forms: the [syntax tree](Ast) knows where each piece stands in the
//! text; the [graph](Graph) holds every sub-expression once, so that differentiation and evaluation
//! share work; the [program](Program) is the graph laid out as a list of vector instructions.

mod condition;
mod derivative;
mod graph;
mod lower;
mod operators;
mod parse;
mod program;
mod time;
mod trigonometry;

pub use graph::{Function, Graph, MultiIndex, Node, NodeId};
pub use lower::{Scope, Value};
pub use parse::{Ast, parse};
pub use program::{Program, REGISTER_POINTS, Workspace};
pub use time::Separated;

use std::ops::Range;

/// What is wrong with a formula and where in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong, and what would be right.
    pub message: String,
    /// The bytes of the formula concerned.
    pub span: Range<usize>,
}

impl ExpressionError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            message: message.into(),
            span,
        }
    }
}
