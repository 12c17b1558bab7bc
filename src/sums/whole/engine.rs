//! What adds up whole numbers over the points: the reference on the CPU, or a device.

use super::fixed::{NOTHING, ONE_BITS, distance, exponent, fixed, lead, power_of_two};
use super::runs::{LineSums, Runs, Task, unique};
use super::term::{ChannelShifts, WholeTerm};
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::network::Network;
use std::sync::OnceLock;

/// Sums of whole numbers over the points of every term of a loss, as far as they are this process's.
///
/// All implementors give the same numbers, to the bit: what is added up is whole numbers, and what is rounded on the
/// way is rounded alike. Everything that is not whole is done once, by [`WholeSums`](super::WholeSums), and so is
/// everything that other processes have to do with.
pub trait Engine {
    /// How large the channels of a functional are that is made from a network.
    fn peaks(&self, rho: &Functional) -> Result<Peaks, SolveError>;

    /// For some lines, per term: the sums of their bins, with channels multiplied by `values`.
    fn line_sums(
        &self,
        rho: &Functional,
        runs: &Runs,
        which: &[usize],
        values: &[LineValues],
    ) -> Result<Vec<Vec<LineSums>>, SolveError>;

    /// For neurons one by one, per term: the exponents of the functional's channels, and for each neuron and symbol the
    /// [sums](NeuronList::sums).
    fn neuron_sums(&self, rho: &Functional, lists: &[NeuronList]) -> Result<Vec<NeuronSums>, SolveError>;

    /// How large the values are of which the sums of the risk are made.
    fn risk_peaks(&self, u: &Network) -> Result<Peaks, SolveError>;

    /// Σ w φ at a network, per term: sums with what they are to be multiplied by. `peaks` are those of all processes,
    /// where there are others.
    fn risk_sums(&self, u: &Network, peaks: Option<&Peaks>) -> Result<Vec<(f64, i128)>, SolveError>;

    /// What it is and what it has to tell.
    fn report(&self) -> EngineReport;
}

/// What an [`Engine`] tells of itself.
#[derive(Debug, Clone, Default)]
pub struct EngineReport {
    /// The device's name, where it is one.
    pub adapter: Option<String>,
    /// Whether the CPU had to take over.
    pub lost: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The largest magnitude of some columns, per term and column: by so much numbers may be moved up.
pub type Peaks = Vec<Vec<u32>>;

/// A linear functional at the points, or how to make it.
pub struct Functional {
    /// Whoever keeps its channels knows them by this number.
    pub id: u64,
    /// Where the channels come from.
    pub source: Source,
    /// How large channels made from a network are at the points of all processes, where there are others.
    pub peaks: OnceLock<Peaks>,
}

/// Where channels come from.
pub enum Source {
    /// ∇L(u) with the load, ∇²L u without.
    Network {
        /// u.
        network: Network,
        /// Whether with the load.
        with_load: bool,
    },
    /// Computed already: per term a column per symbol, …
    Columns {
        /// … its numbers at this process's points, …
        columns: Vec<Vec<Vec<f64>>>,
        /// … and the exponent of those of all.
        exponents: Vec<Vec<i32>>,
    },
}

/// Exponents of channels, and sums per neuron and symbol.
pub type NeuronSums = (Vec<i32>, Vec<i128>);

/// By what the channels are multiplied along some lines of a term, so that they can be added. How large the channels
/// are is left open: a device makes them, and adds them up before the host is told.
pub struct LineValues {
    /// Per line and symbol: p_c(ω) k!/(k−m)! Lᵏ⁻ᵐ, L the length in which distances are measured, …
    pub mantissas: Vec<i64>,
    /// … as a part of two to this.
    pub powers: Vec<i32>,
    /// Per line: L is so many times doubled the width of a bin, and at least the largest distance between a point and
    /// a knot. Measured in bins, distances of thousands to the power k would magnify the rounding of the sums.
    pub doublings: Vec<u32>,
    /// Whether the sums are to be added to those of other processes, and so to be left in whole numbers.
    pub among_others: bool,
}

impl LineValues {
    /// So many bits above the largest product of value and channel lies what one stands for. The magnitudes of a line's
    /// factors then add up to at most 2^−k: a term is a polynomial Σ_m q_m (δ + s)^(k−m) in s, and the binomial
    /// coefficients of a power add up to at most 2^k, so that its coefficients are at most one.
    pub fn room(term: &WholeTerm) -> i32 {
        (term.term.symbols.len().next_power_of_two().ilog2() as usize + term.power) as i32
    }

    /// How many values a line has.
    pub fn symbols(&self) -> usize {
        self.powers.len() / self.doublings.len().max(1)
    }

    /// The exponents of the products of a line's values with channels of these exponents.
    fn scales<'a>(&'a self, line: usize, exponents: &'a [i32]) -> impl Iterator<Item = i32> + 'a {
        let powers = &self.powers[line * exponents.len()..];
        let pairs = exponents.iter().zip(powers);
        pairs.map(|(&e, &power)| match e > NOTHING && power > NOTHING {
            true => power + e,
            false => NOTHING,
        })
    }

