//! The CPU twin of the shaders of whole numbers: the reference, and the fallback when a device is lost.

use super::engine::{
    Engine, EngineReport, Functional, LineValues, NeuronList, NeuronSums, Peaks, SUM_BITS, Source,
    whole_columns, with_leads,
};
use super::fixed::{lead, magnitude, product, rounded_down};
use super::runs::{LineRuns, LineSums, Runs, unpacked};
use super::term::{ChannelShifts, WholeNetwork, WholeTerm};
use crate::error::SolveError;
use crate::loss::DensityLayout;
use crate::network::Network;
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// So many functionals are kept.
const KEPT: usize = 4;

/// The runs of a term's lines, where they were needed.
type SortedLines = Vec<Option<Arc<LineRuns>>>;

/// [`Engine`] on the CPU.
pub struct Reference {
    terms: Arc<Vec<WholeTerm>>,
    kept: Mutex<Vec<(u64, Arc<Vec<Channels>>)>>,
    /// The channels of the functional that was asked how large they are, until they are needed.
    unmoved: Mutex<Option<(u64, Vec<Unmoved>)>>,
    /// The runs used last, line after line, for each term.
    sorted: Mutex<Option<(u64, Vec<SortedLines>)>>,
}

/// The channels of a term that were made from a network.
struct Unmoved {
    columns: Vec<i64>,
    shifts: ChannelShifts,
    peaks: Vec<u32>,
}

/// The channels of a term, moved up as far as they go.
struct Channels {
    columns: Vec<i64>,
    exponents: Vec<i32>,
}

impl Reference {
    /// The sums of these terms.
    pub fn new(terms: Arc<Vec<WholeTerm>>) -> Self {
        Self {
            terms,
            kept: Mutex::new(Vec::new()),
            unmoved: Mutex::new(None),
            sorted: Mutex::new(None),
        }
    }

    fn channels(&self, rho: &Functional) -> Arc<Vec<Channels>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, channels)) = kept.iter().find(|(id, _)| *id == rho.id) {
            return Arc::clone(channels);
        }
        let made = Arc::new(self.make_channels(rho));
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((rho.id, Arc::clone(&made)));
        made
    }

    fn make_channels(&self, rho: &Functional) -> Vec<Channels> {
        let (network, with_load) = match &rho.source {
            Source::Network { network, with_load } => (network, *with_load),
            Source::Columns { columns, exponents } => {
                let terms = self.terms.iter().zip(columns).zip(exponents);
                return terms
                    .map(|((term, columns), exponents)| Channels {
                        columns: whole_columns(term, columns, exponents),
                        exponents: exponents.clone(),
                    })
                    .collect();
            }
        };
        let mut unmoved = self.unmoved.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match unmoved.take_if(|(id, _)| *id == rho.id) {
            Some((_, made)) => made,
            None => self.unmoved_channels(network, with_load),
        };
        let terms = self.terms.iter().zip(made).enumerate();
        terms
            .map(|(index, (term, made))| {
                let peaks = rho.peaks.get().map(|of_all| of_all[index].clone());
                made.moved(term, peaks)
            })
            .collect()
    }

    fn unmoved_channels(&self, network: &Network, with_load: bool) -> Vec<Unmoved> {
        let terms = self.terms.iter();
        terms.map(|term| Unmoved::new(term, network, with_load)).collect()
    }

    fn runs(&self, runs: &Runs, term: usize, which: &[usize]) -> Vec<Arc<LineRuns>> {
        let mut sorted = self.sorted.lock().unwrap_or_else(PoisonError::into_inner);
        if sorted.as_ref().is_none_or(|(id, _)| *id != runs.id) {
            *sorted = Some((runs.id, vec![vec![None; runs.lines.len()]; self.terms.len()]));
        }
        let Some((_, lines)) = &mut *sorted else {
            return Vec::new();
        };
        let missing: Vec<usize> = which
            .iter()
            .copied()
            .filter(|&line| lines[term][line].is_none())
            .collect();
        let made: Vec<LineRuns> = missing.par_iter().map(|&line| runs.of_line(term, line)).collect();
        for (line, made) in missing.into_iter().zip(made) {
            lines[term][line] = Some(Arc::new(made));
        }
        which
            .iter()
            .filter_map(|&line| lines[term][line].clone())
            .collect()
    }
}

impl Unmoved {
    fn new(term: &WholeTerm, network: &Network, with_load: bool) -> Self {
        let u = term.network(network);
        let shifts = term.channel_shifts(&u.exponents, with_load);
        let columns = channels(term, &jets(term, &u), &shifts, with_load);
        Self {
            peaks: peaks(term, &columns),
            columns,
            shifts,
        }
    }

