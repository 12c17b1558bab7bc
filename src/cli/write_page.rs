//! `greedy-pde report`: a run as a page with plots.

use super::{Failure, ReportArguments};
use crate::cli::streams::put;
use greedy_pde::results::write_page;

pub(super) fn execute(arguments: &ReportArguments) -> Result<(), Failure> {
    put!("{}", write_page(&arguments.directory)?.display());
    Ok(())
}
