"""Solving, going on, and what a machine and the paper have."""

from __future__ import annotations

import json
import operator
import os
import sys
import warnings
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from . import _native
from ._errors import SolveWarning
from ._problem import Path, Problem, as_problem
from ._progress import progress as make_progress
from ._solution import Solution


class Step(SimpleNamespace):
    """A step of a run, as ``on_step`` sees it.

    Its attributes are the columns of :attr:`Solution.history`: ``n``, ``loss``, ``score``, ``coefficient_l1``, ``seconds``,
    ``validation_loss`` and, where they are measured (n = 1, 2, 4, 8, … and the last, if the exact solution is known), the
    errors ``l2``, ``h1``, ``energy``, ``excess``; else these are ``None``. A problem in time has ``step``, ``steps`` and
    ``time``, and ``energy`` is E(u). ``reported`` says whether this step is one of :attr:`Solution.rows`.
    """


#: Called after every step.
OnStep = Callable[[Step], Optional[bool]]


class _Listener:
    """Shows progress and asks the callback."""

    def __init__(self, shows: bool, neurons: Optional[int], on_step: Optional[OnStep]) -> None:
        self._shown = make_progress(neurons) if shows else None
        self._on_step = on_step

    def __call__(self, kind: str, row: Dict[str, Any]) -> bool:
        if self._shown is not None:
            self._shown.show(kind, row)
        if self._on_step is None or kind not in ("step", "time"):
            return True
        try:
            return self._on_step(Step(**row)) is not False
        except StopIteration:
            return False

    def close(self) -> None:
        if self._shown is not None:
            self._shown.close()

    @property
    def is_needed(self) -> bool:
        return self._shown is not None or self._on_step is not None


def _count(name: str, number: Any, least: int = 1) -> Optional[int]:
    """A whole number, or nothing; 1e6 is one."""
    if number is None:
        return None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    try:
        whole = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r}: a whole number is needed") from None
    if isinstance(number, bool) or not least <= whole < 2**63:
        raise ValueError(f"{name}={number!r}: a whole number of at least {least} is needed")
    return whole


def solve(
    problem: Union[Problem, Mapping[str, Any], Path],
    *,
    neurons: Optional[int] = None,
    points: Optional[int] = None,
    cells: Optional[int] = None,
    seed: Optional[int] = None,
    backend: str = "auto",
    adapter: Optional[str] = None,
    precision: str = "auto",
    threads: Optional[int] = None,
    output: Optional[Path] = None,
    resume: bool = False,
    force: bool = False,
    progress: bool = True,
    on_step: Optional[OnStep] = None,
) -> Solution:
    """Solves a problem.

    A first example, −u″ + u = f on (0, 1) with the solution cos πx::

        import greedy_pde, numpy as np
        problem = greedy_pde.Problem({
            "domain": {"dimension": 1},
            "equation": {"diffusion": "1", "reaction": "1", "exact": "cos(pi*x)"},
            "dictionary": {"activation": "relu^2"},
            "quadrature": {"rule": "gauss", "cells": 1000},
            "solver": {"neurons": 64},
        })
        solution = greedy_pde.solve(problem)
        x = np.linspace(0, 1, 5)
        print(solution(x), solution.gradient(x), solution.rows[-1]["h1"])

    Parameters
    ----------
    problem
        A :class:`Problem`, a dict with the keys of one, or the path of a problem file.
    neurons, points, cells, seed
        Take the place of what the problem says: the number of neurons, of points (``points`` for the rules halton, lattice
        and monte_carlo, ``cells`` per direction for gauss), and the seed of every random choice.
    backend
        ``"auto"`` takes a real GPU where there is work for one, else the CPU; ``"cpu"``; ``"gpu"`` takes a software adapter, too.
    adapter
        Take the adapter whose name contains this; :func:`devices` lists them.
    precision
        Of sums on a GPU: ``"auto"``, ``"f32"``, ``"f64"`` or ``"integer"``.
    threads
        How many; all cores by default. The result does not depend on it.
    output
        A directory for the results, as the command line writes it, while the run goes on. Without one, nothing is
        written; :meth:`Solution.save` does it afterwards.
    resume
        Go on from the checkpoint in ``output`` (:func:`resume` needs no problem).
    force
        Overwrite the result in ``output``.
    progress
        Show how far the run is: by tqdm where it is installed, else in lines on stderr.
    on_step
        Called after every step with a :class:`Step` (``step.n``, ``step.loss``, ``step.score``, ``step.l2``, …), in the thread
        that called ``solve``, while the run waits. Returning ``False`` or raising ``StopIteration`` ends the run, whose result
        so far is returned (``solution.result["stopped"] == "interrupted"``); any other exception ends the run and is raised.

    Ctrl-C raises ``KeyboardInterrupt`` within a second; with ``output`` the run can be resumed from there. The interpreter is free
    for other threads meanwhile, and several may solve at a time.

    Raises
    ------
    ProblemError
        The problem, or what takes the place of its settings, is wrong; with file, line and column.
    SolveError
        The solve could not go on.
    ResultsError
        ``output`` holds a result already, or cannot be written.

    What should be known about the result is given as :class:`SolveWarning`.
    """
    checked = as_problem(problem)
    if force and resume:
        raise ValueError("resume=True goes on from a result, force=True overwrites it: only one of them is possible")
    if resume and output is None:
        raise ValueError("resume=True needs output=…, the directory to go on from")
    if on_step is not None and not callable(on_step):
        raise TypeError(f"on_step={on_step!r} cannot be called")
    neurons = _count("neurons", neurons)
    listener = _Listener(progress, neurons or checked.neurons, on_step)
    try:
        run = _native.solve(
            checked._core,
            neurons=neurons,
            points=_count("points", points),
            cells=_count("cells", cells),
            seed=_count("seed", seed, least=0),
            backend=backend,
            adapter=adapter,
            precision=precision,
            threads=_count("threads", threads),
            output=None if output is None else os.fspath(output),
            resume=resume,
            force=force,
            listener=listener if listener.is_needed else None,
            every_step=on_step is not None,
        )
    finally:
        listener.close()
    _warn(run.warnings)
    return Solution(run)