    /// Moved up as far as the largest numbers allow, of these points or, where there are others, of all.
    fn moved(mut self, term: &WholeTerm, of_all: Option<Vec<u32>>) -> Channels {
        let (leads, exponents) = with_leads(&self.shifts, &of_all.unwrap_or(self.peaks));
        for (column, lead) in self.columns.chunks_mut(term.stride).zip(leads) {
            column.iter_mut().for_each(|value| *value <<= lead);
        }
        Channels {
            columns: self.columns,
            exponents,
        }
    }
}

/// C + Σ Ω_d X_d at a point.
#[inline(always)]
fn affine(term: &WholeTerm, numbers: &[i64], point: usize) -> i64 {
    let slopes = numbers[1..].iter().enumerate();
    slopes.fold(numbers[0], |sum, (axis, &slope)| {
        sum + product(slope, term.coordinates[axis * term.stride + point])
    })
}

/// Columns at all points, made point by point.
fn at_points(term: &WholeTerm, columns: usize, at: impl Fn(usize, &mut [i64]) + Sync) -> Vec<i64> {
    let mut rows = vec![0; term.stride * columns];
    let in_order = rows.par_chunks_mut(columns).enumerate();
    in_order.for_each(|(point, row)| at(point, row));
    let transposed = (0..columns).flat_map(|c| rows.iter().skip(c).step_by(columns));
    transposed.copied().collect()
}

/// `whole_field.wgsl`, first part: the values of u under each symbol.
fn jets(term: &WholeTerm, u: &WholeNetwork) -> Vec<i64> {
    let (width, sizes, orders) = (term.dimension() + 1, term.sizes(), term.orders());
    let per_piece: usize = sizes.iter().sum();
    at_points(term, sizes.len(), |point, row| {
        for single in u.singles.chunks(width + 1 + orders.len()) {
            add_single(term, single, &orders, point, row);
        }
        for (line, numbers) in u.lines.chunks(width).enumerate() {
            let t = affine(term, numbers, point);
            let (first, last) = (u.starts[line] as usize, u.starts[line + 1] as usize);
            let above = u.origins[first..last].partition_point(|origin| origin[0] <= t);
            let piece = first + above.saturating_sub(1);
            let [origin, lift] = u.origins[piece];
            let distance = (t - origin) << lift;
            let mut coefficients = &u.coefficients[piece * per_piece..][..per_piece];
            for (sum, &size) in row.iter_mut().zip(&sizes) {
                let (own, others) = coefficients.split_at(size);
                let horner = |value: i64, &c: &i64| product(value, distance) + c;
                *sum += own.iter().rev().fold(0, horner);
                coefficients = others;
            }
        }
    })
}

/// Adds A_c z^(k−m) of a neuron where z > 0.
fn add_single(term: &WholeTerm, single: &[i64], orders: &[usize], point: usize, row: &mut [i64]) {
    let (numbers, rest) = single.split_at(term.dimension() + 1);
    let below = affine(term, numbers, point);
    if below <= 0 {
        return;
    }
    let z = below << rest[0];
    for ((sum, &factor), &order) in row.iter_mut().zip(&rest[1..]).zip(orders) {
        // zᵏ⁻ᵐ first: symbols share the powers.
        let power = (order + 1..term.power).fold(z, |power, _| product(power, z));
        *sum += match order < term.power {
            true => product(factor, power),
            false => factor,
        };
    }
}

/// The residual at a point.
fn residual(term: &WholeTerm, jets: &[i64], shifts: &ChannelShifts, with_load: bool, point: usize) -> i64 {
    let (stride, layout) = (term.stride, term.term.layout());
    let source = match with_load {
        true => term.columns[layout.source() * stride + point] >> shifts.loads[0],
        false => 0,
    };
    let parts = layout.quadratic().iter().zip(&shifts.products).enumerate();
    parts.fold(-source, |sum, (c, (&column, &shift))| {
        sum + (product(term.columns[column * stride + point], jets[c * stride + point]) >> shift)
    })
}

