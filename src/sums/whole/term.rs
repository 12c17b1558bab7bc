//! A term of the loss in whole numbers: its points, its coefficients, and what they make of a network.

use super::engine::{SUM_BITS, exponents};
use super::fixed::{self, NOTHING, ONE_BITS, distance, exponent, fixed, power_of_two};
use crate::activation::falling_factorial;
use crate::cluster::Cluster;
use crate::domain::Domain;
use crate::error::SolveError;
use crate::expression::Workspace;
use crate::loss::{DensityLayout, Term, TermTile};
use crate::network::{Network, Neuron, Ridge, ridges};
use crate::points::in_parallel;
use crate::ridge::Spline;
use std::ops::Range;

/// Columns are padded with zeros to a multiple of this many points.
pub const BLOCK: usize = 4096;

/// So many neurons along one direction are evaluated one by one: cheaper than to look for the piece of a polynomial.
const FEW: usize = 3;

/// Arguments are moved up by at most so many bits: the others are rounding.
const LARGEST_LIFT: f64 = 20.0;

/// Points and coefficients of a term as whole numbers.
pub struct WholeTerm {
    /// The term.
    pub term: Term,
    /// k of ReLU^k.
    pub power: usize,
    /// How many points there are here, …
    pub count: usize,
    /// … padded to whole blocks.
    pub stride: usize,
    /// One column per coordinate: (x − lower) / width as a fraction of one.
    pub coordinates: Vec<i64>,
    /// One column per column of the density's layout.
    pub columns: Vec<i64>,
    /// The exponents of the columns.
    pub exponents: Vec<i32>,
    /// A box around the points.
    frame: Frame,
}

/// The box in which coordinates are fractions.
#[derive(Debug, Clone)]
pub struct Frame {
    pub(super) lower: Vec<f64>,
    pub(super) width: Vec<f64>,
}

/// A network as a sum over single neurons and over directions with piecewise polynomials, for one term.
///
/// A single neuron's value under symbol c is A_c z^(k − m_c) where z > 0. Along a direction that many neurons share
/// t = C + Σ Ω_d X_d runs from 0 to one inside the box. From an origin on, up to the next, the value under symbol c is
/// a polynomial of degree k − m_c in the distance.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeNetwork {
    /// Per single neuron: its argument as in a [list](super::NeuronList), and A_c of each symbol.
    pub singles: Vec<i64>,
    /// Per direction: C, Ω₁ … Ω_d.
    pub lines: Vec<i64>,
    /// Where the pieces of each direction begin, and the end.
    pub starts: Vec<u32>,
    /// Per piece: where it begins along t, and by how many bits distances are moved up: at most one at its end.
    pub origins: Vec<[i64; 2]>,
    /// Per piece and symbol: the coefficients, the constant first.
    pub coefficients: Vec<i64>,
    /// The exponent of each symbol's values.
    pub exponents: Vec<i32>,
}

/// The parts of a network before the exponents of its values are known.
struct NetworkParts {
    /// Arguments and A_c.
    singles: Vec<(Vec<i64>, Vec<f64>)>,
    lines: Vec<i64>,
    starts: Vec<u32>,
    origins: Vec<[i64; 2]>,
    pieces: Vec<Vec<f64>>,
    /// Of each symbol's values.
    bounds: Vec<f64>,
}

impl NetworkParts {
    fn new(symbols: usize) -> Self {
        Self {
            singles: Vec::new(),
            lines: Vec::new(),
            starts: vec![0],
            origins: Vec::new(),
            pieces: Vec::new(),
            bounds: vec![0.0; symbols],
        }
    }

    fn in_whole_numbers(self, sizes: &[usize]) -> WholeNetwork {
        let exponents: Vec<i32> = self.bounds.iter().map(|&bound| exponent(bound)).collect();
        let of_coefficient: Vec<i32> = sizes
            .iter()
            .zip(&exponents)
            .flat_map(|(&size, &e)| std::iter::repeat_n(e, size))
            .collect();
        let rounded = |values: &[f64], exponents: &[i32]| -> Vec<i64> {
            let pairs = values.iter().zip(exponents);
            pairs.map(|(&value, &e)| fixed(value, e)).collect()
        };
        let singles = self.singles.into_iter().flat_map(|(mut numbers, factors)| {
            numbers.extend(rounded(&factors, &exponents));
            numbers
        });
        WholeNetwork {
            singles: singles.collect(),
            lines: self.lines,
            starts: self.starts,
            origins: self.origins,
            coefficients: self
                .pieces
                .iter()
                .flat_map(|piece| rounded(piece, &of_coefficient))
                .collect(),
            exponents,
        }
    }
}

