// Norms that are near one, and matrices that are brought there by powers of two. Gradients are linear in the
// cotangents, and solutions in the right-hand sides.
#pragma once

#include "task.hpp"

namespace bs {

struct Range {
  double least, most;
  bool holds(double x) const { return least < x && x < most; }
};

// Squared norms, and norms of B / A², between which nothing in an operation overflows or underflows: B G / A² takes
// most of the exponents, and leaves the rest to κ².
template <class T>
constexpr Range RANGE = is_double<T> ? Range{0x1p-340, 0x1p340} : Range{0x1p-42, 0x1p42};  // of cotangents
template <class T>
constexpr Range RANGE_OF_MATRIX = is_double<T> ? Range{0x1p-600, 0x1p600} : Range{0x1p-60, 0x1p80};
template <class T>
constexpr Range RANGE_OF_SIDES = is_double<T> ? Range{0x1p-1000, 0x1p1000} : Range{0x1p-120, 0x1p120};
template <class T>
constexpr Range RANGE_OF_QUOTIENT = is_double<T> ? Range{0x1p-770, 0x1p770} : Range{0x1p-81, 0x1p81};
constexpr int MOST_EXPONENT_DOUBLE = 900, MOST_EXPONENT_SINGLE = 100;

// Σ |x|² of contiguous numbers, in double precision.
template <class T>
BS_INLINE double sum_of_squares(const T* x, Int n) {
  double total = 0;
  BS_SUM(total)
  for (Int i = 0; i < n; ++i) total += square(x[i]);
  return total;
}

// The same, in pieces that threads share if there are many. The pieces, and so the bits of the sum, do not depend on
// the number of threads.
template <class T>
BS_COLD double shared_sum_of_squares(const T* x, Int n) {
  if (n < PASS_WORTH_THREADS) return sum_of_squares(x, n);
  double sums[SHARES_OF_PASS], total = 0;
  share(n, SHARES_OF_PASS, [&](Int i) {
    const Int first = i * n / SHARES_OF_PASS, last = (i + 1) * n / SHARES_OF_PASS;
    sums[i] = sum_of_squares(x + first, last - first);
  });
  for (const double each : sums) total += each;
  return total;
}

// The same of all entries of a matrix.
template <class M>
BS_INLINE double sum_of_squares(const M& matrix) {
  double total = 0;
  if constexpr (is_const<decltype(matrix.height())> && is_const<decltype(matrix.width())>) {
    each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { total += square(matrix(i, j)); });
  } else {
    const Int m = matrix.height(), n = matrix.width();
    if constexpr (std::is_same_v<M, Columns<Entry<M>>>) {
      if (matrix.ld == m) return shared_sum_of_squares(matrix.data, m * n);
    }
    for (Int j = 0; j < n; ++j) total += sum_of_squares(matrix.column(j), m);
  }
  return total;
}

// Σ |x|² down to row `last` of a column, of each matrix.
template <class M, class B>
BS_INLINE void add_squares(const M& F, Int column, B last, double* squares) {
  constexpr int width = width_of<Entry<M>>;
  for (int w = 0; w < width; ++w) squares[w] = 0;
  if constexpr (width == 1 && !is_const<B>) {
    squares[0] = sum_of_squares(F.column(column), last);
  } else {
    loop(last, [&](auto i) BS_LAMBDA {
      for (int w = 0; w < width; ++w) squares[w] += square(lane(F(i, column), w));
    });
  }
}

template <class M>
BS_COLD bool is_zero(M matrix) {
  bool found = true;
  each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { found &= matrix(i, j) == Entry<M>(0); });
  return found;
}

// The sum of squares that is given, or −1 where the norm is far from one; one of zero is near enough.
template <class M>
BS_INLINE double safe_squares(const M& matrix, double squares, Range range = RANGE<Entry<M>>) {
  if (range.holds(squares)) return squares;
  return squares == 0 && is_zero(matrix) ? 0 : -1;
}
template <class M>
BS_INLINE double safe_squares(const M& matrix) {
  return safe_squares(matrix, sum_of_squares(matrix));
}
template <class M>
BS_INLINE double safe_squares_of_matrix(const M& matrix) {
  return safe_squares(matrix, sum_of_squares(matrix), RANGE_OF_MATRIX<Entry<M>>);
}

