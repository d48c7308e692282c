// LU with partial pivoting, what is solved with it, and its reverse. Pivots, factors and their layout are LAPACK's.
#pragma once

#include "lapack.hpp"
#include "roundoff.hpp"
#include "triangular.hpp"

namespace bs {

// Rows and columns up to which to call LAPACK takes longer than to compute.
constexpr Int MOST_SMALL = 8;

// By how much a column of U may be longer than that of A. The backward error of A = L U is the growth times u
// (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002, theorem 9.3). Random orthogonal matrices
// reach √(2n); a growth of 700 was seen to cost two digits, one of 50 to cost one.
constexpr double growth_limit(Int n) { return 32.0 + double(n) / 8; }

// Columns of U up to here stay within the limit: they double, or grow 1 + √2 fold.
constexpr Int NEVER_GROW = 4;

// The square of a pivot over n Σ |a|² beyond which it is not asked whether it is roundoff.
template <class T>
constexpr double MOST_DOUBTFUL = 1024.0 * epsilon<T> * epsilon<T>;

// The pivots of one matrix, or of those in a pack.
template <class T>
using PivotOf = std::conditional_t<is_pack<T>, Pivot[width_of<T>], Pivot>;

// A = P L U in place; whether no pivot is zero. Nothing is to be read otherwise.
template <class M>
BS_INLINE bool eliminate(M& F, PivotOf<Entry<M>>* pivots) {
  using T = Entry<M>;
  const auto m = F.height(), n = F.width();
  bool is_regular = true;
  loop(smaller(m, n), [&](auto k) BS_LAMBDA {
    Real<T> largest = modulus(F(k, k));
    if constexpr (!is_pack<T>) {
      Int row = k;
      loop(next(k), m, [&](auto i) BS_LAMBDA {
        const auto size = modulus(F(i, k));
        if (size > largest) row = i, largest = size;
      });
      pivots[k] = Pivot(row + 1);
      is_regular &= largest > 0;
      if (!is_regular) return;
      if (row != k) loop(n, [&](auto j) BS_LAMBDA { std::swap(F(k, j), F(row, j)); });
    } else {
      Real<T> row{Scalar<Real<T>>(Int(k))};
      for (Int i = k + 1; i < m; ++i) {
        const Real<T> size = modulus(F(i, k));
        row = where_greater(size, largest, Real<T>(Scalar<Real<T>>(i)), row);
        largest = where_greater(size, largest, size, largest);
      }
      for (int w = 0; w < width_of<T>; ++w) {
        const Int other = Int(row[w]);
        pivots[k][w] = Pivot(other + 1);
        is_regular &= largest[w] > 0;
        for (Int j = 0; other != k && j < n; ++j) {
          const auto upper = lane(F(k, j), w);
          set_lane(F(k, j), w, lane(F(other, j), w));
          set_lane(F(other, j), w, upper);
        }
      }
    }
    const T pivot = F(k, k);
    loop(next(k), m, [&](auto i) BS_LAMBDA { F(i, k) /= pivot; });
    loop(next(k), n, [&](auto j) BS_LAMBDA {
      const T factor = F(k, j);
      loop(next(k), m, [&](auto i) BS_LAMBDA { F(i, j) -= F(i, k) * factor; });
    });
  });
  return is_regular;
}

// The first zero pivot; min(m, n) if there is none.
template <class M>
Int zero_pivot(const M& LU) {
  const Int pivots = std::min<Int>(LU.height(), LU.width());
  Int k = 0;
  while (k < pivots && LU(k, k) != Entry<M>(0)) ++k;
  return k;
}

template <class T>
BS_INLINE void exchange(T& a, T& b, int w) {
  const auto value = lane(a, w);
  set_lane(a, w, lane(b, w));
  set_lane(b, w, value);
}

// X ← PᵀX, the swaps from the first one on; or P X, from the last one. Some columns at a time, which stay in cache.
template <bool FORWARD, class M>
BS_INLINE void swap_rows(M& X, const PivotOf<Entry<M>>* pivots) {
  constexpr Int most = 16;
  const Int n = X.height(), width = X.width();
  for (Int left = 0; left < width; left += most) {
    const Int right = std::min(left + most, width);
    for (Int step = 0; step < n; ++step) {
      const Int k = FORWARD ? step : n - 1 - step;
      for (int w = 0; w < width_of<Entry<M>>; ++w) {
        Int other;
        if constexpr (is_pack<Entry<M>>) other = pivots[k][w] - 1;
        else other = pivots[k] - 1;
        for (Int j = left; other != k && j < right; ++j) exchange(X(k, j), X(other, j), w);
      }
    }
  }
}

// Whether `eliminate_columns` is LAPACK's elimination, which goes on after a zero pivot. In one thread that takes
// longer for wide matrices than for their first square, from which the rest follows by substitution.
template <class T>
bool is_by_lapack(Columns<T> F) {
  return std::max(F.m, F.n) > MOST_SMALL &&
         (F.n <= F.m || !lapack::is_for_one_thread<T>(lapack::work_of_lu(F), LU_WORTH_THREADS));
}

// `eliminate`, by LAPACK where that is faster.
template <class T>
BS_COLD bool eliminate_columns(Columns<T> F, PivotOf<T>* pivots) {
  if constexpr (!is_pack<T>) {
    if (is_by_lapack(F)) return lapack::eliminate(F, pivots);
    if (std::max(F.m, F.n) > MOST_SMALL) {
      const auto first = F.columns(0, F.m);
      auto rest = F.columns(F.m, F.n);
      if (!lapack::eliminate(first, pivots)) return false;
      swap_rows<true>(rest, pivots);
      lapack::solve_triangle("LLNU", first, rest);
      return true;
    }
  }
  return eliminate(F, pivots);
}

// Whether some pivot of one of the matrices may be roundoff: zero in another order of additions. A copy is taken: what
// has an address does not stay in registers.
template <class M>
BS_COLD bool some_lane_is_doubtful(M F) {
  using T = Scalar<Entry<M>>;
  const Int n = F.width();
  Arena arena;
  RoundoffScratch<T> s(arena, n);
  const auto factors = arena.columns<T>(n, n);
  if (!arena.is_ok()) return true;
  for (int w = 0; w < width_of<Entry<M>>; ++w) {
    for (Int j = 0; j < n; ++j) {
      for (Int i = 0; i < n; ++i) factors(i, j) = lane(F(i, j), w);
    }
    if (some_pivot_is_doubtful(factors, 0, 1.0, s)) return true;
  }
  return false;
}

// Eliminate in place; Σ |a|² of each matrix, and whether norms are near one, no pivot may be zero and no column of U is
// too long. Of the scratch there is a number for each column of each matrix.
template <class M>
BS_INLINE bool factor(M& F, PivotOf<Entry<M>>* pivots, double* before, double* squares) {
  using T = Entry<M>;
  constexpr int width = width_of<T>;
  const auto n = F.width();
  for (int w = 0; w < width; ++w) squares[w] = 0;
  loop(n, [&](auto j) BS_LAMBDA {
    add_squares(F, j, F.height(), before + j * width);
    for (int w = 0; w < width; ++w) squares[w] += before[j * width + w];
  });
  bool is_usual = true;
  for (int w = 0; w < width; ++w) { is_usual &= RANGE_OF_MATRIX<T>.holds(squares[w]); }
  if (!is_usual) return false;
  if constexpr (std::is_same_v<M, Columns<T>>) {
    if (!eliminate_columns(F, pivots)) return false;
  } else {
    if (!eliminate(F, pivots)) return false;
  }
  Real<T> smallest = modulus(F(0, 0));
  loop(n, [&](auto k) BS_LAMBDA {
    const auto pivot = modulus(F(k, k));
    smallest = where_greater(smallest, pivot, pivot, smallest);
  });
  bool is_clear = true;
  for (int w = 0; w < width; ++w) is_clear &= square(lane(smallest, w)) > MOST_DOUBTFUL<T> * n * squares[w];
  const double limit = growth_limit(n) * growth_limit(n);
  double after[width];
  loop(n, [&](auto j) BS_LAMBDA {
    if (j < NEVER_GROW) return;
    add_squares(F, j, next(j), after);
    for (int w = 0; w < width; ++w) is_usual &= after[w] <= limit * before[j * width + w];
  });
  return is_usual && (is_clear || !some_lane_is_doubtful(F));
}

// X ← A⁻¹X, from what `eliminate` has left.
template <class F, class M>
BS_INLINE void solve_small(const F& LU, const PivotOf<Entry<M>>* pivots, M& X) {
  swap_rows<true>(X, pivots);
  substitute<Lower | UnitDiagonal>(LU, X);
  substitute<Upper>(LU, X);
}
template <class T>
void solve_columns(Columns<T> LU, const Pivot* pivots, Columns<T> X) {
  if (LU.m <= MOST_SMALL) solve_small(LU, pivots, X);
  else lapack::solve_eliminated("N", LU, pivots, X);
}

// X ← A⁻ᴴX, likewise.
template <class F, class M>
BS_INLINE void solve_adjoint_small(const F& LU, const PivotOf<Entry<M>>* pivots, M& X) {
  substitute<Upper | Adjoint>(LU, X);
  substitute<Lower | UnitDiagonal | Adjoint>(LU, X);
  swap_rows<false>(X, pivots);
}

// body(first, last) of the columns of a triangle, some at a time, so that hardly a zero beside it is multiplied.
template <class F>
BS_INLINE void each_block(Int n, F&& body) {
  constexpr Int most = 48;
  for (Int first = 0; first < n; first += most) body(first, std::min(first + most, n));
}

// X ← L⁻¹X of the identity, of which only the lower triangle is computed.
template <class T>
void invert_lower(Columns<T> LU, Columns<T> X) {
  const Int n = LU.n;
  each_block(n, [&](Int first, Int last) {
    lapack::solve_triangle("LLNU", LU.part(first, n, first, n), X.part(first, n, first, last));
  });
}

// X ← X Pᵀ.
template <class M>
BS_INLINE void swap_columns(M& X, const PivotOf<Entry<M>>* pivots) {
  const auto n = X.width();
  for (Int k = n - 1; k >= 0; --k) {
    for (int w = 0; w < width_of<Entry<M>>; ++w) {
      Int other;
      if constexpr (is_pack<Entry<M>>) other = pivots[k][w] - 1;
      else other = pivots[k] - 1;
      for (Int i = 0; other != k && i < X.height(); ++i) exchange(X(i, k), X(i, other), w);
    }
  }
}

// X = A⁻¹ from what `eliminate` has left: U⁻¹ L⁻¹ Pᵀ. Of L⁻¹ only the lower triangle is computed.
template <class F, class M>
BS_INLINE void invert_small(const F& LU, const PivotOf<Entry<M>>* pivots, M& X) {
  using T = Entry<M>;
  const auto n = LU.width();
  fill_with_identity(X);
  loop(n, [&](auto j) BS_LAMBDA {
    loop(j, n, [&](auto k) BS_LAMBDA {
      const T factor = X(k, j);
      loop(next(k), n, [&](auto i) BS_LAMBDA { X(i, j) -= LU(i, k) * factor; });
    });
  });
  loop_down(n, [&](auto k) BS_LAMBDA {
    const T reciprocal = T(1) / LU(k, k);
    loop(n, [&](auto j) BS_LAMBDA {
      const T factor = X(k, j) = X(k, j) * reciprocal;
      loop(k, [&](auto i) BS_LAMBDA { X(i, j) -= LU(i, k) * factor; });
    });
  });
  swap_columns(X, pivots);
}

// The same, by LAPACK where that is faster.
template <class T>
BS_COLD void invert_columns(Columns<T> LU, const PivotOf<T>* pivots, Columns<T> X) {
  if constexpr (!is_pack<T>) {
    if (LU.n > MOST_SMALL) {
      fill_with_identity(X);
      invert_lower(LU, X);
      lapack::solve_triangle("LUNN", LU, X);
      swap_columns(X, pivots);
      return;
    }
  }
  invert_small(LU, pivots, X);
}

// Where the swaps move each row: the inverse of the order that they make.
inline void write_inverse_order(const Pivot* pivots, Int step, Int count, Int* order, Int rows) {
  for (Int i = 0; i < rows; ++i) order[i] = i;
  for (Int i = count - 1; i >= 0; --i) std::swap(order[i], order[pivots[i * step] - 1]);
}

// NaN in place of factors, which have no pivots, or of a result.
template <class T>
BS_COLD void write_undefined(Columns<T> LU, Pivot* pivots) {
  fill_with_nan(LU);
  for (Int k = 0; k < LU.n; ++k) pivots[k] = Pivot(k + 1);
}

// The same of a matrix that `factor` has left as F and declined: where an entry is not finite; and, if there is a place
// for its position from one on, where LAPACK finds a zero pivot. False of another matrix.
template <class T, class M>
BS_COLD bool report(View<T> A, M F, double squares, Columns<T> result, Pivot* pivots, Pivot* info) {
  if (is_finite(A)) {
    if (!info) return false;
    const bool is_eliminated = RANGE_OF_MATRIX<T>.holds(squares) && is_by_lapack(result);
    if (!is_eliminated) copy(result, A), lapack::eliminate(result, pivots);
    const Int k = is_eliminated ? zero_pivot(F) : zero_pivot(result);
    if (k == result.n) return false;
    *info = Pivot(k + 1);
  }
  write_undefined(result, pivots);
  return true;
}

}  // namespace bs
