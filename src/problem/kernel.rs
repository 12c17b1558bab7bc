//! What an equation leaves free: functions that cost nothing in its quadratic part.
//!
//! −Δu = f with fluxes all around determines u up to a constant, a free plate up to a + b·x. Such a
//! problem has solutions only if its data do no work on these functions: ∫f + ∫g = 0.

use crate::domain::{Domain, Region};
use crate::error::SolveError;
use crate::expression::{Graph, Workspace};
use crate::loss::{Density, Formula, Loss, TermSpec, TermTile};
use crate::points::Rule;
use crate::symbol::Symbol;
use nalgebra::{DMatrix, DVector};

/// Below this part of the largest stiffness a function costs nothing.
const NOTHING: f64 = 1e-13;
/// Work of the data on a free function that still counts as rounded figures, as a part of Σ|data|.
const ROUNDED: f64 = 1e-3;
/// How many times the scatter between rules an integral may be off.
const SCATTER: f64 = 8.0;

/// An affine function α + Σ βᵢ (xᵢ − cᵢ)/L, with c the centre of the domain and L its width.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// α.
    pub constant: f64,
    /// β.
    pub slopes: Vec<f64>,
    /// c.
    pub center: Vec<f64>,
    /// L.
    pub width: f64,
}

impl Affine {
    /// The value at a point.
    pub fn value(&self, point: impl Iterator<Item = f64>) -> f64 {
        let steps = point.zip(&self.center).zip(&self.slopes);
        self.constant + steps.map(|((x, c), b)| b * (x - c) / self.width).sum::<f64>()
    }

    /// p(∂) of it at a point.
    pub fn jet(&self, symbol: &Symbol, point: impl Iterator<Item = f64>) -> f64 {
        let of_order_one = |(c, alpha): &(f64, crate::expression::MultiIndex)| {
            c * alpha.coordinates().map(|i| self.slopes[i]).sum::<f64>() / self.width
        };
        match symbol.order() {
            0 => self.value(point) * symbol.terms().iter().map(|(c, _)| c).sum::<f64>(),
            1 => symbol.terms().iter().map(of_order_one).sum(),
            _ => 0.0,
        }
    }

    /// Σ sₖ vₖ.
    pub fn combination(factors: &[f64], functions: &[Affine]) -> Option<Affine> {
        let first = functions.first()?;
        let mut sum = Affine {
            constant: 0.0,
            slopes: vec![0.0; first.slopes.len()],
            ..first.clone()
        };
        for (factor, function) in factors.iter().zip(functions) {
            sum.constant += factor * function.constant;
            let slopes = sum.slopes.iter_mut().zip(&function.slopes);
            slopes.for_each(|(sum, slope)| *sum += factor * slope);
        }
        Some(sum)
    }

    /// The functional that is 1 on this function and 0 on the others of an orthonormal set:
    /// α mean(u) + Σ βᵢ L mean(∂u/∂xᵢ), as a loss whose derivative along g is minus its value at g.
    pub(super) fn functional(&self, graph: &mut Graph, domain: &Domain) -> TermSpec {
        let zero = Formula::new("0", graph.number(0.0));
        let mut parts = vec![(Symbol::value(), self.constant)];
        let slopes = self.slopes.iter().enumerate();
        parts.extend(slopes.map(|(i, slope)| (Symbol::derivative([i]), slope * self.width)));
        // The first symbol stays: it is the value by which a term is known.
        let first = parts.remove(0);
        parts.retain(|(_, weight)| *weight != 0.0);
        parts.insert(0, first);
        TermSpec {
            region: Region::Interior,
            scale: 1.0 / domain.measure(Region::Interior),
            listed: None,
            density: Density::Energy {
                parts: parts
                    .into_iter()
                    .map(|(symbol, weight)| {
                        let load = Formula::new("1", graph.number(weight));
                        (symbol, zero.clone(), load)
                    })
                    .collect(),
                potential: None,
            },
        }
    }
}

/// What a problem leaves free, and how it is fixed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kernel {
    /// Orthonormal functions that cost nothing.
    pub functions: Vec<Affine>,
    /// κ in ½κ Σ ℓ(u)², which puts each functional at 0 and changes nothing else.
    pub stiffness: f64,
    /// The work of the data on these functions, as a part of Σ|data|.
    pub mismatch: f64,
    /// Whether the data are so far from compatible that there is no solution.
    pub incompatible: bool,
}

