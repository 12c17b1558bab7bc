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

// Σ_m q_m σ^(m)(z) by Horner's rule, for four z at once.
fn response(q: ptr<function, array<real, TOP_ORDER + 1u>>, z: real4) -> real4 {
    let r = max(z, real4(real(0.0)));
    var value = real4((*q)[0]);
    for (var m = 1u; m <= TOP_ORDER; m++) {
        value = value * r + real4((*q)[m]);
    }
    for (var i = TOP_ORDER; i < POWER; i++) {
        value *= r;
    }
    if TOP_ORDER < POWER {
        return value;
    }
    // The step function is not zero by itself at r = 0.
    return select(real4(real(0.0)), value, z > real4(real(0.0)));
}
