//! Networks, evaluated at arrays of points.

use crate::threads::with_threads;
use greedy_pde::domain::Domain;
use greedy_pde::network;
use greedy_pde::sample::{laplacian, of_network_by_point};
use greedy_pde::symbol::Symbol;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// u(x) = Σ aᵢ σ(ωᵢ·x + bᵢ) on a domain.
#[pyclass(frozen, module = "greedy_pde._native")]
pub struct Network {
    network: network::Network,
    domain: Domain,
}

impl Network {
    /// The solution of a problem on this domain.
    pub fn new(network: network::Network, domain: Domain) -> Self {
        Self { network, domain }
    }

    /// What is computed at each point.
    fn symbols(&self, what: &str) -> PyResult<Vec<Symbol>> {
        let d = self.network.dimension;
        match what {
            "value" => Ok(vec![Symbol::value()]),
            "gradient" => Ok((0..d).map(|i| Symbol::derivative([i])).collect()),
            "laplacian" => Ok(vec![laplacian(d)]),
            _ => Err(PyValueError::new_err(format!(
                "`{what}`: there are value, gradient and laplacian"
            ))),
        }
    }

    /// How many points are outside of the domain.
    fn outside(&self, points: &[f64]) -> usize {
        let points = points.chunks_exact(self.network.dimension);
        points
            .filter(|point| !self.domain.contains(point.iter().copied()))
            .count()
    }
}

/// What is noticed about points on the way.
struct Seen {
    /// The first that is not finite; there may be none.
    bad: AtomicUsize,
    /// How many are outside of the domain.
    outside: AtomicUsize,
}

impl Seen {
    fn look(&self, network: &Network, first: usize, points: &[f64]) {
        // All are looked at, rather than as many as it takes: that goes many at a time.
        let finite = points.iter().fold(true, |finite, x| finite & x.is_finite());
        if !finite {
            let place = points.iter().position(|x| !x.is_finite()).unwrap_or_default();
            let bad = first + place / network.network.dimension;
            self.bad.fetch_min(bad, Ordering::Relaxed);
        }
        self.outside.fetch_add(network.outside(points), Ordering::Relaxed);
    }
}

#[pymethods]
impl Network {
    /// The value, gradient or Laplacian at points that stand one after the other, each with all its coordinates; and how
    /// many of them are outside of the domain.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray1<'py, f64>,
        what: &str,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, usize)> {
        let d = self.network.dimension;
        let points = points.as_slice()?;
        if points.len() % d != 0 {
            return Err(PyValueError::new_err(format!(
                "{} numbers are no points with {d} coordinates",
                points.len()
            )));
        }
        let symbols = self.symbols(what)?;
        let seen = Seen {
            bad: AtomicUsize::new(usize::MAX),
            outside: AtomicUsize::new(0),
        };
        let look = |first: usize, points: &[f64]| seen.look(self, first, points);
        let evaluate = || of_network_by_point(&self.network, &symbols, points, look);
        let values = py.detach(|| with_threads(None, evaluate))?;
        let bad = seen.bad.into_inner();
        // A neuron makes 0 of what is not a number: nobody would notice.
        if let Some(point) = points.chunks_exact(d).nth(bad) {
            return Err(PyValueError::new_err(format!(
                "point {bad} is {point:?}: its coordinates must be finite numbers"
            )));
        }
        Ok((values.into_pyarray(py), seen.outside.into_inner()))
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.network.dimension
    }

    #[getter]
    fn activation(&self) -> String {
        self.network.activation.to_string()
    }

    /// ω, one neuron per row.
    #[getter]
    fn omega<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (n, d) = (self.network.len(), self.network.dimension);
        let neurons = self.network.neurons.iter();
        let omega: Vec<f64> = neurons.flat_map(|neuron| neuron.omega.clone()).collect();
        omega.into_pyarray(py).reshape([n, d])
    }

    /// b.
    #[getter]
    fn bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let bias: Vec<f64> = self.network.neurons.iter().map(|neuron| neuron.bias).collect();
        bias.into_pyarray(py)
    }

    /// a.
    #[getter]
    fn coefficient<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.network.coefficients.clone().into_pyarray(py)
    }
}
