//! The GPU path against the CPU path and against plain sums, on every adapter there is.
//!
//! Without an adapter these tests are shown as ignored; with `GREEDY_PDE_REQUIRE_GPU` set they fail.

mod common;

use common::adapter::{OnAdapter, open, run_on_adapter, small};
use common::laws::{self, check_laws, network, problem, unit};
use greedy_pde::candidates::{Candidates, Grid, Knots, Line};
use greedy_pde::domain::Region;
use greedy_pde::gpu::{DevicePass, Gpu, GpuOptions, GpuSums, Precision};
use greedy_pde::network::{Network, Neuron};
use greedy_pde::points::{PointSet, Tile};
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::run::{BackendChoice, RunOptions, run};
use greedy_pde::sums::{
    Accuracy, CpuOptions, CpuSums, MomentTables, PairSums, PassOptions, PrecisionChoice, Sums,
};
use std::ops::ControlFlow;
use std::sync::Arc;

fn main() {
    let tests: Vec<OnAdapter> = vec![
        ("the_gpu_obeys_the_laws", the_gpu_obeys_the_laws),
        (
            "scores_are_right_to_the_precision",
            scores_are_right_to_the_precision,
        ),
        (
            "a_lost_device_leaves_the_cpu_to_go_on",
            a_lost_device_leaves_the_cpu_to_go_on,
        ),
        (
            "streamed_tiles_and_resident_points_agree",
            streamed_tiles_and_resident_points_agree,
        ),
        (
            "smooth_activations_agree_with_the_cpu",
            smooth_activations_agree_with_the_cpu,
        ),
        (
            "a_potential_is_scored_on_the_device",
            a_potential_is_scored_on_the_device,
        ),
        (
            "moment_tables_are_those_of_the_cpu",
            moment_tables_are_those_of_the_cpu,
        ),
        (
            "refinement_finds_the_same_neurons",
            refinement_finds_the_same_neurons,
        ),
        ("the_same_neurons_as_on_the_cpu", the_same_neurons_as_on_the_cpu),
        (
            "every_shipped_problem_is_solved_alike",
            every_shipped_problem_is_solved_alike,
        ),
        (
            "a_penalty_does_not_end_a_run_on_a_device",
            a_penalty_does_not_end_a_run_on_a_device,
        ),
        (
            "refused_neurons_leave_no_single_precision_behind",
            refused_neurons_leave_no_single_precision_behind,
        ),
        (
            "numbers_too_large_for_single_precision",
            numbers_too_large_for_single_precision,
        ),
        (
            "the_same_numbers_every_time_on_every_thread",
            the_same_numbers_every_time,
        ),
        (
            "ten_million_points_stream_in_little_memory",
            ten_million_points_stream_in_little_memory,
        ),
    ];
    run_on_adapter(&[], tests);
}

fn options(precision: PrecisionChoice, resident_bytes: usize) -> GpuOptions {
    GpuOptions {
        precision,
        resident_bytes,
        cpu: CpuOptions::default(),
    }
}

fn device(problem: &Problem, options: GpuOptions) -> GpuSums {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    GpuSums::new(
        open(),
        loss,
        &problem.domain,
        problem.dictionary.activation,
        options,
    )
}

/// ⟨∇L(u), g⟩ in double precision.
fn gradient(sums: &dyn Sums, u: &Network, along: Candidates) -> Vec<f64> {
    let rho = sums.gradient(u).unwrap();
    rho.scores(along, Accuracy::Full).unwrap().values
}

fn cpu(problem: &Problem) -> CpuSums {
    let loss = problem.loss(8, Purpose::Training).unwrap();
    CpuSums::new(loss, problem.dictionary.activation, CpuOptions::default()).unwrap()
}

