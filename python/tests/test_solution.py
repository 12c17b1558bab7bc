"""Solutions as functions, tables, pictures and directories."""

import base64
import copy
import json
import math
import pickle
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import ROOT

import greedy_pde


def by_numpy(u, x):
    """u(x), written out."""
    return np.maximum(x @ u.omega.T + u.bias, 0) ** 2 @ u.coefficient


def test_values_and_derivatives_are_those_of_the_formula(square_solution):
    u = square_solution
    x = np.random.default_rng(1).uniform(size=(5000, 2))
    t = x @ u.omega.T + u.bias
    slope = 2 * np.maximum(t, 0)
    bend = 2.0 * (t > 0)
    scale = np.abs(u.coefficient).sum()
    assert np.allclose(u(x), by_numpy(u, x), atol=1e-13 * scale, rtol=0)
    assert np.allclose(u.gradient(x), (slope * u.coefficient) @ u.omega, atol=1e-12 * scale, rtol=0)
    assert np.allclose(
        u.laplacian(x), (bend * u.coefficient) @ (u.omega**2).sum(axis=1), atol=1e-12 * scale, rtol=0
    )
    # Another network would be noticed.
    assert not np.allclose(1.0001 * u(x), by_numpy(u, x), atol=1e-13 * scale, rtol=0)


def test_shapes_in_two_dimensions(square_solution):
    u = square_solution
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 3)), axis=-1)
    assert u(grid).shape == (3, 4) and u.gradient(grid).shape == (3, 4, 2) and u.laplacian(grid).shape == (3, 4)
    assert np.array_equal(u(grid).ravel(), u(grid.reshape(-1, 2)))
    assert isinstance(u([0.5, 0.5]), float) and u.gradient([0.5, 0.5]).shape == (2,)
    assert u(np.empty((0, 2))).shape == (0,) and u.gradient(np.empty((0, 2))).shape == (0, 2)