impl Kernel {
    /// Finds what the terms of a loss leave free.
    pub(super) fn of(graph: &Graph, domain: &Domain, specs: &[TermSpec]) -> Result<Self, SolveError> {
        let basis = basis(domain, specs);
        let rules = rules(domain);
        let first = Sums::new(graph, domain, specs, &rules[0], &basis)?;
        let eigen = first.form.clone().symmetric_eigen();
        let largest = eigen.eigenvalues.amax().max(first.stiffness);
        if first.is_curved || largest <= 0.0 {
            return Ok(Self::default());
        }
        let free: Vec<DVector<f64>> = (0..basis.len())
            .filter(|&k| eigen.eigenvalues[k] <= NOTHING * largest)
            .map(|k| eigen.eigenvectors.column(k).into_owned())
            .collect();
        let functions = free
            .iter()
            .filter_map(|vector| Affine::combination(tidy(vector).as_slice(), &basis))
            .collect();
        if free.is_empty() {
            return Ok(Self::default());
        }
        let mut works = vec![first.work(&free)];
        for rule in &rules[1..] {
            works.push(Sums::new(graph, domain, specs, rule, &basis)?.work(&free));
        }
        let mean = works.iter().sum::<f64>() / works.len() as f64;
        let scatter = works.iter().map(|work| (work - mean).abs()).fold(0.0, f64::max);
        Ok(Self {
            functions,
            stiffness: first.stiffness,
            mismatch: (mean - SCATTER * scatter).max(0.0),
            incompatible: mean > ROUNDED + SCATTER * scatter,
        })
    }

    /// Whether there is nothing free.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// What is free, in words.
    pub fn what(&self) -> &'static str {
        let constant = |function: &Affine| function.slopes.iter().all(|slope| slope.abs() < 1e-6);
        match self.functions.iter().all(constant) {
            true => "a constant",
            false => "an affine function a + b·x",
        }
    }
}

impl Kernel {
    /// Which solution is taken, in words.
    pub fn fixed_by(&self) -> &'static str {
        match self.what() {
            "a constant" => "mean 0",
            _ => "the mean of u and of its slopes 0 where they are free",
        }
    }
}

/// Entries of an eigenvector that are rounding are zero.
fn tidy(vector: &DVector<f64>) -> DVector<f64> {
    vector.map(|entry| if entry.abs() < 1e-9 { 0.0 } else { entry })
}

/// 1 and, where no first derivative costs anything inside, the coordinates.
fn basis(domain: &Domain, specs: &[TermSpec]) -> Vec<Affine> {
    let dimension = domain.dimension();
    let side = |axis| {
        let (low, high) = domain.side(axis);
        high - low
    };
    let one = Affine {
        constant: 1.0,
        slopes: vec![0.0; dimension],
        center: domain.center(),
        width: (0..dimension).map(side).fold(0.0, f64::max),
    };
    let coordinates = (0..dimension).map(|i| {
        let mut coordinate = Affine {
            constant: 0.0,
            ..one.clone()
        };
        coordinate.slopes[i] = 1.0;
        coordinate
    });
    let has_slopes = specs.first().is_some_and(|interior| match &interior.density {
        Density::Energy { parts, .. } => parts.iter().any(|(symbol, ..)| symbol.order() == 1),
        Density::Residual { parts, .. } => parts.iter().any(|(symbol, _)| symbol.order() == 1),
    });
    let coordinates = coordinates.filter(|_| !has_slopes);
    std::iter::once(one.clone()).chain(coordinates).collect()
}

/// Several small rules, so that their scatter tells the error of an integral.
fn rules(domain: &Domain) -> Vec<Rule> {
    let gauss = |cells: [usize; 3]| cells.map(|cells| Rule::Gauss { cells, order: 4 }).to_vec();
    let dimension = if domain.has_cells() { domain.dimension() } else { 4 };
    match dimension {
        1 => gauss([97, 128, 160]),
        2 => gauss([13, 17, 22]),
        3 => gauss([4, 5, 7]),
        _ => [11, 12, 13, 14]
            .map(|seed| Rule::MonteCarlo {
                points: 1 << 13,
                seed,
            })
            .to_vec(),
    }
}

/// The quadratic part and the data of a loss on the basis.
struct Sums {
    form: DMatrix<f64>,
    loads: DVector<f64>,
    /// Σ|data|, to which work is compared.
    data: f64,
    /// The quadratic part of a polynomial of the equation's own order.
    stiffness: f64,
    /// Whether a potential bends somewhere: then nothing is free.
    is_curved: bool,
}

