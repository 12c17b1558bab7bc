//! Any text as a formula: parsed and differentiated, or refused at a place inside the text.
#![no_main]

use greedy_pde::expression::{Graph, Program, Scope, Workspace, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let scope = Scope {
        dimension: 2,
        ..Scope::default()
    };
    let ast = match parse(text) {
        Ok(ast) => ast,
        Err(error) => {
            assert!(error.span.start <= text.len());
            return;
        }
    };
    let mut graph = Graph::new();
    let Ok(node) = scope.scalar(&mut graph, &ast) else {
        return;
    };
    let slope = graph.differentiate(node, 0);
    let program = Program::new(&graph, &[node, slope], 2, &[]);
    let (x, y) = ([0.25, -1.5], [0.5, 3.0]);
    let (mut value, mut derivative) = ([0.0; 2], [0.0; 2]);
    program.evaluate(&mut Workspace::default(), &[&x, &y], 2, &mut [&mut value, &mut derivative]);
});
