"""A dict as the text of a problem file."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Dict, List, Mapping, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._errors import ProblemError

#: What errors call a problem that was given as a dict.
FILE = "<dict>"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
#: Tables whose values are formulas in x; arrays there would be values at points nobody knows.
_FORMULAS = ("equation", "boundary", "time", "constants")
_FORMULA_KEYS = ("domain.inside",)


def refuse(key: str, message: str, help: str = "") -> NoReturn:
    """Raises the error for what is wrong with a key, in the form of the library's own."""
    text = f"{FILE}: `{key}`: {message}" + (f"\n help: {help}" if help else "")
    raise ProblemError(text, FILE, None, None, key, help or None)


def dumps(problem: Mapping[str, Any]) -> str:
    """The text of a problem file with these keys."""
    lines: List[str] = []
    tables: List[str] = []
    for key, value in _items("", problem):
        name = _key(key)
        if isinstance(value, Mapping):
            tables += [f"\n[{name}]", *_pairs(key, value)]
        elif _is_list_of_tables(value):
            for table in value:
                tables += [f"\n[[{name}]]", *_pairs(key, table)]
        else:
            lines.append(f"{name} = {_value(key, value)}")
    return "\n".join(lines + tables) + "\n"


def _items(path: str, table: Mapping[str, Any]) -> List[Any]:
    """The keys that are given: ``None`` stands for one that is not."""
    for key in table:
        if not isinstance(key, str):
            refuse(path or repr(key), f"keys are words, not {key!r}")
    return [(key, value) for key, value in table.items() if value is not None]


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(v, Mapping) for v in value)


def _pairs(path: str, table: Mapping[str, Any]) -> List[str]:
    return [f"{_key(key)} = {_value(f'{path}.{key}', value)}" for key, value in _items(path, table)]


def _key(key: str) -> str:
    return key if _BARE_KEY.match(key) else _string(key, key)


def _string(path: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(path, f"{text!r} is no text")
    # The escapes of JSON are escapes of TOML, which has one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(path: str, value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = _array(path, value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _string(path, value)
    if isinstance(value, os.PathLike):
        return _string(path, str(os.fspath(value)))
    if isinstance(value, Mapping):
        pairs = [f"{_key(key)} = {_value(f'{path}.{key}', item)}" for key, item in _items(path, value)]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(path, item) for item in value) + "]"
    if callable(value):
        refuse(
            path,
            f"is a Python function ({getattr(value, '__name__', type(value).__name__)}), and formulas are texts",
            'write it as a formula in x: "1 + x[1]^2"; it is differentiated and evaluated without Python',
        )
    refuse(path, f"a number, a text, a list or a dict is needed, not {type(value).__name__}")


def _float(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")


def _array(path: str, array: NDArray[Any]) -> Any:
    """The numbers of an array, where numbers are wanted."""
    if array.ndim > 0 and (path.split(".")[0] in _FORMULAS or path in _FORMULA_KEYS):
        refuse(
            path,
            f"is an array of shape {array.shape}, and coefficients are formulas in x, not values at points",
            'write it as a formula: "1 + x[1]^2"; measured values of u go into `data`',
        )
    if array.dtype.kind not in "biuf":
        refuse(path, f"an array of numbers is needed, not of {array.dtype}")
    return array.tolist()


def plain(problem: Mapping[str, Any]) -> Dict[str, Any]:
    """A copy that may be changed, two levels deep: tables are copied, what is in them is not."""
    copied: Dict[str, Any] = {}
    for key, value in problem.items():
        if isinstance(value, Mapping):
            copied[key] = dict(value)
        elif _is_list_of_tables(value):
            copied[key] = [dict(table) for table in value]
        else:
            copied[key] = value
    return copied
