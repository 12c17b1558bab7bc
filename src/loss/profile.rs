//! The curvature of neurons, factor by factor.
//!
//! Under a quadratic density the inner product of two ridge functions is a short sum of products,
//!
//!   ⟨∇²L v, g⟩ = Σ (P(ω_v)·P(ω_g)) Σ_i w_i π_v(x_i) π_g(x_i),
//!
//! over *profiles*: of an energy the derivatives σ^(m), with P the symbols p_c of that order which share a
//! coefficient (the whole gradient of −∇·(a∇u) is one profile); of a residual one, Lg itself, with P = 1.

use super::{DensityLayout, Term, TermTile};
use crate::symbol::Symbol;
use crate::vector::add_scaled;
use std::ops::Range;

/// One of the profiles of a term.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// σ^(m) under some symbols of order m, with the column a of their coefficient.
    Derivative {
        /// m.
        order: usize,
        /// Which symbols of the term.
        symbols: Vec<usize>,
        /// a's column.
        column: usize,
    },
    /// Σ c_c p_c(ω) σ^(m_c).
    Residual {
        /// The column of c_c for each symbol of the term.
        coefficients: Vec<usize>,
    },
}

impl Term {
    /// The profiles of a neuron; none where there is no curvature.
    pub fn profiles(&self) -> Vec<Profile> {
        if self.is_load_only() {
            return Vec::new();
        }
        let columns = match &self.layout {
            DensityLayout::Energy { quadratic, .. } => quadratic,
            DensityLayout::Residual { coefficients, .. } => {
                let coefficients = coefficients.clone();
                return vec![Profile::Residual { coefficients }];
            }
        };
        let mut profiles: Vec<Profile> = Vec::new();
        for (c, (symbol, &a)) in self.symbols.iter().zip(columns).enumerate() {
            let same = profiles.iter_mut().find_map(|profile| match profile {
                Profile::Derivative {
                    order,
                    symbols,
                    column,
                } if *order == symbol.order() && *column == a => Some(symbols),
                _ => None,
            });
            match same {
                Some(symbols) => symbols.push(c),
                None => profiles.push(Profile::Derivative {
                    order: symbol.order(),
                    symbols: vec![c],
                    column: a,
                }),
            }
        }
        profiles
    }

    /// P(ω): the factors of a neuron's profile.
    pub fn profile_factors(&self, profile: &Profile, omega: &[f64]) -> Vec<f64> {
        match profile {
            Profile::Derivative { symbols, .. } => {
                symbols.iter().map(|&c| self.symbols[c].at(omega)).collect()
            }
            Profile::Residual { .. } => vec![1.0],
        }
    }

    /// The symbols by which the slopes of a profile are known, P aside.
    pub fn profile_symbols(&self, profile: &Profile) -> Vec<Symbol> {
        match profile {
            // p = 1: what comes of P's own slope is known without the points.
            Profile::Derivative { order, .. } => vec![Symbol::of_profile(*order)],
            Profile::Residual { .. } => self.symbols.clone(),
        }
    }

    /// w at the points of a tile.
    pub fn profile_weights(&self, profile: &Profile, tile: &TermTile) -> Vec<f64> {
        let weights = &tile.tile.weights;
        match profile {
            Profile::Derivative { column, .. } => {
                let products = tile.columns[*column].iter().zip(weights);
                products.map(|(a, w)| a * w).collect()
            }
            Profile::Residual { .. } => weights.iter().map(|w| 2.0 * w).collect(),
        }
    }

    /// sum += factor · π at a block of a tile, from the derivatives of σ there and the symbols at ω.
    pub fn add_profile(
        &self,
        profile: &Profile,
        (tile, block): (&TermTile, Range<usize>),
        (at_omega, derivatives): (&[f64], &[Vec<f64>]),
        factor: f64,
        sum: &mut [f64],
    ) {
        match profile {
            Profile::Derivative { order, .. } => add_scaled(factor, &derivatives[*order], sum),
            Profile::Residual { coefficients } => {
                let parts = self.symbols.iter().zip(at_omega).zip(coefficients);
                for ((symbol, p), &c) in parts.filter(|((_, p), _)| **p != 0.0) {
                    let column = &tile.columns[c][block.clone()];
                    let values = sum.iter_mut().zip(column).zip(&derivatives[symbol.order()]);
                    values.for_each(|((sum, c), value)| *sum += factor * p * c * value);
                }
            }
        }
    }

    /// The channels, one for each of its [symbols](Self::profile_symbols), of the functional
    /// g ↦ Σ w_i v(x_i) π_g(x_i), for values w v at a tile.
    pub fn profile_channels(&self, profile: &Profile, tile: &TermTile, weighted: Vec<f64>) -> Vec<Vec<f64>> {
        let Profile::Residual { coefficients } = profile else {
            return vec![weighted];
        };
        let of = |&c: &usize| {
            let products = weighted.iter().zip(&tile.columns[c]);
            products.map(|(v, c)| v * c).collect()
        };
        coefficients.iter().map(of).collect()
    }
}