fn the_gpu_obeys_the_laws() {
    for (dimension, formulation, activation) in [
        (1, "energy", "relu^2"),
        (3, "energy", "relu^2"),
        (2, "fourth", "relu^3"),
        (2, "residual", "relu^5"),
        (2, "energy", "sigmoid"),
    ] {
        let problem = problem(dimension, formulation, activation);
        let activation = problem.dictionary.activation;
        let (u, grid) = (network(activation, dimension), laws::grid(activation, dimension));
        for (precision, resident) in [
            (PrecisionChoice::F64, 1 << 30),
            (PrecisionChoice::Auto, 1 << 30),
            (PrecisionChoice::Auto, 0),
        ] {
            check_laws(&device(&problem, options(precision, resident)), &u, &grid);
        }
    }
}

/// A fit of f: at u = 0 the scores are Σ −2 w f σ(ω·x + b), which a plain loop can add up.
fn fit(dimension: usize, points: usize, one: &str) -> Problem {
    let text = format!(
        "name = \"fit\"\n[domain]\ndimension = {dimension}\n[equation]\nformulation = \"fit\"\n\
         exact = \"{one} + prod(i, cos(3*x[i]))\"\n[dictionary]\nactivation = \"relu^2\"\n\
         [quadrature]\nrule = \"halton\"\npoints = {points}\n[solver]\nneurons = 8\n"
    );
    Problem::from_toml(&text, "fit", &Overrides::default()).unwrap()
}

fn scores_are_right_to_the_precision() {
    for dimension in [1, 2, 10] {
        let problem = fit(dimension, 1_000_000, "1");
        // Directions and knots that 32 bits hold: it is the sums that are tested.
        let knots = Knots {
            first: -0.25,
            step: 0.0625,
            count: 12,
        };
        let lines = [0.2, 1.1].map(|angle| Line {
            omega: unit(dimension, angle)
                .iter()
                .map(|o| f64::from(*o as f32))
                .collect(),
            knots,
        });
        let grid = Grid::new(lines.to_vec(), true);
        let (exact, size) = plain_sums(&problem, &grid);
        let zero = Network::zero(problem.dictionary.activation, dimension);
        for (precision, tolerance) in [(Precision::F32, 1e-7), (Precision::F64, 1e-14)] {
            // Scored as a scan does it, without the second look in f64.
            let raw = |problem: &Problem| {
                let sums = device(problem, options(PrecisionChoice::Auto, 1 << 29));
                sums.raw_scores(&zero, Candidates::Grid(&grid), precision)
                    .unwrap()
            };
            let scores = raw(&problem);
            // Neurons that hardly any point activates have no sum to speak of: the f32 coordinates of
            // those few points are all there is.
            let largest = size.iter().copied().fold(0.0, f64::max);
            let off = |scores: &[f64]| {
                let all = scores.iter().zip(&exact).zip(&size);
                let errors = all
                    .filter(|(_, size)| **size > 1e-3 * largest)
                    .map(|((s, e), size)| (s - e).abs() / size);
                errors.fold(0.0, f64::max)
            };
            let error = off(&scores);
            assert!(error <= tolerance, "d = {dimension}, {precision:?}: {error:e}");
            // The negative control: f off by a few parts in a million at every point.
            let perturbed = raw(&fit(dimension, 1_000_000, "1.000005"));
            assert!(off(&perturbed) > tolerance);
        }
    }
}

/// Scores by a plain compensated loop over the points, and the sums of the absolute terms.
fn plain_sums(problem: &Problem, grid: &Grid) -> (Vec<f64>, Vec<f64>) {
    use rayon::prelude::*;
    let rule = problem.quadrature.rule;
    let points = PointSet::new(&problem.domain, Region::Interior, rule, 0).unwrap();
    let neurons: Vec<Neuron> = (0..grid.len()).map(|index| grid.neuron(index)).collect();
    let tiles: Vec<_> = points.tiles().collect();
    let parts: Vec<Vec<(f64, f64)>> = tiles
        .into_par_iter()
        .map(|range| {
            let mut tile = Tile::default();
            points.fill(range, &mut tile);
            let mut sums = vec![(0.0, 0.0, 0.0); neurons.len()];
            for i in 0..tile.len() {
                let x = tile.point(i);
                let f = 1.0 + x.iter().map(|x| (3.0 * x).cos()).product::<f64>();
                for (sum, neuron) in sums.iter_mut().zip(&neurons) {
                    let term = -2.0 * tile.weights[i] * f * neuron.argument(&x).max(0.0).powi(2);
                    // Kahan's sum: total, carry, size.
                    let corrected = term - sum.1;
                    let next: f64 = sum.0 + corrected;
                    sum.1 = (next - sum.0) - corrected;
                    sum.0 = next;
                    sum.2 += term.abs();
                }
            }
            sums.into_iter().map(|(total, _, size)| (total, size)).collect()
        })
        .collect();
    let column = |pick: fn(&(f64, f64)) -> f64| {
        (0..neurons.len())
            .map(|k| parts.iter().map(|part| pick(&part[k])).sum())
            .collect()
    };
    (column(|part| part.0), column(|part| part.1))
}

