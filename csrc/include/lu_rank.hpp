// The rank that packed LU factors tell, and their canonical form, as `strategies.factors.lu_rank` derives them.
#pragma once

#include <optional>

#include "lu.hpp"

namespace bs {

constexpr double ROUNDOFF = 1.5;  // how often roundoff that is left is as large as expected, at most

// The rank, where from the first zero pivot on U is zero and the pivots before are regular beyond doubt.
template <class T>
BS_COLD Int rank_by_zeros(Columns<T> LU, RoundoffScratch<T>& s) {
  const Int rank = zero_pivot(LU);
  bool is_zero = rank < std::min(LU.m, LU.n);
  for (Int j = rank; j < LU.n; ++j) {
    for (Int i = rank; i <= std::min(j, LU.m - 1); ++i) is_zero &= LU(i, j) == T(0);
  }
  const bool is_certain = is_zero && !some_pivot_is_doubtful(LU.part(0, rank, 0, rank), 0, safety_of_last(LU, rank), s);
  return is_certain ? rank : UNDECIDED;
}

// The tests of the rank of m×n factors. L₂₂ U₂₂ is what is left after some steps, with a deviation D in each entry.
template <class T>
class RankOfFactors {
  using Wide = typename RoundoffScratch<T>::Wide;
  Int m, n, k;
  Columns<Wide> F, Y, X, L, U, left;
  Columns<double> terms, of_Y, of_X, partial, variance;

 public:
  RankOfFactors(Arena& arena, Int m, Int n)
      : m(m),
        n(n),
        k(std::min(m, n)),
        F(arena.columns<Wide>(m, n)),
        Y(arena.columns<Wide>(m, k)),
        X(arena.columns<Wide>(k, n)),
        L(arena.columns<Wide>(m, k)),
        U(arena.columns<Wide>(k, n)),
        left(arena.columns<Wide>(m, n)),
        terms(arena.columns<double>(m, n)),
        of_Y(arena.columns<double>(m, k)),
        of_X(arena.columns<double>(k, n)),
        partial(arena.columns<double>(m, n)),
        variance(arena.columns<double>(m, n)) {}

  Int find(Columns<T> LU, RoundoffScratch<T>& s) {
    if (!is_finite(LU)) return UNDECIDED;
    detail::read_factors(LU.part(0, k, 0, k), s);
    for (Int j = 0; j < n; ++j) detail::read_column(LU, j, F);
    split(0);
    each_entry(L, [&](Int i, Int j) { of_Y(i, j) = magnitude(L(i, j)); });
    each_entry(U, [&](Int i, Int j) { of_X(i, j) = magnitude(U(i, j)); });
    multiply_triangles(terms, of_Y, of_X);
    Int rank = 0;
    while (rank < k && is_regular(s, rank)) ++rank;
    each_entry(terms, [&](Int i, Int j) { terms(i, j) *= terms(i, j); });
    if (rank < k && !rest_is_roundoff(rank)) return UNDECIDED;
    return rank > 0 && !last_is_clear(LU, s, rank) && rest_is_roundoff(rank - 1) ? UNDECIDED : rank;
  }

 private:
  // L and U from a row and a column on.
  void split(Int q) {
    for (Int j = q; j < k; ++j) {
      for (Int i = q; i < m; ++i) L(i, j) = i > j ? F(i, j) : Wide(i == j);
    }
    for (Int j = q; j < n; ++j) {
      for (Int i = q; i < k; ++i) U(i, j) = i <= j ? F(i, j) : Wide(0);
    }
  }

  bool is_regular(RoundoffScratch<T>& s, Int i) const {
    if (s.factors(i, i) == Wide(0)) return false;
    return detail::roundoff_bound(s, i) < REGULAR_LIMIT<T> || detail::roundoff(s, i, terms) <= REGULAR_LIMIT<T>;
  }

  // Whether by the last of so many pivots alone the block that it begins is not.
  bool last_is_clear(Columns<T> LU, RoundoffScratch<T>& s, Int rank) const {
    return detail::roundoff_bound(s, rank - 1) < REGULAR_LIMIT<T> / safety_of_last(LU, rank);
  }

  // L U of lower and upper trapezoids, without most zeros.
  template <class W>
  void multiply_triangles(Columns<W> result, Columns<W> lower, Columns<W> upper) const {
    fill_with_zeros(result);
    each_block(lower.n, [&](Int first, Int last) {
      const auto left = lower.part(first, lower.m, first, last), right = upper.part(first, last, first, upper.n);
      lapack::multiply("NN", 1, 1, result.part(first, result.m, first, result.n), left, right);
    });
  }

