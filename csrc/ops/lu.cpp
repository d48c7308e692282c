// LU factors of full rank, their reverse, and tests of rank from them.
#include "../include/determinant.hpp"
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

// Entries of R⁻¹ up to which products with it lose no digits that the result has.
constexpr double MOST_GROWTH = 1024;

// V = L⁻¹ and W = R⁻ᴴ of packed factors L diag(s) Rᴴ; whether no entry of W is large.
template <class T>
bool invert_triangles(Columns<T> LU, Columns<T> V, Columns<T> W) {
  const Int n = LU.n;
  fill_with_identity(V);
  fill_with_zeros(W);
  for (Int i = 0; i < n; ++i) W(i, i) = LU(i, i);
  if (n <= MOST_SMALL) {
    substitute<Lower | UnitDiagonal>(LU, V);
    substitute<Upper>(LU, W);
  } else {
    invert_lower(LU, V);
    each_block(n, [&](Int first, Int last) {
      lapack::solve_triangle("LUNN", LU.part(0, last, 0, last), W.part(0, last, first, last));
    });
  }
  bool is_small = true;
  each_entry(W, [&](Int i, Int j) { is_small &= modulus(W(i, j)) <= MOST_GROWTH; });
  return is_small;
}

// The derivative of A⁻ᴴ or, `OF_ADJUGATE`, of adj(A)ᴴ along C, by packed factors and, of the latter, det A; whether it
// is right; and tr(A⁻¹C) or tr(adj(A) C). `strategies.factors.inverse_derivatives` derives them: V = L⁻¹, W = R⁻ᴴ, and
// P = V C W.
template <bool OF_ADJUGATE, class T>
void derivative_by_lu(Task task, Arena& arena) {
  const auto factors = task.argument<T>(0), C = task.argument<T>(2), dets = task.argument<T>(3);
  const auto result = task.argument<T>(3 + OF_ADJUGATE);
  const auto pivots = task.argument<Pivot>(1);
  const auto trace = task.argument<T>(4 + OF_ADJUGATE);
  const auto is_right = task.argument<bool>(5 + OF_ADJUGATE);
  const Int n = C.n;
  const auto V = arena.columns<T>(n, n), W = arena.columns<T>(n, n), other = arena.columns<T>(n, n);
  auto P = arena.columns<T>(n, n);
  auto *reciprocals = arena.take<T>(n), *diagonal = arena.take<T>(n);
  task.each(arena, [&](Int matrix) {
    const auto LU = factors.columns(matrix);
    const T det = OF_ADJUGATE ? dets.number(matrix) : T(1);
    const bool is_small = invert_triangles(LU, V, W);
    for (Int i = 0; i < n; ++i) reciprocals[i] = T(1) / LU(i, i);
    copy(P, C[matrix]);
    swap_rows<true>(P, pivots.vector(matrix));
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("NN", 1, 0, other.part(first, last, 0, n), V.part(first, last, 0, last), P.part(0, last, 0, n));
    });
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("NN", 1, 0, P.columns(first, last), other.columns(0, last), W.part(0, last, first, last));
    });
    T of_C(0);
    for (Int j = 0; j < n; ++j) {
      T sum(0);
      of_C += det * reciprocals[j] * P(j, j);
      for (Int i = 0; i < n; ++i) {
        if (OF_ADJUGATE && i == j) continue;
        const T quotient = det * reciprocals[i] * reciprocals[j];
        if (OF_ADJUGATE) sum += P(i, i) * quotient;
        P(i, j) *= -quotient;
      }
      diagonal[j] = sum;
    }
    for (Int i = 0; OF_ADJUGATE && i < n; ++i) P(i, i) = diagonal[i];
    // The transpose of W P V.
    each_block(n, [&](Int first, Int last) {
      lapack::multiply("TT", 1, 0, other.columns(first, last), P.part(first, n, 0, n), W.part(first, last, first, n));
    });
    each_block(n, [&](Int first, Int last) {
      lapack::multiply(
          "TN", 1, 0, P.part(first, last, 0, n), V.part(first, n, first, last), other.part(first, n, 0, n));
    });
    swap_rows<false>(P, pivots.vector(matrix));
    conjugate(P);
    copy(result[matrix], P);
    const bool is_near = 1 / FAR<T> < modulus(det) && modulus(det) < FAR<T>, has_trace = of_C == of_C;
    trace.number(matrix) = of_C;
    is_right.number(matrix) = is_small && is_near && has_trace && is_finite(P);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    lu, BS_KERNEL(lu_factor), BS_KERNEL(lu_factor_backward), BS_KERNEL(lu_factor_across),
    BS_KERNEL(lu_factor_backward_across), BS_KERNEL(lu), BS_KERNEL(lu_backward), BS_KERNEL(reverse_lu),
    BS_NAMED("smallest_of_triangle", smallest<false, T>), BS_NAMED("smallest_of_product", smallest<true, T>),
    BS_KERNEL(has_grown), BS_KERNEL(inverse_order), BS_KERNEL(may_be_deficient), BS_KERNEL(last_may_be_roundoff),
    BS_NAMED("derivative_of_inverse", derivative_by_lu<false, T>),
    BS_NAMED("derivative_of_adjugate", derivative_by_lu<true, T>))