fn a_lost_device_leaves_the_cpu_to_go_on() {
    let problem = problem(2, "energy", "relu^2");
    let u = network(problem.dictionary.activation, 2);
    let along = Candidates::List(&u.neurons);
    let gpu = open();
    let loss = problem.loss(8, Purpose::Training).unwrap();
    let options = options(PrecisionChoice::F64, 1 << 30);
    let sums = GpuSums::new(
        Arc::clone(&gpu),
        loss,
        &problem.domain,
        problem.dictionary.activation,
        options,
    );
    let rho = sums.gradient(&u).unwrap();
    let before = rho.list_scores(&u.neurons).unwrap();
    assert_eq!(sums.report().backend, "gpu");
    gpu.destroy();
    // What was made on the device is made again elsewhere.
    let after = rho.list_scores(&u.neurons).unwrap();
    assert_eq!(after, gradient(&cpu(&problem), &u, along));
    assert_eq!(after, gradient(&sums, &u, along));
    assert_eq!(sums.risk(&u).unwrap(), cpu(&problem).risk(&u).unwrap());
    for (a, b) in before.iter().zip(&after) {
        assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()));
    }
    assert_eq!(sums.report().backend, "cpu");
    assert!(
        sums.report().notes[0].contains("the CPU goes on"),
        "{:?}",
        sums.report().notes
    );
}

fn streamed_tiles_and_resident_points_agree() {
    let problem = problem(2, "energy", "relu^2");
    let u = network(problem.dictionary.activation, 2);
    let (resident, streamed) = (
        device(&problem, options(PrecisionChoice::F64, 1 << 30)),
        device(&problem, options(PrecisionChoice::F64, 0)),
    );
    let along = Candidates::List(&u.neurons);
    assert_eq!(gradient(&resident, &u, along), gradient(&streamed, &u, along));
    assert_eq!(resident.risk(&u).unwrap(), streamed.risk(&u).unwrap());
}

fn smooth_activations_agree_with_the_cpu() {
    for activation in ["sigmoid", "tanh"] {
        let problem = problem(2, "residual", activation);
        let u = network(problem.dictionary.activation, 2);
        f32_scores_agree_with_the_cpu(&problem, &u);
    }
}

/// Scores of the device in f32 along one line, and that it was the device.
fn f32_scores_agree_with_the_cpu(problem: &Problem, u: &Network) {
    let line = Line {
        omega: vec![3.0, -2.0],
        knots: Knots {
            first: -1.0,
            step: 0.2,
            count: 11,
        },
    };
    let grid = Grid::new(vec![line], false);
    let along = Candidates::Grid(&grid);
    let exact = gradient(&cpu(problem), u, along);
    let sums = device(problem, options(PrecisionChoice::F32, 1 << 30));
    let scores = sums
        .gradient(u)
        .unwrap()
        .scores(along, Accuracy::Fast)
        .unwrap()
        .values;
    let largest = exact.iter().fold(0.0f64, |m, s| m.max(s.abs()));
    for (a, b) in scores.iter().zip(&exact) {
        assert!((a - b).abs() < 1e-4 * largest, "{}: {a} {b}", u.activation);
    }
    assert_ne!(scores, exact, "the GPU was not used");
}

