"""Solutions: functions of numpy arrays, with everything about how they were found."""

from __future__ import annotations

import base64
import html
import json
import os
import warnings
from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import SolveWarning
from ._problem import Path, Problem

#: Whatever numpy makes an array of numbers from.
ArrayLike = Any


class _Function:
    """u, evaluated at arrays of points."""

    @property
    def _network(self) -> "_native.Network":
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self._network.dimension

    @property
    def omega(self) -> NDArray[Any]:
        """ω of u(x) = Σ aᵢ σ(ωᵢ·x + bᵢ): one neuron per row."""
        return self._network.omega

    @property
    def bias(self) -> NDArray[Any]:
        """b of every neuron."""
        return self._network.bias

    @property
    def coefficient(self) -> NDArray[Any]:
        """a of every neuron."""
        return self._network.coefficient

    @property
    def activation(self) -> str:
        """σ, such as ``"relu^2"``."""
        return self._network.activation

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """u at points: ``x`` has shape (N, d), or (N,) in 1-D, and the values have shape (N,).

        More axes before the last are fine (a grid of shape (n, m, 2) gives values of shape (n, m)), and a single point gives
        a number. float64 in C order is taken as it is, other numbers are converted.
        """
        return self._evaluated(x, "value")

    def gradient(self, x: ArrayLike) -> NDArray[np.float64]:
        """∇u at points; of the shape of ``x``."""
        return self._evaluated(x, "gradient")

    def laplacian(self, x: ArrayLike) -> NDArray[np.float64]:
        """Δu at points; of the shape of u there."""
        return self._evaluated(x, "laplacian")

    def _evaluated(self, x: ArrayLike, what: str) -> NDArray[np.float64]:
        points = _points(x, self.dimension)
        one_axis = self.dimension == 1 and points.ndim <= 1
        shape = points.shape if one_axis or what == "gradient" else points.shape[:-1]
        values, outside = self._network.evaluate(points.reshape(-1), what)
        if outside:
            count = points.size // self.dimension
            message = f"{outside} of {count} points are outside the domain: nothing is known about u there"
            warnings.warn(message, SolveWarning, stacklevel=3)
        # `[()]` makes a number of an array without axes.
        return values.reshape(shape)[()]


