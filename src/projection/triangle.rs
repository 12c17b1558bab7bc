//! A triangular factor that grows by one row at a time.

use crate::vector::{add_scaled, dot};

/// G = RᵀR, kept row by row of Rᵀ, and y = R⁻ᵀ l.
#[derive(Debug, Clone, Default)]
pub struct Triangle {
    rows: Vec<Vec<f64>>,
    rhs: Vec<f64>,
}

impl Triangle {
    /// One row more, up to its diagonal, and one entry of y.
    pub fn push(&mut self, row: Vec<f64>, y: f64) {
        self.rows.push(row);
        self.rhs.push(y);
    }

    /// Takes the last row back; its entry of y.
    pub fn pop(&mut self) -> Option<f64> {
        self.rows.pop();
        self.rhs.pop()
    }

    /// y −= step.
    pub fn subtract(&mut self, step: &[f64]) {
        self.rhs.iter_mut().zip(step).for_each(|(y, step)| *y -= step);
    }

    /// The last entry of y.
    pub fn last(&self) -> Option<f64> {
        self.rhs.last().copied()
    }

    /// The last column of R⁻¹: the coefficients of the normalised part that the last neuron added.
    pub fn last_of_inverse(&self) -> Vec<f64> {
        let mut unit = vec![0.0; self.rows.len()];
        if let Some(last) = unit.last_mut() {
            *last = 1.0;
        }
        self.backward(&unit)
    }

    /// yᵀy = lᵀ G⁻¹ l.
    pub fn explained(&self) -> f64 {
        dot(&self.rhs, &self.rhs)
    }

    /// a = R⁻¹ y.
    pub fn coefficients(&self) -> Vec<f64> {
        self.backward(&self.rhs)
    }

    /// Rᵀ z = v.
    pub fn forward(&self, v: &[f64]) -> Vec<f64> {
        let mut z = Vec::with_capacity(v.len());
        for (row, value) in self.rows.iter().zip(v) {
            let n = z.len();
            z.push((value - dot(&row[..n], &z)) / row[n]);
        }
        z
    }

    /// R a.
    pub fn times(&self, a: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; a.len()];
        for (n, (row, &value)) in self.rows.iter().zip(a).enumerate() {
            add_scaled(value, row, &mut product[..=n]);
        }
        product
    }

    /// Rᵀ z.
    pub fn transposed_times(&self, z: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|row| dot(row, &z[..row.len()])).collect()
    }

    /// R a = z.
    pub fn backward(&self, z: &[f64]) -> Vec<f64> {
        let mut a = z.to_vec();
        for n in (0..a.len()).rev() {
            let row = &self.rows[n];
            a[n] /= row[n];
            let (earlier, now) = a.split_at_mut(n);
            for (value, r) in earlier.iter_mut().zip(row) {
                *value -= r * now[0];
            }
        }
        a
    }
}
