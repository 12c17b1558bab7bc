//! Moment tables made on a device against those of the CPU's integer mode: not one bit differs.
//!
//! Without an adapter these tests are shown as ignored; with `GREEDY_PDE_REQUIRE_GPU` set they fail.

mod common;

use common::adapter::{OnAdapter, any_adapter, open, run_on_adapter};
use greedy_pde::candidates::AxisBins;
use greedy_pde::error::SolveError;
use greedy_pde::gpu::{self, Adapter, DeviceError, DevicePass, Gpu, LONGEST_WALK, TABLE_BLOCK};
use greedy_pde::loss::Loss;
use greedy_pde::problem::{Overrides, Problem, Purpose};
use greedy_pde::report::Report;
use greedy_pde::run::{Event, RunOptions, run, table_axes};
use greedy_pde::sums::{MomentTables, PairSums, PassOptions, PrecisionChoice, TableStore, WholePass};
use std::ops::ControlFlow;
use std::sync::Arc;

fn main() {
    let tests: Vec<OnAdapter> = vec![
        ("tables_are_the_cpus_to_the_bit", tables_are_the_cpus_to_the_bit),
        ("all_points_in_one_bin", all_points_in_one_bin),
        ("one_huge_coefficient", one_huge_coefficient),
        (
            "groups_are_added_alike_whoever_sums",
            groups_are_added_alike_whoever_sums,
        ),
        (
            "a_device_lost_in_a_pass_ends_it_with_a_device_error",
            a_device_lost_in_a_pass_ends_it_with_a_device_error,
        ),
        (
            "a_run_whose_pass_loses_its_device_ends_in_the_same_bytes",
            a_run_whose_pass_loses_its_device_ends_in_the_same_bytes,
        ),
        (
            "a_device_without_memory_says_so_before_the_pass",
            a_device_without_memory_says_so_before_the_pass,
        ),
        (
            "a_pass_interrupted_on_a_device_ends_in_the_same_bytes",
            a_pass_interrupted_on_a_device_ends_in_the_same_bytes,
        ),
    ];
    run_on_adapter(&[], tests);
}

const PLAIN: &str = "exp(3*x[2])";

fn problem(rule: &str, activation: &str, offsets: usize, reaction: &str) -> Problem {
    let text = format!(
        "name = \"moments\"\n[domain]\ndimension = 3\nlower = -1.0\nupper = 0.5\n\
         [equation]\ndiffusion = \"1 + x[1]^2\"\nreaction = \"{reaction}\"\nsource = \"1\"\n\
         [boundary]\ncondition = \"neumann\"\n[dictionary]\nactivation = \"{activation}\"\n\
         directions = \"axes\"\noffsets = {offsets}\n[quadrature]\n{rule}\n[solver]\nneurons = 1\n"
    );
    Problem::from_toml(&text, "moments", &Overrides::default()).unwrap()
}

/// The term of a problem, its power and its bins.
struct Subject {
    loss: Loss,
    power: usize,
    axes: Vec<AxisBins>,
}

impl Subject {
    fn new(problem: &Problem, purpose: Purpose) -> Self {
        let loss = problem.loss(1, purpose).unwrap();
        let (power, axes) = table_axes(problem, &loss).unwrap();
        Self { loss, power, axes }
    }

    fn device(&self, gpu: &Arc<Gpu>, software: bool) -> DevicePass {
        let adapter = Adapter {
            software,
            ..Adapter::of(gpu)
        };
        let fractions = self.loss.terms[0].points.fractions();
        DevicePass::new_as(Arc::clone(gpu), adapter, self.power, &self.axes, fractions).unwrap()
    }

    fn tables(&self, sums: impl PairSums + 'static, points_per_group: usize) -> MomentTables {
        let options = PassOptions {
            device: Some(Box::new(sums)),
            points_per_group,
            ..PassOptions::default()
        };
        let term = &self.loss.terms[0];
        let mut made = MomentTables::new(term, self.power, self.axes.clone(), options, &mut |_, _| {
            ControlFlow::Continue(())
        })
        .unwrap();
        // The only thing in which they may differ.
        made.adapter = None;
        made
    }

