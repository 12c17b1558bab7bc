//! A neuron and a sum of neurons.

use crate::activation::Activation;

/// g(x) = σ(ω·x + b).
#[derive(Debug, Clone, PartialEq)]
pub struct Neuron {
    /// ω, the direction (and slope).
    pub omega: Vec<f64>,
    /// b, the offset.
    pub bias: f64,
}

/// u(x) = Σ aᵢ σ(ωᵢ·x + bᵢ).
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// σ.
    pub activation: Activation,
    /// d, the number of coordinates.
    pub dimension: usize,
    /// The neurons in the order in which they were chosen.
    pub neurons: Vec<Neuron>,
    /// aᵢ.
    pub coefficients: Vec<f64>,
}

/// The neurons of a network that share a line of directions: u restricted to them is a
/// function S(ω·x) of one variable, a ridge.
#[derive(Debug, Clone)]
pub struct Ridge {
    /// The common direction.
    pub omega: Vec<f64>,
    /// The members: position in the list of neurons, sign (+1 for ω, −1 for −ω), bias.
    pub members: Vec<(usize, f64, f64)>,
}

impl Network {
    /// factor · u + coefficient · g.
    pub fn advanced(&self, factor: f64, g: &Neuron, coefficient: f64) -> Network {
        let mut network = self.clone();
        network.coefficients.iter_mut().for_each(|a| *a *= factor);
        network.neurons.push(g.clone());
        network.coefficients.push(coefficient);
        network
    }

    /// The first of its neurons with these coefficients.
    pub fn with_coefficients(&self, coefficients: &[f64]) -> Network {
        Network {
            neurons: self.neurons[..coefficients.len()].to_vec(),
            coefficients: coefficients.to_vec(),
            ..Network::zero(self.activation, self.dimension)
        }
    }

    /// u = 0.
    pub fn zero(activation: Activation, dimension: usize) -> Self {
        Self {
            activation,
            dimension,
            neurons: Vec::new(),
            coefficients: Vec::new(),
        }
    }

    /// One neuron with coefficient 1.
    pub fn single(activation: Activation, neuron: &Neuron) -> Self {
        Self {
            activation,
            dimension: neuron.omega.len(),
            neurons: vec![neuron.clone()],
            coefficients: vec![1.0],
        }
    }

    /// The number of neurons.
    pub fn len(&self) -> usize {
        self.neurons.len()
    }

    /// Whether this is u = 0.
    pub fn is_empty(&self) -> bool {
        self.neurons.is_empty()
    }

    /// Σ |aᵢ|.
    pub fn coefficient_l1(&self) -> f64 {
        self.coefficients.iter().map(|a| a.abs()).sum()
    }

    /// u(x).
    pub fn value(&self, x: &[f64]) -> f64 {
        self.terms()
            .map(|(a, neuron)| a * self.activation.derivative(0, neuron.argument(x)))
            .sum()
    }

    /// ∇u(x).
    pub fn gradient(&self, x: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.dimension];
        for (a, neuron) in self.terms() {
            let slope = a * self.activation.derivative(1, neuron.argument(x));
            for (sum, omega) in gradient.iter_mut().zip(&neuron.omega) {
                *sum += slope * omega;
            }
        }
        gradient
    }

    fn terms(&self) -> impl Iterator<Item = (f64, &Neuron)> {
        self.coefficients.iter().copied().zip(&self.neurons)
    }
}

impl Neuron {
    /// ω·x + b.
    pub fn argument(&self, x: &[f64]) -> f64 {
        self.omega.iter().zip(x).map(|(o, x)| o * x).sum::<f64>() + self.bias
    }
}

/// Gathers neurons by their line of directions, ω and −ω together, in order of first appearance.
pub fn ridges(neurons: &[Neuron]) -> Vec<Ridge> {
    let mut found: Vec<Ridge> = Vec::new();
    let mut place: std::collections::HashMap<Vec<u64>, usize> = std::collections::HashMap::new();
    for (position, neuron) in neurons.iter().enumerate() {
        // The first non-zero component of the representative is positive.
        let sign = match neuron.omega.iter().find(|&&o| o != 0.0) {
            Some(&first) if first < 0.0 => -1.0,
            _ => 1.0,
        };
        let key: Vec<u64> = neuron.omega.iter().map(|o| (sign * o + 0.0).to_bits()).collect();
        let index = *place.entry(key).or_insert_with(|| {
            found.push(Ridge {
                omega: neuron.omega.iter().map(|o| sign * o + 0.0).collect(),
                members: Vec::new(),
            });
            found.len() - 1
        });
        found[index].members.push((position, sign, neuron.bias));
    }
    found
}
