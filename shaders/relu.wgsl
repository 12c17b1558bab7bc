// σ = ReLU^POWER. Factors k!/(k−m)! are part of the factors that the host uploads.

// σ^(m)(z) without its factor: max(0, z)^(k−m), the step function for m = k, nothing beyond.
fn derivative(m: u32, z: real) -> real {
    if z <= real(0.0) || m > POWER {
        return real(0.0);
    }
    var value = real(1.0);
    for (var i = m; i < POWER; i++) {
        value *= z;
    }
    return value;
}

// Σ_m q_m σ^(m)(z) by Horner's rule.
fn response(q: ptr<function, array<real, TOP_ORDER + 1u>>, z: real) -> real {
    let r = max(z, real(0.0));
    var value = (*q)[0];
    for (var m = 1u; m <= TOP_ORDER; m++) {
        value = value * r + (*q)[m];
    }
    for (var i = TOP_ORDER; i < POWER; i++) {
        value *= r;
    }
    // Only the step function is not zero by itself at r = 0.
    return select(real(0.0), value, z > real(0.0));
}
