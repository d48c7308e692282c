// LU factors, of deficient rank in canonical form, and their reverse. Declined is a matrix whose rank is not certain.
#include "../include/lu_rank.hpp"
#include "../include/lu_reverse.hpp"
#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

// LU by columns, pivots, where it reports the position of a zero pivot, and the inverse row order.
template <bool REPORTS, class T>
struct Factors {
  Batch<T> A, LU;
  Batch<Pivot> pivots;
  Info<REPORTS> info;
  Batch<Int> order;
  Factorization<T> by;
  Factors(Task task, Arena& arena)
      : A(task.argument<T>(0)),
        LU(task.argument<T>(1)),
        pivots(task.argument<Pivot>(2)),
        info(task, 3),
        order(task.argument<Int>(3 + REPORTS)),
        by(arena, A.m, A.n) {}
  bool write(Int i) { return by.write(A[i], LU.columns(i), pivots.vector(i), order.vector(i), info.of(i)); }
};

template <bool REPORTS, class T>
void lu_factor(Task task, Arena& arena) {
  Factors<REPORTS, T> of(task, arena);
  task.each(arena, [&](Int i) { return of.write(i); });
}

template <bool REPORTS, class T>
void lu_factor_across(Task task, Arena& arena) {
  using P = Packed<T>;
  Factors<REPORTS, T> of(task, arena);
  const Int m = of.A.m, n = of.A.n, k = std::min(m, n);
  auto F = arena.columns<P>(m, n);
  auto* of_pack = arena.take<PivotOf<P>>(k);
  auto* of_rows = arena.take<double>(k * width_of<P>);
  const auto together = [&](Int first, Int last) {
    double squares[width_of<P>];
    gather(F, of.A, first, last);
    if (!are_in_safe_range(F, squares, RANGE_OF_MATRIX<P>) || !eliminate_columns(F, of_pack)) return false;
    scatter(F, of.LU.t(), first, last);
    scatter_pivots<P>(of_pack, of.pivots, first, last);
    const bool are_large = large_pivots(F.part(0, k, 0, k), of_rows) == k;
    for (Int i = first; i < last; ++i) {
      write_inverse_order(of.pivots.vector(i), 1, k, of.order.vector(i), m);
      if (!are_large && of.by.may_be_deficient(of.LU.columns(i))) return false;
    }
    of.info.clear(first, last);
    return true;
  };
  each_pack<T>(task, arena, together, [&](Int i) { return of.write(i); });
}

// P, L and U, row after row; LU by columns and the inverse row order.
template <class T>
void lu(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), P = task.argument<T>(1), L = task.argument<T>(2), U = task.argument<T>(3);
  const auto LU = task.argument<T>(4);
  const auto order = task.argument<Int>(5);
  const Int m = A.m, n = A.n, k = std::min(m, n);
  Factorization<T> by(arena, m, n);
  auto* pivots = arena.take<Pivot>(k);
  task.each(arena, [&](Int i) {
    const auto F = LU.columns(i);
    const Int* of_matrix = order.vector(i);
    Pivot info;
    if (!by.write(A[i], F, pivots, order.vector(i), &info)) return false;
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
    const Int rank = zero_pivot(LU);
    if (rank < std::min(LU.m, LU.n)) fill_with_zeros(t.part(rank, t.m, rank, t.n));
    if constexpr (is_complex<T>) {
      copy(conjugated, LU);
      conjugate(conjugated);
      LU = conjugated;
    }
    if (rank > 0) reverse_elimination(LU, t, rank);
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
  ReverseScratch<T> s(arena, m, n);
  const auto together = [&](Int first, Int last) {
    double powers[width_of<P>];
    for (Int i = first; i < last; ++i) {
      if (zero_pivot(LU[i]) < std::min(m, n)) return false;
    }
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
  };
  each_pack<T>(task, arena, together, [&](Int i) {
    if (!LU.has_columns() || !result.has_columns()) return false;
    const auto of_matrix = result.columns(i);
    return s.reverse(LU.columns(i), order.vector(i), of_matrix, copy_normalized(of_matrix, G[i].t()));
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
    reverse_elimination(F, bar.columns(i), std::min(F.m, F.n));
    permute_columns(bar.columns(i), order.vector(i), kept, is_done);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    lu, BS_NAMED("lu_factor", lu_factor<false, T>), BS_NAMED("lu_factor_ex", lu_factor<true, T>),
    BS_NAMED("lu_factor_across", lu_factor_across<false, T>),
    BS_NAMED("lu_factor_ex_across", lu_factor_across<true, T>), BS_KERNEL(lu_factor_backward),
    BS_KERNEL(lu_factor_backward_across), BS_KERNEL(lu), BS_KERNEL(lu_backward), BS_KERNEL(reverse_lu))
