"""Tables in and out: frames, columns and rows become CSV files that traind reads; answers become frames or columns."""
from __future__ import annotations

import csv
import datetime
import math
import numbers
import os
import re
import uuid
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

Columns = Dict[str, List[Any]]


def optional_module(name: str) -> Any:
    """The module, or None where it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        return None


def is_frame(data: Any) -> bool:
    """Whether it is a pandas frame; pandas is not imported for that."""
    return any(c.__module__.partition(".")[0] == "pandas" and c.__name__ == "DataFrame" for c in type(data).__mro__)


def is_table(data: Any) -> bool:
    """Whether write_table takes it: neither a path nor anything else."""
    return not isinstance(data, (str, bytes, os.PathLike)) and data is not None


# ---- writing ----------------------------------------------------------------

# Blanks at the ends of an unquoted field are stripped by the reader. Tabs and semicolons in a header would be taken for
# separators.
_NEEDS_QUOTES = re.compile(r'[,"\r\n\t;]|^\s|\s$')


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


def cell_text(value: Any) -> str:
    """The text of a value in a CSV file, not quoted; a missing one is empty.

    Dates are written as ISO 8601, durations as seconds, floats with all their digits. Raises TypeError for what a
    table cannot hold.
    """
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # a scalar of numpy
        value = value.item() if getattr(value, "ndim", 0) == 0 else value
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return repr(number) if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return repr(value.total_seconds())
    if type(value).__name__ in ("Decimal", "Fraction", "Period", "Interval", "UUID"):
        return str(value)
    raise TypeError(f"the value {value!r:.80} of type {type(value).__name__} has no place in a table; argument must be a "
                    "string or a number")


def _values(column: Any) -> Iterable[Any]:
    """Python's own values of a column of pandas or numpy, or of a list."""
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _named(names: Iterable[Any]) -> List[str]:
    names = [str(name) if not isinstance(name, tuple) else None for name in names]
    if None in names:
        raise ValueError("the frame has columns of several levels; give each column one name")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two columns have the name '{twice[0]}'")
    return names


def columns_of(data: Any) -> Columns:
    """The columns of a frame (pandas, polars, pyarrow), of a dict of columns, of a list of rows, or of an array.

    An array without names has the columns x0, x1 and so on.
    """
    if is_frame(data):
        names = _named(data.columns)
        return {name: _values(data.iloc[:, i]) for i, name in enumerate(names)}
    if hasattr(data, "to_pydict"):  # pyarrow
        data = data.to_pydict()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):  # polars
        data = data.to_dict(as_series=False)
    if isinstance(data, dict):
        return dict(zip(_named(data), (_values(column) for column in data.values())))
    if getattr(data, "ndim", None) == 2:
        return {f"x{i}": _values(data[:, i]) for i in range(data.shape[1])}
    rows = list(data) if isinstance(data, (list, tuple)) else None
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {str(name): [row.get(name) for row in rows] for name in names}
    raise TypeError(f"a table is a frame, a dict of columns, a list of dicts or an array of two dimensions, not "
                    f"{type(data).__name__}")


def write_table(data: Any, path: str) -> Columns:
    """Writes a CSV file with a header; the index of a frame is not written. Returns the columns."""
    columns = columns_of(data)
    if not columns:
        raise ValueError("the table has no column")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns have different lengths: {lengths}")
    texts = []
    for name, column in columns.items():
        cells = []
        for row, value in enumerate(column):
            try:
                text = cell_text(value)
            except TypeError as e:
                raise TypeError(f"column '{name}', row {row}: {e}") from None
            if "\0" in text:
                raise ValueError(f"column '{name}', row {row}: a text with a NUL character cannot stand in a table")
            cells.append(_quoted(text))
        texts.append(cells)
    # A blank line would not count as a row.
    rows = (",".join(row) or '""' for row in zip(*texts))
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8", newline="") as f:
        f.write(",".join(_quoted(name) for name in columns) + "\n")
        f.writelines(row + "\n" for row in rows)
    os.replace(part, path)
    return columns


class TableFolder:
    """The folder into which tables are written for traind to read. Each file has a name of its own."""

    def __init__(self, path: str):
        self.path = os.path.abspath(path)

    def new_path(self) -> str:
        os.makedirs(self.path, exist_ok=True)
        return os.path.join(self.path, f"table-{uuid.uuid4().hex}.csv")

    def write(self, data: Any) -> Tuple[str, Columns]:
        path = self.new_path()
        return path, write_table(data, path)


class SharedTable:
    """A table that several specs have: it is written once, and each spec has a name of its own for the file."""

    def __init__(self, data: Any):
        self.data = data
        self.path: Optional[str] = None


def remove_files(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.remove(path)
        except OSError:
            pass  # somebody else has removed it


# ---- reading ----------------------------------------------------------------

def _converted(texts: List[str], kind: Callable[[str], Any]) -> Optional[List[Any]]:
    try:
        return [kind(text) if text else math.nan for text in texts]
    except ValueError:
        return None


def read_columns(text: str) -> Columns:
    """The columns of a CSV text: whole numbers, else numbers, else texts."""
    rows = list(csv.reader(text.splitlines(keepends=True)))
    if not rows:
        return {}
    columns = {}
    for i, name in enumerate(rows[0]):
        texts = [row[i] for row in rows[1:]]
        whole = _converted(texts, int) if "" not in texts else None
        columns[name] = whole or _converted(texts, float) or texts
    return columns


def relabelled(texts: List[Any], originals: Iterable[Any]) -> List[Any]:
    """The predicted classes as the training table had them: True and not "true". Other values stay as they are."""
    by_text: Dict[str, Any] = {}
    for value in originals:
        if not _is_missing(value):
            by_text.setdefault(cell_text(value), value)
            if isinstance(value, float) and value.is_integer():
                by_text.setdefault(str(int(value)), value)  # the class 1.0 may answer as 1
    found = [by_text.get(cell_text(text), by_text) for text in texts]
    return list(texts) if any(value is by_text for value in found) else found


def as_frame(columns: Any, index: Any = None) -> Any:
    """A pandas frame where pandas is installed, else the columns (or rows) as they are."""
    pandas = optional_module("pandas")
    if pandas is None:
        return columns
    frame = pandas.DataFrame(columns)
    if index is not None and len(index) == len(frame):
        frame.index = index
    return frame