// Whether right-hand sides are in range beside what the gradient divides them by, of such a norm: A², or L³ of L Lᴴ.
template <class M>
BS_INLINE bool are_safe_sides(const M& sides, double squares, double of_divisor) {
  using T = Entry<M>;
  return (RANGE_OF_SIDES<T>.holds(squares) && RANGE_OF_QUOTIENT<T>.holds(std::sqrt(squares) / of_divisor)) ||
         (squares == 0 && is_zero(sides));
}
template <class M>
BS_INLINE bool are_safe_sides(const M& sides, double of_divisor) {
  return are_safe_sides(sides, sum_of_squares(sides), of_divisor);
}

template <class M>
BS_COLD bool is_finite(M matrix) {
  Entry<M> nothing(0);  // NaN of what is not finite
  each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { nothing += matrix(i, j) * Entry<M>(0); });
  return nothing == Entry<M>(0);
}

template <class M>
BS_COLD void fill_with_nan(M matrix) {
  using R = Real<Entry<M>>;
  const R nan = std::numeric_limits<R>::quiet_NaN();
  each_entry(matrix, [&](auto i, auto j) {
    if constexpr (is_complex<Entry<M>>) matrix(i, j) = {nan, nan};
    else matrix(i, j) = nan;
  });
}

namespace detail {
template <class T>
BS_COLD void multiply_by(View<T> matrix, Real<T> factor) {
  each_entry(matrix, [&](auto i, auto j) { matrix(i, j) = times_real(matrix(i, j), factor); });
}
}  // namespace detail

template <class M>
BS_INLINE void multiply_by(M&& matrix, double factor) {
  using R = Real<Entry<M>>;
  if (factor == 1) return;
  if constexpr (is_const<decltype(matrix.width())>) {  // has no address, being in registers
    each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { matrix(i, j) = times_real(matrix(i, j), R(factor)); });
  } else {
    detail::multiply_by(matrix.view(), R(factor));
  }
}

// The power of two by which to divide a matrix whose norm is far from one; one if it is not finite, and zero if that
// power or its reciprocal is out of range.
template <class M>
BS_COLD double normalizing_power(M matrix) {
  double largest = 0;
  if (!is_finite(matrix)) return 1;
  each_entry(matrix, [&](auto i, auto j) BS_LAMBDA {
    largest = std::max({largest, std::abs(double(real(matrix(i, j)))), std::abs(double(imag(matrix(i, j))))});
  });
  int exponent = 0;
  std::frexp(largest, &exponent);
  const int most = is_double<Entry<M>> ? MOST_EXPONENT_DOUBLE : MOST_EXPONENT_SINGLE;
  return std::abs(exponent) <= most ? std::ldexp(1.0, exponent) : 0;
}

// Divide a matrix by a power of two where its norm is far from one. Returns that power: one where there is no need,
// and zero where there is none.
template <class M>
BS_INLINE double normalize(M&& matrix, double squares) {
  if (safe_squares(matrix, squares) >= 0) return 1;
  const double power = normalizing_power(matrix);
  if (power != 0) multiply_by(matrix, 1 / power);
  return power;
}
template <class M>
BS_INLINE double normalize(M&& matrix) {
  return normalize(matrix, sum_of_squares(matrix));
}

// `copy` and `normalize`; the target has its columns, or its rows, one after the other.
template <class A, class B>
BS_INLINE double copy_normalized(A&& target, B&& source) {
  copy(target, source);
  return normalize(target);
}

// Whether rows or columns are packed, and `normalize` would change nothing.
template <class T>
BS_COLD bool is_normalized(View<T> matrix) {
  if (matrix.along == 1) matrix = matrix.t();
  if (matrix.down != 1 && matrix.m != 1) return false;
  double squares = 0;
  for (Int j = 0; j < matrix.n; ++j) squares += sum_of_squares(matrix.data + j * matrix.along, matrix.m);
  return safe_squares(matrix, squares) >= 0;
}

}  // namespace bs
