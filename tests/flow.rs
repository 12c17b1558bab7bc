//! Gradient flows in time: rates, the law of the energy, the same bytes after an interruption.

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::report::{Report, TimeRow};
use greedy_pde::results::{Existing, FRAMES, NETWORK, ResultDirectory, SavedRun};
use greedy_pde::run::{Event, RunOptions, run};
use std::ops::ControlFlow;

fn problem(text: &str) -> Problem {
    Problem::from_toml(text, "flow.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn solve(text: &str) -> (Report, Vec<TimeRow>) {
    let mut rows = Vec::new();
    let (report, _) = run(&problem(text), &RunOptions::default(), &mut |event| {
        if let Event::Time(step) = event {
            rows.push(step.row.clone());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    (report, rows)
}

const REST: &str = "[boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"relu^2\"\n[quadrature]\nrule = \"gauss\"\n";

fn heat(scheme: &str, steps: usize, neurons: usize) -> String {
    format!(
        "name = \"heat\"\n[domain]\ndimension = 1\n[equation]\nexact = \"exp(-pi^2*t)*cos(pi*x)\"\n{REST}\
         cells = 256\n[solver]\nneurons = {neurons}\n\
         [time]\nend = 0.1\nsteps = {steps}\nscheme = \"{scheme}\"\nsave_every = 1000\ninitial_neurons = {neurons}\n"
    )
}

fn last_error(text: &str) -> f64 {
    solve(text).1.last().and_then(|row| row.l2).unwrap()
}

#[test]
fn errors_fall_with_the_order_of_the_scheme() {
    for (scheme, least, most) in [("implicit_euler", 0.95, 1.1), ("bdf2", 1.9, 2.2)] {
        let errors = [20, 40, 80].map(|steps| last_error(&heat(scheme, steps, 96)));
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!(
                (least..most).contains(&order),
                "{scheme}: {order} from {errors:?}"
            );
        }
    }
}

#[test]
fn errors_fall_with_neurons_until_time_limits_them() {
    let errors = [8, 16, 32].map(|neurons| last_error(&heat("bdf2", 400, neurons)));
    assert!(
        errors[1] < errors[0] / 4.0 && errors[2] < errors[1] / 4.0,
        "{errors:?}"
    );
}

/// A source and boundary data that depend on t, as a sum of products and not.
#[test]
fn what_acts_may_depend_on_time() {
    for exact in ["(1 + t)*exp(x) + sin(3*t)*x^2", "sin(x - 2*t)"] {
        let text = format!(
            "name = \"moving\"\n[domain]\ndimension = 1\n[equation]\ndiffusion = \"1 + x\"\nreaction = \"2\"\nexact = \"{exact}\"\n\
             {REST}cells = 128\n[solver]\nneurons = 48\n[time]\nend = 1\nsteps = 100\nsave_every = 50\n"
        );
        let (_, rows) = solve(&text);
        let error = rows.last().and_then(|row| row.l2_relative).unwrap();
        assert!(error < 2e-4, "{exact}: {error}");
    }
}

/// Values that are held and faces that are periodic need no penalty; coefficients may depend on t.
#[test]
fn conditions_and_coefficients_in_time_keep_the_order() {
    for (exact, condition, coefficients) in [
        ("exp(-pi^2*t)*sin(pi*x)", "dirichlet", ""),
        ("(1 + x)*cos(20*t)", "dirichlet", ""),
        ("exp(-t)*cos(2*pi*x)*cos(10*t)", "periodic", ""),
        (
            "cos(20*t)*cos(pi*x)",
            "neumann",
            "diffusion = \"1 + 5*t + x\"\nreaction = \"2 + sin(30*t)\"\n",
        ),
    ] {
        let text = |steps| {
            let heat = heat("bdf2", steps, 96);
            let heat = heat.replace("condition = \"neumann\"", &format!("condition = \"{condition}\""));
            heat.replace(
                "exact = \"exp(-pi^2*t)*cos(pi*x)\"\n",
                &format!("exact = \"{exact}\"\n{coefficients}"),
            )
        };
        let errors = [20, 40].map(|steps| last_error(&text(steps)));
        let order = (errors[0] / errors[1]).log2();
        assert!((1.8..2.3).contains(&order), "{exact}: {order} from {errors:?}");
        assert!(errors[1] < 2e-3, "{exact}: {errors:?}");
    }
}

/// Insulated or held at zero, nothing acts: the energy of heat falls.
#[test]
fn the_energy_falls_where_values_are_held() {
    let text = format!(
        "name = \"held\"\n[domain]\ndimension = 2\n[equation]\n{REST}cells = 24\n[solver]\nneurons = 60\n\
         [time]\nend = 0.05\nsteps = 20\ninitial = \"sin(pi*x)*sin(2*pi*y)\"\ninitial_neurons = 60\n"
    );
    let (report, rows) = solve(&text.replace("neumann", "dirichlet"));
    let ratio = rows.last().unwrap().energy / rows[0].energy;
    let exact = (-2.0 * 5.0 * std::f64::consts::PI.powi(2) * 0.05_f64).exp();
    assert!((ratio / exact - 1.0).abs() < 0.05, "{ratio} {exact}");
    assert!(!report.warnings.iter().any(|warning| warning.contains("rose")));
}

fn allen_cahn(steps: usize, split: &str) -> String {
    format!(
        "name = \"ac\"\n[domain]\ndimension = 1\n[constants]\neps = 0.1\n[equation]\n{split}\n{REST}cells = 64\n\
         [solver]\nneurons = 48\n[time]\nend = 0.1\nsteps = {steps}\nscheme = \"implicit_euler\"\ninitial = \"0.8*cos(5*x)\"\n\
         initial_neurons = 32\n"
    )
}

fn largest_rise(rows: &[TimeRow]) -> f64 {
    let rises = rows
        .windows(2)
        .map(|pair| (pair[1].energy - pair[0].energy) / pair[0].energy.abs());
    rises.fold(f64::NEG_INFINITY, f64::max)
}

const LINEAR: &str = "reaction = \"2/eps^2\"\npotential_explicit = \"(u^2 - 1)^2/(4*eps^2) - u^2/eps^2\"";

/// However long the steps: the energy of a convex splitting never rises. With the whole double well taken explicitly (as
/// concave as the range of the initial value lets it look) a step that is too long must break that law.
#[test]
fn the_energy_never_rises() {
    let newton = "potential = \"u^4/(4*eps^2)\"\npotential_explicit = \"1/(4*eps^2) - u^2/(2*eps^2)\"";
    for split in [LINEAR, newton] {
        for steps in [4, 40] {
            let (report, rows) = solve(&allen_cahn(steps, split));
            assert!(largest_rise(&rows) <= 1e-9, "{steps}: {}", largest_rise(&rows));
            assert!(rows.last().unwrap().energy < 0.9 * rows[0].energy);
            assert!(!report.warnings.iter().any(|warning| warning.contains("rose")));
        }
    }
    let explicit = "potential_explicit = \"(u^2 - 1)^2/(4*eps^2)\"";
    let small = allen_cahn(4, explicit).replace("0.8*cos", "0.5*cos");
    let (report, rows) = solve(&small);
    assert!(largest_rise(&rows) > 0.01, "{:?}", rows);
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.contains("the energy rose"))
    );
    assert!(!report.usable);
}

/// Too few neurons for the initial value: what flows is another function.
#[test]
fn an_initial_value_that_was_not_met_is_told() {
    let waves = heat("bdf2", 20, 4).replace("cos(pi*x)", "cos(9*pi*x)");
    let (report, _) = solve(&waves);
    assert!(!report.usable);
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.contains("u at t = 0 is off by")),
        "{:?}",
        report.warnings
    );
    assert!(solve(&heat("bdf2", 20, 32)).0.usable);
}

