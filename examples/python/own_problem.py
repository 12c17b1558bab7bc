"""A problem of one's own in two dimensions: a plate with a hole, warmed on one side and cooled on the other.

    python examples/python/own_problem.py
"""

import numpy as np

import greedy_pde


def plate() -> greedy_pde.Problem:
    """-∇·(a∇u) = 0 on a plate with a square hole; u = 1 on the left edge, u = 0 on the right one, nothing passes elsewhere."""
    hole = [[0.8, 0.3], [1.2, 0.3], [1.2, 0.7], [0.8, 0.7]]
    return greedy_pde.Problem(
        {
            "name": "plate",
            "domain": {
                "shape": "polygon",
                "vertices": np.array([[0, 0], [2, 0], [2, 1], [0, 1]]),
                "holes": [hole],
                "edges": {"right": [1], "left": [3]},
            },
            "equation": {"diffusion": "1 + 0.5*x", "source": "0"},
            "boundary": [
                {"faces": ["left"], "condition": "dirichlet", "value": "1"},
                {"faces": ["right"], "condition": "dirichlet", "value": "0"},
            ],
            "dictionary": {"activation": "relu^2"},
            "quadrature": {"rule": "gauss", "cells": 8},
            "solver": {"neurons": 64},
        }
    )


def main() -> greedy_pde.Solution:
    solution = greedy_pde.solve(plate(), progress=False)
    print(repr(solution))
    y = np.linspace(0.02, 0.98, 49)
    for x in (0.1, 1.0, 1.9):
        points = np.stack([np.full_like(y, x), y], axis=1)
        if x == 1.0:
            points = points[(y < 0.3) | (y > 0.7)]
        flux = -(1 + 0.5 * x) * solution.gradient(points)[:, 0]
        print(f"x = {x}: u = {solution(points).mean():.3f} on average, flux {flux.sum() * (y[1] - y[0]):.3f}")
    return solution


if __name__ == "__main__":
    main()
