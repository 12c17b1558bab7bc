//! Polygons, unions, meshes and formulas as domains: their measures, their points, and rates of solutions on them.

mod common;

use common::{rate, row, solve};
use greedy_pde::domain::{Domain, Element, Face, Mesh, Region, polygon, read_gmsh};
use greedy_pde::points::{PointSet, Rule, Tile, simplex_rule};
use greedy_pde::problem::{Overrides, Problem};
use std::sync::Arc;

fn problem(domain: &str, quadrature: &str, rest: &str) -> Problem {
    let text = format!(
        "name = \"d\"\n[domain]\n{domain}\n[equation]\nreaction = \"1\"\nexact = \"exp(0.5*x)*sin(2*y)\"\n{rest}\n[dictionary]\n\
         activation = \"relu^2\"\n[quadrature]\n{quadrature}\n[solver]\nneurons = 32\n"
    );
    Problem::from_toml(&text, "tests/data/problem.toml", &Overrides::default()).unwrap()
}

const GAUSS: &str = "rule = \"gauss\"\ncells = 60";
const L_UNION: &str = "shape = \"union\"\nparts = [{lower=[-1,-1],upper=[0,1]},{lower=[0,0],upper=[1,1]}]";
const L_POLYGON: &str =
    "shape = \"polygon\"\nvertices = [[-1,-1],[0,-1],[0,0],[1,0],[1,1],[-1,1]]\nedges = {corner=[1,2]}";
const L_MESH: &str = "shape = \"mesh\"\nfile = \"lshape.msh\"";

/// ∫ f over a region.
fn integral(domain: &Domain, region: Region, rule: Rule, f: impl Fn(&Tile, usize) -> f64) -> f64 {
    let points = PointSet::new(domain, region, rule, 0).unwrap();
    let mut tile = Tile::default();
    let mut sum = 0.0;
    for range in points.tiles() {
        points.fill(range, &mut tile);
        sum += (0..tile.len())
            .map(|k| tile.weights[k] * f(&tile, k))
            .sum::<f64>();
    }
    sum
}

/// Gauss' theorem: ∫ div F = ∫ F·n tells whether points, weights and normals belong together.
fn divergence_defect(domain: &Domain, rule: Rule) -> f64 {
    let d = domain.dimension();
    // F = x_i² e_i, div F = 2 Σ x_i.
    let inside = integral(domain, Region::Interior, rule, |tile, k| {
        2.0 * tile.point(k).iter().sum::<f64>()
    });
    let mut outward = 0.0;
    for face in domain.faces() {
        outward += integral(domain, Region::Boundary(face), rule, |tile, k| {
            let x = tile.point(k);
            let normal: Vec<f64> = match face {
                Face::Side { coordinate, upper } => (0..d)
                    .map(|i| {
                        if i == coordinate {
                            if upper { 1.0 } else { -1.0 }
                        } else {
                            0.0
                        }
                    })
                    .collect(),
                _ => tile.attributes.iter().map(|column| column[k]).collect(),
            };
            (0..d).map(|i| x[i] * x[i] * normal[i]).sum()
        });
    }
    (inside - outward).abs()
}

fn mesh(name: &str, dimension: usize) -> Domain {
    let bytes = std::fs::read(format!("tests/data/{name}")).unwrap();
    let raw = read_gmsh(&bytes, dimension).unwrap();
    Domain::Mesh(Arc::new(Mesh::new(dimension, raw).unwrap()))
}

#[test]
fn rules_on_simplices_integrate_polynomials_exactly() {
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    for dimension in 1..=3 {
        for parts in [1, 2, 3] {
            for order in 1..=4 {
                let rule = simplex_rule(dimension, parts, order);
                assert_eq!(rule.len(), (parts * order).pow(dimension as u32));
                for a in 0..2 * order {
                    // ∫ x₁^a over the unit simplex is a! / (a + d)!.
                    let sum: f64 = rule.iter().map(|(x, w)| w * x[0].powi(a as i32)).sum();
                    let exact = factorial(a) / factorial(a + dimension);
                    assert!(
                        (sum - exact).abs() < 1e-13,
                        "d {dimension} parts {parts} order {order} x^{a}"
                    );
                }
            }
        }
    }
}

