//! The jet of a network at many points.

use super::{SPLINE_FROM, Spline, direct};
use crate::activation::Activation;
use crate::network::{Network, ridges};
use crate::points::Tile;
use crate::symbol::Symbol;
use crate::vector::{add_scaled, set_scaled};
use std::ops::Range;

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

    /// Whether evaluating it costs no more than one neuron.
    pub fn is_single(&self) -> bool {
        self.ridges.len() <= 1
    }

    /// The value under each symbol at every point of a tile, one column per symbol.
    pub fn jets(&self, symbols: &[Symbol], tile: &Tile, scratch: &mut EvaluationScratch) -> Vec<Vec<f64>> {
        let mut jets = vec![vec![0.0; tile.len()]; symbols.len()];
        let factors: Vec<Vec<f64>> = self
            .ridges
            .iter()
            .map(|(omega, _)| symbols.iter().map(|symbol| symbol.at(omega)).collect())
            .collect();
        for block in blocks(tile.len()) {
            for ((omega, profile), factors) in self.ridges.iter().zip(&factors) {
                project(omega, tile, block.clone(), &mut scratch.t);
                self.add_ridge(profile, symbols, factors, scratch);
                for ((jet, symbol), &factor) in jets.iter_mut().zip(symbols).zip(factors) {
                    if factor != 0.0 {
                        let profile = &scratch.profile[symbol.order()];
                        add_scaled(factor, profile, &mut jet[block.clone()]);
                    }
                }
            }
        }
        jets
    }

    /// The derivatives of one ridge's profile at a block's t, for the orders that count.
    fn add_ridge(
        &self,
        profile: &Profile,
        symbols: &[Symbol],
        factors: &[f64],
        scratch: &mut EvaluationScratch,
    ) {
        let orders = symbols.iter().map(Symbol::order).max().unwrap_or(0) + 1;
        scratch.profile.resize(orders, Vec::new());
        for (m, column) in scratch.profile.iter_mut().enumerate() {
            let mut of_order = symbols.iter().zip(factors).filter(|(s, _)| s.order() == m);
            let needed = of_order.any(|(_, &factor)| factor != 0.0);
            column.clear();
            column.resize(if needed { scratch.t.len() } else { 0 }, 0.0);
        }
        match profile {
            Profile::Spline(spline) => spline.add_derivatives(&scratch.t, &mut scratch.profile),
            Profile::Direct(members) => {
                for &member in members {
                    direct::add_derivatives(self.activation, member, &scratch.t, &mut scratch.profile);
                }
            }
        }
    }
}

/// Points per block: what is computed for a block and all directions stays in the innermost cache.
pub const POINT_BLOCK: usize = 256;

/// The blocks of a tile.
pub fn blocks(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(POINT_BLOCK)
        .map(move |start| start..(start + POINT_BLOCK).min(count))
}

/// t = ω·x at every point of a block.
pub fn project(omega: &[f64], tile: &Tile, block: Range<usize>, t: &mut Vec<f64>) {
    t.resize(block.len(), 0.0);
    let mut parts = omega.iter().zip(&tile.coordinates).filter(|(o, _)| **o != 0.0);
    match parts.next() {
        Some((&o, column)) => set_scaled(o, &column[block.clone()], t),
        None => t.fill(0.0),
    }
    for (&o, column) in parts {
        add_scaled(o, &column[block.clone()], t);
    }
}

/// q_m = Σ p_c(ω) ρ_c over the columns of order m in a block; empty where there is none. `factors` are
/// the p_c(ω).
pub fn combine(
    factors: &[f64],
    orders: &[usize],
    rho: &[Vec<f64>],
    block: Range<usize>,
    channels: &mut Vec<Vec<f64>>,
) {
    channels.resize(orders.iter().max().map_or(1, |top| top + 1), Vec::new());
    for (m, channel) in channels.iter_mut().enumerate() {
        let of_order = orders.iter().zip(factors).zip(rho);
        let mut parts = of_order.filter(|((order, factor), _)| **order == m && **factor != 0.0);
        let Some(((_, &factor), first)) = parts.next() else {
            channel.clear();
            continue;
        };
        channel.resize(block.len(), 0.0);
        set_scaled(factor, &first[block.clone()], channel);
        for ((_, &factor), rho) in parts {
            add_scaled(factor, &rho[block.clone()], channel);
        }
    }
}
