#pragma once

// Before a function: it is compiled for these instruction sets, and calls go to the
// best one that the machine has. What it calls must be inlined. (Sanitizers' run times
// are not there yet when the choice is made; .bazelrc says so where the compiler does not.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(TRAIND_NO_TARGET_CLONES) && !defined(__SANITIZE_ADDRESS__)
#define TRAIND_TARGET_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TRAIND_TARGET_CLONES
#endif
#define TRAIND_ALWAYS_INLINE inline __attribute__((always_inline))
