// How the kernels of a family are listed: each family is compiled once for each dtype.
#pragma once

#include "../include/lapack.hpp"
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

// A kernel as the interface has it, with scratch memory of its own. Where there are several groups, threads of a
// parallel region may share them, where BLAS gets no threads; MKL's elimination goes wrong there if it was told how
// many to use (`strategies.factors.elimination`).
template <void (*KERNEL)(Task, Arena&)>
void run(bs_task* task) {
  const OneThread limit(task->count > task->group);
  Arena arena;
  KERNEL(Task(task), arena);
  BS_CLEAR_UPPER_HALVES();
}

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

#define BS_ENTRY(name, rows, ...) {name, rows, run<__VA_ARGS__>}
#define BS_NAMED(name, ...) BS_ENTRY(name, 0, __VA_ARGS__)
#define BS_KERNEL(kernel) BS_ENTRY(#kernel, 0, kernel<T>)
#define BS_ROWS(name, kernel, n) BS_ENTRY(name, n, kernel<n, T>)
#define BS_ROWS_1_TO_3(name, kernel) BS_ROWS(name, kernel, 1), BS_ROWS(name, kernel, 2), BS_ROWS(name, kernel, 3)
// For any number of rows; kernels for a known number are compiled where they are much faster, of real numbers.
#if defined(BS_ANY_ROWS_ONLY)
#define BS_ROWS_TO_4(kernel) BS_ROWS(#kernel, kernel, 0)
#else
#define BS_ROWS_TO_4(kernel) BS_ROWS_1_TO_3(#kernel, kernel), BS_ROWS(#kernel, kernel, 4), BS_ROWS(#kernel, kernel, 0)
#endif
