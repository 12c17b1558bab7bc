"""What the pages show works as it stands there."""

import re
import textwrap

import numpy as np
import pytest
from conftest import ROOT

import greedy_pde


def blocks(page):
    """The Python of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def own_problem():
    """The README's problem file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    after = readme.split("Save this as `mine.toml`:")[1].split("\nThen\n")[0]
    return textwrap.dedent(after)


def test_the_lines_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(own_problem(), encoding="utf-8")
    [lines] = blocks("README.md")
    assert len(lines.splitlines()) == 6
    exec(lines, {})
    error, slope, h1 = map(float, capsys.readouterr().out.split())
    assert error < 1e-5 and abs(slope - 3) < 1e-2 and h1 < 2e-3
    assert greedy_pde.load("runs/mine_python").neurons == 128


def test_the_first_lines_of_the_page(capsys):
    exec(blocks("docs/python.md")[0], {})
    assert float(capsys.readouterr().out) < 1e-5


def test_help_is_enough_to_start(capsys):
    help(greedy_pde.solve)
    shown = capsys.readouterr().out
    example = textwrap.dedent(shown.split("::\n", 1)[1].split("Parameters", 1)[0])
    exec(example, {})
    assert "[" in capsys.readouterr().out
    for word in ("neurons", "on_step", "KeyboardInterrupt", "ProblemError", "output"):
        assert word in shown


def test_the_problem_in_the_help_of_problem():
    example = re.search(r"Problem\(\{\n.*?\}\)\n", greedy_pde.Problem.__doc__, re.DOTALL).group()
    problem = eval(textwrap.dedent(" " * 8 + example), {"Problem": greedy_pde.Problem})
    solution = greedy_pde.solve(problem, progress=False)
    # −u″ + u = x with u′ = 0 at both ends.
    x = np.linspace(0, 1, 9)
    exact = x + (np.exp(x) * (1 - np.exp(-1)) - np.exp(-x) * (np.exp(1) - 1)) / (np.exp(-1) - np.exp(1))
    assert np.abs(solution(x) - exact).max() < 1e-4


@pytest.mark.parametrize("name", greedy_pde.__all__)
def test_everything_has_words(name):
    assert greedy_pde.__version__ if name == "__version__" else getattr(greedy_pde, name).__doc__
    public = getattr(greedy_pde, name)
    if isinstance(public, type) and public.__module__ == "greedy_pde":
        for attribute, value in vars(public).items():
            if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{attribute}"
