//! Any bytes as a Gmsh file: a mesh with an inside and a boundary, or refused with a message; never a panic, never a hang.
#![no_main]

use greedy_pde::domain::{Domain, Mesh, Region, read_gmsh};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    for dimension in [2, 3] {
        match read_gmsh(bytes, dimension).and_then(|raw| Mesh::new(dimension, raw)) {
            Ok(mesh) => {
                let domain = Domain::Mesh(Arc::new(mesh));
                assert!(domain.measure(Region::Interior) > 0.0);
                assert!(!domain.faces().is_empty());
                assert!(!domain.in_words().is_empty());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
