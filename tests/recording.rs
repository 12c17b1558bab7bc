//! Runs that are written down in memory and problems whose files are on no disk, as other languages need them.

use greedy_pde::network::Network;
use greedy_pde::problem::{Attachment, Overrides, Problem};
use greedy_pde::results::{
    CHECKPOINT, Checkpoint, Existing, HISTORY, NETWORK, PROBLEM, Recording, ResultDirectory,
};
use greedy_pde::run::{RunOptions, run};
use greedy_pde::sample::{laplacian, of_network, of_network_by_point};
use greedy_pde::symbol::Symbol;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

const TEXT: &str = r#"
name = "recorded"
[domain]
dimension = 2
[equation]
reaction = "1"
exact = "cos(pi*x)*cos(pi*y)"
[dictionary]
activation = "relu^2"
[quadrature]
rule = "gauss"
cells = 20
[solver]
neurons = 12
"#;

fn problem() -> Problem {
    Problem::from_toml(TEXT, "recorded.toml", &Overrides::default()).unwrap()
}

#[test]
fn a_recorded_run_is_kept_as_if_it_had_been_written_as_it_went() {
    let problem = problem();
    let folder = tempfile::tempdir().unwrap();
    let (written, kept) = (folder.path().join("written"), folder.path().join("kept"));
    let mut directory = ResultDirectory::open(&written, &problem, TEXT, Existing::Refuse).unwrap();
    let options = RunOptions::default();
    directory
        .run(&problem, &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();

    let mut recording = Recording::new(&problem, TEXT);
    let (report, network) = run(&problem, &options, &mut |event| {
        recording.note(event);
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut directory = ResultDirectory::open(&kept, &problem, TEXT, Existing::Refuse).unwrap();
    directory.keep(&problem, &recording, (&report, &network)).unwrap();
    drop(directory);

    for name in [NETWORK, PROBLEM] {
        assert_eq!(
            fs::read(written.join(name)).unwrap(),
            fs::read(kept.join(name)).unwrap()
        );
    }
    let names = |path: &Path| {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&written), names(&kept));
    assert_eq!(
        fs::read_to_string(kept.join(HISTORY)).unwrap().lines().count(),
        13
    );

    // It goes on from there to what a longer run comes to.
    let overrides = Overrides {
        neurons: Some(20),
        ..Overrides::default()
    };
    let longer = Problem::from_toml(TEXT, "recorded.toml", &overrides).unwrap();
    let text = greedy_pde::results::with_overrides(TEXT, "recorded.toml", &overrides).unwrap();
    let mut directory = ResultDirectory::open(&kept, &longer, &text, Existing::Resume).unwrap();
    assert_eq!(directory.resumed_from(), Some(12));
    let (_, resumed) = directory
        .run(&longer, &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let (_, whole) = run(&longer, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(resumed, whole);
}

#[test]
fn a_checkpoint_is_the_same_from_its_bytes() {
    let problem = problem();
    let mut recording = Recording::new(&problem, TEXT);
    run(&problem, &RunOptions::default(), &mut |event| {
        recording.note(event);
        ControlFlow::Continue(())
    })
    .unwrap();
    let checkpoint = recording.checkpoint();
    let bytes = checkpoint.to_bytes().unwrap();
    let again = Checkpoint::of_bytes(&bytes, Path::new(CHECKPOINT)).unwrap();
    assert_eq!(again.network, checkpoint.network);
    assert_eq!(again.rows, checkpoint.rows);
    assert_eq!(again.state.scores, checkpoint.state.scores);
    assert_eq!(again.to_bytes().unwrap(), bytes);
}

#[test]
fn points_one_after_the_other_have_the_values_of_columns() {
    let (_, network): (_, Network) = run(&problem(), &RunOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    // More than one tile, and a last one that is not full.
    let count = 10_001;
    let place = |k: usize, step: f64| (k as f64 * step).fract();
    let columns: Vec<Vec<f64>> = [0.618, 0.414]
        .map(|step| (0..count).map(|k| place(k, step)).collect())
        .into();
    let points: Vec<f64> = (0..count).flat_map(|k| [columns[0][k], columns[1][k]]).collect();
    let symbols = [Symbol::derivative([0]), Symbol::derivative([1]), laplacian(2)];
    let by_column = of_network(&network, &symbols, &columns);
    let seen = Mutex::new(vec![0.0; points.len()]);
    let look = |first: usize, points: &[f64]| {
        seen.lock().unwrap()[2 * first..][..points.len()].copy_from_slice(points)
    };
    let by_point = of_network_by_point(&network, &symbols, &points, look);
    assert_eq!(*seen.lock().unwrap(), points);
    assert_eq!(by_point.len(), 3 * count);
    for (k, values) in by_point.chunks(3).enumerate() {
        let expected: Vec<f64> = by_column.iter().map(|column| column[k]).collect();
        assert_eq!(values, expected);
    }
}

#[test]
fn a_file_that_is_held_is_not_looked_for() {
    let text = format!("{TEXT}\n[[data]]\nfile = \"nowhere.csv\"\n");
    let read =
        |held: &[Attachment]| Problem::from_toml_with(&text, "recorded.toml", &Overrides::default(), held);
    let error = read(&[]).unwrap_err().to_string();
    assert!(error.contains("nowhere.csv cannot be read"), "{error}");
    let held = Attachment {
        typed: "nowhere.csv".to_string(),
        bytes: b"x1,x2,value\n0.5,0.5,0\n0.25,0.5,0\n".as_slice().into(),
    };
    let problem = read(std::slice::from_ref(&held)).unwrap();
    assert_eq!(problem.files, [held]);
    assert_eq!(problem.data[0].count, 2);
}

#[test]
fn a_checkpoint_with_one_bit_changed_is_refused() {
    let mut recording = Recording::new(&problem(), TEXT);
    run(&problem(), &RunOptions::default(), &mut |event| {
        recording.note(event);
        ControlFlow::Continue(())
    })
    .unwrap();
    let bytes = recording.checkpoint().to_bytes().unwrap();
    let place = Path::new(CHECKPOINT);
    assert!(Checkpoint::of_bytes(&bytes, place).is_ok());
    // In a number of the network, and in a figure of its history.
    let figure = bytes.windows(4).position(|text| text == b"\\n7,").unwrap() + 6;
    for at in [bytes.len() - 20, figure] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = Checkpoint::of_bytes(&damaged, place).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}
