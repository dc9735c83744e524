#pragma once

// TRAIND_TARGET_CLONES stands before a function: it is compiled for each of these instruction sets,
// and calls go to the best one that the machine has. Functions that it calls must be inlined.
// Sanitizer builds have no clones, because the choice is made before a sanitizer's run time is
// ready; .bazelrc sets TRAIND_NO_TARGET_CLONES where the compiler defines no macro for it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(TRAIND_NO_TARGET_CLONES) && !defined(__SANITIZE_ADDRESS__)
#define TRAIND_TARGET_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TRAIND_TARGET_CLONES
#endif
#define TRAIND_ALWAYS_INLINE inline __attribute__((always_inline))
