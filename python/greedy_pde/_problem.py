"""Problems: from a file, a text or a dict."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Tuple, Union

from . import _native
from ._arrays import with_files
from ._errors import ProblemError
from ._toml import FILE, dumps

#: A path as Python functions take it.
Path = Union[str, "os.PathLike[str]"]


class Problem:
    """What is to be solved, checked and ready.

    ``Problem({...})`` takes the keys of a problem file as a dict; :meth:`load` reads a file and :meth:`loads` its text. Every
    key is in ``docs/problem-files.md``; the shortest problem is::

        Problem({
            "domain": {"dimension": 1},                        # (0, 1)
            "equation": {"reaction": "1", "source": "x"},      # -u″ + u = x, ∂u/∂n = 0
            "dictionary": {"activation": "relu^2"},
            "quadrature": {"rule": "gauss", "cells": 500},
            "solver": {"neurons": 64},
        })

    ``name`` may be left out. Values are what TOML has: texts (formulas such as ``"1 + x^2"``), numbers, lists and dicts; numpy's numbers and, where a
    list of numbers is wanted (``lower``, ``vertices``, …), its arrays are fine. ``None`` stands for a key that is not given.
    Coefficients are formulas: a function or an array of values in their place is an error.

    Beyond what a file can say, arrays stand for files:

    - a mesh: ``"domain": {"shape": "mesh", "points": p, "cells": c, "faces": f}`` with p of shape (N, 2) or (N, 3), c an array
      of shape (M, 3), (M, 4) or (M, 8), a dict as meshio's ``cells_dict`` or meshio's list of cells, and f, if given, a
      dict from names of pieces of the boundary to their facets (``{"inlet": array of shape (K, 2)}``);
    - measurements: ``"data": [{"points": x, "values": v, "weights": w, "weight": 1.0}]``, ``weights`` being optional.

    Raises :class:`ProblemError`, with the place, for whatever is wrong.
    """

    __slots__ = ("_core",)
    _core: _native.Problem

    def __init__(self, problem: Mapping[str, Any]) -> None:
        if not isinstance(problem, Mapping):
            raise TypeError(
                f"Problem(…) takes a dict with the keys of a problem file, not {type(problem).__name__}; "
                "Problem.load(path) reads a file, Problem.loads(text) a text"
            )
        # A file has its name from its author; what lives in a program needs none.
        table, files = with_files({"name": "problem", **problem})
        self._core = _native.Problem.loads(dumps(table), FILE, files)

    @classmethod
    def load(cls, path: Path) -> "Problem":
        """Reads a problem file; the files it names are found from its folder."""
        return cls._of(_native.Problem.load(os.fspath(path)))

    @classmethod
    def loads(cls, text: str, file: str = "<text>") -> "Problem":
        """Reads the text of a problem file; ``file`` is what messages call it, and paths in it start from its folder."""
        return cls._of(_native.Problem.loads(text, file, []))

    @classmethod
    def _of(cls, native: "_native.Problem") -> "Problem":
        problem = cls.__new__(cls)
        problem._core = native
        return problem

    @property
    def name(self) -> str:
        """Its name."""
        return self._core.name

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self._core.dimension

    @property
    def neurons(self) -> int:
        """How many neurons it asks for."""
        return self._core.neurons

    @property
    def text(self) -> str:
        """The problem file; a dict is shown as the file it stands for."""
        return self._core.text

    @property
    def file(self) -> str:
        """What messages call the file."""
        return self._core.file

    @property
    def warnings(self) -> List[str]:
        """What should be known, although the problem can be solved; :func:`solve` gives them as Python warnings."""
        return self._core.warnings

    @property
    def extent(self) -> List[Tuple[float, float]]:
        """The smallest and largest value of every coordinate in the domain."""
        return self._core.extent()

    def __repr__(self) -> str:
        return f"<greedy_pde.Problem {self.name!r} in {self.dimension}-D>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _restored, (self.text, self.file, self._core.files)


def _restored(text: str, file: str, files: List[Tuple[str, bytes]]) -> Problem:
    return Problem._of(_native.Problem.loads(text, file, files))


def as_problem(problem: Any) -> Problem:
    """A problem, or what one can be made from: a dict, or the path of a file."""
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, Mapping):
        return Problem(problem)
    if isinstance(problem, (str, os.PathLike)):
        if isinstance(problem, str) and "\n" in problem:
            raise ProblemError("this is the text of a problem, not a path: use Problem.loads(text)")
        return Problem.load(problem)
    raise TypeError(f"a Problem, a dict or the path of a problem file is needed, not {type(problem).__name__}")