impl Sums {
    fn new(
        graph: &Graph,
        domain: &Domain,
        specs: &[TermSpec],
        rule: &Rule,
        basis: &[Affine],
    ) -> Result<Self, SolveError> {
        let loss = Loss::new(graph, domain, specs, |_| *rule)?;
        let order = loss.order();
        let mut sums = Self {
            form: DMatrix::zeros(basis.len(), basis.len()),
            loads: DVector::zeros(basis.len()),
            data: 0.0,
            stiffness: 0.0,
            is_curved: false,
        };
        let (mut workspace, mut tile) = (Workspace::default(), TermTile::default());
        for term in &loss.terms {
            for range in term.points.tiles() {
                term.fill(range, &mut workspace, &mut tile)?;
                let count = tile.tile.len();
                let jets = |jet: &dyn Fn(&Symbol, usize) -> f64| -> Vec<Vec<f64>> {
                    let points = |symbol| (0..count).map(move |k| jet(symbol, k)).collect();
                    term.symbols.iter().map(points).collect()
                };
                let at = |k: usize| tile.tile.point(k).into_iter();
                let of_basis: Vec<_> = basis
                    .iter()
                    .map(|function| jets(&|symbol, k| function.jet(symbol, at(k))))
                    .collect();
                let embedded: Vec<Vec<f64>> = of_basis.iter().map(|jets| term.embed(&tile, jets)).collect();
                for (i, a) in embedded.iter().enumerate() {
                    for (j, b) in embedded.iter().enumerate() {
                        sums.form[(i, j)] += dot(a, b);
                    }
                }
                let steep = jets(&|symbol, k| steep(symbol, &basis[0], at(k), order));
                let steep = term.embed(&tile, &steep);
                sums.stiffness += dot(&steep, &steep);
                let mut channels = jets(&|_, _| 0.0);
                term.gradient(&tile, &mut channels, &mut workspace)?;
                for (i, jets) in of_basis.iter().enumerate() {
                    let pairs = channels.iter().zip(jets);
                    sums.loads[i] -= pairs.map(|(channel, jet)| dot(channel, jet)).sum::<f64>();
                }
                sums.data += channels
                    .iter()
                    .flatten()
                    .map(|channel| channel.abs())
                    .sum::<f64>();
                if !term.is_quadratic() {
                    sums.is_curved |= bends(term, &tile, &jets(&|_, _| 1.0), &mut workspace)?;
                }
            }
        }
        Ok(sums)
    }

    /// The largest work of the data on free functions, as a part of Σ|data|.
    fn work(&self, free: &[DVector<f64>]) -> f64 {
        let works = free.iter().map(|vector| vector.dot(&self.loads).abs());
        works.fold(0.0, f64::max) / self.data.max(f64::MIN_POSITIVE)
    }
}

/// Whether a potential is more than linear: its curvature at u = ±1.
fn bends(
    term: &crate::loss::Term,
    tile: &TermTile,
    ones: &[Vec<f64>],
    workspace: &mut Workspace,
) -> Result<bool, SolveError> {
    let mut with = ones.to_vec();
    term.curvature(tile, Some(&ones[0]), &mut with, workspace)?;
    let mut without = ones.to_vec();
    term.curvature(tile, None, &mut without, workspace)?;
    let pairs = with.iter().flatten().zip(without.iter().flatten());
    Ok(pairs.into_iter().any(|(with, without)| with > without))
}

/// p(∂) of Σᵢ ((xᵢ − cᵢ)/L)^m / m!, a function that costs something in an equation with derivatives of order m.
fn steep(symbol: &Symbol, scale: &Affine, point: impl Iterator<Item = f64>, order: usize) -> f64 {
    let steps: Vec<f64> = point
        .zip(&scale.center)
        .map(|(x, c)| (x - c) / scale.width)
        .collect();
    let left = order.saturating_sub(symbol.order());
    let factorial: f64 = (1..=left).map(|k| k as f64).product();
    let power = |i: usize| steps[i].powi(left as i32) / factorial;
    let terms = symbol.terms().iter().map(|(c, alpha)| {
        let axes: Vec<usize> = alpha.coordinates().collect();
        c * match axes.first() {
            None => (0..steps.len()).map(power).sum::<f64>(),
            Some(&axis) if axes.iter().all(|&i| i == axis) => power(axis),
            Some(_) => 0.0,
        }
    });
    terms.sum::<f64>() / scale.width.powi(symbol.order() as i32)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
