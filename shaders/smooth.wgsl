// Sigmoid and tanh: with s = σ(z) every derivative is a polynomial in s, whose coefficients the host
// writes into POLYNOMIALS (lowest power first, one row of ROW numbers per order).

fn base(z: real4) -> real4 {
    if ACTIVATION_IS_TANH {
        return tanh(clamp(z, real4(real(-20.0)), real4(real(20.0))));
    }
    return real4(real(1.0)) / (real4(real(1.0)) + exp(-z));
}

fn polynomial(m: u32, s: real4) -> real4 {
    var value = real4(real(0.0));
    for (var i = POLYNOMIAL_ROW; i > 0u; i--) {
        value = value * s + real4(POLYNOMIALS[m * POLYNOMIAL_ROW + i - 1u]);
    }
    return value;
}

// σ^(m)(z).
fn derivative(m: u32, z: real) -> real {
    return polynomial(m, base(real4(z))).x;
}

// Σ_m q_m σ^(m)(z), for four z at once.
fn response(q: ptr<function, array<real, TOP_ORDER + 1u>>, z: real4) -> real4 {
    let s = base(z);
    var value = real4(real(0.0));
    for (var m = 0u; m <= TOP_ORDER; m++) {
        value += (*q)[m] * polynomial(m, s);
    }
    return value;
}
