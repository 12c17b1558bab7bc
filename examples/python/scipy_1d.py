"""The same boundary value problem by this package and by scipy.

    python examples/python/scipy_1d.py
"""

import time

import numpy as np
from scipy.integrate import solve_bvp

import greedy_pde

# -((1 + x^2) u')' + u = 10 sin 5x on (0, 1), u'(0) = u'(1) = 0
PROBLEM = {
    "name": "scipy_1d",
    "domain": {"dimension": 1},
    "equation": {"diffusion": "1 + x^2", "reaction": "1", "source": "10*sin(5*x)"},
    "dictionary": {"activation": "relu^3"},
    "quadrature": {"rule": "gauss", "cells": 400},
    "solver": {"neurons": 96},
}


def by_scipy():
    """u as scipy has it, from the first-order system of u and the flux (1 + x²) u′."""
    slopes = lambda x, y: np.stack([y[1] / (1 + x**2), y[0] - 10 * np.sin(5 * x)])
    ends = lambda left, right: np.array([left[1], right[1]])
    x = np.linspace(0, 1, 100)
    return solve_bvp(slopes, ends, x, np.zeros((2, len(x))), tol=1e-10, max_nodes=100_000).sol


def main() -> float:
    started = time.perf_counter()
    solution = greedy_pde.solve(PROBLEM, progress=False)
    between = time.perf_counter()
    reference = by_scipy()
    ended = time.perf_counter()
    x = np.linspace(0, 1, 2001)
    difference = float(np.abs(solution(x) - reference(x)[0]).max())
    slopes = float(np.abs(solution.gradient(x) - reference(x)[1] / (1 + x**2)).max())
    print(f"{solution.neurons} neurons in {between - started:.2f} s, scipy in {ended - between:.2f} s")
    print(f"largest difference: {difference:.1e} of values, {slopes:.1e} of slopes")
    return difference


if __name__ == "__main__":
    main()