    /// Every way to sum on a device, compared with the CPU's whole numbers.
    fn assert_alike(&self, points_per_group: usize, why: &str) {
        let cpu = self.tables(WholePass::new(self.power, &self.axes), points_per_group);
        for native in [true, false] {
            let gpu = Arc::new(open_gpu(native));
            for software in [true, false] {
                let made = self.tables(self.device(&gpu, software), points_per_group);
                assert!(made == cpu, "{why}, native {native}, software {software}");
            }
        }
    }
}

fn open_gpu(native: bool) -> Gpu {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    Gpu::open_as(&adapter, native, adapter.limits()).unwrap()
}

/// Points made on the device and sent to it, bins that are no power of two; other points or another coefficient show.
fn tables_are_the_cpus_to_the_bit() {
    for (rule, activation, offsets) in [
        ("rule = \"halton\"\npoints = 300001", "relu^2", 256),
        ("rule = \"lattice\"\npoints = 262144", "relu^3", 37),
        ("rule = \"monte_carlo\"\npoints = 100000", "relu^1", 100),
    ] {
        let problem = problem(rule, activation, offsets, PLAIN);
        // The validation points of a sequence are moved by a shift.
        for purpose in [Purpose::Training, Purpose::Validation] {
            Subject::new(&problem, purpose).assert_alike(1 << 22, rule);
        }
    }
    let rule = "rule = \"halton\"\npoints = 30000";
    let of = |reaction: &str, purpose| {
        let subject = Subject::new(&problem(rule, "relu^2", 64, reaction), purpose);
        subject.tables(subject.device(&open(), true), 1 << 22)
    };
    let plain = of("1 + x[1]^2", Purpose::Training);
    assert!(plain == of("1 + x[1]^2", Purpose::Training));
    // The last bits of the weight of one point.
    assert!(plain != of("1 + x[1]^2 + 1e-3*max(0, x[1] - 0.4999)", Purpose::Training));
    assert!(plain != of("1 + x[1]^2", Purpose::Validation));
}

/// Rows as long as they can be, and every weight the largest: a block is full, and a row takes many dispatches.
fn all_points_in_one_bin() {
    let points = TABLE_BLOCK + 1000;
    let rule = format!("rule = \"halton\"\npoints = {points}");
    let mut subject = Subject::new(&problem(&rule, "relu^1", 16, "1"), Purpose::Training);
    subject.axes[0] = AxisBins {
        low: -1.0,
        step: 1.5,
        count: 1,
    };
    assert!(points > 30 * LONGEST_WALK);
    subject.assert_alike(usize::MAX, "one bin");
    let made = subject.tables(subject.device(&open(), true), usize::MAX);
    let mut constant = vec![0.0; 2];
    constant[0] = 1.0;
    let sum: f64 = made.across(0, &constant, 1).iter().step_by(2).sum();
    assert!((sum - 1.5_f64.powi(3)).abs() < 1e-9, "{sum}");
}

/// A weight a hundred million times the others, in a block after the first: the unit is outgrown on the way.
fn one_huge_coefficient() {
    let rule = "rule = \"halton\"\npoints = 600000";
    let spike = "1 + 1e12*max(0, x[1] - 0.499995)";
    let subject = Subject::new(&problem(rule, "relu^2", 20, spike), Purpose::Training);
    subject.assert_alike(1 << 22, "spike");
}

fn groups_are_added_alike_whoever_sums() {
    let rule = "rule = \"halton\"\npoints = 700000";
    let subject = Subject::new(&problem(rule, "relu^2", 20, PLAIN), Purpose::Training);
    subject.assert_alike(200_000, "groups");
}

fn a_device_lost_in_a_pass_ends_it_with_a_device_error() {
    let rule = "rule = \"halton\"\npoints = 600000";
    let subject = Subject::new(&problem(rule, "relu^2", 20, PLAIN), Purpose::Training);
    let gpu = Arc::new(open_gpu(true));
    let options = PassOptions {
        device: Some(Box::new(subject.device(&gpu, true))),
        ..PassOptions::default()
    };
    let mut seen = 0;
    let lost = MomentTables::new(
        &subject.loss.terms[0],
        subject.power,
        subject.axes.clone(),
        options,
        &mut |done, _| {
            seen = done;
            gpu.destroy();
            ControlFlow::Continue(())
        },
    );
    assert!(matches!(lost, Err(SolveError::Device(_))), "after {seen} points");
    assert!(seen > 0);
}

