//! Three hundred problems drawn at random: each ends with an error at the rate's order, a warning, or an
//! error about its file. None is wrong in silence.

use greedy_pde::estimate::Estimate;
use greedy_pde::network::Network;
use greedy_pde::norms::ErrorMeter;
use greedy_pde::points::philox_uniforms;
use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::Report;
use greedy_pde::run::{RunOptions, run};
use rayon::prelude::*;
use std::ops::ControlFlow;

const SEED: u64 = 20_261_118;
const PROBLEMS: u64 = 300;

/// An estimate of the error that is at least this part of it has told the user.
const TOLD: f64 = 0.2;

/// Draws one after the other from the stream of a problem.
struct Draw {
    numbers: Vec<f64>,
    next: usize,
}

impl Draw {
    fn new(index: u64) -> Self {
        Self {
            numbers: philox_uniforms(SEED, 9, index, 64),
            next: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        self.next += 1;
        self.numbers[self.next - 1]
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        let place = (self.uniform() * choices.len() as f64) as usize;
        choices[place].clone()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Energy,
    Plate,
    Potential,
    Residual,
    Fit,
}

/// The text of a problem file.
fn file(index: u64) -> String {
    let draw = &mut Draw::new(index);
    let dimension = draw.of(&[1, 1, 1, 2, 2, 2, 3, 4, 5, 6]);
    let forms = [
        Form::Energy,
        Form::Energy,
        Form::Energy,
        Form::Plate,
        Form::Potential,
        Form::Residual,
        Form::Residual,
        Form::Fit,
    ];
    let form = match draw.of(&forms) {
        Form::Plate if dimension > 2 => Form::Energy,
        form => form,
    };
    let ball = dimension > 1 && draw.chance(0.2);
    [
        format!("name = \"random_{index}\""),
        domain(draw, dimension, ball),
        equation(draw, dimension, form),
        boundary(draw, dimension, form, ball),
        dictionary(draw, form),
        quadrature(draw, dimension, ball),
        solver(draw),
    ]
    .join("\n")
}

fn domain(draw: &mut Draw, dimension: usize, ball: bool) -> String {
    let shape = match ball {
        true => format!("shape = \"ball\"\nradius = {}", draw.of(&[1.0, 0.5])),
        false => format!(
            "lower = {}\nupper = {}",
            draw.of(&[0.0, -1.0]),
            draw.of(&[1.0, 1.5])
        ),
    };
    format!("[domain]\ndimension = {dimension}\n{shape}")
}

fn equation(draw: &mut Draw, dimension: usize, form: Form) -> String {
    let exact = match dimension {
        1 => draw.of(&[
            "cos(pi*x)",
            "exp(x)*sin(2*x)",
            "x^3 - x + 2",
            "1/(1 + 4*x^2)",
            "erf(2*x)",
            "abs(x - 0.3)",
            "max(x - 0.2, 0)^2",
            "atan(3*x)",
        ]),
        _ => draw.of(&[
            "sum(i, cos(x[i]))",
            "sum(i, x[i]^2)/2",
            "cos(sum(i, x[i]))",
            "exp(-sum(i, x[i]^2))",
            "x[1]*x[2] + 1",
            "prod(i, 1 + x[i]/4)",
            "abs(x[1] - 0.3)",
        ]),
    };
    let diffusion = draw.of(&["1", "1 + x[1]^2", "exp(x[1]/2)"]);
    let reaction = draw.of(&["0", "1", "1", "1 + x[1]^2"]);
    let potential = draw.of(&["u^2/2", "cosh(u)", "u^4/4 + u^2", "exp(u)"]);
    let operator = draw.of(&[
        "-laplacian(u) + u",
        "-div((1 + x[1]^2)*grad(u)) + u",
        "-laplacian(u)",
    ]);
    let rest = match form {
        Form::Energy => format!("diffusion = \"{diffusion}\"\nreaction = \"{reaction}\""),
        Form::Plate => format!("order = 4\nreaction = \"{reaction}\""),
        Form::Potential => format!("diffusion = \"{diffusion}\"\npotential = \"{potential}\""),
        Form::Residual => format!("formulation = \"residual\"\noperator = \"{operator}\""),
        Form::Fit => "formulation = \"fit\"".to_string(),
    };
    format!("[equation]\nexact = \"{exact}\"\n{rest}")
}

fn boundary(draw: &mut Draw, dimension: usize, form: Form, ball: bool) -> String {
    let penalty = draw.of(&["1e-2", "1e-4", "0.1*n^-2", "1e-6"]);
    let names: &[&str] = match form {
        Form::Fit => return String::new(),
        Form::Plate => &[
            "clamped",
            "simply_supported",
            "free",
            "dirichlet",
            "slope",
            "value",
        ],
        Form::Residual => &["dirichlet", "dirichlet", "neumann"],
        Form::Energy | Form::Potential => &["neumann", "dirichlet", "none", "value"],
    };
    let table = |condition: &str, faces: &[String]| {
        let held = ["clamped", "simply_supported", "dirichlet", "slope", "value"].contains(&condition);
        let penalty = match held && form != Form::Residual {
            true => format!("\npenalty = \"{penalty}\""),
            false => String::new(),
        };
        let faces = match faces.is_empty() {
            true => String::new(),
            false => format!("\nfaces = {faces:?}"),
        };
        format!("condition = \"{condition}\"{penalty}{faces}\n")
    };
    let (first, second) = (draw.of(names), draw.of(names));
    match draw.uniform() {
        part if part < 0.15 && form != Form::Residual => String::new(),
        part if part < 0.7 || ball => format!("[boundary]\n{}", table(first, &[])),
        part => {
            let faces: Vec<String> = (1..=dimension)
                .flat_map(|i| [format!("x[{i}]-"), format!("x[{i}]+")])
                .collect();
            let (some, others) = faces.split_at(1 + (part * 100.0) as usize % (faces.len() - 1).max(1));
            match part < 0.85 {
                true => format!("[[boundary]]\n{}", table(first, some)),
                false => format!(
                    "[[boundary]]\n{}[[boundary]]\n{}",
                    table(first, some),
                    table(second, others)
                ),
            }
        }
    }
}

fn dictionary(draw: &mut Draw, form: Form) -> String {
    let activation = match form {
        Form::Plate => draw.of(&["relu^3", "relu^4", "tanh"]),
        Form::Residual => draw.of(&["relu^3", "relu^3", "relu^4", "tanh"]),
        _ => draw.of(&["relu", "relu^2", "relu^2", "relu^3", "sigmoid", "tanh", "relu^5"]),
    };
    let directions = match draw.uniform() {
        part if part < 0.55 => "",
        part if part < 0.7 => "directions = \"axes\"",
        part if part < 0.8 => "directions = \"sphere\"\nrefine = true",
        _ => "directions = \"box\"\nweights = [-3, 3]",
    };
    let candidates = draw.of(&["candidates = 20", "candidates = 40"]);
    // Sigmoids have no sweep: each of their candidates costs a pass over the points.
    let offsets = match activation.starts_with("relu") {
        true => draw.of(&["", "offsets = 24"]),
        false => "offsets = 16",
    };
    format!("[dictionary]\nactivation = \"{activation}\"\n{directions}\n{candidates}\n{offsets}")
}

fn quadrature(draw: &mut Draw, dimension: usize, ball: bool) -> String {
    let rule = match dimension {
        1 => draw.of(&["gauss", "gauss", "gauss", "halton", "monte_carlo"]),
        // Errors of random points are measured on a fine mesh there, which takes its time.
        2 | 3 => draw.of(&["gauss", "gauss", "halton", "lattice", "lattice"]),
        _ => draw.of(&["halton", "lattice", "lattice", "monte_carlo"]),
    };
    let cells = match (dimension, ball) {
        (1, _) => draw.of(&[50, 100]),
        (2, _) => draw.of(&[8, 12]),
        _ => 4,
    };
    let points = draw.of(&[512, 1024, 2048]);
    match rule {
        "gauss" => format!(
            "[quadrature]\nrule = \"gauss\"\ncells = {cells}\norder = {}",
            draw.of(&[2, 3])
        ),
        rule => format!("[quadrature]\nrule = \"{rule}\"\npoints = {points}"),
    }
}

fn solver(draw: &mut Draw) -> String {
    let neurons = draw.of(&[8, 12, 16, 24]);
    let algorithm = match draw.chance(0.1) {
        true => format!("algorithm = \"rga\"\nradius = {}", draw.of(&[2.0, 10.0, 50.0])),
        false => String::new(),
    };
    let guard = draw.of(&["", "", "", "guard = false"]);
    format!(
        "[solver]\nneurons = {neurons}\nseed = {}\n{algorithm}\n{guard}\n",
        draw.of(&[0, 1, 2])
    )
}

/// The relative L² error of a run, ‖u − u_n‖ / ‖u‖, up to what the equation leaves free.
fn relative_error(problem: &Problem, report: &Report) -> f64 {
    let meter = ErrorMeter::new(problem, problem.settings.neurons)
        .unwrap()
        .unwrap();
    let zero = Network::zero(problem.dictionary.activation, problem.dimension());
    let nothing = meter.errors(&zero).unwrap();
    match report.rows.last() {
        Some(row) => row.l2.unwrap() / nothing.l2,
        None => 1.0,
    }
}

fn solved(text: &str) -> Option<(Problem, Report)> {
    // A file that is refused and a run that stops with an error are not wrong in silence.
    let problem = Problem::from_toml(text, "random.toml", &Overrides::default()).ok()?;
    let (report, _) = run(&problem, &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .ok()?;
    Some((problem, report))
}

/// C n^(−1/2): the slowest rate there is.
fn rate(problem: &Problem, report: &Report) -> f64 {
    let constant = match problem.dimension() {
        1 => 0.3,
        _ => 0.6,
    };
    constant / (report.neurons.max(1) as f64).sqrt()
}

/// The relative error of as many neurons of the same dictionary when they are fitted to the solution itself: no
/// equation can be solved better.
fn best_fit(text: &str) -> f64 {
    let drop = [
        "diffusion",
        "reaction",
        "potential",
        "order = 4",
        "formulation",
        "operator",
        "algorithm",
        "radius =",
    ];
    let in_boundary = ["condition", "penalty", "faces", "[boundary]", "[[boundary]]"];
    let ball = text.contains("shape = \"ball\"");
    let kept = |line: &&str| {
        let dropped = drop.iter().any(|key| line.starts_with(key));
        let radius_of_ball = ball && text.find(*line) < text.find("[equation]");
        (!dropped || radius_of_ball) && !in_boundary.iter().any(|key| line.starts_with(key))
    };
    let lines: Vec<&str> = text.lines().filter(kept).collect();
    let fit = lines
        .join("\n")
        .replace("[equation]", "[equation]\nformulation = \"fit\"");
    let (problem, report) = solved(&fit).unwrap_or_else(|| panic!("{fit}"));
    relative_error(&problem, &report)
}

/// Why a problem is wrong in silence, if it is.
fn wrong(index: u64) -> Option<String> {
    let text = file(index);
    let (problem, report) = solved(&text)?;
    if !report.warnings.is_empty() {
        return None;
    }
    let (error, rate) = (relative_error(&problem, &report), rate(&problem, &report));
    if error <= rate {
        return None;
    }
    let told = |estimate: &Estimate| estimate.relative_l2 >= TOLD * error.min(1.0);
    if !report.usable || report.estimate.as_ref().is_some_and(told) {
        return None;
    }
    // A norm with derivatives is not the one that a fit minimises.
    let reached = best_fit(&text);
    let fine = error <= 4.0 * reached;
    (!fine).then(|| {
        format!(
            "# relative L² error {error:.3} above {rate:.3} and {reached:.3} of a fit, no warning\n{text}"
        )
    })
}

#[test]
fn none_is_wrong_in_silence() {
    let wrong: Vec<String> = (0..PROBLEMS).into_par_iter().filter_map(wrong).collect();
    assert!(
        wrong.is_empty(),
        "{} of {PROBLEMS} are wrong in silence:\n\n{}",
        wrong.len(),
        wrong.join("\n----\n")
    );
}
