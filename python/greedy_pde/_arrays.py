"""Meshes and measurements given as arrays: they become the files that a problem would name."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ._toml import plain, refuse

#: Cells by their meshio name: the number in Gmsh's format, dimension, nodes.
_KINDS = {"line": (1, 1, 2), "triangle": (2, 2, 3), "quad": (3, 2, 4), "tetra": (4, 3, 4), "hexahedron": (5, 3, 8)}

Files = List[Tuple[str, bytes]]


def with_files(problem: Dict[str, Any]) -> Tuple[Dict[str, Any], Files]:
    """The problem with names of files where it has arrays, and these files."""
    problem = plain(problem)
    files: Files = []
    domain = problem.get("domain")
    if isinstance(domain, dict) and ("points" in domain or "cells" in domain):
        files.append(("mesh.msh", _mesh(domain)))
        for key in ("points", "cells", "faces"):
            domain.pop(key, None)
        domain["file"] = "mesh.msh"
    data = problem.get("data")
    if isinstance(data, dict):
        data = problem["data"] = [data]
    for number, table in enumerate(data if isinstance(data, list) else []):
        if isinstance(table, dict) and ("points" in table or "values" in table):
            name = f"data-{number}.csv"
            files.append((name, _measurements(table)))
            for key in ("points", "values", "weights"):
                table.pop(key, None)
            table["file"] = name
    return problem, files


def _numbers(key: str, array: Any, shape: str, ndim: int) -> NDArray[Any]:
    """An array of finite numbers of so many dimensions."""
    try:
        numbers = np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        refuse(key, f"an array of numbers of shape {shape} is needed")
    if numbers.ndim != ndim:
        refuse(key, f"an array of shape {shape} is needed, not {numbers.shape}")
    if not np.isfinite(numbers).all():
        refuse(key, "has numbers that are not finite")
    return numbers


def _mesh(domain: Dict[str, Any]) -> bytes:
    """A mesh as Gmsh would save it, in format 2.2."""
    if domain.get("shape") != "mesh":
        refuse("domain.points", 'points and cells belong to a mesh: shape = "mesh"')
    if "points" not in domain or "cells" not in domain:
        refuse("domain.points", "a mesh has points and cells")
    points = _numbers("domain.points", domain["points"], "(N, 2) or (N, 3)", 2)
    if points.shape[1] not in (2, 3):
        refuse("domain.points", f"an array of shape (N, 2) or (N, 3) is needed, not {points.shape}")
    groups: Dict[str, int] = {}
    elements: List[str] = []
    names: List[str] = []
    blocks = _blocks(domain["cells"], points.shape[1])
    for kind, cells in blocks:
        elements += _elements(len(elements), kind, "domain.cells", cells, len(points), 0)
    dimension = 3 if any(_KINDS[kind][1] == 3 for kind, _ in blocks) else 2
    for name, facets in dict(domain.get("faces") or {}).items():
        groups[name] = len(groups) + 1
        if '"' in name or "\n" in name:
            refuse("domain.faces", f"{name!r}: a name has no quotes and no line ends")
        names.append(f'{dimension - 1} {groups[name]} "{name}"')
        facets = _indices("domain.faces", facets)
        kind = {2: "line", 3: "triangle", 4: "quad"}.get(facets.shape[1], "")
        if not kind or _KINDS[kind][1] != dimension - 1:
            refuse("domain.faces", f"{name!r}: the facets of cells of dimension {dimension} are needed")
        elements += _elements(len(elements), kind, "domain.faces", facets, len(points), groups[name])
    nodes = np.zeros((len(points), 3))
    nodes[:, : points.shape[1]] = points
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat"]
    if names:
        lines += ["$PhysicalNames", str(len(names)), *names, "$EndPhysicalNames"]
    lines += ["$Nodes", str(len(nodes))]
    lines += [f"{i} {x!r} {y!r} {z!r}" for i, (x, y, z) in enumerate(nodes.tolist(), 1)]
    lines += ["$EndNodes", "$Elements", str(len(elements)), *elements, "$EndElements", ""]
    return "\n".join(lines).encode()


def _blocks(cells: Any, dimension: int) -> List[Tuple[str, NDArray[Any]]]:
    """Cells by their kind, from an array, a dict, or a list of pairs or of meshio's blocks."""
    if isinstance(cells, dict):
        blocks: Iterable[Any] = cells.items()
    elif isinstance(cells, (list, tuple)) and cells and _is_block(cells[0]):
        blocks = [(c.type, c.data) if hasattr(c, "type") else c for c in cells]
    else:
        cells = _indices("domain.cells", cells)
        four = "quad" if dimension == 2 else "tetra"
        kind = {3: "triangle", 4: four, 8: "hexahedron"}.get(cells.shape[1])
        if kind is None:
            refuse("domain.cells", f"an array of shape (M, 3), (M, 4) or (M, 8) is needed, not {cells.shape}")
        blocks = [(kind, cells)]
    found = []
    for kind, block in blocks:
        if kind == "vertex":
            continue
        if kind not in _KINDS:
            refuse("domain.cells", f"{kind!r}: there are {', '.join(_KINDS)}")
        found.append((kind, _indices("domain.cells", block)))
    return found


def _is_block(item: Any) -> bool:
    return hasattr(item, "type") or (isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str))


def _indices(key: str, array: Any) -> NDArray[Any]:
    indices = np.asarray(array)
    if indices.ndim != 2 or indices.dtype.kind not in "iu":
        refuse(key, f"an array of whole numbers, one cell per row, is needed, not {indices.dtype} {indices.shape}")
    return indices


def _elements(before: int, kind: str, key: str, cells: NDArray[Any], points: int, group: int) -> List[str]:
    number, _, width = _KINDS[kind]
    if cells.shape[1] != width:
        refuse(key, f"a {kind} has {width} nodes, not {cells.shape[1]}")
    if cells.size and (cells.min() < 0 or cells.max() >= points):
        refuse(key, f"nodes are numbered from 0 to {points - 1}")
    rows = (cells + 1).tolist()
    return [f"{i} {number} 2 {group} 0 {' '.join(map(str, row))}" for i, row in enumerate(rows, before + 1)]


def _measurements(table: Dict[str, Any]) -> bytes:
    """Measurements as the CSV file that the problem would name."""
    if "points" not in table or "values" not in table:
        refuse("data.points", "measurements have points and values")
    points = np.asarray(table["points"])
    points = _numbers("data.points", points[:, None] if points.ndim == 1 else points, "(N, d)", 2)
    columns = [points, _numbers("data.values", table["values"], "(N,)", 1)[:, None]]
    names = [f"x{i + 1}" for i in range(points.shape[1])] + ["value"]
    if table.get("weights") is not None:
        columns.append(_numbers("data.weights", table["weights"], "(N,)", 1)[:, None])
        names.append("weight")
    if len({len(column) for column in columns}) != 1:
        refuse("data.values", f"{len(points)} points need as many values, not {len(columns[1])}")
    rows = np.hstack(columns).tolist()
    return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows), ""]).encode()