/// How channels are made of jets: by how many bits the parts are moved down so that they can be added.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelShifts {
    /// Of each symbol's product with its coefficient.
    pub products: Vec<u32>,
    /// Of each symbol's load, or of the source.
    pub loads: Vec<u32>,
    /// The exponent of each symbol's channel.
    pub exponents: Vec<i32>,
    /// The exponent of a residual.
    pub residual: i32,
}

impl ChannelShifts {
    /// Of channels that were not made of jets.
    #[cfg(feature = "gpu")]
    pub(crate) fn unmoved(exponents: Vec<i32>) -> Self {
        Self {
            products: Vec::new(),
            loads: Vec::new(),
            exponents,
            residual: 0,
        }
    }
}

/// By how many bits numbers up to `part` of one may be moved up.
fn lift(part: f64) -> u32 {
    -part.log2().ceil().clamp(-LARGEST_LIFT, 0.0) as u32
}

impl Frame {
    /// The box around a domain.
    pub fn new(domain: &Domain) -> Self {
        let sides: Vec<(f64, f64)> = (0..domain.dimension()).map(|axis| domain.side(axis)).collect();
        Self {
            lower: sides.iter().map(|(low, _)| *low).collect(),
            width: sides.iter().map(|(low, high)| high - low).collect(),
        }
    }

    /// The smallest ω·x in the box and the length of its range.
    pub fn range(&self, omega: &[f64]) -> (f64, f64) {
        let sides = omega.iter().zip(self.lower.iter().zip(&self.width));
        sides.fold((0.0, 0.0), |(low, length), (o, (l, w))| {
            (low + o * l + (o * w).min(0.0), length + (o * w).abs())
        })
    }

    /// C, Ω₁ … Ω_d with (ω·x + b) / scale = C + Σ Ω_d X_d.
    fn affine(&self, omega: &[f64], bias: f64, scale: f64) -> Vec<i64> {
        let at_lower = bias + omega.iter().zip(&self.lower).map(|(o, l)| o * l).sum::<f64>();
        let slopes = omega
            .iter()
            .zip(&self.width)
            .map(|(o, w)| fixed(o * w / scale, 0));
        std::iter::once(fixed(at_lower / scale, 0))
            .chain(slopes)
            .collect()
    }

    /// A neuron's argument for a [list](super::NeuronList), with what one stands for in it; nothing where the neuron
    /// vanishes in the box.
    ///
    /// As a fraction of its range, or of its largest value if that is more, it is at most one everywhere. Where it is
    /// positive it is moved up by as many bits as its largest value allows.
    pub fn argument(&self, neuron: &Neuron) -> Option<(f64, Vec<i64>)> {
        let (low, length) = self.range(&neuron.omega);
        let largest = low + length + neuron.bias;
        let scale = largest.max(length);
        if largest <= 0.0 {
            return None;
        }
        let lift = lift(largest / scale);
        let mut argument = self.affine(&neuron.omega, neuron.bias, scale);
        argument.push(i64::from(lift));
        Some((scale * power_of_two(-(lift as i32)), argument))
    }
}

impl WholeTerm {
    /// Rounds a term's points and coefficients.
    pub fn new(term: &Term, domain: &Domain, power: usize) -> Result<Self, SolveError> {
        Self::shared(term, domain, power, 0..term.points.len(), Cluster::nobody_else())
    }

