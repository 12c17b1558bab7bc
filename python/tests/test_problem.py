"""Problems from files, texts, dicts and arrays, and what is wrong with them."""

import copy
import pickle

import numpy as np
import pytest
from conftest import ROOT

import greedy_pde
from greedy_pde import Problem, ProblemError
from greedy_pde._toml import dumps

TOML = """\
name = "small"
[domain]
dimension = 1
[equation]
diffusion = "1"
reaction = "1"
exact = "cos(pi*x)"
[boundary]
condition = "neumann"
[dictionary]
activation = "relu^2"
[quadrature]
rule = "gauss"
cells = 200
[solver]
neurons = 16
"""


def quiet(problem, **options):
    return greedy_pde.solve(problem, progress=False, **options)


def same(first, second):
    return all(
        np.array_equal(getattr(first, part), getattr(second, part)) for part in ("omega", "bias", "coefficient")
    )


def test_a_file_a_text_and_a_dict_are_the_same_problem(small, tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    problems = [Problem.load(tmp_path / "small.toml"), Problem.loads(TOML), Problem(small)]
    assert [(p.name, p.dimension, p.neurons) for p in problems] == [("small", 1, 16)] * 3
    first, *others = map(quiet, problems)
    assert all(same(first, other) for other in others)
    small["equation"]["exact"] = "cos(2*pi*x)"
    assert not same(first, quiet(small))


def test_an_error_has_its_place_and_the_words_of_the_command_line(tmp_path, program):
    (tmp_path / "bad.toml").write_text(TOML.replace("reaction", "raection"))
    told = program("solve", "bad.toml", cwd=tmp_path)
    assert told.returncode == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with pytest.raises(ProblemError) as caught:
            Problem.load("bad.toml")
    error = caught.value
    assert (error.file, error.line, error.column) == ("bad.toml", 6, 1)
    assert error.help == "did you mean `reaction`?"
    assert told.stderr.strip() == f"error: {error}"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line, again.column) == (str(error), 6, 1)


def test_an_error_in_a_formula_is_shown_inside_the_formula(small):
    small["equation"]["diffusion"] = "1 + y"
    with pytest.raises(ProblemError) as caught:
        Problem(small)
    error = caught.value
    assert (error.file, error.key) == ("<dict>", "equation.diffusion")
    assert 'diffusion = "1 + y"' in str(error)
    column = str(error).splitlines()[2].index("y")
    assert str(error).splitlines()[3][column] == "^"


def test_an_error_while_solving_has_its_place_too(small):
    small["equation"] = {"reaction": "1", "source": "log(x - 2)"}
    with pytest.raises(ProblemError) as caught:
        quiet(small)
    assert caught.value.key == "equation.source" and caught.value.line is not None


def test_a_missing_file_is_an_error_of_the_problem(tmp_path):
    with pytest.raises(ProblemError, match="cannot be read") as caught:
        Problem.load(tmp_path / "nothing.toml")
    assert caught.value.line is None


@pytest.mark.parametrize("key", ["diffusion", "reaction", "source"])
def test_an_array_of_values_is_no_coefficient(small, key):
    small["equation"][key] = np.ones(10)
    with pytest.raises(ProblemError, match=r"array of shape \(10,\), and coefficients are formulas") as caught:
        Problem(small)
    assert caught.value.key == f"equation.{key}"


def test_a_function_is_no_coefficient(small):
    small["equation"]["diffusion"] = lambda x: 1 + x**2
    with pytest.raises(ProblemError, match="is a Python function .*formulas are texts") as caught:
        Problem(small)
    assert caught.value.key == "equation.diffusion"


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"bytes", "\ud800"])
def test_values_that_no_file_has_are_refused(small, value):
    small["equation"]["reaction"] = value
    with pytest.raises(ProblemError) as caught:
        Problem(small)
    assert caught.value.key == "equation.reaction"


def test_values_of_numpy_and_texts_of_every_kind_are_taken(small):
    small["domain"].update(lower=np.array([0.0]), upper=np.float32(1.0))
    small["solver"].update(neurons=np.int64(5), seed=None)
    small["name"] = 'a "quoted" näme'
    problem = Problem(small)
    assert (problem.name, problem.neurons, problem.extent) == (small["name"], 5, [(0.0, 1.0)])


def test_every_value_is_written_as_a_file_has_it():
    values = {
        "text": 'a "quoted" \\ text\twith \x7f, \x00 and\nlines',
        "odd key": [1, -2.5, 1e-300, float("inf"), True],
        "table": {"inner": {"a.b": "c"}, "empty": []},
        "tables": [{"a": 1}, {"b": [[0, 1], [2, 3]]}],
    }
    assert _parsed(dumps(values)) == values


def test_only_a_dict_is_a_dict():
    with pytest.raises(TypeError, match="Problem.loads"):
        Problem(TOML)
    with pytest.raises(ProblemError, match="Problem.loads"):
        quiet(TOML)
    with pytest.raises(TypeError, match="not int"):
        quiet(3)


def test_a_polygon_with_a_hole(square):
    vertices = np.array([[0, 0], [2, 0], [2, 2], [0, 2]])
    square["domain"] = {
        "shape": "polygon",
        "vertices": vertices,
        "holes": [[[0.5, 0.5], [1.5, 0.5], [1.0, 1.5]]],
        "edges": {"bottom": [0]},
    }
    square["quadrature"] = {"rule": "gauss", "cells": 4}
    solved = quiet(square)
    assert solved.problem.extent == [(0.0, 2.0), (0.0, 2.0)]
    with pytest.warns(greedy_pde.SolveWarning, match="1 of 2 points are outside"):
        solved([[0.1, 0.1], [1.0, 1.0]])


