"""Solves partial differential equations with shallow neural networks trained by greedy algorithms.

    import greedy_pde, numpy as np
    problem = greedy_pde.Problem.load("mine.toml")        # or Problem({...}) with the same keys
    solution = greedy_pde.solve(problem, neurons=128)
    u, du = solution(x), solution.gradient(x)             # x: numpy, (N, d) or (N,) in 1-D
    solution.save("runs/mine")                            # what the command line writes; greedy_pde.load reads it

``help(greedy_pde.solve)`` is the place to start, ``help(greedy_pde.Problem)`` and ``help(greedy_pde.Solution)`` say the rest.
"""

from ._errors import ProblemError, ResultsError, SolveError, SolveWarning
from ._native import __version__
from ._problem import Problem
from ._solution import Frame, Solution
from ._solve import Reproduction, Step, devices, load, reproduce, resume, solve

# Messages and `help` call things by the names that users type.
for _public in (
    *(Frame, Problem, ProblemError, Reproduction, ResultsError, Solution, SolveError, SolveWarning, Step),
    *(devices, load, reproduce, resume, solve),
):
    _public.__module__ = __name__
del _public

__all__ = [
    "Frame",
    "Problem",
    "ProblemError",
    "Reproduction",
    "ResultsError",
    "Solution",
    "SolveError",
    "SolveWarning",
    "Step",
    "__version__",
    "devices",
    "load",
    "reproduce",
    "resume",
    "solve",
]
