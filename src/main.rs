//! The command line of greedy-pde.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    quieten_drivers();
    let result = cli::meet().and_then(|()| cli::execute(&arguments()));
    ExitCode::from(cli::end(result))
}

/// The command line; where it cannot be read or asks for help, that is told and the program ends.
fn arguments() -> cli::Arguments {
    cli::Arguments::try_parse().unwrap_or_else(|error| cli::end_with_usage(&error))
}

/// Mesa's device-selection layer complains about a missing Wayland session on every machine without a
/// screen; it has nothing to select here.
fn quieten_drivers() {
    if std::env::var_os("NODEVICE_SELECT").is_none() {
        // SAFETY: no other thread has been started yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