    /// The exponent of a line's unit.
    fn unit_exponent(&self, term: &WholeTerm, line: usize, exponents: &[i32]) -> i32 {
        self.scales(line, exponents).fold(NOTHING, i32::max) + Self::room(term)
    }

    /// What one stands for in the sums of a line.
    pub fn unit(&self, term: &WholeTerm, line: usize, exponents: &[i32]) -> f64 {
        power_of_two(self.unit_exponent(term, line, exponents) + SUM_BITS as i32 - ONE_BITS as i32)
    }

    /// The sums of the bins of the line at this place from those of its tasks, with channels of these exponents.
    pub fn line(
        &self,
        term: &WholeTerm,
        line: usize,
        exponents: &[i32],
        (tasks, sums): (&[Task], &[i64]),
    ) -> LineSums {
        let (size, unit) = (term.power + 1, self.unit(term, line, exponents));
        match self.among_others {
            false => LineSums::new(tasks, sums, size, unit, self.doublings[line]),
            true => LineSums::among_others(tasks, sums, size, unit, self.doublings[line]),
        }
    }

    /// The factors of a line's channels, as parts of its unit.
    pub fn factors(&self, term: &WholeTerm, line: usize, exponents: &[i32]) -> Vec<i64> {
        let unit = self.unit_exponent(term, line, exponents);
        let mantissas = &self.mantissas[line * exponents.len()..];
        let scales = self.scales(line, exponents).zip(mantissas);
        scales
            .map(|(scale, &mantissa)| match scale > NOTHING {
                true => mantissa >> distance(scale, unit),
                false => 0,
            })
            .collect()
    }
}

/// Neurons to be summed one by one at a term's points.
pub struct NeuronList {
    /// Per neuron: C, Ω₁ … Ω_d, whose sum C + Σ Ω_d X_d is positive where the neuron is active, and by how many bits
    /// it is then moved up to give z, at most one.
    pub arguments: Vec<i64>,
    /// How many neurons.
    pub count: usize,
    /// Whether with slopes.
    pub slopes: bool,
}

impl NeuronList {
    /// Per neuron and symbol: Σ ρ zᵏ⁻ᵐ and with slopes Σ ρ zᵏ⁻ᵐ⁻¹ X_d, Σ ρ zᵏ⁻ᵐ⁻¹.
    pub fn sums(&self, dimension: usize) -> usize {
        if self.slopes { 2 + dimension } else { 1 }
    }
}

/// Terms are moved down by so many bits before 4096 of them are added, rounded to the nearest: each is at most one,
/// so that the sum is at most 2⁶¹⁻¹³⁺¹² = 2⁶⁰. Before that numbers are rounded down, which is too little to add up to
/// anything: a part of 2⁻⁶¹ each.
pub const SUM_BITS: u32 = 13;

impl Functional {
    /// From a network.
    pub fn of_network(network: Network, with_load: bool) -> Self {
        Self {
            id: unique(),
            source: Source::Network { network, with_load },
            peaks: OnceLock::new(),
        }
    }

    /// From columns, per term and symbol, of which every process has its part.
    pub fn of_columns(columns: Vec<Vec<Vec<f64>>>, cluster: &Cluster) -> Self {
        let exponents = columns.iter().map(|of_term| exponents(of_term, cluster));
        Self {
            id: unique(),
            source: Source::Columns {
                exponents: exponents.collect(),
                columns,
            },
            peaks: OnceLock::new(),
        }
    }
}

/// The exponents of columns of which every process has its part.
pub(super) fn exponents(columns: &[Vec<f64>], cluster: &Cluster) -> Vec<i32> {
    let of_column = |values: &Vec<f64>| {
        let largest = values.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
        i64::from(exponent(largest))
    };
    let own: Vec<i64> = columns.iter().map(of_column).collect();
    cluster.largest(&own).into_iter().map(|e| e as i32).collect()
}

/// The columns of a term in whole numbers, padded.
pub fn whole_columns(term: &WholeTerm, columns: &[Vec<f64>], exponents: &[i32]) -> Vec<i64> {
    let mut all = Vec::with_capacity(term.stride * columns.len());
    for (values, &e) in columns.iter().zip(exponents) {
        all.extend(values.iter().map(|&value| fixed(value, e)));
        all.extend(std::iter::repeat_n(0, term.stride - values.len()));
    }
    all
}

/// How much channels may be moved up, given the largest magnitude of each, and their exponents then.
pub fn with_leads(shifts: &ChannelShifts, peaks: &[u32]) -> (Vec<u32>, Vec<i32>) {
    let leads: Vec<u32> = peaks.iter().map(|&peak| lead(peak)).collect();
    let pairs = shifts.exponents.iter().zip(&leads);
    let exponents = pairs.map(|(e, &lead)| (e - lead as i32).max(NOTHING)).collect();
    (leads, exponents)
}
