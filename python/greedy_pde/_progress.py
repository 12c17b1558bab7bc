"""How far a run is: a bar where tqdm is installed, else lines."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional


def figures(row: Dict[str, Any]) -> str:
    """The figures of a step in a few words."""
    names = (("l2", "L2"), ("h1", "H1"), ("loss", "loss"), ("score", "score"))
    return "  ".join(f"{word} {row[name]:.2e}" for name, word in names if row.get(name) is not None)


class Bar:
    """A bar of tqdm, in a terminal or a notebook."""

    def __init__(self, tqdm: Any, neurons: Optional[int]) -> None:
        self._tqdm = tqdm
        self._neurons = neurons
        self._bar: Any = None
        self._unit = ""

    def show(self, kind: str, row: Dict[str, Any]) -> None:
        """Moves the bar."""
        if kind == "step":
            self._move("neurons", row["n"], self._neurons)
        elif kind == "time":
            self._move("steps", row["step"], row["steps"])
        else:
            self._move("points" if kind == "points" else "neurons for t = 0", row["done"], row["total"])
        if row.get("reported"):
            self._bar.set_postfix_str(figures(row), refresh=False)

    def _move(self, unit: str, done: int, total: Optional[int]) -> None:
        # What is counted changes: points first, then neurons.
        if self._bar is None or unit != self._unit:
            self.close()
            self._bar, self._unit = self._tqdm(total=total, unit=f" {unit}", leave=False), unit
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Lines:
    """A line for every n that is reported."""

    def show(self, kind: str, row: Dict[str, Any]) -> None:
        """Prints a line, if this is worth one."""
        if kind not in ("step", "time") or not row["reported"]:
            return
        where = f"n = {row['n']:5}" if kind == "step" else f"step {row['step']}/{row['steps']}  t = {row['time']:.4g}"
        print(f"{where}  {figures(row)}  {row['seconds']:.1f} s", file=sys.stderr, flush=True)

    def close(self) -> None:
        """There is nothing to take away."""


def progress(neurons: Optional[int]) -> Any:
    """What shows progress here."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Lines()
    return Bar(tqdm, neurons)