/// u_t = u_xx + u − u³ has the front ½ − ½ tanh((x − 3t/√2)/2√2).
#[test]
fn a_front_travels() {
    let text = format!(
        "name = \"front\"\n[domain]\ndimension = 1\nlower = -10\nupper = 10\n[equation]\nreaction = \"2\"\n\
         potential_explicit = \"u^4/4 - 3*u^2/2\"\nexact = \"0.5 - 0.5*tanh((x - 3*t/sqrt(2))/(2*sqrt(2)))\"\nsource = \"0\"\n\
         {REST}cells = 256\n[solver]\nneurons = 96\n[time]\nend = 1\nsteps = 200\nsave_every = 200\n"
    );
    let error = last_error(&text);
    assert!(error < 1e-3, "{error}");
}

#[test]
fn an_interrupted_flow_goes_on_to_the_same_bytes() {
    let text = format!(
        "name = \"kill\"\n[domain]\ndimension = 2\n[constants]\neps = 0.2\n[equation]\n{LINEAR}\n{REST}cells = 16\n\
         [solver]\nneurons = 40\n[time]\nend = 0.02\nsteps = 20\nsave_every = 5\ninitial = \"0.9*sin(3*x)*cos(2*y)\"\n\
         initial_neurons = 12\n"
    );
    let problem = problem(&text);
    let root = tempfile::tempdir().unwrap();
    let [whole, parts] = ["whole", "parts"].map(|name| root.path().join(name));
    let go = |path: &std::path::Path, existing, stop_at: usize| {
        let mut directory = ResultDirectory::open(path, &problem, &text, existing).unwrap();
        directory
            .run(&problem, &RunOptions::default(), &mut |event| match event {
                Event::Time(step) if step.row.step == stop_at => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
            .unwrap()
    };
    let (report, _) = go(&whole, Existing::Refuse, usize::MAX);
    assert!(report.neurons > 12, "no neuron came on the way");
    go(&parts, Existing::Refuse, 1);
    go(&parts, Existing::Resume, 7);
    let half = SavedRun::load(&parts).unwrap();
    assert!(!half.is_finished());
    assert_eq!(half.steps.len(), 8);
    go(&parts, Existing::Resume, usize::MAX);
    for name in [NETWORK, FRAMES] {
        let [one, other] = [&whole, &parts].map(|path| std::fs::read(path.join(name)).unwrap());
        assert!(one == other, "{name} differs");
    }
    let run = SavedRun::load(&parts).unwrap();
    assert_eq!(run.frames.len(), 5);
    assert_eq!(run.steps.len(), 21);
}

/// A number in a checkpoint that cannot be is damage, not a reason to panic.
#[test]
fn a_damaged_checkpoint_of_a_flow_is_refused() {
    let text = heat("bdf2", 20, 16);
    let problem = problem(&text);
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    let mut directory = ResultDirectory::open(&path, &problem, &text, Existing::Refuse).unwrap();
    directory
        .run(&problem, &RunOptions::default(), &mut |event| match event {
            Event::Time(step) if step.row.step == 3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .unwrap();
    drop(directory);
    assert!(SavedRun::load(&path).is_ok());
    let file = path.join("checkpoint");
    let bytes = std::fs::read(&file).unwrap();
    let place = b"initial\\\":16";
    let at = bytes
        .windows(place.len())
        .position(|found| found == place)
        .unwrap();
    let mut damaged = bytes.clone();
    damaged[at + place.len() - 2..at + place.len()].copy_from_slice(b"99");
    std::fs::write(&file, damaged).unwrap();
    let error = SavedRun::load(&path).err().unwrap().to_string();
    assert!(error.contains("damaged"), "{error}");
}

/// What was found by people who tried it: a source that is switched on, with no neuron yet and after steps that asked for none; smooth
/// activations, whose neurons nearly depend on each other; a hot rod with cold ends; steps that are far too long.
#[test]
fn what_trials_found() {
    for (scheme, initial) in [("bdf2", "0"), ("implicit_euler", "1")] {
        let switched = format!(
            "name = \"switch\"\n[domain]\ndimension = 1\n[equation]\nsource = \"if(t < 0.05, 0, 10)\"\n\
             exact = \"{initial} + 10*max(t - 0.05, 0)\"\n{REST}cells = 64\n[solver]\nneurons = 40\n\
             [time]\nend = 0.1\nsteps = 100\nscheme = \"{scheme}\"\ninitial = \"{initial}\"\n"
        );
        let error = last_error(&switched);
        assert!(error < 0.06, "{scheme}: {error}");
    }
    for activation in ["tanh", "sigmoid"] {
        let smooth = heat("bdf2", 40, 40).replace("relu^2", activation);
        let (report, rows) = solve(&smooth);
        let error = rows.last().and_then(|row| row.l2_relative).unwrap();
        assert!(error < 1e-2 && report.usable, "{activation}: {error}");
    }
    let rod = heat("bdf2", 50, 100)
        .replace("exact = \"exp(-pi^2*t)*cos(pi*x)\"", "source = \"0\"")
        .replace("neumann", "dirichlet")
        .replace("end = 0.1", "end = 0.1\ninitial = \"1\"");
    let (report, _) = solve(&rod);
    assert!(report.usable, "{:?}", report.warnings);
    let long = heat("bdf2", 2, 40).replace("end = 0.1", "end = 1");
    let (report, _) = solve(&long);
    assert!(!report.usable, "{:?}", report.warnings);
}

/// A formula without a value at some time ends the run there, with its name.
#[test]
fn a_value_that_is_not_finite_at_a_time_ends_the_run() {
    for (old, new, what) in [
        (
            "exact = \"exp(-pi^2*t)*cos(pi*x)\"",
            "source = \"1/(0.05 - t)\"",
            "source",
        ),
        (
            "condition = \"neumann\"",
            "condition = \"dirichlet\"\nvalue = \"sqrt(0.05 - t)\"",
            "boundary value",
        ),
    ] {
        let text = heat("bdf2", 20, 16).replace(old, new) + "initial = \"1\"\n";
        let error = run(&problem(&text), &RunOptions::default(), &mut |_| {
            ControlFlow::Continue(())
        });
        let error = error.err().unwrap_or_else(|| panic!("{what}: no error"));
        let message = error.to_string();
        assert!(
            message.contains(what) && message.contains("at t = 0.05"),
            "{message}"
        );
        assert!(error.is_bad_input());
        let placed = problem(&text).places.explain(&error).unwrap().to_string();
        assert!(placed.contains("flow.toml:"), "{placed}");
    }
}

#[test]
fn bad_tables_are_refused_with_their_place() {
    let cases = [
        ("steps = 20", "step = 0.03", "not a whole number of steps"),
        ("steps = 20", "steps = 0", "whole number from 1"),
        ("steps = 20", "", "needs `steps`"),
        ("end = 0.1", "end = -1", "must be positive"),
        ("scheme = \"bdf2\"", "scheme = \"rk4\"", "unknown variant"),
        (
            "end = 0.1",
            "end = 0.1\ninitial = \"t + x\"",
            "does not depend on t",
        ),
        (
            "[equation]\n",
            "[equation]\nformulation = \"fit\"\n",
            "flow of an energy",
        ),
        (
            "[equation]\n",
            "[equation]\npotential_explicit = \"u^4\"\n",
            "must be concave",
        ),
        (
            "[equation]\n",
            "[equation]\npotential_explicit = \"-t*u^2\"\n",
            "may not depend on t",
        ),
        (
            "[equation]\n",
            "[constants]\nt = 1\n[equation]\n",
            "already has a meaning",
        ),
    ];
    for (old, new, message) in cases {
        let text = heat("bdf2", 20, 16).replacen(old, new, 1);
        let error = Problem::from_toml(&text, "flow.toml", &Overrides::default());
        let error = error
            .err()
            .unwrap_or_else(|| panic!("{new} was accepted"))
            .to_string();
        assert!(error.contains(message), "{new}: {error}");
        assert!(error.contains("flow.toml"), "{error}");
    }
}
