//! Points and weights: exactness, independence of the way they are cut, measures.

use greedy_pde::domain::{Domain, Face, Region};
use greedy_pde::points::{PointSet, Rule, Tile, radical_inverse};

fn unit_box(dimension: usize) -> Domain {
    Domain::Box {
        lower: vec![0.0; dimension],
        upper: vec![1.0; dimension],
    }
}

fn integral(domain: &Domain, region: Region, rule: Rule, f: impl Fn(&[f64]) -> f64) -> f64 {
    let points = PointSet::new(domain, region, rule, 0).unwrap();
    let mut tile = Tile::default();
    let mut sum = 0.0;
    for range in points.tiles() {
        points.fill(range, &mut tile);
        sum += (0..tile.len())
            .map(|i| tile.weights[i] * f(&tile.point(i)))
            .sum::<f64>();
    }
    sum
}

fn all_rules() -> [Rule; 4] {
    [
        Rule::Gauss { cells: 9, order: 3 },
        Rule::Halton {
            points: 10_000,
            shift: None,
        },
        Rule::Halton {
            points: 10_000,
            shift: Some(7),
        },
        Rule::MonteCarlo {
            points: 10_000,
            seed: 3,
        },
    ]
}

#[test]
fn any_cut_of_the_indices_gives_the_same_points() {
    let ball = Domain::Ball {
        center: vec![1.0, 2.0],
        radius: 0.5,
    };
    for domain in [unit_box(3), ball] {
        for rule in all_rules() {
            let points = PointSet::new(&domain, Region::Interior, rule, 0).unwrap();
            let (mut whole, mut part) = (Tile::default(), Tile::default());
            points.fill(0..points.len().min(9000), &mut whole);
            points.fill(5000.min(points.len() / 2)..points.len().min(6000), &mut part);
            let start = 5000.min(points.len() / 2);
            for i in 0..part.len() {
                assert_eq!(part.point(i), whole.point(start + i));
                assert_eq!(part.weights[i], whole.weights[start + i]);
            }
        }
    }
}

#[test]
fn weights_add_up_to_the_measure() {
    let domains = [
        unit_box(1),
        unit_box(2),
        Domain::Box {
            lower: vec![-1.0, 2.0],
            upper: vec![2.0, 4.0],
        },
        Domain::Ball {
            center: vec![0.0; 2],
            radius: 2.0,
        },
        Domain::Ball {
            center: vec![0.0; 3],
            radius: 1.5,
        },
    ];
    for domain in domains {
        let mut regions = vec![Region::Interior];
        regions.extend(domain.faces().into_iter().map(Region::Boundary));
        for region in regions {
            for rule in all_rules() {
                let sum = integral(&domain, region, rule, |_| 1.0);
                let measure = domain.measure(region);
                assert!(
                    (sum - measure).abs() < 1e-9 * measure,
                    "{domain:?} {region:?} {rule:?}: {sum} {measure}"
                );
            }
        }
    }
}

#[test]
fn gauss_is_exact_for_its_degree_and_not_beyond() {
    let domain = unit_box(2);
    let rule = Rule::Gauss { cells: 1, order: 3 };
    let exact = integral(&domain, Region::Interior, rule, |x| x[0].powi(5) * x[1].powi(4));
    assert!((exact - 1.0 / 30.0).abs() < 1e-15);
    let beyond = integral(&domain, Region::Interior, rule, |x| x[0].powi(6));
    assert!((beyond - 1.0 / 7.0).abs() > 1e-5);
}

#[test]
fn halton_is_the_radical_inverse_of_the_index() {
    let points = PointSet::new(
        &unit_box(10),
        Region::Interior,
        Rule::Halton {
            points: 1 << 40,
            shift: None,
        },
        0,
    )
    .unwrap();
    let mut tile = Tile::default();
    for start in [0, 8190, 99_999_990, (1 << 33) + 5] {
        points.fill(start..start + 20, &mut tile);
        for i in 0..20 {
            for (axis, base) in [2, 3, 5, 7, 11, 13, 17, 19, 23, 29].into_iter().enumerate() {
                let exact = radical_inverse(start + i + 1, base);
                assert!((tile.coordinates[axis][i] - exact).abs() < 1e-15);
            }
        }
    }
}