#[test]
fn points_weights_and_normals_obey_the_divergence_theorem() {
    let gauss = Rule::Gauss { cells: 7, order: 3 };
    let hole = polygon(
        &[[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.5]],
        &[vec![[0.4, 0.4], [0.6, 0.4], [0.5, 0.6]]],
        &[],
    );
    let domains = [
        ("union", problem(L_UNION, GAUSS, "").domain),
        ("polygon", problem(L_POLYGON, GAUSS, "").domain),
        ("polygon with a hole", Domain::Mesh(Arc::new(hole.unwrap()))),
        ("triangles", mesh("lshape.msh", 2)),
        ("quadrilaterals", mesh("quads.msh", 2)),
        ("tetrahedra", mesh("cube.msh", 3)),
        ("hexahedra", mesh("hexes.msh", 3)),
    ];
    for (name, domain) in &domains {
        let defect = divergence_defect(domain, gauss);
        assert!(defect < 1e-11, "{name}: {defect:e}");
        let sequence = divergence_defect(
            domain,
            Rule::Halton {
                points: 20_000,
                shift: None,
            },
        );
        assert!(sequence < 2e-2, "{name}, sequence: {sequence:e}");
        assert!(sequence > 1e-12, "a sequence has an error");
    }
    let disk = problem(
        "shape = \"inside\"\nlower = [-1.2, -1.2]\nupper = [1.2, 1.2]\ninside = \"x^2 + (y-0.1)^2 - 1\"",
        "rule = \"halton\"\npoints = 4000",
        "",
    );
    let defect = divergence_defect(
        &disk.domain,
        Rule::Halton {
            points: 20_000,
            shift: None,
        },
    );
    assert!(defect < 2e-2, "inside: {defect:e}");
    assert!((disk.domain.measure(Region::Interior) - std::f64::consts::PI).abs() < 5e-3);
    let around = disk.domain.measure(Region::Boundary(Face::Piece(0)));
    assert!((around - 2.0 * std::f64::consts::PI).abs() < 2e-2, "{around}");
}

#[test]
fn all_formats_of_gmsh_say_the_same() {
    let domains = [
        "annulus.msh",
        "annulus_41_binary.msh",
        "annulus_22.msh",
        "annulus_22_binary.msh",
    ]
    .map(|name| mesh(name, 2));
    let sizes = domains.each_ref().map(|domain| {
        let names: Vec<String> = domain
            .faces()
            .iter()
            .map(|&face| domain.face_name(face))
            .collect();
        assert_eq!(names, ["inner", "outer"]);
        domain.measure(Region::Interior)
    });
    assert!((sizes[0] - 0.84 * std::f64::consts::PI).abs() < 0.03, "{sizes:?}");
    assert!(
        sizes.iter().all(|size| (size - sizes[0]).abs() < 1e-12),
        "{sizes:?}"
    );
    assert!(domains[0].contains([0.7, 0.0].into_iter()) && !domains[0].contains([0.1, 0.1].into_iter()));
}

#[test]
fn a_slice_of_the_points_is_the_same_alone() {
    for (domain, quadrature) in [
        (L_UNION, GAUSS),
        (L_POLYGON, GAUSS),
        (L_MESH, "rule = \"halton\"\npoints = 9000"),
    ] {
        let problem = problem(domain, quadrature, "");
        let points = PointSet::new(&problem.domain, Region::Interior, problem.quadrature.rule, 0).unwrap();
        let (mut whole, mut part) = (Tile::default(), Tile::default());
        points.fill(0..points.len(), &mut whole);
        points.fill(4000..5000, &mut part);
        assert_eq!(part.coordinates[1], whole.coordinates[1][4000..5000]);
        assert_eq!(part.weights, whole.weights[4000..5000]);
    }
}

/// The same smooth solution on every kind of domain: the errors are alike, and fall with the same rate.
#[test]
fn an_l_shape_is_one_domain_however_it_is_given() {
    let reports = [L_UNION, L_POLYGON, L_MESH]
        .map(|domain| solve(&problem(domain, "rule = \"gauss\"\ncells = 80\norder = 3", "")));
    let errors = reports.each_ref().map(|report| row(report, 32).h1.unwrap());
    for (report, error) in reports.iter().zip(errors) {
        assert!((error / errors[0] - 1.0).abs() < 0.1, "{errors:?}");
        assert!(rate(&report.rows, 4, |row| row.h1) > 1.2);
    }
}

