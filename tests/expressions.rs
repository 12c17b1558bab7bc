//! Formulas: grammar, derivatives, places of errors.

use greedy_pde::expression::{Graph, MultiIndex, NodeId, Program, Scope, parse};
use proptest::prelude::*;

fn scope(dimension: usize) -> Scope {
    Scope {
        dimension,
        constants: [("c".to_string(), 0.5)].into(),
        unknown: true,
        time: false,
        operators: true,
    }
}

fn lower(text: &str, dimension: usize) -> (Graph, NodeId) {
    let mut graph = Graph::new();
    let node = scope(dimension)
        .scalar(&mut graph, &parse(text).unwrap())
        .unwrap();
    (graph, node)
}

fn value(text: &str, x: &[f64]) -> f64 {
    let (graph, node) = lower(text, x.len());
    Program::new(&graph, &[node], x.len(), &[]).evaluate_at(x)[0]
}

fn error(text: &str, dimension: usize) -> (String, std::ops::Range<usize>) {
    let result = parse(text).and_then(|ast| scope(dimension).scalar(&mut Graph::new(), &ast));
    let error = result.unwrap_err();
    (error.message, error.span)
}

#[test]
fn precedence_is_that_of_mathematics() {
    assert_eq!(value("-x^2", &[3.0]), -9.0);
    assert_eq!(value("2^3^2", &[0.0]), 512.0);
    assert_eq!(value("2^-1", &[0.0]), 0.5);
    assert_eq!(value("1 - 2 - 3", &[0.0]), -4.0);
    assert_eq!(value("8 / 4 / 2", &[0.0]), 1.0);
    assert_eq!(value("-2*-3", &[0.0]), 6.0);
    assert_eq!(value("(-x)^2", &[3.0]), 9.0);
    assert_eq!(value("1_000 + 2.5e-1", &[0.0]), 1000.25);
}

#[test]
fn sums_products_constants_and_aliases() {
    assert_eq!(value("sum(i, x[i]^2)", &[1.0, 2.0, 3.0, 4.0]), 30.0);
    assert_eq!(value("prod(i, x[i] + i)", &[1.0, 2.0]), 8.0);
    assert_eq!(value("c * y", &[1.0, 8.0]), 4.0);
    assert_eq!(value("max(x, y, 3)", &[1.0, 2.0]), 3.0);
    assert!((value("sin(pi/2) + log(e)", &[0.0]) - 2.0).abs() < 1e-15);
}

#[test]
fn operators_act_on_any_expression() {
    // ∇·(x₁ ∇(x₁ x₂)) = ∂₁(x₁ x₂) + ∂₂(x₁ x₁) = x₂
    assert_eq!(value("div(x[1]*grad(x[1]*x[2]))", &[3.0, 5.0]), 5.0);
    assert_eq!(value("laplacian(x^3 + y^2)", &[2.0, 0.0]), 14.0);
    assert_eq!(value("bilaplacian(x^4)", &[2.0]), 24.0);
    assert_eq!(value("d(x^2*y^3, x, y, y)", &[2.0, 5.0]), 2.0 * 2.0 * 6.0 * 5.0);
    assert_eq!(value("dot(grad(x*y), grad(x))", &[2.0, 5.0]), 5.0);
}

#[test]
fn vectors_can_be_written_out() {
    assert_eq!(value("dot(grad(x*y), [1, y])", &[2.0, 5.0]), 5.0 + 2.0 * 5.0);
    assert_eq!(
        value("div([x^2, 3*y] * y)", &[2.0, 5.0]),
        2.0 * 2.0 * 5.0 + 3.0 * 10.0
    );
    assert!(
        error("dot(grad(u), [1, x, y])", 2)
            .0
            .contains("3 parts, and the dimension is 2")
    );
    assert!(error("[1, 2]", 2).0.contains("a scalar is needed"));
}

#[test]
fn conditions_choose_between_values() {
    let text = "if(x < 0.5 and not y > 1, 1, if(x >= 2 or y <= 0, 2, 3))";
    for (x, y, wanted) in [
        (0.0, 0.5, 1.0),
        (0.0, 2.0, 3.0),
        (2.0, 0.5, 2.0),
        (1.0, 0.0, 2.0),
        (0.5, 0.5, 3.0),
    ] {
        assert_eq!(value(text, &[x, y]), wanted, "({x}, {y})");
    }
    // The branch that is not taken may be anything, and so may its derivative.
    assert_eq!(value("if(x > 0, sqrt(x), 0)", &[-1.0]), 0.0);
    assert_eq!(value("d(if(x > 0, x^2*sqrt(x), 7), x)", &[-1.0]), 0.0);
    assert_eq!(value("d(if(x > 0, x^2, 7), x)", &[3.0]), 6.0);
    assert!(
        error("1 + (x < 2)", 1).0.contains("cannot join"),
        "{}",
        error("1 + (x < 2)", 1).0
    );
    assert!(error("x < 2", 1).0.contains("use if(condition, a, b)"));
    assert!(error("if(x, 1, 2)", 1).0.contains("a condition is needed"));
}

#[test]
fn inverse_tangents_and_the_error_function() {
    assert_eq!(value("atan(1)*4", &[0.0]), std::f64::consts::PI);
    assert_eq!(value("atan2(y, x)", &[-1.0, 0.0]), std::f64::consts::PI);
    assert_eq!(value("atan2(y, x)", &[-1.0, -1.0]), -0.75 * std::f64::consts::PI);
    assert!((value("erf(x)", &[0.5]) - 0.520_499_877_813_046_5).abs() < 1e-15);
    // The angle is harmonic.
    assert!(value("laplacian(atan2(y, x))", &[-0.3, 0.7]).abs() < 1e-14);
}