def test_shapes_in_one_dimension(solution):
    x = np.linspace(0, 1, 7)
    assert solution(x).shape == solution.gradient(x).shape == solution.laplacian(x).shape == (7,)
    assert solution(x[:, None]).shape == (7,) and solution.gradient(x[:, None]).shape == (7, 1)
    assert np.array_equal(solution(x[:, None]), solution(x))
    assert isinstance(solution(0.5), float) and isinstance(solution.gradient(0.5), float)
    assert solution(0.5) == solution(np.array([0.5]))[0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_kind_are_converted(square_solution, dtype, order):
    x = np.array([[0, 1], [1, 0], [1, 1]])
    given = np.asarray(np.repeat(x, 2, axis=0), dtype=dtype, order=order)
    assert np.array_equal(square_solution(given[::2]), square_solution(x.astype(float)))


def test_points_are_not_changed_nor_copied(square_solution, monkeypatch):
    x = np.random.default_rng(2).uniform(size=(100, 2))
    before = x.copy()
    x.setflags(write=False)
    seen = []

    class Spy:
        dimension = 2

        def evaluate(self, points, what):
            seen.append(points)
            return square_solution._network.evaluate(points, what)

    spied = copy.copy(square_solution)
    spied._u = Spy()
    spied(x)
    assert np.shares_memory(seen[0], x) and np.array_equal(x, before)


@pytest.mark.parametrize(
    "x, error, words",
    [
        (np.zeros((5, 3)), ValueError, r"shape \(N, 2\) is needed, not \(5, 3\)"),
        (np.zeros(5), ValueError, r"shape \(N, 2\) is needed, not \(5,\)"),
        (0.5, ValueError, r"shape \(N, 2\) is needed, not \(\)"),
        ([[0.1, 0.2], [0.3]], ValueError, r"shape \(N, 2\)"),
        ([["a", "b"]], TypeError, r"real numbers of shape \(N, 2\) is needed, not one of <U1"),
        (np.zeros((5, 2), complex), TypeError, "complex128"),
        (np.zeros((5, 2), bool), TypeError, "bool"),
        ([[0.1, 0.2], [math.nan, 0.3]], ValueError, r"point 1 is \[NaN, 0.3\]"),
        ([[0.1, math.inf]], ValueError, "must be finite"),
    ],
)
def test_arrays_that_are_no_points_say_what_was_expected(square_solution, x, error, words):
    for function in (square_solution, square_solution.gradient, square_solution.laplacian):
        with pytest.raises(error, match=words):
            function(x)


def test_in_one_dimension_the_shape_is_told_too(solution):
    with pytest.raises(ValueError, match=r"shape \(N,\) or \(N, 1\) is needed, not \(5, 2\)"):
        solution(np.zeros((5, 2)))


def test_points_outside_are_told_where_they_were_asked_for(solution):
    with pytest.warns(greedy_pde.SolveWarning, match="1 of 3 points are outside the domain") as caught:
        solution([0.5, 1.0, 1.5])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution([0.0, 0.5, 1.0])


def test_history_is_a_table(solution):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    history = solution.history
    assert history["n"].tolist() == list(range(1, 17))
    for frame in (pandas.DataFrame(history), polars.DataFrame(history)):
        assert list(frame.columns)[:2] == ["n", "l2"] and frame.shape == (16, 10)
    measured = np.isfinite(history["l2"])
    assert history["n"][measured].tolist() == [1, 2, 4, 8, 16]
    rows = {row["n"]: row for row in solution.rows}
    for n, l2 in zip(history["n"][measured], history["l2"][measured]):
        assert rows[n]["l2"] == l2
    assert (np.diff(history["loss"]) < 0).all()


def test_result_is_that_of_the_command_line(solution, program, tmp_path):
    (tmp_path / "small.toml").write_text(solution.problem.text)
    theirs = json.loads(program("solve", "small.toml", "--json", "-q", cwd=tmp_path).stdout)
    ours = solution.result
    for timed in (theirs, ours):
        timed.pop("seconds")
        for row in timed["rows"]:
            row.pop("seconds")
    assert ours == theirs


def test_a_solution_shows_itself(solution, square_solution):
    assert "16 neurons in 1-D" in repr(solution) and "H1 error" in repr(solution)
    assert str(solution).splitlines()[1].split()[:2] == ["n", "L2"] and "estimated error" in str(solution)
    for shown, words in ((solution, "16 neurons"), (square_solution, "12 neurons")):
        page = shown._repr_html_()
        assert words in page and "estimated error" in page
        pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
        assert len(pictures) >= 3
        for picture in pictures:
            assert ElementTree.fromstring(base64.b64decode(picture)).tag.endswith("svg")


def test_words_of_a_problem_are_no_html(small):
    small["name"] = "<script>"
    page = greedy_pde.solve(small, progress=False)._repr_html_()
    assert "&lt;script&gt;" in page and "<script>" not in page


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_plots(dimension, solution, square_solution, square):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if dimension == 3:
        square["domain"]["dimension"] = 3
        square["quadrature"] = {"rule": "halton", "points": 2000}
    drawn = {1: solution, 2: square_solution}.get(dimension) or greedy_pde.solve(square, neurons=4, progress=False)
    figure, axes = plt.subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error", greedy_pde.SolveWarning)
        assert drawn.plot(axes, points=21) is axes
    if dimension == 2:
        assert np.allclose(axes.collections[0].get_array().reshape(21, 21)[0, 0], drawn([0.0, 0.0]))
    else:
        assert len(axes.lines) == (1 if dimension == 1 else 3)
    if dimension == 1:
        x, y = axes.lines[0].get_data()
        assert np.array_equal(y, drawn(x))
    plt.close(figure)


def test_a_plot_on_a_disk_leaves_the_outside_white(square):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    square["domain"] = {"shape": "ball", "dimension": 2}
    square["quadrature"] = {"rule": "halton", "points": 2000}
    disk = greedy_pde.solve(square, neurons=4, progress=False)
    figure, axes = plt.subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error", greedy_pde.SolveWarning)
        disk.plot(axes, points=11)
    values = np.ma.filled(axes.collections[0].get_array().reshape(11, 11), np.nan)
    assert np.isnan(values[0, 0]) and np.isfinite(values[5, 5])
    plt.close(figure)


def same(first, second):
    x = np.linspace(0, 1, 33)
    assert first.result == second.result
    assert np.array_equal(first(x), second(x))
    assert first.problem.text == second.problem.text
    for name, column in first.history.items():
        assert np.array_equal(column, second.history[name], equal_nan=True), name


def test_pickles_and_copies(solution, tmp_path):
    for again in (pickle.loads(pickle.dumps(solution)), copy.copy(solution), copy.deepcopy(solution)):
        same(solution, again)
        again.save(tmp_path / "saved", force=True)
        same(solution, greedy_pde.load(tmp_path / "saved"))


def test_a_saved_run_is_the_directory_of_the_command_line(solution, program, tmp_path):
    (tmp_path / "small.toml").write_text(solution.problem.text)
    assert program("solve", "small.toml", "-q", "--output", "theirs", cwd=tmp_path).returncode == 0
    solution.save(tmp_path / "ours")
    listed = {where: sorted(p.name for p in (tmp_path / where).rglob("*")) for where in ("ours", "theirs")}
    assert listed["ours"] == listed["theirs"]
    for name in ("network.safetensors", "problem.toml"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    # The command line goes on from what Python saved, and Python from what the command line did.
    more = program("solve", "small.toml", "-q", "--output", "ours", "--resume", "--neurons", "24", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    ours = greedy_pde.resume(tmp_path / "theirs", neurons=24, progress=False)
    assert np.array_equal(ours.coefficient, greedy_pde.load(tmp_path / "ours").coefficient)
    assert ours.neurons == 24
    assert (tmp_path / "ours" / "network.safetensors").read_bytes() == (
        tmp_path / "theirs" / "network.safetensors"
    ).read_bytes()


def test_a_result_is_not_overwritten_unasked(solution, tmp_path):
    solution.save(tmp_path / "run")
    with pytest.raises(greedy_pde.ResultsError, match="already holds a result.*force=True"):
        solution.save(tmp_path / "run")
    solution.save(tmp_path / "run", force=True)


def test_what_is_no_run_cannot_be_loaded(tmp_path):
    with pytest.raises(greedy_pde.ResultsError, match="holds no run"):
        greedy_pde.load(tmp_path)
    with pytest.raises(greedy_pde.ResultsError, match="no checkpoint to go on from"):
        greedy_pde.resume(tmp_path)


def test_a_problem_in_time(heat, tmp_path):
    solved = greedy_pde.solve(heat, progress=False)
    x = np.linspace(0, 1, 101)
    assert np.allclose(solved.times, [0, 0.025, 0.05, 0.075, 0.1])
    for time in solved.times:
        exact = np.exp(-np.pi**2 * time) * np.cos(np.pi * x)
        assert np.abs(solved.at(time)(x) - exact).max() < 5e-3, time
    assert np.array_equal(solved(x), solved.at(0.1)(x)) and not np.array_equal(solved(x), solved.at(0.075)(x))
    assert solved.history["step"].tolist() == list(range(21)) and solved.history["time"][-1] == 0.1
    with pytest.raises(ValueError, match="t = 0.03 was not kept; there are t = 0, 0.025"):
        solved.at(0.03)
    frame = pickle.loads(pickle.dumps(solved.at(0.05)))
    assert frame.time == 0.05 and np.array_equal(frame(x), solved.at(0.05)(x))
    solved.save(tmp_path / "heat")
    loaded = greedy_pde.load(tmp_path / "heat")
    again = pickle.loads(pickle.dumps(solved))
    for other in (loaded, again):
        assert np.array_equal(other(x), solved(x)) and np.array_equal(other.at(0.05)(x), solved.at(0.05)(x))
    assert "<img " in solved._repr_html_() and "<img " in loaded._repr_html_()


def test_only_a_problem_in_time_has_times(solution):
    assert len(solution.times) == 0
    with pytest.raises(ValueError, match="does not move in time"):
        solution.at(0.0)


def test_a_run_without_its_checkpoint_is_still_read(solution, tmp_path):
    solution.save(tmp_path / "run")
    (tmp_path / "run" / "checkpoint").unlink()
    loaded = greedy_pde.load(tmp_path / "run")
    assert loaded(0.5) == solution(0.5)
    with pytest.raises(greedy_pde.ResultsError, match="had no checkpoint: copy the directory"):
        loaded.save(tmp_path / "again")


def test_saving_a_problem_with_files_takes_them_along(tmp_path):
    solved = greedy_pde.solve(ROOT / "configs" / "data_1d.toml", neurons=6, progress=False)
    solved.save(tmp_path / "run")
    assert (tmp_path / "run" / "data_1d.csv").exists()
    again = greedy_pde.resume(tmp_path / "run", neurons=8, progress=False)
    assert np.array_equal(again.omega[:6], solved.omega) and again.neurons == 8
