"""The examples and the notebook run, and each has a figure that is pinned."""

import ast
import importlib.util
import json

import numpy as np
import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples" / "python"


def run(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


def test_three_peaks(capsys):
    assert run("three_peaks").rows[-1]["h1"] < 7e-3
    assert "#" in capsys.readouterr().out


def test_own_problem():
    solution = run("own_problem")
    left, right = solution([0.0, 0.5]), solution([2.0, 0.5])
    assert abs(left - 1) < 0.02 and abs(right) < 0.02
    # Nothing is lost between the ends.
    y = np.linspace(0, 1, 200)
    flux = [
        (1 + 0.5 * x) * solution.gradient(np.stack([np.full_like(y, x), y], axis=1))[:, 0].mean() for x in (0.3, 1.7)
    ]
    assert abs(flux[0] / flux[1] - 1) < 0.03 and flux[0] < -0.4


def test_ten_dimensions():
    assert run("ten_dimensions").rows[-1]["l2"] < 1e-3


def test_scipy():
    pytest.importorskip("scipy")
    assert run("scipy_1d") < 1e-7


def test_every_example_has_a_test():
    tested = {name[len("test_") :] for name in globals() if name.startswith("test_")}
    for file in EXAMPLES.glob("*.py"):
        assert file.stem in tested or file.stem.split("_")[0] in tested, file.name


@pytest.fixture(scope="module")
def tour():
    """The names that the notebook leaves behind, and what its cells would show."""
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib").use("Agg")
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    names, shown = {"__name__": "__main__"}, []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        # A notebook shows the last expression of a cell.
        parsed = ast.parse("".join(cell["source"]))
        last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
        exec(compile(parsed, "tour.ipynb", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "tour.ipynb", "eval"), names))
    return names, shown


def test_the_tour_solves_what_it_says(tour):
    names, shown = tour
    assert names["solution"].rows[-1]["h1"] < 8e-3 and names["solution"] in shown
    assert abs(names["warm"]([0.0, 0.5]) - 1) < 0.02
    assert names["high"].result["stopped"] == "interrupted" and names["high"].rows[-1]["l2"] < 0.02
    assert names["difference"] < 1e-7
    assert names["again"].neurons == 160


def test_the_tour_is_kept_without_what_it_shows():
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
