//! `greedy-pde devices`.

use super::arguments::DevicesArguments;
use super::{Failure, table};
use crate::cli::streams::put;
use greedy_pde::gpu::{self, AdapterChoice};

pub(super) fn execute(arguments: &DevicesArguments) -> Result<(), Failure> {
    let adapters = gpu::list();
    if arguments.json {
        let json = serde_json::to_string(&adapters).map_err(|error| Failure::Solve(error.to_string()))?;
        put!("{json}");
        return Ok(());
    }
    if adapters.is_empty() {
        put!("no adapter: everything runs on the CPU.");
        put!(
            "A GPU needs its driver; on Debian `apt-get install mesa-vulkan-drivers` also brings one that runs on the CPU."
        );
        return Ok(());
    }
    let header = [
        "name",
        "backend",
        "type",
        "driver",
        "f64",
        "timestamps",
        "largest binding",
        "workgroup memory",
    ];
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_string();
    let lines = adapters
        .iter()
        .map(|adapter| {
            vec![
                adapter.name.clone(),
                adapter.backend.clone(),
                adapter.kind.clone(),
                adapter.driver.clone(),
                yes(adapter.f64),
                yes(adapter.timestamps),
                format!("{} MiB", adapter.largest_binding >> 20),
                format!("{} KiB", adapter.workgroup_memory >> 10),
            ]
        })
        .collect();
    put!("{}", table::plain(header, lines));
    match gpu::choose(&AdapterChoice::default()) {
        Ok(adapter) => put!("--backend auto takes {}", adapter.get_info().name),
        Err(_) => put!(
            "--backend auto takes the CPU path: a software adapter is slower than it; --backend gpu takes one all the same"
        ),
    }
    Ok(())
}