/// A potential is evaluated on the host; the scores of the relaxed run still come from the device.
fn a_potential_is_scored_on_the_device() {
    let text = "name = \"potential\"\n[domain]\ndimension = 2\n[equation]\npotential = \"cosh(u)\"\n\
                source = \"1 + x[1]\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\n\
                activation = \"sigmoid\"\ndirections = \"box\"\nweights = [-8.0, 8.0]\nbias = [-4.0, 4.0]\n\
                candidates = 32\noffsets = 16\n[quadrature]\nrule = \"monte_carlo\"\npoints = 12000\n\
                [solver]\nalgorithm = \"rga\"\nradius = 4.0\nneurons = 12\n";
    let problem = Problem::from_toml(text, "potential", &Overrides::default()).unwrap();
    let (gpu_report, on_gpu) = solve(&problem, BackendChoice::Gpu);
    let (_, on_cpu) = solve(&problem, BackendChoice::Cpu);
    assert_eq!(gpu_report.backend, "gpu");
    assert_eq!(on_gpu.neurons, on_cpu.neurons);
    f32_scores_agree_with_the_cpu(&problem, &on_cpu);
}

fn solve(problem: &Problem, backend: BackendChoice) -> (greedy_pde::report::Report, Network) {
    let options = RunOptions {
        backend,
        ..RunOptions::default()
    };
    run(problem, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Sums over pairs of axes, also with weights that grow on the way and with bins that are no power of two.
fn moment_tables_are_those_of_the_cpu() {
    for (activation, offsets) in [("relu^1", 100), ("relu^2", 256), ("relu^3", 37)] {
        let text = format!(
            "name = \"moments\"\n[domain]\ndimension = 3\nlower = -1.0\nupper = 0.5\n\
             [equation]\ndiffusion = \"1 + x[1]^2\"\nreaction = \"exp(3*x[2])\"\nsource = \"1\"\n\
             [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"{activation}\"\n\
             directions = \"axes\"\noffsets = {offsets}\n\
             [quadrature]\nrule = \"monte_carlo\"\npoints = 300000\n[solver]\nneurons = 1\n"
        );
        let problem = Problem::from_toml(&text, "moments", &Overrides::default()).unwrap();
        let loss = problem.loss(1, Purpose::Training).unwrap();
        let (power, axes) = greedy_pde::run::table_axes(&problem, &loss).unwrap();
        let device = open();
        let pass = |gpu: Option<&Arc<Gpu>>| {
            let device = gpu.map(|gpu| {
                let pass =
                    DevicePass::new(Arc::clone(gpu), power, &axes, loss.terms[0].points.fractions()).unwrap();
                Box::new(pass) as Box<dyn PairSums>
            });
            let options = PassOptions {
                device,
                ..PassOptions::default()
            };
            MomentTables::new(&loss.terms[0], power, axes.clone(), options, &mut |_, _| {
                ControlFlow::Continue(())
            })
            .unwrap()
        };
        let (on_cpu, on_gpu) = (pass(None), pass(Some(&device)));
        assert_eq!(on_gpu.adapter.as_deref(), Some(device.report().name.as_str()));
        let v: Vec<f64> = (0..offsets * (power + 1)).map(|k| (k as f64).sin()).collect();
        for (i, j) in [(0, 1), (0, 2), (1, 2), (2, 0)] {
            let (a, b) = (on_cpu.across(i, &v, j), on_gpu.across(i, &v, j));
            let largest = a.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            for (a, b) in a.iter().zip(&b) {
                assert!((a - b).abs() < 1e-8 * largest, "{activation} {i} {j}: {a} {b}");
            }
        }
    }
}

fn refinement_finds_the_same_neurons() {
    let overrides = Overrides {
        neurons: Some(6),
        cells: Some(24),
        ..Overrides::default()
    };
    let mut problem = Problem::from_path("configs/ex3_energy.toml".as_ref(), &overrides).unwrap();
    problem.dictionary.refine = true;
    problem.dictionary.candidates = 16;
    let (on_cpu, cpu_network) = solve(&problem, BackendChoice::Cpu);
    let (on_gpu, gpu_network) = solve(&problem, BackendChoice::Gpu);
    assert_eq!(on_gpu.backend, "gpu");
    assert_eq!(cpu_network.neurons, gpu_network.neurons);
    let (a, b) = (on_cpu.rows.last().unwrap(), on_gpu.rows.last().unwrap());
    assert!((a.h1.unwrap() / b.h1.unwrap() - 1.0).abs() < 1e-6);
}

fn the_same_neurons_as_on_the_cpu() {
    let neurons = |n| Overrides {
        neurons: Some(n),
        ..Overrides::default()
    };
    let ex1 = Problem::from_path("configs/ex1_neumann.toml".as_ref(), &neurons(64)).unwrap();
    let pinn = Problem::from_path("configs/ex1_pinn.toml".as_ref(), &neurons(24)).unwrap();
    let ex5 = Overrides {
        points: Some(1_000_000),
        ..neurons(64)
    };
    let ex5 = Problem::from_path("configs/ex5_elliptic_10d.toml".as_ref(), &ex5).unwrap();
    for problem in [ex1, pinn, ex5] {
        let (on_cpu, cpu_network) = solve(&problem, BackendChoice::Cpu);
        let (on_gpu, gpu_network) = solve(&problem, BackendChoice::Gpu);
        assert_eq!(on_gpu.backend, "gpu");
        let differs =
            (0..problem.settings.neurons).find(|&n| cpu_network.neurons[n] != gpu_network.neurons[n]);
        assert_eq!(differs, None, "{}", problem.name);
        let (a, b) = (on_cpu.rows.last().unwrap(), on_gpu.rows.last().unwrap());
        assert!((a.h1.unwrap() / b.h1.unwrap() - 1.0).abs() < 0.02);
        assert!((a.l2.unwrap() / b.l2.unwrap() - 1.0).abs() < 0.02);
    }
}

/// The same neurons and figures to rounding, or, where candidates tie to the last digit, figures within 1 %.
fn every_shipped_problem_is_solved_alike() {
    let mut found = 0;
    for entry in std::fs::read_dir("configs").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        found += 1;
        let problem = small(&path, 12);
        let ((on_cpu, cpu_network), (on_gpu, gpu_network)) = (
            solve(&problem, BackendChoice::Cpu),
            solve(&problem, BackendChoice::Gpu),
        );
        assert_eq!(on_gpu.backend, "gpu", "{}", problem.name);
        assert_eq!(on_cpu.stopped, on_gpu.stopped, "{}", problem.name);
        let same = cpu_network.neurons == gpu_network.neurons;
        let tolerance = if same { 1e-6 } else { 0.01 };
        let (a, b) = (on_cpu.rows.last().unwrap(), on_gpu.rows.last().unwrap());
        assert_eq!(a.n, b.n, "{}", problem.name);
        for (a, b) in [(a.l2, b.l2), (a.h1, b.h1), (Some(a.loss), Some(b.loss))] {
            let (a, b) = (a.unwrap_or(1.0), b.unwrap_or(1.0));
            assert!(
                (a / b - 1.0).abs() < tolerance,
                "{}: {a} {b}, same neurons: {same}",
                problem.name
            );
        }
    }
    assert!(found >= 12);
}

/// With orthogonalised values the gradient is made from them, on the device too; it used to come from an f32
/// scan at u = 0 and stopped at 31 neurons with the blame on the mesh.
fn a_penalty_does_not_end_a_run_on_a_device() {
    let overrides = Overrides {
        neurons: Some(64),
        cells: Some(1000),
        ..Overrides::default()
    };
    let problem = Problem::from_path("configs/ex1_dirichlet.toml".as_ref(), &overrides).unwrap();
    let ((on_cpu, cpu_network), (on_gpu, gpu_network)) = (
        solve(&problem, BackendChoice::Cpu),
        solve(&problem, BackendChoice::Gpu),
    );
    assert_eq!((on_gpu.neurons, on_gpu.backend.as_str()), (64, "gpu"));
    assert_eq!(cpu_network.neurons, gpu_network.neurons);
    let (a, b) = (on_cpu.rows.last().unwrap(), on_gpu.rows.last().unwrap());
    assert!((a.h1.unwrap() / b.h1.unwrap() - 1.0).abs() < 1e-6);
}

/// The guard refuses neurons here; those taken instead must enter with scores in double precision.
fn refused_neurons_leave_no_single_precision_behind() {
    let text = "name = \"disk\"\n[domain]\ndimension = 2\nshape = \"ball\"\ncenter = [1.0, 2.0]\nradius = 0.5\n\
                [equation]\ndiffusion = \"1\"\nreaction = \"1\"\nexact = \"cos(x*y)\"\n\
                [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\ncandidates = 30\n\
                [quadrature]\nrule = \"gauss\"\ncells = 20\n[solver]\nneurons = 16\n";
    let problem = Problem::from_toml(text, "disk", &Overrides::default()).unwrap();
    let ((on_cpu, _), (on_gpu, _)) = (
        solve(&problem, BackendChoice::Cpu),
        solve(&problem, BackendChoice::Gpu),
    );
    let (a, b) = (on_cpu.rows.last().unwrap(), on_gpu.rows.last().unwrap());
    assert!((a.loss / b.loss - 1.0).abs() < 1e-12, "{} {}", a.loss, b.loss);
}

fn numbers_too_large_for_single_precision() {
    let text = "name = \"huge\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1\"\nreaction = \"1\"\n\
                exact = \"1e45*cos(pi*x)\"\n[boundary]\ncondition = \"neumann\"\n\
                [dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\ncells = 100\n\
                [solver]\nneurons = 8\n";
    let problem = Problem::from_toml(text, "huge", &Overrides::default()).unwrap();
    let ((_, on_cpu), (report, on_gpu)) = (
        solve(&problem, BackendChoice::Cpu),
        solve(&problem, BackendChoice::Gpu),
    );
    assert_eq!(report.backend, "gpu");
    assert_eq!(on_cpu.neurons, on_gpu.neurons);
}

fn the_same_numbers_every_time() {
    let problem = problem(2, "energy", "relu^2");
    let u = network(problem.dictionary.activation, 2);
    let scores = || {
        let sums = device(&problem, options(PrecisionChoice::F32, 1 << 30));
        let knots = Knots {
            first: -1.0,
            step: 0.05,
            count: 40,
        };
        let grid = Grid::new(
            vec![Line {
                omega: vec![0.6, 0.8],
                knots,
            }],
            true,
        );
        gradient(&sums, &u, Candidates::Grid(&grid))
    };
    let first = scores();
    for _ in 0..4 {
        let together: Vec<Vec<f64>> = std::thread::scope(|scope| {
            [0; 4]
                .map(|_| scope.spawn(scores))
                .map(|thread| thread.join().unwrap())
                .to_vec()
        });
        for other in together {
            assert_eq!(first, other);
        }
    }
}

fn ten_million_points_stream_in_little_memory() {
    let problem = fit(10, 10_000_000, "1");
    let grid = Grid::new(
        vec![Line {
            omega: unit(10, 0.4),
            knots: Knots {
                first: 0.0,
                step: 0.1,
                count: 4,
            },
        }],
        false,
    );
    let sums = device(&problem, options(PrecisionChoice::F32, 1 << 28));
    let zero = Network::zero(problem.dictionary.activation, 10);
    let before = resident_memory();
    let scores = sums
        .raw_scores(&zero, Candidates::Grid(&grid), Precision::F32)
        .unwrap();
    assert!(scores.iter().all(|score| *score < 0.0));
    if let (Some(before), Some(after)) = (before, resident_memory()) {
        assert!(
            after.saturating_sub(before) < 1 << 30,
            "{} MiB more",
            (after - before) >> 20
        );
    }
}

/// The largest resident size of this process so far, in bytes, where the system tells.
fn resident_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? << 10)
}
