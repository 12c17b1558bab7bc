//! The solution itself: a curve, a map, or slices and averages.

use super::Named;
use crate::domain::Domain;
use crate::network::Network;
use crate::plot::{Chart, HeatMap, Mark, Palette, Scale, Series};
use crate::points::philox_uniforms;
use crate::problem::{Data, Problem};
use crate::sample;

/// Points of a curve.
const CURVE: usize = 600;
/// Points of a map, in each coordinate.
const MAP: usize = 160;
/// Coordinates that are shown one by one.
const MOST_AXES: usize = 12;
/// Measurements that are drawn: of more only every so manieth.
const MOST_DOTS: usize = 1000;
/// Values along a coordinate, and points over which the others are averaged.
const STEPS: usize = 41;
const AVERAGED: usize = 256;

/// The large pictures and the small ones.
pub(super) fn pictures(problem: &Problem, network: &Network) -> (Vec<Named>, Vec<Named>) {
    match problem.dimension() {
        1 => {
            let (solution, error) = along_an_interval(problem, network);
            let error = error.map(|error| Named::chart("error", error.draw()));
            let solution = Named::chart("solution", solution.draw());
            (
                [Some(solution), error].into_iter().flatten().collect(),
                Vec::new(),
            )
        }
        2 => (maps(problem, network), Vec::new()),
        _ => (maps(problem, network), axes(problem, network)),
    }
}

fn maps(problem: &Problem, network: &Network) -> Vec<Named> {
    let (solution, error) = over_a_square(problem, network);
    let error = error.map(|error| Named::map("error", error));
    [Some(Named::map("solution", solution)), error]
        .into_iter()
        .flatten()
        .collect()
}

/// The solution of a problem in one dimension with the points where its neurons begin, and its error.
pub fn along_an_interval(problem: &Problem, network: &Network) -> (Chart, Option<Chart>) {
    let (low, high) = problem.domain.side(0);
    let mut knots: Vec<f64> = match network.activation.relu_power() {
        Some(_) => network
            .neurons
            .iter()
            .map(|neuron| -neuron.bias / neuron.omega[0])
            .collect(),
        None => Vec::new(),
    };
    knots.retain(|knot| (low..=high).contains(knot));
    let even = (0..=CURVE).map(|i| low + (high - low) * i as f64 / CURVE as f64);
    let mut x: Vec<f64> = even.chain(knots.iter().copied()).collect();
    x.sort_by(f64::total_cmp);
    let pairs = |x: &[f64], y: Vec<f64>| x.iter().copied().zip(y).collect::<Vec<(f64, f64)>>();
    let computed = sample::values(network, std::slice::from_ref(&x));
    let exact = sample::of_exact(problem, std::slice::from_ref(&x));
    let mut series = Vec::new();
    let mut add = |name: String, mark, color, points| {
        series.push(Series {
            name,
            mark,
            color,
            points,
        });
    };
    // Below the curves, which would vanish behind many.
    let measured = problem.data.iter().map(Data::measured);
    let [seen, held_back] = measured.fold([Vec::new(), Vec::new()], |mut all, lists| {
        for (all, list) in all.iter_mut().zip(lists) {
            let points = list.into_iter().map(|(x, value)| (x[0], value));
            all.extend(points.filter(|(x, _)| (low..=high).contains(x)));
        }
        all
    });
    for (name, color, points) in [
        ("measurements", 3, seen),
        ("measurements held back for the guard", 5, held_back),
    ] {
        if !points.is_empty() {
            let name = format!("{name} ({})", points.len());
            let some = points.len().div_ceil(MOST_DOTS);
            add(
                name,
                Mark::Dots,
                color,
                points.into_iter().step_by(some).collect(),
            );
        }
    }
    add("u".to_string(), Mark::Line, 0, pairs(&x, computed.clone()));
    if let Some(exact) = &exact {
        add("exact".to_string(), Mark::Dashed, 1, pairs(&x, exact.clone()));
    }
    if !knots.is_empty() {
        let name = format!("grid points, where a neuron begins ({})", knots.len());
        add(
            name,
            Mark::Dots,
            2,
            pairs(&knots, sample::values(network, std::slice::from_ref(&knots))),
        );
    }
    let chart = |title: &str, series| Chart {
        title: title.to_string(),
        x_label: "x".to_string(),
        x: Scale::Linear,
        y: Scale::Linear,
        series,
        small: false,
        reach: None,
    };
    let error = exact.map(|exact| {
        let difference = computed.iter().zip(&exact).map(|(u, exact)| u - exact).collect();
        let series = Series {
            name: String::new(),
            mark: Mark::Line,
            color: 1,
            points: pairs(&x, difference),
        };
        chart("Error u − exact", vec![series])
    });
    (chart("Solution", series), error)
}

/// The solution over the first two coordinates (a section, if there are more), and its error.
pub fn over_a_square(problem: &Problem, network: &Network) -> (HeatMap, Option<HeatMap>) {
    on_a_grid::<MAP>(problem, network)
}

