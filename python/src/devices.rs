//! The adapters of this machine.

use greedy_pde::gpu::{self, AdapterChoice};
use pyo3::prelude::*;

/// The adapters as JSON, and the name of the one that `backend="auto"` takes.
#[pyfunction]
pub fn devices(py: Python<'_>) -> (String, Option<String>) {
    py.detach(|| {
        let adapters = gpu::list()
            .iter()
            .map(|adapter| serde_json::json!(adapter))
            .collect();
        let chosen = gpu::choose(&AdapterChoice::default());
        let chosen = chosen.ok().map(|adapter| adapter.get_info().name);
        (serde_json::Value::Array(adapters).to_string(), chosen)
    })
}
