//! The processes that a launcher such as `mpirun` started together: the first one prints and writes, all end alike.

use super::{Failure, streams};
use greedy_pde::cluster::Cluster;
use std::sync::OnceLock;

static CLUSTER: OnceLock<Cluster> = OnceLock::new();

/// So many seconds a process that failed waits for the others before it ends them.
const PATIENCE: f64 = 5.0;

/// The processes that share the work of this one.
pub(super) fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(Cluster::alone)
}

/// Meets the processes that were started together with this one. Once, before anything else.
pub fn meet() -> Result<(), Failure> {
    let cluster = joined()?;
    if !cluster.is_first() {
        streams::fall_silent();
    }
    if !cluster.is_alone() {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            told(panic);
            self::cluster().end_all(101);
        }));
    }
    CLUSTER.get_or_init(|| cluster);
    Ok(())
}

#[cfg(feature = "mpi")]
fn joined() -> Result<Cluster, Failure> {
    Ok(greedy_pde::cluster::join())
}

/// Without MPI each of several processes would do all of the work, and they would write the same files.
#[cfg(not(feature = "mpi"))]
fn joined() -> Result<Cluster, Failure> {
    let size = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    match size {
        Some(size @ 2..) => Err(Failure::Input(format!(
            "this is one of {size} processes that were started together, but the program was built without the \
             feature `mpi`: build it with `cargo build --release --features mpi`"
        ))),
        _ => Ok(Cluster::alone()),
    }
}

/// Ends together with the others: tells what went wrong, once; the exit code.
pub fn end(result: Result<(), Failure>) -> u8 {
    let cluster = cluster();
    let code = result.as_ref().err().map_or(0, Failure::exit_code);
    let patience = if result.is_ok() { f64::INFINITY } else { PATIENCE };
    // Who failed by itself finds the others waiting for it elsewhere.
    let together = cluster.all_end(patience);
    if let Err(failure) = &result {
        if !together {
            streams::speak();
        }
        if let Some(message) = failure.message() {
            streams::note(format_args!("error: {message}"));
        }
    }
    if !together {
        cluster.end_all(i32::from(code));
    }
    let codes = cluster.words_of_all(u64::from(code));
    cluster.leave();
    // The first one knows best: it writes.
    let failed = codes.iter().find(|code| **code != 0);
    match codes.first() {
        Some(&first) if first != 0 => first as u8,
        _ => failed.map_or(0, |&code| code as u8),
    }
}

/// Does what only the first process has to do; if that fails, no process goes on.
pub(super) fn first_only<T>(action: impl FnOnce() -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    let cluster = cluster();
    let done = cluster.is_first().then(action).transpose();
    let code = match &done {
        Ok(_) => u64::MAX,
        Err(failure) => u64::from(failure.exit_code()),
    };
    match cluster.from_first(vec![code])[0] {
        u64::MAX => done,
        code => done.and(Err(Failure::Elsewhere(code as u8))),
    }
}

/// Tells how the program is used, once, and ends it.
pub fn end_with_usage(error: &clap::Error) -> ! {
    if !streams::is_silent() {
        // There is nowhere to complain.
        let _ = error.print();
    }
    cluster().all_end(PATIENCE);
    cluster().leave();
    std::process::exit(error.exit_code())
}