def _warn(messages: List[str]) -> None:
    """Gives warnings at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__") == __name__:
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(message, SolveWarning, stacklevel=level + 1)


def resume(directory: Path, *, neurons: Optional[int] = None, **options: Any) -> Solution:
    """Goes on with the run in a result directory, to the same network as if it had never ended.

    The problem is the one in the directory. ``neurons``, if given, is the new number of neurons in all. The other keywords
    are those of :func:`solve` that say where and how the work is done: ``backend``, ``adapter``, ``precision``, ``threads``,
    ``progress``, ``on_step``.
    """
    known = ("backend", "adapter", "precision", "threads", "progress", "on_step")
    for name in options:
        if name not in known:
            raise TypeError(f"resume() has no keyword {name!r}; there are neurons, {', '.join(known)}")
    problem = Problem._of(_native.checkpoint_problem(os.fspath(directory)))
    return solve(problem, neurons=neurons, output=directory, resume=True, **options)


def load(directory: Path) -> Solution:
    """Reads a result directory, of this package or of the command line; of an interrupted run, what it has so far."""
    return Solution(_native.Run.load(os.fspath(directory)))


def devices() -> List[Dict[str, Any]]:
    """The GPUs and software adapters of this machine.

    Each is a dict with ``name``, ``backend``, ``kind``, ``driver``, ``f64``, limits, and ``auto``: whether ``backend="auto"`` takes it.
    """
    listed, chosen = _native.devices()
    return [{**adapter, "auto": adapter["name"] == chosen} for adapter in json.loads(listed)]


class Reproduction(List[Dict[str, Any]]):
    """A table of the paper beside ours: a list of dicts with ``n``, ``column``, ``ours``, ``paper``, ``ratio``, ``order``, ``worse``.

    ``print`` shows it as a table.
    """

    #: The table's name and what it is.
    name: str = ""
    title: str = ""

    @property
    def is_reproduced(self) -> bool:
        """Whether no figure is worse than the paper's by more than its tolerance."""
        return not any(figure["worse"] for figure in self)

    def __str__(self) -> str:
        columns = list(dict.fromkeys(figure["column"] for figure in self))
        lines = [f"{self.name}: {self.title}"]
        head = f"{'n':>6}" + "".join(f" | {column:>12} {'paper':>9} {'ratio':>6} {'order':>6}" for column in columns)
        lines.append(head)
        for n in dict.fromkeys(figure["n"] for figure in self):
            cells = [figure for figure in self if figure["n"] == n]
            lines.append(f"{n:6}" + "".join(f" | {_cells(figure)}" for figure in cells))
        return "\n".join(lines)


def _cells(figure: Dict[str, Any]) -> str:
    if figure["ours"] is None:
        return f"{'-':>12} {figure['paper']:9.2e} {'-':>6} {'-':>6}"
    return f"{figure['ours']:12.2e} {figure['paper']:9.2e} {figure['ratio']:6.2f} {figure['order']:>6}"


def reproduce(
    table: str,
    *,
    max_neurons: Optional[int] = None,
    seeds: Optional[int] = None,
    backend: str = "auto",
    adapter: Optional[str] = None,
    precision: str = "auto",
    threads: Optional[int] = None,
    progress: bool = True,
) -> Reproduction:
    """Reruns a table of the paper (``"table01"`` … ``"table11"``, those of the greedy algorithms), ours beside theirs.

    ``max_neurons`` leaves out the rows beyond; ``seeds`` is the number of runs that are averaged.
    """
    listener = _Listener(progress, None, None)
    try:
        title, lines, told = _native.reproduce(
            table,
            max_neurons=_count("max_neurons", max_neurons),
            seeds=_count("seeds", seeds),
            backend=backend,
            adapter=adapter,
            precision=precision,
            threads=_count("threads", threads),
            listener=listener if listener.is_needed else None,
        )
    finally:
        listener.close()
    _warn(told)
    made = Reproduction()
    made.name, made.title = table, title
    for n, column, ours, paper, order, worse in lines:
        ratio = None if ours is None else ours / paper
        made.append(
            {"n": n, "column": column, "ours": ours, "paper": paper, "ratio": ratio, "order": order, "worse": worse}
        )
    return made
