//! Whole numbers on a device against their reference on the CPU, as an adapter without f64 has them.
//!
//! Without an adapter these tests are shown as ignored; with `GREEDY_PDE_REQUIRE_GPU` set they fail.

mod common;

use common::adapter::{OnAdapter, any_adapter, open, run_on_adapter, small};
use common::laws::{self, check_laws, network, problem};
use greedy_pde::candidates::{Candidates, Grid, Knots, Line};
use greedy_pde::gpu::{self, FIELD_BATCH, Gpu, WholeEngine};
use greedy_pde::network::{Network, Neuron};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::report::Report;
use greedy_pde::run::{BackendChoice, RunOptions, run};
use greedy_pde::sums::whole::{
    Engine, Fallback, Functional, LineSums, LineValues, NeuronList, NeuronSums, Reference, Runs, WholeTerm,
};
use greedy_pde::sums::{Accuracy, CpuOptions, CpuSums, PrecisionChoice, Sums, WholeSums};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

fn main() {
    let tests: Vec<OnAdapter> = vec![
        ("whole_numbers_obey_the_laws", whole_numbers_obey_the_laws),
        (
            "every_whole_number_is_that_of_the_reference",
            every_whole_number_is_that_of_the_reference,
        ),
        (
            "more_neurons_than_a_batch_and_more_points_than_a_row",
            more_neurons_than_a_batch_and_more_points_than_a_row,
        ),
        (
            "sums_at_the_edge_do_not_overflow",
            sums_at_the_edge_do_not_overflow,
        ),
        (
            "equal_terms_add_up_to_the_last_bit",
            equal_terms_add_up_to_the_last_bit,
        ),
        (
            "the_same_bytes_as_the_integer_mode_of_the_cpu",
            the_same_bytes_as_the_integer_mode_of_the_cpu,
        ),
        (
            "every_shipped_problem_has_the_neurons_of_the_cpu_without_f64",
            every_shipped_problem_has_the_neurons_of_the_cpu_without_f64,
        ),
        (
            "a_device_lost_on_the_way_changes_no_byte",
            a_device_lost_on_the_way_changes_no_byte,
        ),
        (
            "a_device_that_refuses_a_pipeline_changes_no_byte",
            a_device_that_refuses_a_pipeline_changes_no_byte,
        ),
        (
            "a_device_without_memory_changes_no_byte",
            a_device_without_memory_changes_no_byte,
        ),
    ];
    run_on_adapter(&["GREEDY_PDE_NO_F64"], tests);
}

/// The terms of a problem in whole numbers.
fn whole_terms(problem: &Problem) -> Arc<Vec<WholeTerm>> {
    let power = problem.dictionary.activation.relu_power().unwrap();
    let loss = problem.loss(8, Purpose::Training).unwrap();
    let terms = loss.terms.iter();
    Arc::new(
        terms
            .map(|term| WholeTerm::new(term, &problem.domain, power).unwrap())
            .collect(),
    )
}

/// Whole numbers on a device, as a run has them.
fn whole_device(problem: &Problem, gpu: Arc<Gpu>) -> WholeSums {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    let activation = problem.dictionary.activation;
    let engine = |terms: Arc<Vec<WholeTerm>>| -> Box<dyn Engine> {
        let device = WholeEngine::new(gpu, Arc::clone(&terms));
        Box::new(Fallback::new(Box::new(device), terms))
    };
    WholeSums::new(loss, &problem.domain, activation, CpuOptions::default(), engine).unwrap()
}

