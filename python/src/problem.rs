//! Problems: a text, the files it names, and what the library made of them.

use crate::error::Failure;
use greedy_pde::problem::{self as library, Attachment, Overrides, ProblemError};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A problem that was read and checked. The files it names are held, so that it can be read again with other settings, wherever
/// it has gone since.
#[pyclass(frozen, module = "greedy_pde._native")]
#[derive(Clone)]
pub struct Problem {
    /// The text of the problem file.
    #[pyo3(get)]
    pub text: String,
    /// What messages call the file; paths in it start from its folder.
    #[pyo3(get)]
    pub file: String,
    /// What the library made of it.
    pub checked: library::Problem,
}

/// Names and contents of files.
pub type Files = Vec<(String, Vec<u8>)>;

/// As the library has them.
pub fn attachments(files: Files) -> Vec<Attachment> {
    let attachment = |(typed, bytes): (String, Vec<u8>)| Attachment {
        typed,
        bytes: bytes.into(),
    };
    files.into_iter().map(attachment).collect()
}

impl Problem {
    /// The same with other settings.
    pub fn with(&self, overrides: &Overrides) -> Result<Self, Failure> {
        let checked =
            library::Problem::from_toml_with(&self.text, &self.file, overrides, &self.checked.files)?;
        let text = greedy_pde::results::with_overrides(&self.text, &self.file, overrides)?;
        Ok(Self {
            text,
            file: self.file.clone(),
            checked,
        })
    }

    /// Reads a problem from its text and those of its files that are at hand.
    pub fn read(text: String, file: String, held: &[Attachment]) -> Result<Self, Failure> {
        let checked = library::Problem::from_toml_with(&text, &file, &Overrides::default(), held)?;
        Ok(Self { text, file, checked })
    }
}

#[pymethods]
impl Problem {
    /// From the text of a problem file; `files` are those it names that are on no disk.
    #[staticmethod]
    fn loads(py: Python<'_>, text: String, file: String, files: Files) -> PyResult<Self> {
        Ok(py.detach(|| Self::read(text, file, &attachments(files)))?)
    }

    /// From a problem file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::Problem(ProblemError::new(&file, format!("cannot be read: {error}")))
        })?;
        Ok(py.detach(|| Self::read(text, file, &[]))?)
    }

    /// The files that it names, with their contents.
    #[getter]
    pub fn files(&self) -> Files {
        let files = self.checked.files.iter();
        files
            .map(|file| (file.typed.clone(), file.bytes.to_vec()))
            .collect()
    }

    #[getter]
    fn name(&self) -> String {
        self.checked.name.clone()
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.checked.dimension()
    }

    #[getter]
    fn neurons(&self) -> usize {
        self.checked.settings.neurons
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.checked.warnings.clone()
    }

    /// Which points are in the domain; they stand one after the other, each with all its coordinates.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = points.as_slice()?.chunks_exact(self.checked.dimension());
        let domain = &self.checked.domain;
        let inside: Vec<bool> = points
            .map(|point| domain.contains(point.iter().copied()))
            .collect();
        Ok(inside.into_pyarray(py))
    }

    /// The smallest and largest value of every coordinate.
    fn extent(&self) -> Vec<(f64, f64)> {
        let domain = &self.checked.domain;
        (0..domain.dimension()).map(|axis| domain.side(axis)).collect()
    }

    /// A point inside, in the middle where that is inside.
    fn section_point(&self) -> Vec<f64> {
        self.checked.domain.section_point()
    }
}
