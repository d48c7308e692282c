// How the kernels of a family are listed: each family is compiled once for each dtype.
#pragma once

#include "../include/task.hpp"

namespace bs {

struct KernelEntry {
  const char* name;
  int rows;  // for which it is compiled; zero for any
  bs_kernel run;
};

struct KernelTable {
  const KernelEntry* entries;
  int count;
};

}  // namespace bs

#define BS_JOIN(a, b) a##_##b
#define BS_OF_DTYPE(family, dtype) BS_JOIN(family, dtype)

// Of BS_DTYPE, one of f32, f64, c64 and c128, with numbers BS_NUMBER.
#define BS_DEFINE_FAMILY(family, ...)                        \
  namespace bs {                                             \
  KernelTable BS_OF_DTYPE(family, BS_DTYPE)() {              \
    using T = BS_NUMBER;                                     \
    static const KernelEntry entries[] = {__VA_ARGS__};      \
    return {entries, int(sizeof entries / sizeof *entries)}; \
  }                                                          \
  }

#define BS_KERNEL(name, kernel) {name, 0, kernel<T>},
#define BS_ROWS(name, kernel, n) {name, n, kernel<n, T>},
#define BS_ANY_ROWS(name, kernel) BS_ROWS(name, kernel, 0)
#define BS_ROWS_1_TO_3(name, kernel) BS_ROWS(name, kernel, 1) BS_ROWS(name, kernel, 2) BS_ROWS(name, kernel, 3)
// Kernels for a known number of rows are compiled where they are much faster, of real numbers.
#if defined(BS_ANY_ROWS_ONLY)
#define BS_ROWS_TO_4(name, kernel)
#else
#define BS_ROWS_TO_4(name, kernel) BS_ROWS_1_TO_3(name, kernel) BS_ROWS(name, kernel, 4)
#endif
