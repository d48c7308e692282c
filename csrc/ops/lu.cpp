// LU factors of full rank and their reverse.
#include "../include/lu_reverse.hpp"
#include "../include/pack.hpp"
#include "../include/roundoff.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Whether A is eliminated and its rank full beyond doubt; also writes the inverse row order.
template <class T>
bool factor_of_full_rank(View<T> A, Columns<T> LU, Pivot* pivots, Int* order, RoundoffScratch<T>& s) {
  copy(LU, A);
  if (safe_squares_of_matrix(LU) < 0 || !eliminate_columns(LU, pivots)) return false;
  write_inverse_order(pivots, 1, std::min(LU.m, LU.n), order, LU.m);
  return !some_pivot_may_be_roundoff(LU, s);
}

// LU by columns, pivots, and the inverse row order.
template <class T>
void lu_factor(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), LU = task.argument<T>(1);
  const auto pivots = task.argument<Pivot>(2);
  const auto order = task.argument<Int>(3);
  RoundoffScratch<T> s(arena, std::min(A.m, A.n));
  task.each(
      arena, [&](Int i) { return factor_of_full_rank(A[i], LU.columns(i), pivots.vector(i), order.vector(i), s); });
}

template <class T>
void lu_factor_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), LU = task.argument<T>(1);
  const auto pivots = task.argument<Pivot>(2);
  const auto order = task.argument<Int>(3);
  const Int m = A.m, n = A.n, k = std::min(m, n);
  RoundoffScratch<T> s(arena, k);
  auto F = arena.columns<P>(m, n);
  auto* of_pack = arena.take<PivotOf<P>>(k);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double squares[width_of<P>];
    gather(F, A, first, last);
    if (!are_in_safe_range(F, squares, RANGE_OF_MATRIX<P>) || !eliminate_columns(F, of_pack)) return false;
    scatter(F, LU.t(), first, last);
    scatter_pivots<P>(of_pack, pivots, first, last);
    for (Int i = first; i < last; ++i) {
      write_inverse_order(pivots.vector(i), 1, k, order.vector(i), m);
      if (some_pivot_may_be_roundoff(LU.columns(i), s)) return false;
    }
    return true;
  });
}

// P, L and U, row after row; LU by columns and the inverse row order.
template <class T>
void lu(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), P = task.argument<T>(1), L = task.argument<T>(2), U = task.argument<T>(3);
  const auto LU = task.argument<T>(4);
  const auto order = task.argument<Int>(5);
  const Int m = A.m, n = A.n, k = std::min(m, n);
  RoundoffScratch<T> s(arena, k);
  auto* pivots = arena.take<Pivot>(k);
  task.each(arena, [&](Int i) {
    const auto F = LU.columns(i);
    const Int* of_matrix = order.vector(i);
    if (!factor_of_full_rank(A[i], F, pivots, order.vector(i), s)) return false;
    fill_with_zeros(P[i].t());
    copy(L[i], F.part(0, m, 0, k));
    copy(U[i], F.part(0, k, 0, n));
    for (Int r = 0; r < m; ++r) P[i](r, of_matrix[r]) = T(1);
    for (Int r = 0; r < k; ++r) {
      L[i](r, r) = T(1);
      for (Int c = r + 1; c < k; ++c) L[i](r, c) = T(0);
      for (Int c = 0; c < r; ++c) U[i](r, c) = T(0);
    }
    return true;
  });
}

// What the reverse of a matrix works in.
template <class T>
struct ReverseScratch {
  Columns<T> conjugated;
  T* kept;
  bool* is_done;
  ReverseScratch(Arena& arena, Int m, Int n)
      : conjugated(is_complex<T> ? arena.columns<T>(m, n) : Columns<T>{nullptr, 0, 0, 0}),
        kept(arena.take<T>(n)),
        is_done(arena.take<bool>(m)) {}

  // Overwrite the transposed cotangent over a power of two by the transposed gradient.
  bool reverse(Columns<T> LU, const Int* order, Columns<T> t, double power) {
    if (power == 0) return false;
    if constexpr (is_complex<T>) {
      copy(conjugated, LU);
      conjugate(conjugated);
      LU = conjugated;
    }
    reverse_elimination(LU, t);
    permute_columns(t, order, kept, is_done);
    multiply_by(t, power);
    return true;
  }
};

// Ā, row after row, from the cotangent of packed factors.
template <class T>
void lu_factor_backward(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0), G = task.argument<T>(2), result = task.argument<T>(3);
  const auto order = task.argument<Int>(1);
  ReverseScratch<T> s(arena, G.m, G.n);
  task.each(arena, [&](Int i) {
    const auto t = result.columns(i);
    return s.reverse(LU.columns(i), order.vector(i), t, copy_normalized(t, G[i].t()));
  });
}

// The same of the cotangents of L and U: P is constant.
template <class T>
void lu_backward(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0), of_L = task.argument<T>(2), of_U = task.argument<T>(3);
  const auto result = task.argument<T>(4);
  const auto order = task.argument<Int>(1);
  const Int m = result.m, n = result.n;
  ReverseScratch<T> s(arena, m, n);
  task.each(arena, [&](Int i) {
    const auto L = of_L[i], U = of_U[i], packed = result[i];
    for (Int r = 0; r < m; ++r) {
      for (Int c = 0; c < n; ++c) packed(r, c) = c < r ? L(r, c) : U(r, c);
    }
    const auto t = result.columns(i);
    return s.reverse(LU.columns(i), order.vector(i), t, normalize(t));
  });
}

template <class T>
void lu_factor_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto LU = task.argument<T>(0), G = task.argument<T>(2), result = task.argument<T>(3);
  const auto order = task.argument<Int>(1);
  const Int m = G.m, n = G.n;
  auto F = arena.columns<P>(m, n), t = arena.columns<P>(n, m);
  auto *row = arena.take<P>(std::max(m, n)), *column = arena.take<P>(std::max(m, n));
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(t, G.t(), first, last);
    if (!normalize_lanes(t, powers)) return false;
    gather(F, LU.t(), first, last);
    conjugate(F);
    reverse_small(F, t, m, n, row, column);
    multiply_lanes_by(t, powers);
    // Row i of the gradient is row order[i].
    for (Int i = first; i < last; ++i) {
      const Int* of_matrix = order.vector(i);
      for (Int r = 0; r < m; ++r) {
        for (Int c = 0; c < n; ++c) result[i](r, c) = lane(t(c, of_matrix[r]), int(i - first));
      }
    }
    return true;
  });
}

// Overwrite the cotangent of packed factors, row after row, by Ā; of factors that are given conjugated, by columns.
template <class T>
void reverse_lu(Task task, Arena& arena) {
  const auto LU_conj = task.argument<T>(0), bar = task.argument<T>(2);
  const auto order = task.argument<Int>(1);
  auto* kept = arena.take<T>(bar.n);
  auto* is_done = arena.take<bool>(bar.m);
  task.each(arena, [&](Int i) {
    const Columns<T> F{LU_conj.data + i * LU_conj.step, LU_conj.m, LU_conj.n, LU_conj.along};
    reverse_elimination(F, bar.columns(i));
    permute_columns(bar.columns(i), order.vector(i), kept, is_done);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    lu, BS_KERNEL(lu_factor), BS_KERNEL(lu_factor_backward), BS_KERNEL(lu_factor_across),
    BS_KERNEL(lu_factor_backward_across), BS_KERNEL(lu), BS_KERNEL(lu_backward), BS_KERNEL(reverse_lu))
