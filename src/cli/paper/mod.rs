//! The paper's tables and figures, made here, beside its own.

mod baselines;
mod field;
mod figures;
mod reproduce;

pub(super) use reproduce::execute;