#[test]
fn long_rows_of_terms_and_conditions_are_read() {
    assert_eq!(value(&vec!["x"; 20_000].join(" + "), &[1.0]), 20_000.0);
    let both = vec!["x < 2"; 20_000].join(" and ");
    assert_eq!(value(&format!("if({both}, 3, 4)"), &[1.0]), 3.0);
    let either = vec!["x > 2"; 20_000].join(" or ");
    assert_eq!(value(&format!("if({either}, 3, 4)"), &[1.0]), 4.0);
    assert!(
        error("if(0 < x < 1, 1, 2)", 1)
            .0
            .contains("two numbers at a time")
    );
}

#[test]
fn formulas_for_numbers_have_no_coordinates() {
    let constant = |text: &str| Scope::default().constant(&parse(text).unwrap());
    assert_eq!(constant("2*pi - pi*2 + 1e-4").unwrap(), 1e-4);
    assert!(
        constant("x")
            .unwrap_err()
            .message
            .contains("coordinates cannot stand in it")
    );
    assert!(
        constant("x[1]")
            .unwrap_err()
            .message
            .contains("coordinates cannot stand in it")
    );
    assert_eq!(
        constant("1/0").unwrap_err().message,
        "this is inf, not a finite number"
    );
}

#[test]
fn errors_name_the_place() {
    assert_eq!(error("1 + sinn(x)", 1).1, 4..8);
    assert_eq!(
        error("1 + sinn(x)", 1).0,
        "there is no function `sinn`; did you mean `sin`?"
    );
    assert!(error("x[3] + 1", 2).0.contains("dimension is 2"));
    assert_eq!(error("2 * (x + 1", 1).1, 4..5);
    assert!(error("x^", 1).0.contains("found the end"));
    assert!(error("1 +* 2", 1).0.contains("`*`"));
    assert!(error("x)", 1).0.contains("closes nothing"));
    assert!(error("2e", 1).0.contains("not a number"));
    assert!(error("grad(u)", 2).0.contains("vector"));
    assert!(error(&"(".repeat(5000), 1).0.contains("nested"));
    assert!(error(&"-".repeat(5000), 1).0.contains("nested"));
}

/// Random formulas that are smooth on [0.2, 1.2]².
fn formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x".to_string()),
        Just("y".to_string()),
        (1..5i32).prop_map(|n| format!("{n}.5")),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} * {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} / (2 + ({b})^2)")),
            (inner.clone(), 2..4i32).prop_map(|(a, n)| format!("({a})^{n}")),
            inner.clone().prop_map(|a| format!("sin({a})")),
            inner.clone().prop_map(|a| format!("tanh({a})")),
            inner.clone().prop_map(|a| format!("sqrt(1 + ({a})^2)")),
            inner.clone().prop_map(|a| format!("atan({a})")),
            inner.clone().prop_map(|a| format!("erf({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("atan2({a}, 2 + ({b})^2)")),
        ]
    })
}

proptest! {
    #[test]
    fn derivatives_match_differences(text in formula(), x in 0.2..1.2f64, y in 0.2..1.2f64) {
        let (mut graph, node) = lower(&text, 2);
        let derivative = graph.differentiate_by(node, &MultiIndex::new([0]));
        let program = Program::new(&graph, &[node, derivative], 2, &[]);
        let h = 1e-6;
        let (above, below) = (program.evaluate_at(&[x + h, y])[0], program.evaluate_at(&[x - h, y])[0]);
        let exact = program.evaluate_at(&[x, y])[1];
        let scale = 1.0 + exact.abs() + above.abs().max(below.abs()) * 1e-3;
        prop_assert!(((above - below) / (2.0 * h) - exact).abs() < 1e-4 * scale, "{text}: {exact}");
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ -~]{0,60}") {
        let _ = parse(&text).and_then(|ast| scope(2).scalar(&mut Graph::new(), &ast));
    }
}

#[test]
fn long_chains_keep_their_value() {
    let value = |text: &str| Scope::default().constant(&parse(text).unwrap()).unwrap();
    for length in [10, 255, 256, 257, 1000, 20_001] {
        let sum: String = (1..=length)
            .map(|k| format!(" {} {k}", if k % 3 == 0 { '+' } else { '-' }))
            .collect();
        let expected: i64 = (1..=length).map(|k| if k % 3 == 0 { k } else { -k }).sum();
        assert_eq!(value(&format!("7{sum}")), (7 + expected) as f64, "{length} terms");
        let product: String = (1..=length)
            .map(|k| if k % 3 == 0 { " * 4" } else { " / 2" })
            .collect();
        let expected = 3.0 * 2_f64.powi(2 * (length / 3) as i32 - (length - length / 3) as i32);
        assert_eq!(value(&format!("3{product}")), expected, "{length} factors");
    }
}

/// A constant that is no number stays one, to be met where it is evaluated.
#[test]
fn nothing_divided_by_nothing_is_not_nothing() {
    assert!(value("0/0", &[1.0]).is_nan());
    assert!(value("(0/0)*x", &[1.0]).is_nan());
    assert_eq!(value("0/x", &[2.0]), 0.0);
}
