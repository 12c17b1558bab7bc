"""A million points in two dimensions at n = 128: from Python and by the library itself, in one session.

    pip install . && python benches/evaluate.py

Ends with exit code 1 if Python takes more than 1.2 × the library's time.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import greedy_pde

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIDE, REPEATS, ALLOWED = 1000, 40, 1.2


def best(function, *arguments):
    """The shortest of several times, and what came out."""
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        found = function(*arguments)
        seconds.append(time.perf_counter() - started)
    return min(seconds), found


def main() -> int:
    solution = greedy_pde.solve(ROOT / "configs" / "ex3_energy.toml", neurons=128, cells=250)
    side = np.linspace(0, 1, SIDE)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    with tempfile.TemporaryDirectory() as directory:
        solution.save(f"{directory}/run")
        told = subprocess.run(
            ["cargo", "bench", "--quiet", "--bench", "evaluate"],
            env={**os.environ, "GREEDY_PDE_RUN": f"{directory}/run"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    library = json.loads(told.stdout.strip().splitlines()[-1])
    seconds, values = best(solution, points)
    assert library["neurons"] == solution.neurons and np.isclose(values.sum(), library["sum"], rtol=1e-9, atol=1e-6)
    ratio = seconds / library["seconds"]
    print(f"{len(points)} points, {solution.neurons} neurons, {os.cpu_count()} cores")
    print(f"library {library['seconds'] * 1e3:.1f} ms, Python {seconds * 1e3:.1f} ms: {ratio:.2f} ×")
    for name in ("gradient", "laplacian"):
        print(f"{name} {best(getattr(solution, name), points)[0] * 1e3:.1f} ms")
    return int(ratio > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
