// QR factorizations of one matrix, by LAPACK's reflectors.
#pragma once

#include "condition.hpp"
#include "lapack.hpp"
#include "qr.hpp"

namespace bs {

constexpr Int WORK_PER_COLUMN = 64;  // of LAPACK's reflectors: blocks of so many

// Reflectors of one matrix by LAPACK, and what there is to do with them.
template <class T>
struct Reflectors {
  T *scales, *work;
  RankTest<false, T> test;
  Int length;
  Reflectors(const Task& task, Arena& arena, Int n, Int k = 1)
      : scales(arena.take<T>(n)),
        work(arena.take<T>(WORK_PER_COLUMN * std::max(n, k))),
        test(task, arena, n),
        length(WORK_PER_COLUMN * std::max(n, k)) {}
  void reflect(Columns<T> F) { lapack::reflect(F, scales, work, length); }
  void form_basis(Columns<T> F) { lapack::form_basis(F, scales, work, length); }

  // Copy R; whether the matrix, of such a sum of squares, is of full rank for certain.
  bool copy_clear_triangle(Columns<T> R, Columns<T> F, double squares) {
    return copy_upper(R, F) && test.is_full(R, F.m, &squares);
  }
};

}  // namespace bs