    /// The same for those points, whole tiles of them, that are this process's.
    pub fn shared(
        term: &Term,
        domain: &Domain,
        power: usize,
        own: Range<usize>,
        cluster: &Cluster,
    ) -> Result<Self, SolveError> {
        let frame = Frame::new(domain);
        let tiles = term.points.tiles().filter(|tile| own.contains(&tile.start));
        let tiles: Vec<_> = tiles.collect();
        let parts = in_parallel(&tiles, |workspace: &mut Workspace, range| {
            let mut tile = TermTile::default();
            term.fill(range.clone(), workspace, &mut tile)?;
            Ok::<_, SolveError>(tile)
        });
        let parts: Vec<TermTile> = cluster.agree(parts)?;
        let (count, dimension) = (own.len(), term.points.dimension());
        // Who has no points has a block of nothing.
        let stride = count.next_multiple_of(BLOCK).max(BLOCK);
        let gathered = |columns: usize, of: &dyn Fn(&TermTile) -> Vec<Vec<f64>>| {
            let mut gathered = vec![Vec::with_capacity(stride); columns];
            for part in &parts {
                for (all, column) in gathered.iter_mut().zip(of(part)) {
                    all.extend(column);
                }
            }
            gathered.iter_mut().for_each(|column| column.resize(stride, 0.0));
            gathered
        };
        let mut coordinates = Vec::with_capacity(dimension * stride);
        for (axis, xs) in gathered(dimension, &|part| part.tile.coordinates.clone())
            .iter()
            .enumerate()
        {
            let (low, width) = (frame.lower[axis], frame.width[axis]);
            let fraction = |x: &f64| fixed(((x - low) / width).clamp(0.0, 1.0), 0);
            coordinates.extend(xs.iter().map(fraction));
        }
        let values = gathered(term.layout().columns(), &|part| term.weighted_columns(part));
        let exponents = exponents(&values, cluster);
        let mut columns = Vec::with_capacity(values.len() * stride);
        for (values, &e) in values.iter().zip(&exponents) {
            columns.extend(values.iter().map(|&value| fixed(value, e)));
        }
        Ok(Self {
            term: term.clone(),
            power,
            count,
            stride,
            coordinates,
            columns,
            exponents,
            frame,
        })
    }

    /// The bytes of such a term.
    pub fn bytes(term: &Term) -> usize {
        let columns = term.points.dimension() + term.layout().columns() + 2 * term.symbols.len();
        term.points
            .len()
            .next_multiple_of(BLOCK)
            .saturating_mul(8 * columns)
    }

