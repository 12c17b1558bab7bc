"""Pictures of solutions by matplotlib."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._errors import SolveWarning

if TYPE_CHECKING:
    from ._solution import Solution


def plot(solution: "Solution", ax: Any, points: Optional[int] = None, **options: Any) -> Any:
    """See :meth:`Solution.plot`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Solution.plot needs matplotlib: pip install matplotlib") from None
    if ax is None:
        ax = plt.gca()
    draw = {1: _line, 2: _map}.get(solution.dimension, _sections)
    draw(solution, ax, points, options)
    return ax


def _line(solution: "Solution", ax: Any, points: Optional[int], options: Any) -> None:
    [(low, high)] = solution.problem.extent
    x = np.linspace(low, high, points or 1001)
    ax.plot(x, solution(x), **options)
    ax.set(xlabel="x", ylabel="u", title=solution.problem.name)


def _map(solution: "Solution", ax: Any, points: Optional[int], options: Any) -> None:
    (left, right), (bottom, top) = solution.problem.extent
    grid = np.meshgrid(np.linspace(left, right, points or 201), np.linspace(bottom, top, points or 201))
    at = np.stack(grid, axis=-1)
    with warnings.catch_warnings():
        # The rectangle around the domain is asked, and what is outside is left white.
        warnings.simplefilter("ignore", SolveWarning)
        values = np.where(solution.problem._core.contains(at.reshape(-1)).reshape(at.shape[:-1]), solution(at), np.nan)
    mesh = ax.pcolormesh(*grid, values, shading="nearest", **options)
    ax.figure.colorbar(mesh, ax=ax, label="u")
    ax.set(xlabel="x", ylabel="y", title=solution.problem.name, aspect="equal")


def _sections(solution: "Solution", ax: Any, points: Optional[int], options: Any) -> None:
    """u along each coordinate, the others as they are at a point inside."""
    center = np.array(solution.problem._core.section_point())
    for axis, (low, high) in enumerate(solution.problem.extent):
        x = np.linspace(low, high, points or 401)
        at = np.tile(center, (len(x), 1))
        at[:, axis] = x
        at = at[solution.problem._core.contains(at.reshape(-1))]
        ax.plot(at[:, axis], solution(at), **{"label": f"x[{axis + 1}]", **options})
    ax.set(xlabel="one coordinate, the others fixed", ylabel="u", title=solution.problem.name)
    ax.legend(fontsize="small")
