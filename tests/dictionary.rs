//! Dictionaries whose defaults follow what the file says.

mod common;

use greedy_pde::problem::{Overrides, Problem};
use greedy_pde::run::candidates;

fn peak(dictionary: &str) -> Problem {
    let text = format!(
        "name = \"peak\"\n[domain]\ndimension = 2\n[equation]\nreaction = 1\n\
         exact = \"exp(-20*((x - 0.5)^2 + (y - 0.5)^2))\"\n[boundary]\ncondition = \"neumann\"\n[dictionary]\n\
         activation = \"tanh\"\ndirections = \"box\"\nweights = [-10, 10]\ncandidates = 40\n{dictionary}\n\
         [quadrature]\nrule = \"gauss\"\ncells = 14\n[solver]\nneurons = 24\n"
    );
    Problem::from_toml(&text, "t.toml", &Overrides::default()).unwrap()
}

#[test]
fn the_biases_of_a_box_cover_the_domain_for_its_weights() {
    let problem = peak("");
    assert_eq!(problem.dictionary.bias, [-20.0, 20.0]);
    // Not many more than with a range that misses most of the domain.
    let narrow = peak("bias = [-1.4142, 1.4142]");
    assert!(candidates(&problem) < 8000, "{}", candidates(&problem));
    let h1 = |problem| common::solve(problem).rows.last().unwrap().h1.unwrap();
    let (covered, missed) = (h1(&problem), h1(&narrow));
    assert!(covered < 0.6 * missed && covered < 0.6, "{covered} {missed}");
}
