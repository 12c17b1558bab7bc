//! Gauss points on simplices.

use nalgebra::DMatrix;

/// A place of a reference cell and its weight; the weights of a rule add up to the cell's volume.
pub type Node = ([f64; 3], f64);

/// A composite rule on the unit simplex: its edges are cut into `parts`, which makes parts^d simplices of one size, each with
/// order^d points of the conical product of Gauss-Jacobi rules, exact for polynomials of degree 2 order − 1.
pub fn simplex_rule(dimension: usize, parts: usize, order: usize) -> Vec<Node> {
    let base = conical(dimension, order);
    let scale = (parts as f64).powi(dimension as i32);
    let mut nodes = Vec::with_capacity(base.len() * parts.pow(dimension as u32));
    for corners in pieces(dimension, parts) {
        for (place, weight) in &base {
            let mut at = [0.0; 3];
            let first = 1.0 - place[..dimension].iter().sum::<f64>();
            for i in 0..dimension {
                at[i] =
                    first * corners[0][i] + (0..dimension).map(|k| place[k] * corners[k + 1][i]).sum::<f64>();
            }
            nodes.push((at, weight / scale));
        }
    }
    nodes
}

/// A composite rule on the unit cube.
pub fn cube_rule(dimension: usize, parts: usize, order: usize) -> Vec<Node> {
    let line = gauss(order, 0);
    let along: Vec<(f64, f64)> = (0..parts)
        .flat_map(|cell| line.iter().map(move |(x, w)| (cell as f64 + x, *w)))
        .map(|(x, w)| (x / parts as f64, w / parts as f64))
        .collect();
    (0..along.len().pow(dimension as u32))
        .map(|index| {
            let (mut rest, mut at, mut weight) = (index, [0.0; 3], 1.0);
            for x in at.iter_mut().take(dimension) {
                let (place, w) = along[rest % along.len()];
                rest /= along.len();
                *x = place;
                weight *= w;
            }
            (at, weight)
        })
        .collect()
}

/// Nodes and weights of ∫₀¹ (1 − x)^power f(x) dx, by the eigenvalues of Jacobi's matrix (Golub and Welsch). Not by `gauss-quad`:
/// its Gauss-Jacobi rules of odd order take the middle node to be 0, which it is only for even weights.
fn gauss(order: usize, power: usize) -> Vec<(f64, f64)> {
    let alpha = power as f64;
    let mut matrix = DMatrix::zeros(order, order);
    for k in 0..order {
        let (k_real, twice) = (k as f64, 2.0 * k as f64 + alpha);
        matrix[(k, k)] = match k {
            0 => -alpha / (alpha + 2.0),
            _ => -alpha * alpha / (twice * (twice + 2.0)),
        };
        if k > 0 {
            // k (k + α) · k (k + α) · 4 / ((2k + α)² ((2k + α)² − 1)), with β = 0.
            let square = 4.0 * (k_real * (k_real + alpha)).powi(2) / (twice * twice * (twice * twice - 1.0));
            matrix[(k, k - 1)] = square.sqrt();
            matrix[(k - 1, k)] = square.sqrt();
        }
    }
    let eigen = matrix.symmetric_eigen();
    let mut nodes: Vec<(f64, f64)> = (0..order)
        .map(|k| {
            let first = eigen.eigenvectors[(0, k)];
            (0.5 * (1.0 + eigen.eigenvalues[k]), first * first / (alpha + 1.0))
        })
        .collect();
    nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
    nodes
}

/// x₁ = t₁, x₂ = (1 − t₁) t₂, x₃ = (1 − t₁)(1 − t₂) t₃.
fn conical(dimension: usize, order: usize) -> Vec<Node> {
    let mut nodes: Vec<(Node, f64)> = vec![(([0.0; 3], 1.0), 1.0)];
    for axis in 0..dimension {
        let line = gauss(order, dimension - 1 - axis);
        nodes = nodes
            .iter()
            .flat_map(|((at, weight), left)| {
                line.iter().map(move |(t, w)| {
                    let mut at = *at;
                    at[axis] = left * t;
                    ((at, weight * w), left * (1.0 - t))
                })
            })
            .collect();
    }
    nodes.into_iter().map(|(node, _)| node).collect()
}

/// The corners of the simplices that the unit simplex is cut into.
///
/// In the coordinates yᵢ = xᵢ + xᵢ₊₁ + … the simplex is 1 ≥ y₁ ≥ y₂ ≥ … ≥ 0. Every cube of a grid is cut into d! simplices, one
/// for each order in which its coordinates can rise; those with y in order belong to the simplex.
fn pieces(dimension: usize, parts: usize) -> Vec<Vec<[f64; 3]>> {
    let mut found = Vec::new();
    for cube in 0..parts.pow(dimension as u32) {
        let digit = |axis: usize| cube / parts.pow(axis as u32) % parts;
        let base: Vec<usize> = (0..dimension).map(digit).collect();
        if base.windows(2).any(|pair| pair[0] < pair[1]) {
            continue;
        }
        for rising in permutations(dimension) {
            // Where two digits are equal the earlier coordinate must rise first.
            let rank = |axis: usize| rising.iter().position(|&other| other == axis);
            let inside =
                (1..dimension).all(|axis| base[axis - 1] > base[axis] || rank(axis - 1) < rank(axis));
            if !inside {
                continue;
            }
            let mut corner = base.clone();
            let mut corners = vec![unfolded(&corner, parts)];
            for &axis in &rising {
                corner[axis] += 1;
                corners.push(unfolded(&corner, parts));
            }
            found.push(corners);
        }
    }
    found
}

/// xᵢ = yᵢ − yᵢ₊₁.
fn unfolded(y: &[usize], parts: usize) -> [f64; 3] {
    let mut x = [0.0; 3];
    for i in 0..y.len() {
        let next = y.get(i + 1).copied().unwrap_or(0);
        x[i] = (y[i] as f64 - next as f64) / parts as f64;
    }
    x
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    permutations(count - 1)
        .into_iter()
        .flat_map(|shorter| {
            (0..count).map(move |place| {
                let mut longer = shorter.clone();
                longer.insert(place, count - 1);
                longer
            })
        })
        .collect()
}

/// A point of the unit simplex from one of the unit cube, evenly: with s in falling order, xᵢ = sᵢ − sᵢ₊₁.
pub fn folded(s: &[f64]) -> [f64; 3] {
    let mut sorted = [0.0; 3];
    sorted[..s.len()].copy_from_slice(s);
    sorted[..s.len()].sort_by(|a, b| b.total_cmp(a));
    let mut x = [0.0; 3];
    for i in 0..s.len() {
        x[i] = sorted[i] - sorted.get(i + 1).copied().unwrap_or(0.0);
    }
    x
}