fn whole_numbers_obey_the_laws() {
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (2, "energy", "relu^1"),
        (3, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (2, "residual", "relu^5"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let activation = problem.dictionary.activation;
        let (u, grid) = (network(activation, dimension), laws::grid(activation, dimension));
        let sums = whole_device(&problem, open());
        check_laws(&sums, &u, &grid);
        assert_eq!(sums.report().backend, "gpu");
    }
}

/// All numbers that an engine makes of a functional and of a network.
#[derive(PartialEq)]
struct Numbers {
    lines: Vec<Vec<LineSums>>,
    neurons: Vec<NeuronSums>,
    slopes: Vec<NeuronSums>,
    risk: Vec<(f64, i128)>,
}

fn numbers(engine: &dyn Engine, terms: &Arc<Vec<WholeTerm>>, u: &Network, grid: &Grid) -> Numbers {
    let rho = Functional::of_network(u.clone(), true);
    let runs = Runs::new(Arc::clone(terms), grid);
    let which: Vec<usize> = (0..grid.lines.len()).collect();
    let values = |term: &WholeTerm| {
        let count = which.len() * term.term.symbols.len();
        LineValues {
            mantissas: (0..count as i64)
                .map(|i| (1 << 60) + 12_345_678_901 * i)
                .collect(),
            powers: (0..count as i32).map(|i| 3 - i % 7).collect(),
            doublings: vec![4; which.len()],
            among_others: false,
        }
    };
    let values: Vec<LineValues> = terms.iter().map(values).collect();
    let list = |term: &WholeTerm, slopes: bool| {
        let active = u
            .neurons
            .iter()
            .filter_map(|neuron| term.frame().argument(neuron));
        let arguments: Vec<Vec<i64>> = active.map(|(_, argument)| argument).collect();
        NeuronList {
            count: arguments.len(),
            arguments: arguments.concat(),
            slopes,
        }
    };
    let lists = |slopes: bool| -> Vec<NeuronList> { terms.iter().map(|term| list(term, slopes)).collect() };
    Numbers {
        lines: engine.line_sums(&rho, &runs, &which, &values).unwrap(),
        neurons: engine.neuron_sums(&rho, &lists(false)).unwrap(),
        slopes: engine.neuron_sums(&rho, &lists(true)).unwrap(),
        risk: engine.risk_sums(u, None).unwrap(),
    }
}

/// Native 64-bit integers and pairs of words, stage by stage, against the reference; one bit of one coefficient changed
/// shows.
fn every_whole_number_is_that_of_the_reference() {
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (2, "energy", "relu^1"),
        (10, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (2, "residual", "relu^3"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let activation = problem.dictionary.activation;
        let (u, grid) = (network(activation, dimension), laws::grid(activation, dimension));
        let terms = whole_terms(&problem);
        let expected = numbers(&Reference::new(Arc::clone(&terms)), &terms, &u, &grid);
        for native in [true, false] {
            let engine = WholeEngine::new(Arc::new(open_gpu(native)), Arc::clone(&terms));
            assert!(
                numbers(&engine, &terms, &u, &grid) == expected,
                "{dimension} {formulation} {activation}, native {native}"
            );
        }
        let mut damaged: Vec<WholeTerm> = Arc::try_unwrap(whole_terms(&problem)).ok().unwrap();
        damaged[0].columns[4321] ^= 1 << 40;
        let damaged = Arc::new(damaged);
        let engine = WholeEngine::new(open(), Arc::clone(&damaged));
        let found = numbers(&engine, &damaged, &u, &grid);
        assert!(
            found.lines != expected.lines,
            "{dimension} {formulation} {activation}"
        );
        assert!(found.risk != expected.risk);
    }
}

fn open_gpu(native: bool) -> Gpu {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    Gpu::open_as(&adapter, native, adapter.limits()).unwrap()
}

/// All points in one bin, one coefficient a hundred million times the others: no sum wraps around.
fn sums_at_the_edge_do_not_overflow() {
    let text = "name = \"edge\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\n\
                reaction = \"if(x < 0.001, 1e8, 1)\"\nexact = \"1 + cos(pi*x)\"\n[boundary]\ncondition = \"neumann\"\n\
                [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"halton\"\npoints = 300000\n\
                [solver]\nneurons = 8\n";
    let text = text.replace("if(x < 0.001, 1e8, 1)", "1 + 1e8*max(0, 1 - 1000*x)");
    let problem = Problem::from_toml(&text, "edge", &Overrides::default()).unwrap();
    let activation = problem.dictionary.activation;
    // Three knots around the domain: every point lies between two of them.
    let knots = Knots {
        first: -1.0,
        step: 2.0,
        count: 3,
    };
    let line = Line {
        omega: vec![1.0],
        knots,
    };
    let grid = Grid::new(vec![line], true);
    let mut u = network(activation, 1);
    u.coefficients.iter_mut().for_each(|a| *a = 1e3 * a.abs());
    let sums = whole_device(&problem, open());
    let cpu = CpuSums::new(
        problem.loss(8, Purpose::Training).unwrap(),
        activation,
        CpuOptions::default(),
    )
    .unwrap();
    let scores = |sums: &dyn Sums| {
        let rho = sums.gradient(&u).unwrap();
        rho.scores(Candidates::Grid(&grid), Accuracy::Full)
            .unwrap()
            .values
    };
    let (found, expected) = (scores(&sums), scores(&cpu));
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (found - expected).abs() <= 1e-11 * expected.abs(),
            "{found} {expected}"
        );
    }
    let (found, expected) = (sums.risk(&u).unwrap(), cpu.risk(&u).unwrap());
    assert!((found / expected - 1.0).abs() < 1e-11, "{found} {expected}");
}

