"""Compiler options for loops over arrays."""

# They are vectorised, with reductions in any order where a pragma says so.
LOOP_COPTS = [
    "-O3",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
]