    /// The box in which coordinates are fractions.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.frame.lower.len()
    }

    /// m_c of each symbol.
    pub fn orders(&self) -> Vec<usize> {
        self.term.symbols.iter().map(|symbol| symbol.order()).collect()
    }

    /// k − m_c + 1 for each symbol: how many coefficients its polynomials have.
    pub fn sizes(&self) -> Vec<usize> {
        let sizes = self.orders().into_iter();
        sizes
            .map(|order| (self.power + 1).saturating_sub(order))
            .collect()
    }

    /// The x of a coordinate, from its column.
    pub fn position(&self, axis: usize, point: usize) -> f64 {
        let fraction = self.coordinates[axis * self.stride + point] as f64 / fixed::ONE as f64;
        self.frame.lower[axis] + self.frame.width[axis] * fraction
    }

    /// A network in whole numbers.
    ///
    /// No number overflows: a symbol's exponent is such that Σ|A_c| over the single neurons and Σ over the directions of
    /// the largest Σ_r |coefficient r| of a piece stay below one together, and arguments and distances, moved up, are
    /// at most one.
    pub fn network(&self, u: &Network) -> WholeNetwork {
        let mut parts = NetworkParts::new(self.term.symbols.len());
        for ridge in ridges(&u.neurons) {
            if ridge.members.len() <= FEW {
                for (n, ..) in ridge.members {
                    self.add_single(&u.neurons[n], u.coefficients[n], &mut parts);
                }
            } else {
                self.add_line(&ridge, &u.coefficients, &mut parts);
            }
        }
        parts.in_whole_numbers(&self.sizes())
    }

    fn add_single(&self, neuron: &Neuron, coefficient: f64, parts: &mut NetworkParts) {
        let Some((scale, argument)) = self.frame.argument(neuron) else {
            return;
        };
        let factors = self.term.symbols.iter().map(|symbol| {
            let m = symbol.order();
            match m <= self.power {
                true => {
                    let stretch = scale.powi((self.power - m) as i32);
                    coefficient * symbol.at(&neuron.omega) * falling_factorial(self.power, m) * stretch
                }
                false => 0.0,
            }
        });
        let factors: Vec<f64> = factors.collect();
        parts
            .bounds
            .iter_mut()
            .zip(&factors)
            .for_each(|(bound, f)| *bound += f.abs());
        parts.singles.push((argument, factors));
    }

    fn add_line(&self, ridge: &Ridge, coefficients: &[f64], parts: &mut NetworkParts) {
        let size = self.power + 1;
        let (low, length) = self.frame.range(&ridge.omega);
        let scale = if length > 0.0 { length } else { 1.0 };
        parts.lines.extend(self.frame.affine(&ridge.omega, -low, scale));
        let stretch = scale.powi(self.power as i32);
        let members: Vec<(f64, f64, f64)> = ridge
            .members
            .iter()
            .map(|&(n, sign, bias)| (coefficients[n] * stretch, sign, (bias + sign * low) / scale))
            .collect();
        let pieces = Spline::new(self.power, &members).pieces_within_one();
        let mut largest = vec![0.0f64; parts.bounds.len()];
        for (index, (origin, piece)) in pieces.iter().enumerate() {
            let end = pieces.get(index + 1).map_or(1.0, |(next, _)| *next);
            let lift = lift(end - origin);
            parts.origins.push([fixed(*origin, 0), i64::from(lift)]);
            let unit = power_of_two(-(lift as i32));
            let mut of_piece = Vec::new();
            for (symbol, largest) in self.term.symbols.iter().zip(&mut largest) {
                let m = symbol.order();
                let factor = symbol.at(&ridge.omega) / scale.powi(m as i32);
                let coefficients = (m..size)
                    .map(|r| factor * falling_factorial(r, m) * piece[r] * unit.powi((r - m) as i32));
                let start = of_piece.len();
                of_piece.extend(coefficients);
                *largest = largest.max(of_piece[start..].iter().map(|c: &f64| c.abs()).sum());
            }
            parts.pieces.push(of_piece);
        }
        parts
            .bounds
            .iter_mut()
            .zip(&largest)
            .for_each(|(bound, l)| *bound += l);
        parts.starts.push(parts.origins.len() as u32);
    }

    /// How the channels of a functional are made of jets with these exponents.
    ///
    /// A product of two numbers up to one is at most one; of a symbol's product and its load, each moved down by at
    /// least a bit, the sum is. A residual adds up s products and a source, moved down by log₂(s + 1) bits or more.
    pub fn channel_shifts(&self, jets: &[i32], with_load: bool) -> ChannelShifts {
        let layout = self.term.layout();
        let product = |c: usize| {
            let coefficient = self.exponents[layout.quadratic()[c]];
            (jets[c] + coefficient).max(NOTHING)
        };
        let products: Vec<i32> = (0..jets.len()).map(product).collect();
        let load = |column: usize| match (with_load, self.exponents.get(column)) {
            (true, Some(&e)) => e,
            _ => NOTHING,
        };
        match layout {
            DensityLayout::Energy { .. } => {
                let loads: Vec<i32> = layout.load().into_iter().map(load).collect();
                let exponents: Vec<i32> = products.iter().zip(&loads).map(|(p, l)| 1 + p.max(l)).collect();
                let from = |parts: &[i32]| {
                    let pairs = parts.iter().zip(&exponents);
                    pairs.map(|(&part, &sum)| distance(part, sum)).collect()
                };
                ChannelShifts {
                    products: from(&products),
                    loads: from(&loads),
                    exponents,
                    residual: 0,
                }
            }
            DensityLayout::Residual { .. } => {
                let source = load(layout.source());
                let parts = (products.len() + 1).next_power_of_two().ilog2() as i32;
                let largest = products.iter().fold(source, |largest, &p| largest.max(p));
                let residual = largest + parts;
                let weight = self.exponents[layout.columns() - 1];
                let channel = |&column: &usize| residual + weight + self.exponents[column];
                ChannelShifts {
                    products: products.iter().map(|&p| distance(p, residual)).collect(),
                    loads: vec![distance(source, residual)],
                    exponents: layout.quadratic().iter().map(channel).collect(),
                    residual,
                }
            }
        }
    }

    /// What one stands for in each part of Σ w φ, at values with these exponents: the jets, of which each symbol has a
    /// part for its square and one for its load, or a residual.
    pub fn risk_units(&self, values: &[i32]) -> Vec<f64> {
        let unit = |e: i32| power_of_two(e + SUM_BITS as i32 - ONE_BITS as i32);
        match self.term.layout() {
            DensityLayout::Residual { columns, .. } => {
                vec![0.5 * unit(self.exponents[columns - 1] + 2 * values[0])]
            }
            DensityLayout::Energy { quadratic, load, .. } => {
                let of_symbol = |(c, &e): (usize, &i32)| {
                    let load = load[c].map_or(0.0, |column| unit(self.exponents[column] + e));
                    [0.5 * unit(self.exponents[quadratic[c]] + 2 * e), -load]
                };
                values.iter().enumerate().flat_map(of_symbol).collect()
            }
        }
    }
}
