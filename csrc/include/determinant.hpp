// Determinants from LU factors, and whether a matrix is too hard for that: `strategies.factors.determinant`.
#pragma once

#include "condition.hpp"
#include "lu_rank.hpp"

namespace bs {

// By how much an entry that elimination computed in a row may be larger than all of A in it, both beside the largest
// of its column. Up to there errors were no larger than those of random orthogonal matrices, which grow n/2 fold.
constexpr double row_growth_limit(Int n) { return 32.0 + double(n); }

enum class Hazard : int { None = 0, Factors = 1, NotFinite = 2 };

// A power of two whose square is in range.
template <class T>
constexpr int FAR_EXPONENT = is_double<T> ? 500 : 52;
template <class T>
constexpr double FAR = is_double<T> ? 0x1p500 : 0x1p52;

template <class T>
struct ScaledNumber {
  T mantissa;
  Int exponent;  // of a power of two; even

  T value() const { return times_power(mantissa, exponent); }
  // Of NaN zero, as PyTorch has it, but not of complex NaN.
  T sign() const { return is_complex<T> || mantissa == mantissa ? mantissa / T(magnitude(mantissa)) : T(0); }
  Real<T> logarithm() const {
    return Real<T>(std::log(double(magnitude(mantissa))) + double(exponent) * std::log(2.0));
  }
  // The power may be beyond the range although the product is not.
  static T times_power(T x, Int exponent) {
    if (exponent == 0) return x;
    const double half = std::exp2(double(exponent) / 2);
    if constexpr (is_complex<T>) {
      return {Real<T>(x.re * half * half), Real<T>(x.im * half * half)};
    } else {
      return T(x * half * half);
    }
  }
};

// det A of packed factors.
template <class M>
BS_COLD ScaledNumber<Entry<M>> determinant_of(const M& LU, const Pivot* pivots) {
  using T = Entry<M>;
  ScaledNumber<T> result{T(1), 0};
  for (Int i = 0; i < LU.width(); ++i) {
    result.mantissa *= pivots[i] == i + 1 ? LU(i, i) : -LU(i, i);
    const double size = modulus(result.mantissa);
    const bool is_large = size > FAR<T>;
    if (!is_large && !(0 < size && size < 1 / FAR<T>)) continue;
    result.mantissa = times_real(result.mantissa, Real<T>(is_large ? 1 / FAR<T> : FAR<T>));
    result.exponent += is_large ? FAR_EXPONENT<T> : -FAR_EXPONENT<T>;
  }
  return result;
}

// The largest entry of each column of what is in registers or packs; returns, of the rows with columns divided by
// these, the least of their largest entries.
template <class M, class T = Entry<M>>
BS_INLINE Real<T> write_largest(const M& F, Real<T>* largest) {
  const auto n = F.width();
  loop(n, [&](auto j) BS_LAMBDA {
    Real<T> most(0);
    loop(n, [&](auto i) BS_LAMBDA { most = larger(modulus(F(i, j)), most); });
    largest[j] = most;
  });
  Real<T> least(1);
  loop(n, [&](auto i) BS_LAMBDA {
    Real<T> of_row(0);
    loop(n, [&](auto j) BS_LAMBDA { of_row = larger(modulus(F(i, j)) / largest[j], of_row); });
    least = -larger(-of_row, -least);
  });
  return least;
}

// Whether factors of what is in registers or packs are as harmless as those of most matrices: what
// `is_easy_determinant` sees first, of all rows together.
template <class M, class T = Entry<M>>
BS_INLINE bool is_clearly_easy(const M& F, const Real<T>* largest, Real<T> least_row, double far) {
  using R = Real<T>;
  const auto n = F.width();
  const auto number = [](double x) BS_LAMBDA { return R(Scalar<R>(x)); };
  const R zero = number(0), one = number(1), least = number(1 / far), most = number(far);
  R of_U = zero, is_easy = one;
  loop(n, [&](auto j) BS_LAMBDA {
    loop(next(j), [&](auto i) BS_LAMBDA { of_U = larger(modulus(F(i, j)) / largest[j], of_U); });
  });
  const R growth = of_U + of_U;  // |L| is at most √2, as in `negligible_bound`
  is_easy = where_greater(growth, number(row_growth_limit(n)) * least_row, zero, one);
  loop(n, [&](auto j) BS_LAMBDA {
    const R pivot = modulus(F(j, j));
    is_easy *= where_greater(pivot, least, one, zero) * where_greater(most, larger(pivot, largest[j]), one, zero);
  });
  bool found = true;
  for (int w = 0; w < width_of<T>; ++w) found &= lane(is_easy, w) == 1;
  return found;
}

template <class T>
struct DeterminantScratch {
  Real<T>*largest, *rows, *terms;  // of each column of A; of each row of U beside it; of |L| and those
  Int* order;
  DeterminantScratch(Arena& arena, Int n)
      : largest(arena.take<Real<T>>(n)),
        rows(arena.take<Real<T>>(n)),
        terms(arena.take<Real<T>>(n)),
        order(arena.take<Int>(n)) {}
};

// Of each column the larger of what there is and the entry of a row; NaN of an entry that is not finite, else zero.
template <class T>
BS_INLINE Real<T> take_larger(const T* row, Int along, Int n, Real<T>* largest) {
  Real<T> nothing = 0;
  BS_SUM(nothing)
  for (Int j = 0; j < n; ++j) {
    const Real<T> size = modulus(row[j * along]), before = largest[j];
    largest[j] = before < size ? size : before;
    nothing += size * 0;
  }
  return nothing;
}

// The largest entry of each column; whether all entries are finite.
template <class T>
bool write_largest_of_columns(View<T> A, Real<T>* largest) {
  std::fill_n(largest, A.n, Real<T>(0));
  Real<T> nothing = 0;
  for (Int i = 0; i < A.m; ++i) {
    const T* row = A.data + i * A.down;
    nothing += A.along == 1 ? take_larger(row, 1, A.n, largest) : take_larger(row, A.along, A.n, largest);
  }
  return nothing == 0;
}

// Whether some entry that elimination computed in a row is that much larger than all of A in it.
template <class T>
bool row_has_grown(View<T> A, Int row, const Real<T>* largest, Real<T> terms) {
  const auto limit = Real<T>(row_growth_limit(A.n));
  for (Int j = 0; j < A.n; ++j) {
    if (terms * largest[j] <= limit * modulus(A(row, j))) return false;
  }
  return true;
}

// A bound of the number of negligible pivots, or −1 if factors may be useless: to be cheap.
template <class T>
Int negligible_bound(View<T> A, Columns<T> LU, const Real<T>* largest) {
  const Int n = LU.n;
  const Real<T> small = std::sqrt(epsilon<T>);
  const auto far = Real<T>(FAR<T>);
  Real<T> terms = 0;
  for (Int j = 0; j < n; ++j) {
    const T* column = LU.column(j);
    Real<T> of_column = 0;
    BS_MAXIMUM(of_column)
    for (Int i = 0; i <= j; ++i) of_column = std::max(of_column, modulus(column[i]));
    terms = std::max(terms, of_column / largest[j]);
  }
  terms *= 2;  // |L| is at most √2: complex pivots are compared by |re| + |im|
  Int negligible = 0;
  for (Int i = 0; i < n; ++i) {
    const Real<T> pivot = modulus(LU(i, i));
    negligible += pivot <= small * terms * largest[i];
    if (!(1 / far <= pivot && pivot <= far && terms < far) || largest[i] > far) return -1;
    if (row_has_grown(A, i, largest, terms)) return -1;
  }
  return negligible;
}

// The number of negligible pivots, and what is the matter with the matrix, a zero pivot left aside if wanted.
template <class T>
BS_COLD std::pair<Int, Hazard> hazard_of(View<T> A, Columns<T> LU, DeterminantScratch<T>& s, bool may_be_zero = false) {
  const Int n = LU.n;
  std::fill_n(s.rows, n, Real<T>(0));
  for (Int j = 0; j < n; ++j) {
    const Real<T> scale = s.largest[j] > 0 ? 1 / s.largest[j] : s.largest[j];
    for (Int i = 0; i <= j; ++i) s.rows[i] = std::max(s.rows[i], modulus(LU(i, j)) * scale);
  }
  std::copy_n(s.rows, n, s.terms);
  for (Int j = 0; j < n; ++j) {
    for (Int i = j + 1; i < n; ++i) s.terms[i] = std::max(s.terms[i], modulus(LU(i, j)) * s.rows[j]);
  }
  const Real<T> small = std::sqrt(epsilon<T>);
  const auto far = Real<T>(FAR<T>);
  bool is_useless = *std::max_element(s.largest, s.largest + n) > far;
  Int negligible = 0;
  for (Int i = 0; i < n; ++i) {
    const Real<T> pivot = modulus(LU(i, i));
    negligible += pivot <= small * s.terms[i] * s.largest[i];
    const bool is_far = pivot < 1 / far || pivot > far;
    is_useless |= (is_far && !(may_be_zero && pivot == 0)) || row_has_grown(A, i, s.largest, s.terms[s.order[i]]);
  }
  return {negligible, is_useless ? Hazard::Factors : Hazard::None};
}

// Whether there is no more to do than to multiply the pivots, of a matrix that is eliminated.
template <class T>
BS_COLD bool is_easy_determinant(View<T> A, Columns<T> LU, const Pivot* pivots, DeterminantScratch<T>& s) {
  if (!write_largest_of_columns(A, s.largest)) return false;
  if (negligible_bound(A, LU, s.largest) >= 0) return true;
  write_inverse_order(pivots, 1, LU.n, s.order, LU.n);
  return hazard_of(A, LU, s).second == Hazard::None;
}

// det A of a matrix whose rows have grown since their scales differ, by factors with pivots of rows that are scaled
// alike by powers of two; whether that is easy. The largest entries of columns are known.
template <class T>
BS_COLD bool determinant_by_scaled_rows(
    View<T> A, Columns<T> LU, Pivot* pivots, DeterminantScratch<T>& s, ScaledNumber<T>& result) {
  const Int n = LU.n;
  for (Int i = 0; i < n; ++i) {
    Real<T> most = 0;
    for (Int j = 0; j < n; ++j) most = std::max(most, modulus(A(i, j)) / s.largest[j]);
    if (most == 0) return false;
    s.rows[i] = Real<T>(std::exp2(std::ilogb(most)));
    for (Int j = 0; j < n; ++j) LU(i, j) = times_real(A(i, j), 1 / s.rows[i]);
  }
  if (!eliminate_columns(LU, pivots)) return false;
  write_inverse_order(pivots, 1, n, s.order, n);
  for (Int i = 0; i < n; ++i) s.terms[s.order[i]] = s.rows[i];
  each_entry(LU, [&](Int i, Int j) { LU(i, j) = times_real(LU(i, j), i > j ? s.terms[i] / s.terms[j] : s.terms[i]); });
  result = determinant_of(LU, pivots);
  return hazard_of(A, LU, s).second == Hazard::None;
}

// How many rows of U, from the first zero pivot on, are zero, or roundoff beside the terms that `hazard_of` has found.
template <class T>
Int zero_rows(Columns<T> LU, const DeterminantScratch<T>& s) {
  const Int n = LU.n;
  Int count = 0;
  for (Int i = zero_pivot(LU); i < n; ++i) {
    const Real<T> roundoff = Real<T>(n) * epsilon<T> * s.terms[i];
    bool is_zero = true;
    for (Int j = i; j < n; ++j) is_zero &= modulus(LU(i, j)) <= roundoff * s.largest[j];
    count += is_zero;
  }
  return count;
}

}  // namespace bs
