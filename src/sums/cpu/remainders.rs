//! Inner products of a few neurons with many, all at once: each of the many is evaluated once at every point,
//! whatever the number of the few.

use super::{CpuSums, Scratch};
use crate::error::SolveError;
use crate::loss::{Profile, Term, TermTile};
use crate::network::Neuron;
use crate::ridge::{LocalScore, add_local_sums, blocks, direct, local_width, project};
use crate::sums::{Projector, Remainders};
use crate::symbol::Symbol;
use crate::vector::{add_scaled, dot, multiply};
use std::ops::Range;

/// The profiles of all terms, with the factors of both sets of neurons.
pub(super) struct Layout {
    /// Which profiles each term has.
    pub(super) of_term: Vec<Range<usize>>,
    pub(super) profiles: Vec<Place>,
}

pub(super) struct Place {
    term: usize,
    pub(super) profile: Profile,
    /// P of each chosen neuron and of each of the list.
    pub(super) chosen: Vec<Vec<f64>>,
    listed: Vec<Vec<f64>>,
    /// By which its slopes are known.
    symbols: Vec<Symbol>,
    /// How many sums the slopes of a neuron have here.
    width: usize,
}

/// The values of one neuron's profiles at a block, in memory that is used again.
#[derive(Default)]
pub(super) struct Values {
    t: Vec<f64>,
    derivatives: Vec<Vec<f64>>,
    at_omega: Vec<f64>,
}

impl Values {
    /// The derivatives of σ(ω·x + b) that the term needs.
    pub(super) fn evaluate(
        &mut self,
        sums: &CpuSums,
        neuron: &Neuron,
        term: &Term,
        tile: &TermTile,
        block: Range<usize>,
    ) {
        project(&neuron.omega, &tile.tile, block, &mut self.t);
        let orders = term.symbols.iter().map(|symbol| symbol.order() + 1).max();
        self.derivatives.resize(orders.unwrap_or(0), Vec::new());
        for (m, column) in self.derivatives.iter_mut().enumerate() {
            column.clear();
            if term.symbols.iter().any(|symbol| symbol.order() == m) {
                column.resize(self.t.len(), 0.0);
            }
        }
        let of = (1.0, 1.0, neuron.bias);
        direct::add_derivatives(sums.activation, of, &self.t, &mut self.derivatives);
        self.at_omega.clear();
        let at_omega = term.symbols.iter().map(|symbol| symbol.at(&neuron.omega));
        self.at_omega.extend(at_omega);
    }

    /// sum += factor · π.
    pub(super) fn add(
        &self,
        (term, profile): (&Term, &Profile),
        (tile, block): (&TermTile, Range<usize>),
        factor: f64,
        sum: &mut [f64],
    ) {
        let values = (self.at_omega.as_slice(), self.derivatives.as_slice());
        term.add_profile(profile, (tile, block), values, factor, sum);
    }
}

impl Layout {
    pub(super) fn new(sums: &CpuSums, chosen: &[Neuron], list: &[Neuron]) -> Self {
        let mut profiles = Vec::new();
        let mut of_term = Vec::new();
        for (index, term) in sums.loss.terms.iter().enumerate() {
            let start = profiles.len();
            for profile in term.profiles() {
                let factors = |g: &Neuron| term.profile_factors(&profile, &g.omega);
                let symbols = term.profile_symbols(&profile);
                let dimension = list.first().map_or(0, |g| g.omega.len());
                profiles.push(Place {
                    term: index,
                    chosen: chosen.iter().map(factors).collect(),
                    listed: list.iter().map(factors).collect(),
                    width: local_width(&symbols, dimension),
                    symbols,
                    profile,
                });
            }
            of_term.push(start..profiles.len());
        }
        Self { of_term, profiles }
    }

    pub(super) fn at(&self, term: usize) -> &[Place] {
        &self.profiles[self.of_term[term].clone()]
    }
}

