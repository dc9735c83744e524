"""Tables as CSV files, and answers as columns."""
import csv
import datetime
import decimal
import math
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from tests.cases import case, main
from traind.tables import columns_of, read_columns, relabelled, write_table


def written(data):
    path = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "table.csv")
    write_table(data, path)
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


def rows(text):
    return list(csv.reader(text.splitlines(keepends=True)))


def refused(kind, data, part):
    try:
        written(data)
    except kind as e:
        assert part in str(e), e
        return
    raise AssertionError(f"{data} was written")


class Array:
    """Looks like an array of numpy."""
    ndim = 2

    def __init__(self, values):
        self.values = values
        self.shape = (len(values), len(values[0]))

    def __getitem__(self, key):
        return [row[key[1]] for row in self.values]


@case("Texts come back as they were: with commas, quotes, line ends, tabs and blanks at their ends")
def _():
    texts = ["a,b", 'say "x"', "two\nlines", "cr\r", "tab\t", " blank ", "é 漢", "", "semi;colon"]
    text = written({"t": texts, "n": list(range(len(texts)))})
    assert rows(text) == [["t", "n"]] + [[t, str(i)] for i, t in enumerate(texts)], text
    assert '" blank "' in text, text  # unquoted blanks would be stripped


@case("A header with a semicolon or a tab is quoted, so that it does not choose the separator")
def _():
    assert written({"a;b": [1], "c\td": [2]}) == '"a;b","c\td"\n1,2\n'


@case("Missing values are empty, whatever stands for them")
def _():
    class NAType:
        def __bool__(self):
            raise TypeError("boolean value of NA is ambiguous")

        def __ne__(self, other):
            return self

    text = written({"x": [1.5, None, math.nan, NAType()], "y": [1, 2, 3, 4]})
    assert text == "x,y\n1.5,1\n,2\n,3\n,4\n", text


@case("A missing value of a table's only column is no blank line, which would not count as a row")
def _():
    assert written({"x": ["a", None, "b"]}) == 'x\na\n""\nb\n'


@case("Numbers keep all digits, dates are ISO 8601, durations are seconds, booleans are words")
def _():
    values = [0.1 + 0.2, 10**18, True, datetime.date(2026, 12, 1), datetime.datetime(2026, 12, 1, 18, 30),
              datetime.timedelta(minutes=1.5), decimal.Decimal("1.50"), math.inf]
    text = written({f"c{i}": [v] for i, v in enumerate(values)})
    assert rows(text)[1] == ["0.30000000000000004", "1000000000000000000", "true", "2026-12-01", "2026-12-01T18:30:00",
                             "90.0", "1.50", "inf"], text


@case("Rows, columns and arrays are tables; a key that a row lacks is missing")
def _():
    assert columns_of([{"a": 1}, {"a": 2, "b": 3}]) == {"a": [1, 2], "b": [None, 3]}
    assert columns_of(Array([[1, 2], [3, 4]])) == {"x0": [1, 3], "x1": [2, 4]}


@case("What is no table is refused with the place")
def _():
    refused(TypeError, {"a": [1, {"b": 2}]}, "column 'a', row 1")
    refused(ValueError, {"a": [1], "b": [1, 2]}, "different lengths")
    refused(ValueError, {"a": ["x\0y"]}, "NUL")
    refused(ValueError, {}, "no column")
    refused(ValueError, {1: [1], "1": [2]}, "two columns have the name '1'")
    refused(TypeError, 7, "int")


@case("An answer has whole numbers, numbers and texts, each column as one kind")
def _():
    columns = read_columns('id,kind,p_a\n1,"x,y",0.5\n2,z,1e-07\n')
    assert columns == {"id": [1, 2], "kind": ["x,y", "z"], "p_a": [0.5, 1e-07]}, columns
    assert math.isnan(read_columns("id,v\n1,\n2,3.5\n")["v"][0])
    assert read_columns("id,v\n")["v"] == []


@case("Predicted classes come back as the values that the table had")
def _():
    assert relabelled(["true", "false"], [True, False]) == [True, False]
    assert relabelled([1, 0], [0.0, 1.0, math.nan]) == [1.0, 0.0]
    assert relabelled([2.75, 3.5], [1.0, 2.0]) == [2.75, 3.5]
    day = datetime.date(2026, 1, 2)
    assert relabelled(["2026-01-02"], [day]) == [day]


main()
