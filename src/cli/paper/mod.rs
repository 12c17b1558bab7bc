//! The paper's tables and figures, made here, beside its own.

mod baselines;
mod field;
mod figures;
mod reproduce;
mod tables;

pub(super) use reproduce::execute;