  // Whether L₂₂ U₂₂ after q steps is.
  bool rest_is_roundoff(Int q) {
    const Int rows = m - q, columns = n - q;
    const auto done = F.part(0, q, 0, q);
    const auto below = Y.part(0, rows, 0, q), of_below = of_Y.part(0, rows, 0, q);
    const auto right = X.part(0, q, 0, columns), of_right = of_X.part(0, q, 0, columns);
    copy(below, F.part(q, m, 0, q));
    copy(right, F.part(0, q, q, n));
    lapack::solve_triangle("RLNU", done, below);
    lapack::solve_triangle("LUNN", done, right);
    each_entry(below, [&](Int i, Int j) { of_below(i, j) = square(below(i, j)); });
    each_entry(right, [&](Int i, Int j) { of_right(i, j) = square(right(i, j)); });
    const auto of_rows = partial.part(0, rows, 0, n), of_left = variance.part(0, rows, 0, columns);
    copy(of_rows, terms.part(q, m, 0, n));
    lapack::multiply("NN", 1, 1, of_rows, of_below, terms.part(0, q, 0, n));
    copy(of_left, of_rows.columns(q, n));
    lapack::multiply("NN", 1, 1, of_left, of_rows.columns(0, q), of_right);
    split(q);
    const auto rest = left.part(0, rows, 0, columns);
    multiply_triangles(rest, L.part(q, m, q, k), U.part(q, k, q, n));
    double total = 0;
    each_entry(rest, [&](Int i, Int j) {
      if (rest(i, j) != Wide(0)) total += square(rest(i, j)) / of_left(i, j);
    });
    const double most = ROUNDOFF * epsilon<T>;
    return total <= double(rows) * double(columns) * most * most;
  }
};

// The canonical form: the row swaps after as many steps are undone, and what they left is zero.
template <class T>
void truncate(Columns<T> LU, Pivot* pivots, Int rank) {
  const Int k = std::min(LU.m, LU.n);
  for (Int step = k - 1; step >= rank; --step) {
    for (Int j = 0; j < rank; ++j) std::swap(LU(step, j), LU(pivots[step] - 1, j));
    pivots[step] = Pivot(step + 1);
  }
  fill_with_zeros(LU.part(rank, LU.m, rank, LU.n));
}

// Factors of matrices of one size, and what that takes: scratch for deficient ones if there is one.
template <class T>
class Factorization {
  Arena& arena;
  RoundoffScratch<T> s;
  std::optional<RankOfFactors<T>> ranks;

 public:
  Factorization(Arena& arena, Int m, Int n) : arena(arena), s(arena, std::min(m, n)) {}

  bool may_be_deficient(Columns<T> LU) { return some_pivot_may_be_roundoff(LU, s); }

  // LU by columns, in canonical form, pivots and the inverse row order; whether the rank is certain. If there is a
  // place for it, the position of a zero pivot from one on, or zero; else a matrix that has one is declined.
  bool write(View<T> A, Columns<T> LU, Pivot* pivots, Int* order, Pivot* info) {
    copy(LU, A);
    if (safe_squares_of_matrix(LU) < 0) return false;
    if (info) *info = 0;
    bool is_regular = eliminate_columns(LU, pivots);
    if (!is_regular || may_be_deficient(LU)) {
      if (!is_by_lapack(LU)) copy(LU, A), is_regular = lapack::eliminate(LU, pivots);
      if (!is_regular && !info) return false;
      if (!is_regular) *info = Pivot(zero_pivot(LU) + 1);
      if (!truncate_by_rank(LU, pivots)) return false;
    }
    write_inverse_order(pivots, 1, std::min(LU.m, LU.n), order, LU.m);
    return true;
  }

 private:
  BS_COLD bool truncate_by_rank(Columns<T> LU, Pivot* pivots) {
    Int rank = rank_by_zeros(LU, s);
    if (rank == UNDECIDED) {
      if (!ranks) ranks.emplace(arena, LU.m, LU.n);
      if (!arena.is_ok()) return false;
      rank = ranks->find(LU, s);
    }
    if (rank == UNDECIDED) return false;
    if (rank < std::min(LU.m, LU.n)) truncate(LU, pivots, rank);
    return true;
  }
};

}  // namespace bs