/// `whole_field.wgsl`, second part: jets to channels.
fn channels(term: &WholeTerm, jets: &[i64], shifts: &ChannelShifts, with_load: bool) -> Vec<i64> {
    let (stride, layout) = (term.stride, term.term.layout());
    let value = |column: usize, point: usize| term.columns[column * stride + point];
    at_points(term, shifts.exponents.len(), |point, row| match layout {
        DensityLayout::Residual { .. } => {
            let residual = residual(term, jets, shifts, with_load, point);
            let weighted = product(value(layout.columns() - 1, point), residual);
            for (channel, &column) in row.iter_mut().zip(layout.quadratic()) {
                *channel = product(value(column, point), weighted);
            }
        }
        DensityLayout::Energy { quadratic, load, .. } => {
            for (c, channel) in row.iter_mut().enumerate() {
                let jet = product(value(quadratic[c], point), jets[c * stride + point]);
                *channel = jet >> shifts.products[c];
                if let (true, Some(column)) = (with_load, load[c]) {
                    *channel -= value(column, point) >> shifts.loads[c];
                }
            }
        }
    })
}

/// `whole_field.wgsl`, third part: the largest magnitude of each column.
fn peaks(term: &WholeTerm, columns: &[i64]) -> Vec<u32> {
    columns
        .chunks(term.stride)
        .map(|column| {
            let points = column[..term.count].iter();
            points.map(|&value| magnitude(value)).max().unwrap_or(0)
        })
        .collect()
}

