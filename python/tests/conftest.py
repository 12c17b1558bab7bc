"""What the tests share."""

import copy
import os
import pathlib
import subprocess

import pytest

import greedy_pde

ROOT = pathlib.Path(__file__).resolve().parents[2]

_SMALL = {
    "name": "small",
    "domain": {"dimension": 1},
    "equation": {"diffusion": "1", "reaction": "1", "exact": "cos(pi*x)"},
    "boundary": {"condition": "neumann"},
    "dictionary": {"activation": "relu^2"},
    "quadrature": {"rule": "gauss", "cells": 200},
    "solver": {"neurons": 16},
}

_SQUARE = {
    "name": "square",
    "domain": {"dimension": 2},
    "equation": {"diffusion": "1", "reaction": "1", "exact": "cos(pi*x)*cos(pi*y)"},
    "boundary": {"condition": "neumann"},
    "dictionary": {"activation": "relu^2"},
    "quadrature": {"rule": "gauss", "cells": 30},
    "solver": {"neurons": 12},
}

_HEAT = {
    **_SMALL,
    "name": "heat",
    "equation": {"diffusion": "1", "exact": "exp(-pi^2*t)*cos(pi*x)"},
    "time": {"end": 0.1, "steps": 20, "save_every": 5, "initial": "cos(pi*x)"},
    "solver": {"neurons": 32},
}


@pytest.fixture
def small():
    """−u″ + u = f on (0, 1), solved in milliseconds."""
    return copy.deepcopy(_SMALL)


@pytest.fixture
def square():
    """The same on the square."""
    return copy.deepcopy(_SQUARE)


@pytest.fixture
def heat():
    """The heat equation on (0, 1)."""
    return copy.deepcopy(_HEAT)


@pytest.fixture(scope="session")
def solution():
    """The small problem, solved."""
    return greedy_pde.solve(_SMALL, progress=False)


@pytest.fixture(scope="session")
def square_solution():
    """The problem on the square, solved."""
    return greedy_pde.solve(_SQUARE, progress=False)


@pytest.fixture(scope="session")
def program():
    """The command line of the same sources; a test that needs it is skipped where it was not built."""
    named = os.environ.get("GREEDY_PDE_PROGRAM")
    places = [named] if named else [ROOT / "target" / profile / "greedy-pde" for profile in ("release", "debug")]
    for place in places:
        if os.path.exists(place):
            return lambda *arguments, **options: subprocess.run(
                [str(place), *map(str, arguments)], capture_output=True, text=True, **options
            )
    if named:
        pytest.fail(f"GREEDY_PDE_PROGRAM={named} does not exist")
    pytest.skip("the program is not built: cargo build")
