//! The jet of a network at many points.

use crate::activation::Activation;
use crate::network::{Network, ridges};
use crate::points::Tile;
use crate::ridge::{SPLINE_FROM, Spline, direct};
use crate::symbol::Symbol;
use multiversion::multiversion;

/// A network prepared for evaluation, direction by direction.
pub struct Evaluator {
    activation: Activation,
    ridges: Vec<(Vec<f64>, Profile)>,
}

enum Profile {
    Spline(Spline),
    Direct(Vec<(f64, f64, f64)>),
}

/// Memory reused from tile to tile.
#[derive(Debug, Default)]
pub struct EvaluationScratch {
    t: Vec<f64>,
    profile: Vec<Vec<f64>>,
}

impl Evaluator {
    /// Gathers the neurons of each direction.
    pub fn new(network: &Network) -> Self {
        let power = network.activation.relu_power();
        let ridges = ridges(&network.neurons)
            .into_iter()
            .map(|ridge| {
                let members: Vec<(f64, f64, f64)> = ridge
                    .members
                    .iter()
                    .map(|&(position, sign, bias)| (network.coefficients[position], sign, bias))
                    .collect();
                let profile = match power {
                    Some(power) if members.len() >= SPLINE_FROM => {
                        Profile::Spline(Spline::new(power, &members))
                    }
                    _ => Profile::Direct(members),
                };
                (ridge.omega, profile)
            })
            .collect();
        Self {
            activation: network.activation,
            ridges,
        }
    }

    /// The value under each symbol at every point of a tile, one column per symbol.
    pub fn jets(&self, symbols: &[Symbol], tile: &Tile, scratch: &mut EvaluationScratch) -> Vec<Vec<f64>> {
        let count = tile.len();
        let mut jets = vec![vec![0.0; count]; symbols.len()];
        let orders = symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
        for (omega, profile) in &self.ridges {
            project(omega, tile, &mut scratch.t);
            let factors: Vec<f64> = symbols.iter().map(|symbol| symbol.at(omega)).collect();
            scratch.profile.resize(orders, Vec::new());
            for (m, column) in scratch.profile.iter_mut().enumerate() {
                let needed = symbols
                    .iter()
                    .zip(&factors)
                    .any(|(s, &f)| s.order() == m && f != 0.0);
                column.clear();
                column.resize(if needed { count } else { 0 }, 0.0);
            }
            match profile {
                Profile::Spline(spline) => spline.add_derivatives(&scratch.t, &mut scratch.profile),
                Profile::Direct(members) => {
                    for &member in members {
                        direct::add_derivatives(self.activation, member, &scratch.t, &mut scratch.profile);
                    }
                }
            }
            for ((jet, symbol), &factor) in jets.iter_mut().zip(symbols).zip(&factors) {
                if factor != 0.0 {
                    add_scaled(factor, &scratch.profile[symbol.order()], jet);
                }
            }
        }
        jets
    }
}

/// t = ω·x at every point of the tile.
pub fn project(omega: &[f64], tile: &Tile, t: &mut Vec<f64>) {
    t.clear();
    t.resize(tile.len(), 0.0);
    for (&o, column) in omega.iter().zip(&tile.coordinates) {
        if o != 0.0 {
            add_scaled(o, column, t);
        }
    }
}

/// q_m = Σ p_c(ω) ρ_c over the symbols of order m; empty where there is none.
pub fn combine(omega: &[f64], symbols: &[Symbol], rho: &[Vec<f64>], channels: &mut Vec<Vec<f64>>) {
    let orders = symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
    channels.resize(orders, Vec::new());
    channels.iter_mut().for_each(Vec::clear);
    for (symbol, rho) in symbols.iter().zip(rho) {
        let factor = symbol.at(omega);
        if factor != 0.0 {
            let channel = &mut channels[symbol.order()];
            channel.resize(rho.len(), 0.0);
            add_scaled(factor, rho, channel);
        }
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn add_scaled(factor: f64, terms: &[f64], sums: &mut [f64]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += factor * term;
    }
}
