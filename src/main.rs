//! The command line of greedy-pde.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    quieten_drivers();
    let arguments = cli::Arguments::parse();
    match cli::execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                cli::streams::note(format_args!("error: {message}"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Mesa's device-selection layer complains about a missing Wayland session on every machine without a
/// screen; it has nothing to select here.
fn quieten_drivers() {
    if std::env::var_os("NODEVICE_SELECT").is_none() {
        // SAFETY: no other thread has been started yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
