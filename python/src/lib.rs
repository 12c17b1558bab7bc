//! `greedy_pde._native`: what the Python package needs of the library. Shapes, words and notebooks are Python's business
//! (`greedy_pde/*.py`); here are problems, runs and networks.

mod devices;
mod error;
mod job;
mod network;
mod paper;
mod problem;
mod run;
mod solve;
mod threads;

use pyo3::prelude::*;

/// The extension module of `greedy_pde`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::devices::devices;
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::paper::reproduce;
    #[pymodule_export]
    use crate::problem::Problem;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::solve::{checkpoint_problem, solve};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::threads::note_process();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