#[test]
fn a_formula_in_three_dimensions_makes_a_domain() {
    let quadrature = "rule = \"lattice\"\npoints = 16384";
    let domain =
        "shape = \"inside\"\nlower = [-1, -1, -1]\nupper = [1, 1, 1]\ninside = \"x^2 + y^2 + z^2 - 1\"";
    let report = solve(&problem(domain, quadrature, ""));
    let ball = solve(&problem("shape = \"ball\"\ndimension = 3", quadrature, ""));
    let (inside, ball) = (row(&report, 16).h1.unwrap(), row(&ball, 16).h1.unwrap());
    assert!((inside / ball - 1.0).abs() < 0.25, "{inside} {ball}");
}

#[test]
fn a_mesh_in_space_is_solved_on() {
    for name in ["cube.msh", "hexes.msh"] {
        let domain = format!("shape = \"mesh\"\nfile = \"{name}\"");
        let report = solve(&problem(&domain, "rule = \"gauss\"\ncells = 10\norder = 3", ""));
        assert!(rate(&report.rows, 4, |row| row.h1) > 0.6, "{name}");
    }
}

#[test]
fn a_disk_with_256_corners_is_a_disk() {
    let corners: Vec<String> = (0..256)
        .map(|k| {
            let angle = 2.0 * std::f64::consts::PI * f64::from(k) / 256.0;
            format!("[{}, {}]", angle.cos(), angle.sin())
        })
        .collect();
    let polygon = format!("shape = \"polygon\"\nvertices = [{}]", corners.join(", "));
    let quadrature = "rule = \"gauss\"\ncells = 80\norder = 3";
    let polygon = solve(&problem(&polygon, quadrature, ""));
    let ball = solve(&problem(
        "shape = \"ball\"\ndimension = 2",
        "rule = \"gauss\"\ncells = 120\norder = 3",
        "",
    ));
    let (polygon, ball) = (row(&polygon, 32).h1.unwrap(), row(&ball, 32).h1.unwrap());
    assert!((polygon / ball - 1.0).abs() < 0.1, "{polygon} {ball}");
}

/// Why a problem file is refused.
fn refused(domain: &str) -> String {
    let text = format!(
        "name = \"d\"\n[domain]\n{domain}\n[equation]\nreaction = \"1\"\nsource = \"1\"\n[dictionary]\nactivation = \"relu^2\"\n\
         [quadrature]\n{GAUSS}\n[solver]\nneurons = 4\n"
    );
    let error = Problem::from_toml(&text, "tests/data/problem.toml", &Overrides::default()).unwrap_err();
    assert!(error.line_and_column().is_some(), "{error}");
    error.to_string()
}

