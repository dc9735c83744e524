"""Tests written in Python, standard library only."""

def python_test(name, main, srcs = [], data = [], args = [], **kwargs):
    """A test whose cases (tests/cases.py) are counted one by one.

    Args:
      name: of the test.
      main: the .py file that calls cases.main().
      srcs: other .py files that it imports.
      data: files that it reads or runs.
      args: its arguments.
      **kwargs: passed to sh_test.
    """
    native.sh_test(
        name = name,
        srcs = ["//tests:python_test.sh"],
        args = ["$(location {})".format(main)] + args,
        data = [main, "//tests:cases.py"] + srcs + data,
        **kwargs
    )