/// `runs.wgsl`: the sums of one task of a line.
fn task_sums(
    term: &WholeTerm,
    channels: &[i64],
    entries: &[[u32; 2]],
    (factors, doublings): (&[i64], u32),
    orders: &[usize],
    sums: &mut [i64],
) {
    let power = term.power;
    let mut polynomial = vec![0; power + 1];
    for &entry in entries {
        let (point, place) = unpacked(entry);
        let distance = place >> doublings;
        polynomial.fill(0);
        for (c, (&factor, &order)) in factors.iter().zip(orders).enumerate() {
            if order <= power {
                polynomial[power - order] += product(factor, channels[c * term.stride + point]);
            }
        }
        for low in 0..power {
            for r in (low..power).rev() {
                polynomial[r] += product(polynomial[r + 1], distance);
            }
        }
        let terms = polynomial.iter().map(|&term| rounded_down(term, SUM_BITS));
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
}

/// `neurons.wgsl`: the sums of one neuron, symbol after symbol.
fn sums_of_neuron(term: &WholeTerm, channels: &[i64], argument: &[i64], per_symbol: usize) -> Vec<i128> {
    let (orders, stride) = (term.orders(), term.stride);
    let (numbers, lift) = (&argument[..=term.dimension()], argument[term.dimension() + 1]);
    let mut sums = vec![0i128; orders.len() * per_symbol];
    let mut powers = vec![0; term.power];
    for point in 0..term.count {
        let below = affine(term, numbers, point);
        if below <= 0 {
            continue;
        }
        let z = below << lift;
        // z, z², …: symbols share them.
        let mut before = None;
        for power in &mut powers {
            *power = before.map_or(z, |before| product(before, z));
            before = Some(*power);
        }
        for (c, (&order, sums)) in orders.iter().zip(sums.chunks_mut(per_symbol)).enumerate() {
            if order > term.power {
                continue;
            }
            let mut add = |place: usize, value: i64| {
                sums[place] += i128::from(rounded_down(value, SUM_BITS));
            };
            let channel = channels[c * stride + point];
            let times_power = |r: usize| match r {
                0 => channel,
                r => product(channel, powers[r - 1]),
            };
            let r = term.power - order;
            if r == 0 || per_symbol == 1 {
                add(0, times_power(r));
                continue;
            }
            // ρ z^(k−m−1), then ρ z^(k−m).
            let slope = times_power(r - 1);
            add(0, product(slope, z));
            add(per_symbol - 1, slope);
            for axis in 0..term.dimension() {
                add(1 + axis, product(slope, term.coordinates[axis * stride + point]));
            }
        }
    }
    sums
}

/// What the risk is made of: the jets of u, or its residual; their exponents, and how large they are.
fn risk_values(term: &WholeTerm, u: &WholeNetwork) -> (Vec<i64>, Vec<i32>, Vec<u32>) {
    let jets = jets(term, u);
    let (values, exponents) = match term.term.layout() {
        DensityLayout::Residual { .. } => {
            let shifts = term.channel_shifts(&u.exponents, true);
            let at = |point: usize| residual(term, &jets, &shifts, true, point);
            ((0..term.stride).map(at).collect(), vec![shifts.residual])
        }
        DensityLayout::Energy { .. } => (jets, u.exponents.clone()),
    };
    let peaks = peaks(term, &values);
    (values, exponents, peaks)
}

/// `whole_risk.wgsl`: the parts of Σ w φ, each with what one stands for in it.
fn risk_parts(term: &WholeTerm, u: &WholeNetwork, of_all: Option<&[u32]>) -> Vec<(f64, i128)> {
    let (stride, layout) = (term.stride, term.term.layout());
    let (values, exponents, peaks) = risk_values(term, u);
    let leads: Vec<u32> = of_all.unwrap_or(&peaks).iter().map(|&peak| lead(peak)).collect();
    let at = |c: usize, point: usize| values[c * stride + point] << leads[c];
    let coefficient = |column: usize, point: usize| term.columns[column * stride + point];
    let total = |at: &dyn Fn(usize) -> i64| -> i128 {
        let terms = (0..term.count).map(|point| i128::from(rounded_down(at(point), SUM_BITS)));
        terms.sum()
    };
    let sums: Vec<i128> = match layout {
        DensityLayout::Residual { columns, .. } => vec![total(&|point| {
            let residual = at(0, point);
            product(coefficient(columns - 1, point), product(residual, residual))
        })],
        DensityLayout::Energy { quadratic, load, .. } => {
            let of_symbol = |c: usize| {
                let square = total(&|point| {
                    let jet = at(c, point);
                    product(product(coefficient(quadratic[c], point), jet), jet)
                });
                let load = load[c].map_or(0, |column| {
                    total(&|point| product(coefficient(column, point), at(c, point)))
                });
                [square, load]
            };
            (0..leads.len()).flat_map(of_symbol).collect()
        }
    };
    let moved = exponents.iter().zip(&leads).map(|(e, &lead)| e - lead as i32);
    let units = term.risk_units(&moved.collect::<Vec<_>>());
    units.into_iter().zip(sums).collect()
}

impl Engine for Reference {
    fn peaks(&self, rho: &Functional) -> Result<Peaks, SolveError> {
        let Source::Network { network, with_load } = &rho.source else {
            return Ok(Peaks::new());
        };
        let made = self.unmoved_channels(network, *with_load);
        let peaks = made.iter().map(|term| term.peaks.clone()).collect();
        *self.unmoved.lock().unwrap_or_else(PoisonError::into_inner) = Some((rho.id, made));
        Ok(peaks)
    }

    fn line_sums(
        &self,
        rho: &Functional,
        runs: &Runs,
        which: &[usize],
        values: &[LineValues],
    ) -> Result<Vec<Vec<LineSums>>, SolveError> {
        let channels = self.channels(rho);
        let of_term = |(index, term): (usize, &WholeTerm)| {
            let (size, orders) = (term.power + 1, term.orders());
            let lines = self.runs(runs, index, which);
            let (channels, values) = (&channels[index], &values[index]);
            let of_line = |(place, line): (usize, &Arc<LineRuns>)| {
                let doublings = values.doublings[place];
                let factors = values.factors(term, place, &channels.exponents);
                let mut sums = vec![0; line.tasks.len() * size];
                for (task, sums) in line.tasks.iter().zip(sums.chunks_mut(size)) {
                    let entries = &line.entries[task.start as usize..task.end as usize];
                    let factors = (factors.as_slice(), doublings);
                    task_sums(term, &channels.columns, entries, factors, &orders, sums);
                }
                values.line(term, place, &channels.exponents, (&line.tasks, &sums))
            };
            lines.par_iter().enumerate().map(of_line).collect()
        };
        Ok(self.terms.iter().enumerate().map(of_term).collect())
    }

    fn neuron_sums(&self, rho: &Functional, lists: &[NeuronList]) -> Result<Vec<NeuronSums>, SolveError> {
        let channels = self.channels(rho);
        let of_term = |((term, channels), list): ((&WholeTerm, &Channels), &NeuronList)| {
            let arguments = list.arguments.par_chunks(term.dimension() + 2);
            let per_symbol = list.sums(term.dimension());
            let sums = arguments
                .flat_map_iter(|argument| sums_of_neuron(term, &channels.columns, argument, per_symbol))
                .collect();
            (channels.exponents.clone(), sums)
        };
        let terms = self.terms.iter().zip(&*channels).zip(lists);
        Ok(terms.map(of_term).collect())
    }

    fn risk_peaks(&self, u: &Network) -> Result<Peaks, SolveError> {
        let terms = self.terms.iter();
        Ok(terms.map(|term| risk_values(term, &term.network(u)).2).collect())
    }

    fn risk_sums(&self, u: &Network, peaks: Option<&Peaks>) -> Result<Vec<(f64, i128)>, SolveError> {
        let of_term = |(index, term): (usize, &WholeTerm)| {
            let peaks = peaks.map(|of_all| of_all[index].as_slice());
            risk_parts(term, &term.network(u), peaks)
        };
        Ok(self.terms.iter().enumerate().flat_map(of_term).collect())
    }

    fn report(&self) -> EngineReport {
        EngineReport::default()
    }
}