def triangles():
    """The unit square in 2 × 8 × 8 triangles."""
    n = 8
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    cells = np.concatenate([corner[:, None] + [0, n + 1, n + 2], corner[:, None] + [0, n + 2, 1]])
    left = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return points, cells, left


class Block:
    """As meshio has cells."""

    def __init__(self, type, data):
        self.type, self.data = type, data


def test_a_mesh_of_arrays_is_a_mesh_in_a_file(square, tmp_path):
    points, cells, left = triangles()
    square["quadrature"] = {"rule": "gauss", "cells": 2}
    square["equation"] = {"diffusion": "1", "reaction": "1", "source": "x"}
    square["boundary"] = [{"faces": ["left"], "condition": "robin", "coefficient": "1", "value": "0"}]
    of_arrays = dict(square, domain={"shape": "mesh", "points": points, "cells": cells, "faces": {"left": left}})
    first = quiet(of_arrays, output=tmp_path / "first")
    of_file = dict(square, domain={"shape": "mesh", "file": tmp_path / "first" / "mesh.msh"})
    assert same(first, quiet(of_file))
    blocks = dict(of_arrays, domain=dict(of_arrays["domain"], cells=[Block("triangle", cells), Block("line", left)]))
    assert same(first, quiet(blocks))
    by_kind = dict(of_arrays, domain=dict(of_arrays["domain"], cells={"triangle": cells}))
    assert same(first, quiet(by_kind))
    # The problem has its mesh with it, wherever it goes.
    assert same(first, quiet(pickle.loads(pickle.dumps(Problem(of_arrays)))))
    assert same(first, greedy_pde.load(tmp_path / "first"))


def test_a_mesh_in_space(square):
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    square["domain"] = {"shape": "mesh", "points": corners, "cells": [[0, 4, 6, 2, 1, 5, 7, 3]]}
    square["equation"] = {"diffusion": "1", "reaction": "1", "exact": "cos(pi*x)"}
    square["quadrature"] = {"rule": "gauss", "cells": 6}
    assert Problem(square).dimension == 3
    assert quiet(square, neurons=6).rows[-1]["l2"] < 0.1


@pytest.mark.parametrize(
    "change, words",
    [
        ({"points": np.zeros((3, 5))}, r"shape \(N, 2\) or \(N, 3\)"),
        ({"points": np.full((81, 2), np.nan)}, "not finite"),
        ({"points": "no"}, "array of numbers"),
        ({"cells": [[0, 1, 200]]}, "numbered from 0 to 80"),
        ({"cells": np.zeros((2, 3))}, "whole numbers"),
        ({"cells": {"prism": [[0, 1, 2, 3, 4, 5]]}}, "'prism': there are"),
        ({"cells": {"quad": [[0, 1, 2]]}}, "a quad has 4 nodes"),
        ({"faces": {"left": [[0, 1, 2]]}}, "facets of cells of dimension 2"),
        ({"faces": {'le"ft': [[0, 1]]}}, "no quotes"),
        ({"shape": "box"}, 'shape = "mesh"'),
    ],
)
def test_arrays_that_are_no_mesh_say_what_was_expected(square, change, words):
    points, cells, left = triangles()
    square["domain"] = {"shape": "mesh", "points": points, "cells": cells, "faces": {"left": left}, **change}
    with pytest.raises(ProblemError, match=words) as caught:
        Problem(square)
    assert caught.value.key.startswith("domain.")


def test_measurements_of_arrays_are_those_of_a_file(tmp_path):
    file = ROOT / "configs" / "data_1d.csv"
    columns = np.loadtxt(file, delimiter=",", skiprows=2, unpack=True)
    problem = Problem.load(ROOT / "configs" / "data_1d.toml")
    first = quiet(problem, neurons=8)
    # The text of the file with its measurements from elsewhere.
    table = _parsed(problem.text)
    [data] = table["data"]
    data.pop("file")
    data.update(points=columns[0], values=columns[1])
    assert same(first, quiet(table, neurons=8))
    with pytest.raises(ProblemError, match="as many values"):
        data["values"] = columns[1][:-1]
        Problem(table)


def _parsed(text):
    try:
        import tomllib
    except ImportError:
        tomllib = pytest.importorskip("tomli")
    return tomllib.loads(text)


def test_problems_are_copied_and_pickled_with_their_files(monkeypatch, tmp_path):
    problem = Problem.load(ROOT / "configs" / "data_1d.toml")
    monkeypatch.chdir(tmp_path)
    first = quiet(problem, neurons=6)
    for again in (copy.copy(problem), copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert same(first, quiet(again, neurons=6))


def test_files_are_held_from_the_moment_they_were_read(tmp_path):
    for name in ("data_1d.toml", "data_1d.csv"):
        (tmp_path / name).write_bytes((ROOT / "configs" / name).read_bytes())
    problem = Problem.load(tmp_path / "data_1d.toml")
    (tmp_path / "data_1d.csv").write_text("gone")
    assert same(quiet(problem, neurons=6), quiet(ROOT / "configs" / "data_1d.toml", neurons=6))


def test_a_setting_that_takes_another_place_is_checked(small):
    with pytest.raises(ProblemError, match="neurons"):
        quiet(small, neurons=10**7)
    with pytest.raises(ProblemError, match="points"):
        quiet(small, points=1000)
