"""Ten dimensions, sixteen thousand points, two seconds.

    python examples/python/ten_dimensions.py
"""

import numpy as np

import greedy_pde

PROBLEM = {
    "name": "ten_dimensions",
    "domain": {"dimension": 10},
    "constants": {"c": 0.5},
    "equation": {
        "diffusion": "sqrt(1 + sum(i, (x[i] - c)^2))",
        "reaction": "1",
        "exact": "sum(i, cos(pi*x[i]))",
    },
    "dictionary": {"activation": "relu^2", "directions": "axes"},
    "quadrature": {"rule": "lattice", "points": 2**14},
    "solver": {"neurons": 128},
}


def main() -> greedy_pde.Solution:
    steps = []
    solution = greedy_pde.solve(PROBLEM, progress=False, on_step=lambda step: steps.append((step.n, step.l2)))
    for n, l2 in steps:
        if l2 is not None:
            print(f"n = {n:4}  L2 error {l2:.1e}")
    x = np.random.default_rng(0).uniform(size=(5, 10))
    exact = np.cos(np.pi * x).sum(axis=1)
    print("u    ", solution(x))
    print("exact", exact)
    return solution


if __name__ == "__main__":
    main()