/// The shipped problems in which a device does the sums in whole numbers, made small.
const SMALL: [(&str, usize, Option<usize>, Option<usize>); 9] = [
    ("ex1_neumann", 128, Some(400), None),
    ("ex1_pinn", 32, None, None),
    ("ex1_dirichlet", 24, Some(400), None),
    ("ex2_three_peaks", 128, Some(500), None),
    ("ex3_energy", 16, Some(24), None),
    ("ex3_pinn", 8, None, Some(1000)),
    ("ex4_biharmonic", 12, Some(20), None),
    ("ex5_elliptic_10d", 24, None, Some(30_000)),
    ("polish/sin_2d", 12, Some(16), None),
];

fn shipped(name: &str, neurons: usize, cells: Option<usize>, points: Option<usize>) -> Problem {
    let overrides = Overrides {
        neurons: Some(neurons),
        cells,
        points,
        ..Overrides::default()
    };
    Problem::from_path(std::path::Path::new(&format!("configs/{name}.toml")), &overrides).unwrap()
}

fn solved(problem: &Problem, backend: BackendChoice, precision: PrecisionChoice) -> (Report, Network) {
    let options = RunOptions {
        backend,
        precision,
        ..RunOptions::default()
    };
    run(problem, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// To the last bit of every coefficient, and the neurons of the default mode of the CPU.
fn the_same_bytes_as_the_integer_mode_of_the_cpu() {
    for (name, neurons, cells, points) in SMALL {
        let problem = shipped(name, neurons, cells, points);
        let (report, device) = solved(&problem, BackendChoice::Gpu, PrecisionChoice::Integer);
        let (_, cpu) = solved(&problem, BackendChoice::Cpu, PrecisionChoice::Integer);
        assert_eq!(device, cpu, "{name}");
        // Neurons that are moved part ways by rounding.
        if problem.settings.polish.is_none() {
            let (_, plain) = solved(&problem, BackendChoice::Cpu, PrecisionChoice::Auto);
            assert_eq!(device.neurons, plain.neurons, "{name}");
        }
        assert_eq!(report.precision, "integer", "{name}");
        let told = report.device.unwrap();
        assert!(told.submissions > 0 && told.bytes_down > 0, "{name}");
    }
}

fn a_device_lost_on_the_way_changes_no_byte() {
    let problem = problem(2, "energy", "relu^2");
    let activation = problem.dictionary.activation;
    let (u, grid) = (network(activation, 2), laws::grid(activation, 2));
    let gpu = open();
    let sums = whole_device(&problem, Arc::clone(&gpu));
    let rho = sums.gradient(&u).unwrap();
    let scores = || {
        rho.scores(Candidates::Grid(&grid), Accuracy::Full)
            .unwrap()
            .values
    };
    let (before, risk) = (scores(), sums.risk(&u).unwrap());
    gpu.destroy();
    assert_eq!(scores(), before);
    assert_eq!(sums.risk(&u).unwrap(), risk);
    let report = sums.report();
    assert_eq!(report.backend, "cpu");
    assert!(report.notes.iter().any(|note| note.contains("the CPU goes on")));
}

/// What a run has of a device whose limits are lower than it needs.
fn scores_and_risk(sums: &WholeSums, u: &Network, grid: &Grid) -> (Vec<f64>, f64) {
    let rho = sums.gradient(u).unwrap();
    let scores = rho.scores(Candidates::Grid(grid), Accuracy::Full).unwrap();
    (scores.values, sums.risk(u).unwrap())
}

fn on_the_reference(problem: &Problem) -> WholeSums {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    let activation = problem.dictionary.activation;
    WholeSums::on_the_cpu(loss, &problem.domain, activation, CpuOptions::default()).unwrap()
}

/// The CPU goes on where a device gives up, and says why.
fn assert_goes_on(problem: &Problem, gpu: Gpu, why: &str) {
    let (activation, dimension) = (problem.dictionary.activation, problem.dimension());
    let (u, grid) = (network(activation, dimension), laws::grid(activation, dimension));
    let sums = whole_device(problem, Arc::new(gpu));
    let found = scores_and_risk(&sums, &u, &grid);
    assert_eq!(found, scores_and_risk(&on_the_reference(problem), &u, &grid));
    let report = sums.report();
    assert_eq!(report.backend, "cpu");
    let told = |note: &String| note.contains(why) && note.contains("the CPU goes on");
    assert!(report.notes.iter().any(told), "{:?}", report.notes);
}

/// Shaders of sums over runs have eight buffers.
fn a_device_that_refuses_a_pipeline_changes_no_byte() {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    let mut limits = adapter.limits();
    limits.max_storage_buffers_per_shader_stage = 6;
    let gpu = Gpu::open_as(&adapter, true, limits).unwrap();
    assert_goes_on(&problem(2, "energy", "relu^2"), gpu, "refused");
}

/// Buffers of a few KiB hold no column of the points.
fn a_device_without_memory_changes_no_byte() {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    let mut limits = adapter.limits();
    limits.max_buffer_size = 64 << 10;
    limits.max_storage_buffer_binding_size = 64 << 10;
    let gpu = Gpu::open_as(&adapter, true, limits).unwrap();
    assert_goes_on(&problem(2, "energy", "relu^2"), gpu, "memory");
}

/// Neurons alone along their directions and many along one, so many that jets are made in batches, at points that take more
/// than one row of workgroups.
fn more_neurons_than_a_batch_and_more_points_than_a_row() {
    let text = "name = \"large\"\n[domain]\ndimension = 2\n[equation]\nreaction = \"1\"\nsource = \"x*y\"\n\
                [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n\
                [quadrature]\nrule = \"halton\"\npoints = 530000\n[solver]\nneurons = 8\n";
    let problem = Problem::from_toml(text, "large", &Overrides::default()).unwrap();
    let terms = whole_terms(&problem);
    let neuron = |n: usize| {
        let angle = if n.is_multiple_of(40) {
            1.0
        } else {
            0.01 * n as f64
        };
        Neuron {
            omega: vec![angle.cos(), angle.sin()],
            bias: 0.3 - 0.001 * n as f64,
        }
    };
    let count = FIELD_BATCH + 40;
    let u = Network {
        neurons: (0..count).map(neuron).collect(),
        coefficients: (0..count).map(|n| (0.1 * n as f64).sin()).collect(),
        ..Network::zero(problem.dictionary.activation, 2)
    };
    let device = WholeEngine::new(open(), Arc::clone(&terms));
    let reference = Reference::new(Arc::clone(&terms));
    let expected = reference.risk_sums(&u, None).unwrap();
    assert!(device.risk_sums(&u, None).unwrap() == expected);
    // One neuron less shows.
    let mut fewer = u.clone();
    fewer.coefficients[FIELD_BATCH + 1] = 0.0;
    assert!(device.risk_sums(&fewer, None).unwrap() != expected);
}

/// Every term is the largest: blocks and tasks are as full as they can be.
fn equal_terms_add_up_to_the_last_bit() {
    let text = "name = \"equal\"\n[domain]\ndimension = 1\n[equation]\nreaction = \"1\"\nsource = \"0\"\n\
                [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^1\"\n\
                [quadrature]\nrule = \"halton\"\npoints = 65536\n[solver]\nneurons = 2\n";
    let problem = Problem::from_toml(text, "equal", &Overrides::default()).unwrap();
    // (t + 1) − t = 1 everywhere in [0, 1].
    let neuron = |bias: f64| Neuron {
        omega: vec![1.0],
        bias,
    };
    let u = Network {
        neurons: vec![neuron(1.0), neuron(0.0)],
        coefficients: vec![1.0, -1.0],
        ..Network::zero(problem.dictionary.activation, 1)
    };
    let knots = Knots {
        first: -1.0,
        step: 1.0,
        count: 3,
    };
    let grid = Grid::new(
        vec![Line {
            omega: vec![1.0],
            knots,
        }],
        false,
    );
    let sums = whole_device(&problem, open());
    let (scores, risk) = scores_and_risk(&sums, &u, &grid);
    assert_eq!(sums.report().backend, "gpu");
    // ½ ∫ 1, and ∫ (x − τ)₊ at τ = −1, 0, 1: the rule's mean of x is known to 2⁻¹⁶.
    assert!((risk - 0.5).abs() < 1e-13, "{risk}");
    for (score, exact) in scores.iter().zip([1.5, 0.5, 0.0]) {
        assert!((score - exact).abs() < 1e-4, "{score} {exact}");
    }
    assert!((scores[0] - scores[1] - 1.0).abs() < 1e-13, "{scores:?}");
}

/// To the end of the run, with the device at work; the paper's first two examples with 128 neurons.
fn every_shipped_problem_has_the_neurons_of_the_cpu_without_f64() {
    assert!(!open().report().f64, "the variable hides f64");
    let mut found = 0;
    for entry in std::fs::read_dir("configs").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let neurons = if name.starts_with("ex1") || name.starts_with("ex2") {
            128
        } else {
            12
        };
        let problem = small(Path::new(&path), neurons);
        if !problem.dictionary.activation.has_sweep() {
            continue;
        }
        found += 1;
        let (_, cpu) = solved(&problem, BackendChoice::Cpu, PrecisionChoice::Auto);
        let (report, device) = solved(&problem, BackendChoice::Gpu, PrecisionChoice::Auto);
        assert_eq!(device.neurons, cpu.neurons, "{name}");
        assert_eq!(report.backend, "gpu", "{name}");
        let told = report.device.unwrap();
        assert!(
            told.submissions as usize >= report.neurons.min(12),
            "{name}: {told:?}"
        );
    }
    assert!(found >= 12, "{found}");
}
