"""Types are right, and the stub of the extension module says what the module has."""

import pathlib
import subprocess
import sys

import pytest

import greedy_pde

pytest.importorskip("mypy")


def checked(*arguments):
    told = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_package_is_typed():
    assert (pathlib.Path(greedy_pde.__file__).parent / "py.typed").exists()
    checked("mypy", "--strict", "--ignore-missing-imports", "--cache-dir=/dev/null", "-p", "greedy_pde")


def test_the_stub_says_what_the_module_has():
    checked("mypy.stubtest", "--ignore-missing-stub", "greedy_pde._native")


def test_users_mistakes_are_found(tmp_path):
    script = tmp_path / "mistake.py"
    script.write_text("import greedy_pde\ngreedy_pde.solve({}, neurons='many')\n")
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", str(script)], capture_output=True, text=True
    )
    assert told.returncode == 1 and '"neurons"' in told.stdout, told.stdout
