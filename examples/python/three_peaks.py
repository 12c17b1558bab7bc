"""Example 2 of the paper: 128 neurons find three sharp peaks. Nobody tells them where to go.

    python examples/python/three_peaks.py
"""

import pathlib

import numpy as np

import greedy_pde

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"


def main() -> greedy_pde.Solution:
    problem = greedy_pde.Problem.load(CONFIGS / "ex2_three_peaks.toml")
    solution = greedy_pde.solve(problem, neurons=128, progress=False)
    print(solution)
    # Every neuron of a network in one dimension bends the solution at x = -b/ω.
    bends = -solution.bias / solution.omega[:, 0]
    counts, edges = np.histogram(bends, bins=20, range=problem.extent[0])
    for count, left in zip(counts, edges):
        print(f"{left:5.2f}  {'#' * count}")
    return solution


if __name__ == "__main__":
    main()