#[test]
fn points_in_a_ball_integrate_over_it() {
    // ∫ x₁² over the unit ball: π/4 in 2-D, 4π/15 in 3-D; over the unit sphere 4π/3 in 3-D.
    let pi = std::f64::consts::PI;
    let ball = |d: usize| Domain::Ball {
        center: vec![0.0; d],
        radius: 1.0,
    };
    let square = |x: &[f64]| x[0] * x[0];
    for rule in all_rules() {
        let tolerance = if matches!(rule, Rule::Gauss { .. }) {
            1e-6
        } else {
            0.02
        };
        let disk = integral(&ball(2), Region::Interior, rule, square);
        assert!((disk - pi / 4.0).abs() < tolerance * disk, "{rule:?} {disk}");
        let solid = integral(&ball(3), Region::Interior, rule, square);
        assert!(
            (solid - 4.0 * pi / 15.0).abs() < 2.0 * tolerance * solid,
            "{rule:?} {solid}"
        );
        let sphere = integral(&ball(3), Region::Boundary(Face::Sphere), rule, square);
        assert!(
            (sphere - 4.0 * pi / 3.0).abs() < 2.0 * tolerance * sphere,
            "{rule:?} {sphere}"
        );
    }
    // In 5-D: ∫ x₁² = |B₅|/7.
    let rule = Rule::Halton {
        points: 100_000,
        shift: None,
    };
    let five = integral(&ball(5), Region::Interior, rule, square);
    let exact = ball(5).measure(Region::Interior) / 7.0;
    assert!((five - exact).abs() < 0.01 * exact, "{five} {exact}");
    assert!(PointSet::new(&ball(5), Region::Interior, Rule::Gauss { cells: 2, order: 2 }, 0).is_err());
}

#[test]
fn monte_carlo_streams_and_seeds_are_independent() {
    let first = |seed, stream| {
        let points = PointSet::new(
            &unit_box(2),
            Region::Interior,
            Rule::MonteCarlo { points: 10, seed },
            stream,
        )
        .unwrap();
        let mut tile = Tile::default();
        points.fill(0..1, &mut tile);
        tile.point(0)
    };
    assert_ne!(first(0, 0), first(1, 0));
    assert_ne!(first(0, 0), first(0, 1));
    assert_eq!(first(5, 2), first(5, 2));
}

/// Points as whole numbers are the points: those of a lattice exactly, those of Halton within two units of 2⁻³²; at any
/// index, with and without a shift.
#[test]
fn fractions_are_the_points_in_whole_numbers() {
    let halton = |shift| Rule::Halton {
        points: 200_000_000,
        shift,
    };
    let lattice = |points| Rule::Lattice { points, shift: 3 };
    for (rule, allowed) in [
        (halton(None), 2.0),
        (halton(Some(5)), 2.0),
        (lattice(1), 0.0),
        (lattice(1 << 27), 0.0),
    ] {
        let points = PointSet::new(&unit_box(10), Region::Interior, rule, 1).unwrap();
        let fractions = points.fractions().unwrap();
        for first in [0, 1, 8190, 123_456_789, points.len() - 1] {
            let range = first.min(points.len() - 1)..(first + 3000).min(points.len());
            let mut tile = Tile::default();
            points.fill(range.clone(), &mut tile);
            for axis in 0..10 {
                let mut found = vec![0; range.len()];
                fractions.fill(axis, range.start, &mut found);
                for (x, fraction) in tile.coordinates[axis].iter().zip(found) {
                    let below = x * 4_294_967_296.0 - f64::from(fraction);
                    assert!(
                        (-1e-4..=allowed + 1e-4).contains(&below),
                        "{rule:?} {range:?} {axis}: {below}"
                    );
                }
            }
        }
    }
    let gauss = Rule::Gauss { cells: 4, order: 2 };
    let points = PointSet::new(&unit_box(2), Region::Interior, gauss, 0).unwrap();
    assert!(points.fractions().is_none());
}
