"""Runs: options, callbacks, interruptions, threads, memory."""

import gc
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import ROOT

import greedy_pde


def quiet(problem, **options):
    return greedy_pde.solve(problem, progress=False, **options)


CONFIGS = ["ex1_neumann", "ex2_three_peaks", "ex3_pinn", "elliptic_10d", "lshape", "heat_1d"]


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_bytes_as_the_command_line(name, program, tmp_path):
    file = ROOT / "configs" / f"{name}.toml"
    fewer = {"elliptic_10d": ("--points", 16384), "lshape": ("--cells", 4)}.get(name, ())
    options = ["--neurons", 24, *fewer, "--seed", 3, "--backend", "cpu"]
    told = program("solve", file, *options, "--output", tmp_path / "theirs", "-q")
    assert told.returncode == 0, told.stderr
    keywords = {word.lstrip("-"): value for word, value in zip(options[::2], options[1::2])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", greedy_pde.SolveWarning)
        in_memory = quiet(file, **keywords)
        quiet(file, output=tmp_path / "ours", **keywords)
    in_memory.save(tmp_path / "saved")
    theirs = (tmp_path / "theirs" / "network.safetensors").read_bytes()
    assert theirs == (tmp_path / "ours" / "network.safetensors").read_bytes()
    assert theirs == (tmp_path / "saved" / "network.safetensors").read_bytes()


def test_keywords_take_the_place_of_settings(small, square):
    assert quiet(small, neurons=5).neurons == 5
    assert quiet(small, neurons=5.0, cells=50).result["points"] == 100
    square["quadrature"] = {"rule": "monte_carlo", "points": 500}
    first, second = quiet(square, neurons=3, seed=1), quiet(square, neurons=3, seed=2)
    assert first.result["seed"] == 1 and not np.array_equal(first.bias, second.bias)
    assert quiet(square, neurons=3, points=1e3).result["points"] == 1000


@pytest.mark.parametrize(
    "keywords, error, words",
    [
        ({"neurons": 0}, ValueError, "neurons=0: a whole number of at least 1"),
        ({"neurons": True}, ValueError, "neurons=True"),
        ({"neurons": 2.5}, TypeError, "neurons=2.5: a whole number is needed"),
        ({"seed": -1}, ValueError, "seed=-1"),
        ({"threads": 5000}, ValueError, "from 1 to 1024"),
        ({"backend": "cuda"}, ValueError, 'backend="cuda": there are "auto", "cpu", "gpu"'),
        ({"precision": "f16"}, ValueError, '"integer"'),
        ({"resume": True}, ValueError, "needs output"),
        ({"resume": True, "force": True, "output": "x"}, ValueError, "only one of them"),
        ({"on_step": 3}, TypeError, "cannot be called"),
        ({"adapter": "no such thing"}, greedy_pde.SolveError, "no GPU adapter named like `no such thing`"),
        ({"nuerons": 3}, TypeError, "nuerons"),
    ],
)
def test_wrong_keywords_say_what_would_be_right(small, keywords, error, words):
    with pytest.raises(error, match=words):
        quiet(small, **keywords)


def test_threads_change_nothing(square):
    runs = [quiet(square, threads=threads) for threads in (None, 1, 3)]
    assert all(np.array_equal(run.coefficient, runs[0].coefficient) for run in runs)


def test_a_callback_sees_every_step(small):
    steps = []
    solved = quiet(small, on_step=steps.append)
    assert [step.n for step in steps] == list(range(1, 17))
    history = solved.history
    for name in ("loss", "score", "coefficient_l1", "seconds"):
        assert [getattr(step, name) for step in steps] == history[name].tolist()
    assert [step.n for step in steps if step.reported] == [row["n"] for row in solved.rows]
    assert steps[3].l2 == solved.rows[2]["l2"] and steps[2].l2 is None
    assert "score=" in repr(steps[0]) and repr(steps[0]).startswith("Step(")


def test_a_callback_sees_steps_in_time(heat):
    steps = []
    solved = quiet(heat, on_step=steps.append)
    assert [step.step for step in steps] == list(range(21)) and steps[-1].time == 0.1
    assert [step.energy for step in steps] == solved.history["energy"].tolist()


def stop_by_false(step):
    return step.n < 5


def stop_by_exception(step):
    if step.n == 5:
        raise StopIteration


@pytest.mark.parametrize("on_step", [stop_by_false, stop_by_exception])
def test_a_callback_can_end_the_run(small, on_step, tmp_path):
    whole = quiet(small)
    part = quiet(small, on_step=on_step)
    assert part.neurons == 5 and part.result["stopped"] == "interrupted"
    assert np.array_equal(part.omega, whole.omega[:5])
    quiet(small, on_step=on_step, output=tmp_path / "run")
    assert greedy_pde.load(tmp_path / "run").neurons == 5
    ended = greedy_pde.resume(tmp_path / "run", progress=False)
    assert np.array_equal(ended.coefficient, whole.coefficient)
    # What ended in memory is saved as it is, and goes on from there, too.
    part.save(tmp_path / "saved")
    ended = greedy_pde.resume(tmp_path / "saved", progress=False)
    assert np.array_equal(ended.coefficient, whole.coefficient)


def test_only_false_ends_a_run(small):
    for answer in (None, 0, "", [], True):
        assert quiet(small, neurons=4, on_step=lambda step: answer).neurons == 4


def test_an_exception_in_a_callback_is_raised(small, tmp_path):
    class Mine(Exception):
        pass

    def fail(step):
        if step.n == 7:
            raise Mine("seven")

    with pytest.raises(Mine, match="seven"):
        quiet(small, on_step=fail)
    with pytest.raises(Mine):
        quiet(small, on_step=fail, output=tmp_path / "run")
    assert greedy_pde.load(tmp_path / "run").neurons == 7
    # The directory is free at once.
    assert greedy_pde.resume(tmp_path / "run", progress=False).neurons == 16


def test_a_callback_runs_in_the_thread_that_called(small):
    seen = set()
    quiet(small, on_step=lambda step: seen.add(threading.get_ident()))
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("threads", [None, 1])
def test_a_callback_may_evaluate_and_solve(small, solution, threads):
    values = []

    def on_step(step):
        values.append(solution(np.linspace(0, 1, 10000)).sum())
        if step.n == 3:
            values.append(quiet(small, neurons=2, threads=threads).neurons)

    quiet(small, on_step=on_step, threads=threads)
    assert len(values) == 17 and values[3] == 2


def test_two_solves_in_two_threads(square, small):
    alone = [quiet(square, neurons=20), quiet(small)]
    found = [None, None]

    def work(place, problem, **options):
        found[place] = quiet(problem, on_step=lambda step: None, **options)

    threads = [
        threading.Thread(target=work, args=(0, square), kwargs={"neurons": 20}),
        threading.Thread(target=work, args=(1, small)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one, other in zip(alone, found):
        assert np.array_equal(one.coefficient, other.coefficient)


LONG = {
    "name": "long",
    "domain": {"dimension": 2},
    "equation": {"diffusion": "1", "reaction": "1", "exact": "cos(pi*x)*cos(3*pi*y)"},
    "dictionary": {"activation": "relu^2"},
    "quadrature": {"rule": "gauss", "cells": 60},
    "solver": {"neurons": 2000},
}


def test_the_interpreter_is_free_while_a_run_goes_on():
    gaps = []
    done = threading.Event()

    def tick():
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    started = time.perf_counter()
    quiet(LONG, neurons=60)
    seconds = time.perf_counter() - started
    done.set()
    ticking.join()
    # Held, the interpreter would leave one gap of all the time; this machine may be busy otherwise.
    assert seconds > 0.2 and len(gaps) > 20 and max(gaps) < 0.5 * seconds, (seconds, len(gaps), max(gaps))


SCRIPT = """\
import greedy_pde, sys, time
print("begin", flush=True)
def told(step):
    print(step.n, flush=True)
try:
    greedy_pde.solve({problem}, output={output!r}, progress=False, {more})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def interrupted(problem, output, more, ready):
    """Runs a solve in a process of its own, sends Ctrl-C when `ready(line)`, and says how long it took to hear of it."""
    script = SCRIPT.format(problem=problem, output=str(output), more=more)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if ready(line.strip()):
            break
    sent = time.perf_counter()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.readline()
    while rest and rest.strip() != "interrupted":
        rest = process.stdout.readline()
    seconds = time.perf_counter() - sent
    assert rest.strip() == "interrupted"
    assert process.wait(timeout=60) == 0
    return seconds


@pytest.mark.parametrize("more", ["on_step=told", ""])
def test_ctrl_c_is_heard_within_a_second_and_the_state_is_saved(more, tmp_path):
    if more:
        seconds = interrupted(LONG, tmp_path / "run", more, lambda line: line == "12")
    else:
        seconds = interrupted(LONG, tmp_path / "run", more, lambda line: time.sleep(2) is None)
    assert seconds < 1.0
    saved = greedy_pde.load(tmp_path / "run")
    assert 1 <= saved.neurons < 2000 and saved.result["stopped"] == "interrupted"
    if more:
        assert saved.neurons >= 12
    more_neurons = saved.neurons + 4
    went_on = greedy_pde.solve(LONG, neurons=more_neurons, output=tmp_path / "run", resume=True, progress=False)
    assert np.array_equal(went_on.coefficient, quiet(LONG, neurons=more_neurons).coefficient)


SLOW = {
    **LONG,
    "name": "slow",
    "quadrature": {"rule": "monte_carlo", "points": 2_000_000},
    "dictionary": {"activation": "tanh", "directions": "box", "weights": [-5.0, 5.0], "candidates": 200},
    "solver": {"neurons": 50, "guard": False},
}


def test_ctrl_c_is_heard_in_the_middle_of_a_step_that_takes_long(tmp_path):
    started = time.perf_counter()
    seconds = interrupted(SLOW, tmp_path / "run", "", lambda line: time.sleep(1.5) is None)
    assert seconds < 1.0, (seconds, time.perf_counter() - started)
    assert (tmp_path / "run" / "checkpoint").exists()


def test_a_run_that_was_left_behind_is_waited_for(tmp_path):
    """A step that takes long goes on for a moment after Ctrl-C; who comes back to the directory waits for it."""
    script = textwrap.dedent(f"""
        import fcntl, greedy_pde, os, signal, threading
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            greedy_pde.solve({dict(SLOW, quadrature={"rule": "monte_carlo", "points": 200_000})}, output={str(tmp_path / "run")!r}, progress=False)
        except KeyboardInterrupt:
            try:
                fcntl.flock(open({str(tmp_path / "run" / "lock")!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)
                print("free")
            except BlockingIOError:
                print("left behind")
        solved = greedy_pde.solve(
            {dict(SLOW, quadrature={"rule": "monte_carlo", "points": 200})},
            output={str(tmp_path / "run")!r}, force=True, neurons=2, progress=False)
        print(solved.neurons)
    """)
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300)
    assert told.stdout.splitlines() == ["left behind", "2"], told.stderr


def _solve_in_a_fork(problem, queue):
    queue.put(quiet(problem).coefficient)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_can_solve_though_its_parent_has_the_threads(small):
    expected = quiet(small).coefficient
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_solve_in_a_fork, args=(small, queue))
    child.start()
    assert np.array_equal(queue.get(timeout=60), expected)
    child.join()


def test_warnings_are_given_where_the_run_was_asked_for(small, tmp_path):
    small["solver"]["radius"] = 3.0
    with pytest.warns(greedy_pde.SolveWarning, match="radius") as caught:
        solved = greedy_pde.solve(small, progress=False)
    assert solved.result["warnings"] and {warning.filename for warning in caught} == {__file__}
    solved.save(tmp_path / "run")
    with pytest.warns(greedy_pde.SolveWarning, match="radius") as caught:
        greedy_pde.resume(tmp_path / "run", neurons=18, progress=False)
    assert {warning.filename for warning in caught} == {__file__}
    problem = greedy_pde.Problem(small)
    assert any("radius" in warning for warning in problem.warnings)


def test_a_result_directory_is_written_and_kept(small, tmp_path):
    quiet(small, output=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(greedy_pde.ResultsError, match="already holds a result.*resume=True.*force=True.*output=…"):
        quiet(small, output=tmp_path / "run")
    quiet(small, output=tmp_path / "run", force=True)
    small["equation"]["reaction"] = "2"
    with pytest.raises(greedy_pde.ResultsError, match="`equation.reaction` was"):
        quiet(small, output=tmp_path / "run", resume=True)


def test_progress_is_shown_on_stderr(small, capfd):
    greedy_pde.solve(small)
    out, shown = capfd.readouterr()
    assert out == "" and "16" in shown
    greedy_pde.solve(small, progress=False)
    assert capfd.readouterr() == ("", "")


def test_progress_without_tqdm_is_in_lines(small, heat, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    greedy_pde.solve(small)
    lines = capsys.readouterr().err.splitlines()
    assert [int(line.split()[2]) for line in lines] == [1, 2, 4, 8, 16] and "H1" in lines[0]
    greedy_pde.solve(heat)
    assert "step 20/20  t = 0.1" in capsys.readouterr().err


def test_devices_are_listed():
    for device in greedy_pde.devices():
        assert {"name", "backend", "f64", "auto"} <= set(device)


def test_a_device_solves_if_there_is_one(small):
    if not greedy_pde.devices():
        pytest.skip("no adapter")
    on_device, on_cpu = quiet(small, backend="gpu"), quiet(small, backend="cpu")
    assert on_device.result["backend"] == "gpu" and on_cpu.result["backend"] == "cpu"
    x = np.linspace(0, 1, 50)
    assert np.abs(on_device(x) - on_cpu(x)).max() < 1e-3


def test_a_table_of_the_paper():
    made = greedy_pde.reproduce("table01", max_neurons=32, progress=False)
    assert [figure["n"] for figure in made] == [16, 16, 32, 32] and made.is_reproduced
    assert made[2]["paper"] == 7.70e-5 and made[2]["ratio"] == made[2]["ours"] / made[2]["paper"]
    assert "table01: example 1" in str(made) and "7.70e-05" in str(made)
    with pytest.raises(ValueError, match="there are table01, table02, table05"):
        greedy_pde.reproduce("table99")
    with pytest.raises(ValueError, match="first row of table01 has more"):
        greedy_pde.reproduce("table01", max_neurons=4)


def resident():
    """Bytes of memory that this process has."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        pytest.skip("no /proc")


def test_two_hundred_solves_leave_nothing_behind(small):
    def batch(count):
        for _ in range(count):
            solved = quiet(small, on_step=lambda step: None)
            solved(np.linspace(0, 1, 100))
            solved.history
        gc.collect()

    batch(50)
    before = resident()
    batch(200)
    grown = resident() - before
    # A solution has about 20 kB: 200 of them would be 4 MB.
    assert grown < 2 << 20, f"{grown / 2**20:.1f} MiB more after 200 solves"