/// The device is lost in the middle of a pass: the CPU does it again in whole numbers, and the run says so.
fn a_run_whose_pass_loses_its_device_ends_in_the_same_bytes() {
    let rule = "rule = \"lattice\"\npoints = 262144";
    let mut problem = problem(rule, "relu^2", 20, PLAIN);
    problem.settings.neurons = 12;
    let solved = |gpu: Option<&Arc<Gpu>>, lose_at: usize| {
        let options = RunOptions {
            device: gpu.cloned(),
            precision: PrecisionChoice::Integer,
            ..RunOptions::default()
        };
        let mut lost = false;
        let (report, network) = run(&problem, &options, &mut |event| {
            if let (Event::Points { done, .. }, Some(gpu)) = (event, gpu)
                && *done >= lose_at
            {
                gpu.destroy();
                lost = true;
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        (report, network, lost)
    };
    let (on_cpu, expected, _) = solved(None, 0);
    let (on_device, network, lost) = solved(Some(&open()), usize::MAX);
    assert!(network == expected && !lost && on_device.device.unwrap().submissions > 0);
    let (after_loss, network, lost) = solved(Some(&Arc::new(open_gpu(true))), 1);
    assert!(lost && network == expected);
    let says_so = |report: &Report| {
        report
            .warnings
            .iter()
            .any(|text| text.contains("done by the CPU"))
    };
    assert!(says_so(&after_loss), "{:?}", after_loss.warnings);
    assert!(!says_so(&on_cpu));
}

/// Buffers that hold no table.
fn a_device_without_memory_says_so_before_the_pass() {
    let adapter = gpu::choose(&any_adapter()).unwrap();
    let mut limits = adapter.limits();
    limits.max_buffer_size = 64 << 10;
    limits.max_storage_buffer_binding_size = 64 << 10;
    let gpu = Arc::new(Gpu::open_as(&adapter, true, limits).unwrap());
    let rule = "rule = \"halton\"\npoints = 30000";
    let subject = Subject::new(&problem(rule, "relu^2", 256, "1"), Purpose::Training);
    let fractions = subject.loss.terms[0].points.fractions();
    let refused = DevicePass::new(gpu, subject.power, &subject.axes, fractions);
    assert!(matches!(
        refused.err(),
        Some(DeviceError::OutOfMemory(_) | DeviceError::Refused(_))
    ));
}

/// Whole groups are saved; where it was interrupted does not show.
fn a_pass_interrupted_on_a_device_ends_in_the_same_bytes() {
    let rule = "rule = \"halton\"\npoints = 700000";
    let subject = Subject::new(&problem(rule, "relu^2", 20, PLAIN), Purpose::Training);
    let (directory, gpu) = (tempfile::tempdir().unwrap(), open());
    let store = TableStore {
        path: directory.path().join("tables"),
        run: "this very run".to_string(),
        every: 1,
    };
    let pass = |stop_at: usize| {
        let options = PassOptions {
            device: Some(Box::new(subject.device(&gpu, true))),
            store: Some(&store),
            points_per_group: 200_000,
            ..PassOptions::default()
        };
        let mut first = None;
        let mut observer = |done: usize, _: usize| {
            first.get_or_insert(done);
            match done >= stop_at {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let (term, axes) = (&subject.loss.terms[0], subject.axes.clone());
        let made = MomentTables::new(term, subject.power, axes, options, &mut observer);
        (first, made)
    };
    let (_, interrupted) = pass(500_000);
    assert_eq!(interrupted.unwrap_err(), SolveError::Interrupted);
    let (first, resumed) = pass(usize::MAX);
    assert!(first.unwrap() > 400_000, "the pass began again");
    let mut resumed = resumed.unwrap();
    resumed.adapter = None;
    assert!(resumed == subject.tables(WholePass::new(subject.power, &subject.axes), 200_000));
}