impl Remainders for CpuSums {
    fn remainders_at(
        &self,
        chosen: &[Neuron],
        list: &[Neuron],
        project: &Projector,
    ) -> Result<Vec<LocalScore>, SolveError> {
        let layout = Layout::new(self, chosen, list);
        // Σ w π π of each profile, listed neuron, and chosen neuron or itself.
        let products = self.products(&layout, chosen, list)?;
        let per_neuron = chosen.len() + 1;
        let product = |p: usize, g: usize, j: usize| products[(p * list.len() + g) * per_neuron + j];
        let mut squares = Vec::new();
        let mut coefficients = Vec::new();
        for g in 0..list.len() {
            let entry = |j: usize| {
                let places = layout.profiles.iter().enumerate();
                let parts = places.map(|(p, place)| {
                    let other = place.chosen.get(j).unwrap_or(&place.listed[g]);
                    dot(&place.listed[g], other) * product(p, g, j)
                });
                parts.sum()
            };
            let column: Vec<f64> = (0..per_neuron).map(entry).collect();
            let (square, mut others) = project(&column);
            others.push(1.0);
            squares.push(square);
            coefficients.push(others);
        }
        let mut slopes = self.slopes_of(&layout, (chosen, list), &coefficients)?;
        for (g, (score, &square)) in slopes.iter_mut().zip(&squares).enumerate() {
            score.value = square;
            for (p, place) in layout.profiles.iter().enumerate() {
                let weighted = coefficients[g].iter().enumerate();
                let weighted = weighted.map(|(j, c)| c * product(p, g, j)).collect::<Vec<f64>>();
                place.add_slope_of_factors(&self.loss.terms[place.term], g, &list[g], &weighted, score);
            }
        }
        Ok(slopes)
    }
}

impl Place {
    /// Adds Σ_c dp_c(ω_g) Σ_j c_j p_c(ω_j) Σ w π_j π_g: what comes of the slope of P.
    fn add_slope_of_factors(
        &self,
        term: &Term,
        index: usize,
        g: &Neuron,
        weighted: &[f64],
        score: &mut LocalScore,
    ) {
        let Profile::Derivative { symbols, .. } = &self.profile else {
            return;
        };
        let all = self.chosen.iter().chain([&self.listed[index]]);
        let mut sums = vec![0.0; symbols.len()];
        for (factors, &weight) in all.zip(weighted) {
            add_scaled(weight, factors, &mut sums);
        }
        for (&c, sum) in symbols.iter().zip(&sums) {
            let dp = term.symbols[c].gradient_at(&g.omega);
            add_scaled(*sum, &dp, &mut score.gradient[..dp.len()]);
        }
    }
}

impl CpuSums {
    /// Σ w π_g π_j for each profile, each g of the list and each chosen neuron j, then g itself.
    fn products(&self, layout: &Layout, chosen: &[Neuron], list: &[Neuron]) -> Result<Vec<f64>, SolveError> {
        let per_neuron = chosen.len() + 1;
        let length = layout.profiles.len() * list.len() * per_neuron;
        self.sums(length, |sums, term, tile, scratch| {
            let places = layout.at(scratch.term);
            if places.is_empty() {
                return Ok(());
            }
            let first = layout.of_term[scratch.term].start * list.len() * per_neuron;
            let sums = &mut sums[first..][..places.len() * list.len() * per_neuron];
            self.add_products((term, tile), places, (chosen, list), sums);
            Ok(())
        })
    }

    fn add_products(
        &self,
        (term, tile): (&Term, &TermTile),
        places: &[Place],
        (chosen, list): (&[Neuron], &[Neuron]),
        sums: &mut [f64],
    ) {
        let weights: Vec<Vec<f64>> = places
            .iter()
            .map(|place| term.profile_weights(&place.profile, tile))
            .collect();
        let mut values = Values::default();
        let per_neuron = chosen.len() + 1;
        let mut profile = Vec::new();
        for block in blocks(tile.tile.len()) {
            // w π_g of each profile and g.
            let mut weighted = Vec::with_capacity(places.len() * list.len());
            for (p, place) in places.iter().enumerate() {
                for (g, neuron) in list.iter().enumerate() {
                    values.evaluate(self, neuron, term, tile, block.clone());
                    let mut column = vec![0.0; block.len()];
                    values.add((term, &place.profile), (tile, block.clone()), 1.0, &mut column);
                    let plain = column.clone();
                    multiply(&mut column, &weights[p][block.clone()]);
                    sums[(p * list.len() + g + 1) * per_neuron - 1] += dot(&plain, &column);
                    weighted.push(column);
                }
            }
            for (j, neuron) in chosen.iter().enumerate() {
                values.evaluate(self, neuron, term, tile, block.clone());
                for (p, place) in places.iter().enumerate() {
                    let column: &[f64] = match &place.profile {
                        Profile::Derivative { order, .. } => &values.derivatives[*order],
                        of => {
                            profile.clear();
                            profile.resize(block.len(), 0.0);
                            values.add((term, of), (tile, block.clone()), 1.0, &mut profile);
                            &profile
                        }
                    };
                    for (g, weighted) in weighted[p * list.len()..][..list.len()].iter().enumerate() {
                        sums[(p * list.len() + g) * per_neuron + j] += dot(weighted, column);
                    }
                }
            }
        }
    }

