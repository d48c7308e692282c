// What LU factors tell of the rank, and the row order of their pivots.
#include "../include/lu.hpp"
#include "table.hpp"

namespace bs {
namespace {

// An estimate of σ_n from the columns of R, or of packed L and U, which are given as rows; zero if a diagonal entry is.
template <bool OF_LU, class T>
void smallest(Task task, Arena& arena) {
  const auto F = task.argument<T>(0);
  const auto result = task.argument<Real<T>>(1);
  auto* first = arena.take<double>(F.m);
  auto* y = arena.take<T>(F.m);
  if (arena.is_ok()) write_first_vector(first, F.m);
  task.each(arena, [&](Int i) {
    double found;
    write_smallest_singular_values<OF_LU>(F.columns(i), first, y, &found);
    result.number(i) = Real<T>(found);
    return true;
  });
}

// Whether a column of U, given as a row, is longer than its limit allows beside that of A.
template <class T>
void has_grown(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), F = task.argument<T>(1);
  const auto result = task.argument<bool>(2);
  const Int n = A.n;
  auto* before = arena.take<double>(n);
  task.each(arena, [&](Int i) {
    std::fill_n(before, n, 0.0);
    for (Int r = 0; r < n; ++r) {
      for (Int c = 0; c < n; ++c) before[c] += square(A[i](r, c));
    }
    bool found = false;
    for (Int c = 0; c < n; ++c) {
      const double limit = growth_limit(n) * growth_limit(n) * before[c];
      found |= sum_of_squares(F.columns(i).column(c), c + 1) > limit;
    }
    result.number(i) = found;
    return true;
  });
}

// Where the row swaps of LAPACK's pivots move each row.
template <class T>
void inverse_order(Task task, Arena& arena) {
  const auto pivots = task.argument<Pivot>(0);
  const auto order = task.argument<Int>(1);
  task.each(arena, [&](Int i) {
    write_inverse_order(pivots.vector(i), pivots.down, pivots.m, order.vector(i), order.m);
    return true;
  });
}

// Whether some pivot may be roundoff or is not finite; the inverse row order.
template <class T>
void may_be_deficient(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0);
  const auto pivots = task.argument<Pivot>(1);
  const auto result = task.argument<bool>(2);
  const auto order = task.argument<Int>(3);
  RoundoffScratch<T> s(arena, std::min(LU.m, LU.n));
  auto F = arena.columns<T>(LU.m, LU.n);
  task.each(arena, [&](Int i) {
    copy(F, LU[i]);
    result.number(i) = some_pivot_may_be_roundoff(F, s);
    write_inverse_order(pivots.vector(i), pivots.down, pivots.m, order.vector(i), order.m);
    return true;
  });
}

// Whether the last pivot may be roundoff.
template <class T>
void last_may_be_roundoff(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0);
  const auto result = task.argument<bool>(1);
  const Int k = std::min(LU.m, LU.n);
  RoundoffScratch<T> s(arena, k);
  auto F = arena.columns<T>(LU.m, LU.n);
  task.each(arena, [&](Int i) {
    copy(F, LU[i]);
    result.number(i) = last_pivot_may_be_roundoff(F.part(0, k, 0, k), s);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    lu_rank, BS_NAMED("smallest_of_triangle", smallest<false, T>), BS_NAMED("smallest_of_product", smallest<true, T>),
    BS_KERNEL(has_grown), BS_KERNEL(inverse_order), BS_KERNEL(may_be_deficient), BS_KERNEL(last_may_be_roundoff))