def _points(x: ArrayLike, dimension: int) -> NDArray[Any]:
    """Points as an array of float64 in C order, or an error that says what was expected."""
    expected = "(N,) or (N, 1)" if dimension == 1 else f"(N, {dimension})"
    try:
        array = np.asarray(x)
    except ValueError:
        # Rows of different lengths.
        raise ValueError(f"an array of points of shape {expected} is needed") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"an array of real numbers of shape {expected} is needed, not one of {array.dtype}")
    fits = array.ndim <= 1 or array.shape[-1] == 1 if dimension == 1 else array.ndim > 0 and array.shape[-1] == dimension
    if not fits:
        raise ValueError(f"an array of points of shape {expected} is needed, not {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


class Frame(_Function):
    """u at one of the times that a problem in time kept: a function as :class:`Solution` is."""

    def __init__(self, solution: "Solution", index: int) -> None:
        self._solution = solution
        self._index = index
        self._frame = solution._run.frame(index)

    @property
    def _network(self) -> "_native.Network":
        return self._frame

    @property
    def time(self) -> float:
        """t."""
        return float(self._solution.times[self._index])

    def __repr__(self) -> str:
        return f"<greedy_pde.Frame of {self._solution.problem.name!r} at t = {self.time:g}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return Frame, (self._solution, self._index)


class Solution(_Function):
    """The solution of a problem: a function of numpy arrays, and everything about how it was found.

    >>> u = solution(x); du = solution.gradient(x); lap = solution.laplacian(x)     # x: (N, d), or (N,) in 1-D
    >>> pandas.DataFrame(solution.history), polars.DataFrame(solution.history)
    >>> solution.save("runs/mine"); greedy_pde.load("runs/mine")
    """

    def __init__(self, run: "_native.Run") -> None:
        self._run = run
        self._u = run.network

    @property
    def _network(self) -> "_native.Network":
        return self._u

    @property
    def problem(self) -> Problem:
        """What was solved, with the settings that were in force."""
        return Problem._of(self._run.problem)

    @property
    def result(self) -> Dict[str, Any]:
        """Everything about the run: ``result.json`` of the command line."""
        return dict(json.loads(self._run.report))

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """The figures at n = 1, 2, 4, 8, … and the last n: ``result["rows"]``."""
        return list(self.result["rows"])

    @property
    def history(self) -> Dict[str, NDArray[Any]]:
        """The figures at every n (every step of a problem in time): a dict of columns, NaN where nothing was measured.

        ``pandas.DataFrame(solution.history)`` and ``polars.DataFrame(solution.history)`` take it as it is.
        """
        return self._run.history()

    @property
    def neurons(self) -> int:
        """How many neurons it has."""
        return len(self.bias)

    @property
    def times(self) -> NDArray[Any]:
        """The times at which u was kept; none unless the problem has a ``time`` table."""
        return np.array(self._run.times)

    def at(self, time: float) -> Frame:
        """u at one of :attr:`times`. The solution itself is u at the last."""
        times = self.times
        if not len(times):
            raise ValueError("this problem does not move in time: call the solution itself")
        index = int(np.argmin(np.abs(times - time)))
        if not abs(times[index] - time) <= 1e-9 * max(1.0, abs(times[-1])):
            kept = ", ".join(f"{kept:g}" for kept in times)
            raise ValueError(f"u at t = {time:g} was not kept; there are t = {kept}: see `save_every` in the time table")
        return Frame(self, index)

    def save(self, directory: Path, *, force: bool = False) -> None:
        """Writes a result directory, as ``greedy-pde solve`` does: network, history, report page, checkpoint, problem.

        A result that is there already is overwritten only with ``force=True``.
        """
        self._run.save(os.fspath(directory), force)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draws u with matplotlib and returns the axes: a line in 1-D, a map in 2-D, sections along each coordinate above.

        ``ax`` are the axes to draw in; other keywords go to ``plot`` or ``pcolormesh``. ``points`` is the number of points per
        coordinate.
        """
        from ._plot import plot

        return plot(self, ax, **options)

    def __repr__(self) -> str:
        last = (self.rows or [{}])[-1]
        errors = [f", {word} error {last[name]:.2e}" for name, word in (("l2", "L2"), ("h1", "H1")) if name in last]
        return f"<greedy_pde.Solution of {self.problem.name!r}: {self.neurons} neurons in {self.dimension}-D{''.join(errors)}>"

    def __str__(self) -> str:
        header, lines = self._run.table()
        widths = [max(map(len, column)) for column in zip(header, *lines)]
        table = ["  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths)) for line in [header, *lines]]
        return "\n".join([self._run.lead, *table, *filter(None, [self._run.estimate])])

    def _repr_html_(self) -> str:
        pictures = [
            f'<img alt="{html.escape(name)}" style="width:100%;max-width:640px" '
            f'src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
            for name, svg in self._run.pictures()
        ]
        grid = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:8px"
        parts = [f"<p><b>{html.escape(self.problem.name)}</b>: {html.escape(self._run.lead)}</p>"]
        parts += [f"<p>⚠ {html.escape(warning)}</p>" for warning in self._run.warnings]
        if self._run.estimate:
            parts.append(f"<p>{html.escape(self._run.estimate)}</p>")
        return "\n".join([*parts, f'<div style="{grid}">', *pictures, "</div>"])

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, self._run.state()

    def __copy__(self) -> "Solution":
        # Nothing in it changes.
        return Solution(self._run)

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Solution":
        return Solution(self._run)


def _restored(*state: Any) -> Solution:
    return Solution(_native.Run.from_state(*state))