    /// The slopes of ⟨∇²L v, g⟩ in g, but for those of P, at v = Σ c_j g_j with the coefficients of each g.
    fn slopes_of(
        &self,
        layout: &Layout,
        (chosen, list): (&[Neuron], &[Neuron]),
        coefficients: &[Vec<f64>],
    ) -> Result<Vec<LocalScore>, SolveError> {
        let dimension = list.first().map_or(0, |g| g.omega.len());
        let widths: Vec<usize> = layout
            .profiles
            .iter()
            .map(|place| list.len() * place.width)
            .collect();
        let sums = self.sums(widths.iter().sum(), |sums, term, tile, scratch| {
            let places = layout.at(scratch.term);
            if !places.is_empty() {
                let sums = &mut split(sums, &widths)[layout.of_term[scratch.term].clone()];
                self.add_slopes(
                    (term, tile),
                    places,
                    (chosen, list),
                    (coefficients, sums),
                    scratch,
                );
            }
            Ok(())
        })?;
        let mut rest = sums.as_slice();
        let sums = widths.iter().map(|&width| {
            let (own, others) = rest.split_at(width);
            rest = others;
            own
        });
        let sums: Vec<&[f64]> = sums.collect();
        let mut scores = vec![LocalScore::zero(dimension); list.len()];
        for (place, sums) in layout.profiles.iter().zip(&sums) {
            for ((score, g), sums) in scores.iter_mut().zip(list).zip(sums.chunks(place.width)) {
                score.add(&place.symbols, g, sums);
            }
        }
        Ok(scores)
    }

    fn add_slopes(
        &self,
        (term, tile): (&Term, &TermTile),
        places: &[Place],
        (chosen, list): (&[Neuron], &[Neuron]),
        (coefficients, sums): (&[Vec<f64>], &mut [&mut [f64]]),
        scratch: &mut Scratch,
    ) {
        let count = tile.tile.len();
        // v of each profile and g.
        let mut fields = vec![vec![vec![0.0; count]; list.len()]; places.len()];
        let mut values = Values::default();
        let mut profile = Vec::new();
        for block in blocks(count) {
            let all = chosen.iter().map(Some).chain([None]);
            for (j, neuron) in all.enumerate() {
                if let Some(neuron) = neuron {
                    values.evaluate(self, neuron, term, tile, block.clone());
                }
                for (p, place) in places.iter().enumerate() {
                    for (g, field) in fields[p].iter_mut().enumerate() {
                        if neuron.is_none() {
                            values.evaluate(self, &list[g], term, tile, block.clone());
                        }
                        let other = place.chosen.get(j).unwrap_or(&place.listed[g]);
                        let factor = coefficients[g][j] * dot(&place.listed[g], other);
                        let field = &mut field[block.clone()];
                        match &place.profile {
                            Profile::Derivative { order, .. } => {
                                add_scaled(factor, &values.derivatives[*order], field);
                            }
                            of if neuron.is_none() || g == 0 => {
                                profile.clear();
                                profile.resize(block.len(), 0.0);
                                values.add((term, of), (tile, block.clone()), 1.0, &mut profile);
                                add_scaled(factor, &profile, field);
                            }
                            _ => add_scaled(factor, &profile, field),
                        }
                    }
                }
            }
        }
        for ((place, fields), sums) in places.iter().zip(fields).zip(sums) {
            let weights = term.profile_weights(&place.profile, tile);
            let per_neuron = sums.chunks_mut(place.width);
            for ((mut field, g), sums) in fields.into_iter().zip(list).zip(per_neuron) {
                multiply(&mut field, &weights);
                let rho = term.profile_channels(&place.profile, tile, field);
                let of = (self.activation, g);
                add_local_sums(of, &place.symbols, &tile.tile, &rho, &mut scratch.t, sums);
            }
        }
    }
}

/// Parts of these lengths.
fn split<'s>(mut sums: &'s mut [f64], lengths: &[usize]) -> Vec<&'s mut [f64]> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = sums.split_at_mut(length);
        parts.push(part);
        sums = rest;
    }
    parts
}