#[test]
fn bad_domains_are_refused_with_the_reason() {
    let polygon = |vertices: &str| format!("shape = \"polygon\"\nvertices = {vertices}");
    let cases = [
        (polygon("[[0,0],[1,1],[1,0],[0,1]]"), "cross or touch"),
        (polygon("[[0,0],[1,0]]"), "at least 3"),
        (polygon("[[0,0],[1,0],[2,0]]"), "cross or touch"),
        (polygon("[[0,0],[0,0],[1,0],[1,1]]"), "twice in a row"),
        (
            polygon("[[0,0],[1,0],[1,1]]\nholes = [[[2,2],[3,2],[3,3]]]"),
            "not inside",
        ),
        (
            polygon("[[0,0],[1,0],[1,1]]\nedges = {a = [3]}"),
            "numbered from 0 to 2",
        ),
        (
            "shape = \"union\"\nparts = [{lower=[0,0],upper=[1,1]},{lower=[0.5,0],upper=[2,1]}]".to_string(),
            "overlap",
        ),
        (
            "shape = \"union\"\nparts = [{lower=[0,1],upper=[1,1]}]".to_string(),
            "not below",
        ),
        (
            "shape = \"mesh\"\nfile = \"annulus_order2.msh\"".to_string(),
            "second order",
        ),
        (
            "shape = \"mesh\"\nfile = \"nowhere.msh\"".to_string(),
            "cannot be read",
        ),
        (
            "shape = \"mesh\"\nfile = \"annulus.msh\"\ndimension = 3".to_string(),
            "no cell of dimension 3",
        ),
        (
            "shape = \"mesh\"\nfile = \"cube.msh\"\ndimension = 2".to_string(),
            "not in the plane",
        ),
        (
            "shape = \"inside\"\nlower = [0,0]\nupper = [1,1]\ninside = \"x + 1\"".to_string(),
            "negative at none",
        ),
        (
            "shape = \"inside\"\nlower = [-1,-1]\nupper = [1,1]\ninside = \"if(x^2 + y^2 < 0.5, -1, 1)\""
                .to_string(),
            "jumps at x = ",
        ),
        (
            "shape = \"inside\"\nlower = [-1,-1]\nupper = [1,1]\ninside = \"sqrt(x) - 0.5\"".to_string(),
            "not a number at x = ",
        ),
        (polygon("[[0,0,5],[1,0],[1,1]]"), "two coordinates, not 3"),
        (
            polygon("[[0,0],[1,0],[1,1]]\nholes = [[[2,2],[3,2],[3,3]]]"),
            "`domain.holes`",
        ),
        ("shape = \"union\"\nparts = []".to_string(), "at least one part"),
        (
            "shape = \"box\"\ndimension = 2\nvertices = [[0,0]]".to_string(),
            "not `vertices`",
        ),
    ];
    for (domain, wanted) in cases {
        let message = refused(&domain);
        assert!(message.contains(wanted), "{domain}: {message}");
    }
}

/// A cell that is there twice, or lies over others, would count twice and hide the boundary.
#[test]
fn cells_that_overlap_are_refused() {
    for (name, dimension) in [
        ("lshape.msh", 2),
        ("quads.msh", 2),
        ("cube.msh", 3),
        ("hexes.msh", 3),
    ] {
        let bytes = std::fs::read(format!("tests/data/{name}")).unwrap();
        let raw = read_gmsh(&bytes, dimension).unwrap();
        assert!(Mesh::new(dimension, raw.clone()).is_ok(), "{name}");
        // The same nodes once more, and a copy with nodes of its own that is moved a little.
        let alone = raw.cells[0];
        let mut single = raw.clone();
        (single.cells, single.named) = (vec![alone, alone], Vec::new());
        let mut moved = raw.clone();
        let copies = alone.nodes().iter().map(|&node| {
            let mut place = raw.nodes[node as usize];
            place[0] += 1e-3;
            moved.nodes.push(place);
            moved.nodes.len() as u32 - 1
        });
        let copies: Vec<u32> = copies.collect();
        moved.cells.push(Element::new(dimension, &copies));
        for (raw, words) in [(single, "are the same"), (moved, "overlap")] {
            let error = Mesh::new(dimension, raw).unwrap_err();
            assert!(error.message.contains(words), "{name}: {error}");
        }
    }
}