/// The same with so many values in each coordinate.
pub(super) fn on_a_grid<const MAP: usize>(
    problem: &Problem,
    network: &Network,
) -> (HeatMap, Option<HeatMap>) {
    let dimension = problem.dimension();
    let middle = problem.domain.section_point();
    let (first, second) = (problem.domain.side(0), problem.domain.side(1));
    let place = |(low, high): (f64, f64), j: usize| low + (high - low) * (j as f64 + 0.5) / MAP as f64;
    let mut coordinates: Vec<Vec<f64>> = middle.iter().map(|&c| vec![c; MAP * MAP]).collect();
    coordinates[0] = (0..MAP * MAP).map(|index| place(first, index % MAP)).collect();
    coordinates[1] = (0..MAP * MAP).map(|index| place(second, index / MAP)).collect();
    let blank = |mut values: Vec<f64>| {
        for (index, value) in values.iter_mut().enumerate() {
            if !problem.domain.contains(coordinates.iter().map(|x| x[index])) {
                *value = f64::NAN;
            }
        }
        values
    };
    let map = |title: String, values, palette| HeatMap {
        title,
        labels: match dimension {
            2 => ["x".to_string(), "y".to_string()],
            _ => ["x₁".to_string(), "x₂".to_string()],
        },
        lower: [first.0, second.0],
        upper: [first.1, second.1],
        counts: [MAP, MAP],
        values,
        palette,
        outline: problem.domain.outline(),
        reach: None,
    };
    let of = match dimension {
        2 => "",
        _ => match problem.domain {
            Domain::Box { .. } => ", other coordinates at ⅓",
            Domain::Ball { .. } => ", other coordinates at the centre",
            _ => ", other coordinates at a point inside",
        },
    };
    let computed = sample::values(network, &coordinates);
    let error = sample::of_exact(problem, &coordinates).map(|exact| {
        let difference = computed.iter().zip(&exact).map(|(u, exact)| u - exact).collect();
        map(
            format!("Error u − exact{of}"),
            blank(difference),
            Palette::Diverging,
        )
    });
    (
        map(format!("Solution{of}"), blank(computed), Palette::Sequential),
        error,
    )
}

/// For each coordinate the average over the others (of a box) and a section.
fn axes(problem: &Problem, network: &Network) -> Vec<Named> {
    let shown = problem.dimension().min(MOST_AXES);
    (0..shown)
        .map(|axis| {
            Named::chart(
                &format!("axis-{}", axis + 1),
                axis_chart(problem, network, axis).draw(),
            )
        })
        .collect()
}

fn axis_chart(problem: &Problem, network: &Network, axis: usize) -> Chart {
    let dimension = problem.dimension();
    let (low, high) = problem.domain.side(axis);
    let places: Vec<f64> = (0..STEPS)
        .map(|j| low + (high - low) * j as f64 / (STEPS - 1) as f64)
        .collect();
    let middle = problem.domain.section_point();
    let section: Vec<Vec<f64>> = (0..dimension)
        .map(|i| {
            if i == axis {
                places.clone()
            } else {
                vec![middle[i]; STEPS]
            }
        })
        .collect();
    let is_inside = |&place: &f64| {
        let at = middle.iter().enumerate();
        problem
            .domain
            .contains(at.map(|(i, &c)| if i == axis { place } else { c }))
    };
    let is_inside: Vec<bool> = places.iter().map(is_inside).collect();
    let mut lines = vec![("section", "exact", 0, section, 1)];
    if let Domain::Box { lower, upper } = &problem.domain {
        lines.push((
            "average",
            "exact average",
            2,
            spread(&places, axis, lower, upper),
            AVERAGED,
        ));
    }
    let mut series = Vec::new();
    for (name, exact_name, color, coordinates, averaged) in lines {
        let mean = |values: Vec<f64>| -> Vec<(f64, f64)> {
            let means = values
                .chunks(averaged)
                .map(|row| row.iter().sum::<f64>() / averaged as f64);
            // A line breaks where it leaves the domain.
            let means = means.zip(&is_inside);
            let means = means.map(|(mean, is_inside)| if *is_inside { mean } else { f64::NAN });
            places.iter().copied().zip(means).collect()
        };
        let computed = sample::values(network, &coordinates);
        let exact = sample::of_exact(problem, &coordinates);
        series.push(Series {
            name: name.to_string(),
            mark: Mark::Line,
            color,
            points: mean(computed),
        });
        series.extend(exact.map(|exact| Series {
            name: exact_name.to_string(),
            mark: Mark::Dashed,
            color: color + 1,
            points: mean(exact),
        }));
    }
    Chart {
        title: format!("x[{}]", axis + 1),
        x_label: String::new(),
        x: Scale::Linear,
        y: Scale::Linear,
        series,
        small: true,
        reach: None,
    }
}

/// For each place along an axis the same random points in the other coordinates.
fn spread(places: &[f64], axis: usize, lower: &[f64], upper: &[f64]) -> Vec<Vec<f64>> {
    const STREAM: u32 = 8;
    let draw = |index| philox_uniforms(0, STREAM, index, lower.len());
    let points: Vec<Vec<f64>> = (0..AVERAGED as u64).map(draw).collect();
    let mut columns = vec![Vec::with_capacity(places.len() * AVERAGED); lower.len()];
    for &place in places {
        for point in &points {
            for (i, column) in columns.iter_mut().enumerate() {
                column.push(if i == axis {
                    place
                } else {
                    lower[i] + (upper[i] - lower[i]) * point[i]
                });
            }
        }
    }
    columns
}
