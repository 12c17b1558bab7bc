//! Exact solutions that are not smooth enough for the f derived from them.

use greedy_pde::problem::{Overrides, Problem};

fn warnings(dimension: usize, equation: &str) -> Vec<String> {
    let text = format!(
        "name = \"t\"\n[domain]\ndimension = {dimension}\nlower = -1\n[equation]\n{equation}\n[boundary]\n\
         condition = \"neumann\"\n[dictionary]\nactivation = \"relu^4\"\n[quadrature]\nrule = \"gauss\"\n\
         cells = 8\n[solver]\nneurons = 4\n"
    );
    let problem = Problem::from_toml(&text, "t.toml", &Overrides::default());
    problem
        .unwrap_or_else(|error| panic!("{equation}: {error}"))
        .warnings
}

fn is_rough(dimension: usize, equation: &str) -> bool {
    let warnings = warnings(dimension, equation);
    warnings
        .iter()
        .any(|warning| warning.contains("not smooth enough"))
}

#[test]
fn a_kink_is_found_with_its_place() {
    let found = warnings(1, "reaction = 1\nexact = \"abs(x - 0.3)\"");
    assert!(
        found[0].contains("near x = [0.300000] its flux jumps"),
        "{found:?}"
    );
    for exact in [
        "max(x, 0.2)",
        "min(x^2, 0.5)",
        "sqrt((x - 0.3)^2)",
        "((x + 0.1)^2)^0.5",
        "sign(x - 0.5)",
        "if(x < 0.1, 0, x - 0.1)",
        "exp(abs(sin(3*x)))",
    ] {
        assert!(
            is_rough(1, &format!("reaction = 1\nexact = \"{exact}\"")),
            "{exact}"
        );
    }
    for exact in ["abs(x - y)", "max(0, 0.5 - x^2 - y^2)", "abs(y)*x"] {
        assert!(
            is_rough(2, &format!("reaction = 1\nexact = \"{exact}\"")),
            "{exact}"
        );
    }
    assert!(is_rough(6, "reaction = 1\nexact = \"sum(i, abs(x[i]))\""));
}

#[test]
fn what_is_smooth_enough_passes() {
    for exact in [
        "abs(x)^3",
        "max(x, 0)^2",
        "abs(x - 3)",
        "sqrt(1 + x^2)",
        "(x + 2)^0.5",
        "if(x < 0.1, 0, (x - 0.1)^2)",
        "max(0, 1)*x",
    ] {
        assert!(
            !is_rough(1, &format!("reaction = 1\nexact = \"{exact}\"")),
            "{exact}"
        );
    }
    // A point in the plane carries no force.
    assert!(!is_rough(
        2,
        "reaction = 1\nexact = \"sqrt((x - 0.1)^2 + (y - 0.2)^2)^3\""
    ));
    // Where the coefficient jumps, the flux must not, and does not.
    assert!(!is_rough(
        1,
        "diffusion = \"if(x < 0, 1, 2)\"\nreaction = 1\nexact = \"if(x < 0, 2*x, x)\""
    ));
    assert!(is_rough(
        1,
        "diffusion = \"if(x < 0, 1, 2)\"\nreaction = 1\nexact = \"x\""
    ));
}

#[test]
fn how_smooth_depends_on_the_order() {
    assert!(is_rough(1, "order = 4\nreaction = 1\nexact = \"abs(x)^3\""));
    assert!(!is_rough(1, "order = 4\nreaction = 1\nexact = \"abs(x)^5\""));
    let transport = "formulation = \"residual\"\noperator = \"d(u, x) + u\"\nexact =";
    assert!(!is_rough(1, &format!("{transport} \"abs(x)\"")));
    assert!(is_rough(1, &format!("{transport} \"sign(x)\"")));
    // A fit derives nothing, and a source that is given is taken as it is.
    assert!(!is_rough(1, "reaction = 1\nsource = 1\nexact = \"abs(x)\""));
}
