"""What can go wrong, and what should be said."""

from __future__ import annotations

from typing import Optional


class ProblemError(ValueError):
    """Bad input: a problem that cannot be solved as it is written.

    The text is that of the command line: what is wrong, where, and what would be right.
    """

    #: The problem file's name as it was given, ``"<text>"`` or ``"<dict>"``.
    file: str
    #: Where in the file, from 1; ``None`` if it is about no place.
    line: Optional[int]
    column: Optional[int]
    #: The key concerned, as ``"equation.diffusion"``.
    key: Optional[str]
    #: What would be right.
    help: Optional[str]

    def __init__(
        self,
        message: str,
        file: str = "",
        line: Optional[int] = None,
        column: Optional[int] = None,
        key: Optional[str] = None,
        help: Optional[str] = None,
    ) -> None:
        # All of them are `args`, from which copies are made; only the first is shown.
        super().__init__(message, file, line, column, key, help)
        self.file, self.line, self.column, self.key, self.help = file, line, column, key, help

    def __str__(self) -> str:
        return str(self.args[0])


class SolveError(RuntimeError):
    """A solve that could not go on; the text says where and why."""


class ResultsError(RuntimeError):
    """A result directory that cannot be opened, read or written."""


class SolveWarning(UserWarning):
    """Something that should be known about a result."""
