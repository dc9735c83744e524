"""cc_library, cc_test and cc_binary with precompiled headers.

Without them each file parses the same hundred thousand lines of the standard library, Abseil, GoogleTest and
LibTorch again, and that was most of the build. Every file still names what it includes: builds of sanitizers and
fuzzers have no precompiled headers, and so have builds with --define=pch=off.

Sources of tests are compiled at -O1, which takes a quarter less time than -O2; what they test is compiled as it runs.
"""

def _with_pch(kwargs, pch, optimize = []):
    # Flags of their own would not be those that the header was compiled with.
    if pch and not kwargs.get("copts") and kwargs.get("srcs"):
        target = "//build_defs/pch:" + pch
        header = "$(BINDIR)/build_defs/pch/{}.h".format(pch)
        kwargs["deps"] = kwargs.get("deps", []) + select({
            "//build_defs/pch:off": [],
            "//conditions:default": [target],
        })
        kwargs["copts"] = select({
            "//build_defs/pch:off": [],
            # GCC takes headers that were precompiled at -O2 for -O1, too.
            "//conditions:default": ["-include", header, "-fpch-deps", "-Winvalid-pch"] + optimize,
        })
    return kwargs

def cc_library(pch = "base", **kwargs):
    """native.cc_library.

    Args:
      pch: a target of //build_defs/pch; None for none. Targets with copts have none.
      **kwargs: as ever.
    """
    native.cc_library(**_with_pch(kwargs, pch))

def cc_binary(pch = "base", **kwargs):
    native.cc_binary(**_with_pch(kwargs, pch))

def cc_test(pch = "test", **kwargs):
    native.cc_test(**_with_pch(kwargs, pch, optimize = ["-O1"]))