/// Damaged meshes are refused or read, never anything else; what is wrong is told.
#[test]
fn damaged_meshes_do_no_harm() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for name in [
        "annulus.msh",
        "annulus_41_binary.msh",
        "annulus_22.msh",
        "annulus_22_binary.msh",
        "hexes.msh",
        "cube.msh",
    ] {
        let bytes = std::fs::read(format!("tests/data/{name}")).unwrap();
        let dimension = if name.starts_with("annulus") { 2 } else { 3 };
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            match random(4) {
                0 => damaged.truncate(random(bytes.len())),
                1 => {
                    for _ in 0..=random(4) {
                        let at = random(damaged.len());
                        damaged[at] = random(256) as u8;
                    }
                }
                2 => {
                    let at = random(damaged.len());
                    damaged.splice(at..at, *b"999999999999");
                }
                _ => {
                    let at = random(damaged.len() - 8);
                    damaged.drain(at..at + random(8));
                }
            }
            let read = read_gmsh(&damaged, dimension).and_then(|raw| Mesh::new(dimension, raw));
            if let Err(error) = read {
                assert!(!error.message.is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

/// Pieces that do not touch are told, and refused where one of them would be left free.
#[test]
fn a_domain_in_pieces_is_held_in_each() {
    let apart = "shape = \"union\"\nparts = [{lower=[0,0],upper=[1,1]},{lower=[2,0],upper=[3,1]},{lower=[1,1],upper=[2,2]}]";
    let read = |domain: &str, reaction: u8, boundary: &str| {
        let text = format!(
            "name = \"d\"\n[domain]\n{domain}\n[equation]\nreaction = {reaction}\nexact = \"x*y\"\n{boundary}\n[dictionary]\n\
             activation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 10\n[solver]\nneurons = 2\n"
        );
        Problem::from_toml(&text, "tests/data/problem.toml", &Overrides::default())
            .map_err(|error| error.to_string())
    };
    let held = "[[boundary]]\ncondition = \"dirichlet\"\nfaces = [\"x-\"]";
    for boundary in ["", held] {
        let problem = read(apart, 1, boundary).unwrap();
        // Corners are not enough to touch.
        assert!(problem.domain.in_words().contains("3 pieces that do not touch"));
    }
    let refused = read(apart, 0, "").unwrap_err();
    assert!(
        refused.contains("3 pieces") && refused.contains("a constant"),
        "{refused}"
    );
    assert!(read(apart, 0, held).is_ok());
    // One domain, with a constant that the run fixes.
    let joined = apart.replace("lower=[1,1],upper=[2,2]", "lower=[1,0],upper=[2,1]");
    assert!(read(&joined, 0, "").is_ok());
    // Two triangles, of which one is held only.
    let mesh = |second: &str| {
        let text = format!(
            "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 1 \"held\"\n$EndPhysicalNames\n$Nodes\n6\n1 0 0 0\n2 1 0 0\n\
             3 0 1 0\n4 3 0 0\n5 4 0 0\n6 3 1 0\n$EndNodes\n$Elements\n3\n1 2 2 2 1 1 2 3\n2 2 2 2 1 {second}\n3 1 2 1 1 1 2\n$EndElements\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("two.msh");
        std::fs::write(&path, text).unwrap();
        let domain = format!("shape = \"mesh\"\nfile = {:?}", path.to_str().unwrap());
        let held = "[[boundary]]\ncondition = \"dirichlet\"\nfaces = [\"held\"]";
        (read(&domain, 0, held), read(&domain, 1, held))
    };
    let (without, with) = mesh("4 5 6");
    let refused = without.unwrap_err();
    assert!(refused.contains("2 pieces"), "{refused}");
    assert!(
        with.unwrap()
            .domain
            .in_words()
            .contains("2 pieces that do not touch")
    );
    assert!(mesh("2 5 3").0.is_ok());
}

/// The problems behind the table of results are read without a complaint.
#[test]
fn the_problems_of_the_results_are_read() {
    let mut count = 0;
    for entry in std::fs::read_dir("configs/domains").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let problem = Problem::from_path(&path, &Overrides::default()).unwrap();
            assert_eq!(problem.warnings, Vec::<String>::new(), "{}", path.display());
            count += 1;
        }
    }
    assert_eq!(count, 11);
}

/// `"edge 3"` names an edge, although names of faces are compared without their spaces.
#[test]
fn an_edge_is_named_by_its_number() {
    let text = "name = \"edge\"\n[domain]\nshape = \"polygon\"\nvertices = [[0,0],[1,0],[1,1],[0,1]]\n[equation]\n\
                source = \"0\"\n[[boundary]]\ncondition = \"dirichlet\"\nfaces = [\"edge 3\"]\nvalue = \"0\"\n[[boundary]]\n\
                condition = \"dirichlet\"\nfaces = [\"edge 1\"]\nvalue = \"1\"\n[dictionary]\nactivation = \"relu^2\"\n\
                [quadrature]\nrule = \"gauss\"\ncells = 20\n[solver]\nneurons = 8\n";
    let problem = greedy_pde::problem::Problem::from_toml(text, "edge", &Default::default());
    assert!(problem.is_ok(), "{}", problem.unwrap_err());
}
