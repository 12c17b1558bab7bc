//! Errors of the library as Python exceptions, with the same words.

use greedy_pde::error::SolveError;
use greedy_pde::problem::ProblemError;
use greedy_pde::results::ResultsError;
use pyo3::PyErr;

mod python {
    #![allow(missing_docs)]
    pyo3::import_exception!(greedy_pde._errors, ProblemError);
    pyo3::import_exception!(greedy_pde._errors, ResultsError);
    pyo3::import_exception!(greedy_pde._errors, SolveError);
}

/// An error of the library on its way to Python; it can be made without holding the interpreter.
#[derive(Debug)]
pub enum Failure {
    /// Bad input.
    Problem(ProblemError),
    /// The solve could not go on.
    Solve(SolveError),
    /// A result directory that is not as it should be.
    Results(ResultsError),
}

impl From<ProblemError> for Failure {
    fn from(error: ProblemError) -> Self {
        Failure::Problem(error)
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        Failure::Solve(error)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Problem(error) => Failure::Problem(error),
            ResultsError::Solve(error) => Failure::Solve(error),
            other => Failure::Results(other),
        }
    }
}

/// How an option is written in Python.
fn keyword(name: &str) -> String {
    match name {
        "force" | "resume" => format!("{name}=True"),
        _ => format!("{name}=…"),
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Problem(error) => {
                let (line, column) = error.line_and_column().unzip();
                let words = error.to_string();
                python::ProblemError::new_err((words, error.file, line, column, error.key, error.help))
            }
            Failure::Solve(error) => python::SolveError::new_err(error.to_string()),
            Failure::Results(error) => {
                python::ResultsError::new_err(format!("{error}{}", error.advice(&keyword)))
            }
        }
    }
}

/// A run that cannot go on for a reason of ours.
pub fn solve_error(message: impl Into<String>) -> PyErr {
    python::SolveError::new_err(message.into())
}

/// A result that cannot be used for a reason of ours.
pub fn results_error(message: impl Into<String>) -> PyErr {
    python::ResultsError::new_err(message.into())
}
