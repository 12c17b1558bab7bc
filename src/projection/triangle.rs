//! A triangular factor that grows by one row at a time.

use crate::vector::dot;

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
