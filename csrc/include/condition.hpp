// Estimates of the smallest singular value from triangular factors.
//
// With y = A⁻ᴴx and z = A⁻¹y, ‖z‖ / ‖y‖ is at most ‖A⁻¹‖ for any x, and falls short of it only by as much as x is
// orthogonal to the last singular vector, times the ratio of the next singular values. One or two steps of this
// inverse iteration are enough.
#pragma once

#include "scale.hpp"

namespace bs {

// Beside the largest pivot, an estimate and a least pivot with which one step of inverse iteration is enough.
constexpr double CLEARLY_REGULAR = 1e-4;

// Entries of modulus from one to two, and of no regular signs.
inline void write_first_vector(double* vector, Int n) {
  for (Int i = 0; i < n; ++i) {
    const double wave = std::cos(1.0 + double(i * i));
    vector[i] = wave + std::copysign(1.0, wave);
  }
}

namespace detail {
// Divide a vector by its norm; returns that, or zero if it is none to divide by.
template <class T>
double divide_by_norm(T* y, Int n) {
  double largest = 0;
  for (Int i = 0; i < n; ++i) largest = std::max(largest, std::abs(double(real(y[i]))) + std::abs(double(imag(y[i]))));
  using limits = std::numeric_limits<double>;
  if (!(limits::min() < largest && largest <= limits::max())) return 0;
  for (Int i = 0; i < n; ++i) y[i] = T(y[i]) * T(Real<T>(1 / largest));
  const double norm = std::sqrt(sum_of_squares(y, n));
  if (!(norm > 0)) return 0;  // of NaN
  for (Int i = 0; i < n; ++i) y[i] = T(y[i]) * T(Real<T>(1 / norm));
  return largest * norm;
}
}  // namespace detail

// An estimate of σ_n from the columns of R, or of packed L and U; zero if a diagonal entry is. `first` is from
// `write_first_vector`, and y is scratch of the same length.
template <bool OF_LU, class T>
BS_COLD double smallest_singular_value(Columns<T> F, const double* first, T* y) {
  const Int n = F.n;
  double largest = 0, least = std::numeric_limits<double>::infinity(), estimate = 0;
  for (Int i = 0; i < n; ++i) {
    if (F(i, i) == T(0)) return 0;
    const double pivot = magnitude(F(i, i));
    largest = std::max(largest, pivot), least = std::min(least, pivot);
    y[i] = T(Real<T>(first[i]));
  }
  for (int step = 0; step < 2; ++step) {
    for (Int i = 0; i < n; ++i) y[i] = (y[i] - dot<true>(F.column(i), y, i)) / conj(F(i, i));
    if constexpr (OF_LU) {
      for (Int i = n - 1; i >= 0; --i) y[i] -= dot<true>(F.column(i) + i + 1, y + i + 1, n - i - 1);
    }
    if (!(detail::divide_by_norm(y, n) > 0)) return 0;
    if constexpr (OF_LU) {
      for (Int i = 0; i < n; ++i) subtract_multiple(y + i + 1, F.column(i) + i + 1, y[i], n - i - 1);
    }
    for (Int i = n - 1; i >= 0; --i) {
      y[i] /= F(i, i);
      subtract_multiple(y, F.column(i), y[i], i);
    }
    const double length = detail::divide_by_norm(y, n);
    if (!(length > 0)) return 0;
    estimate = 1 / length;
    // The first vector may have been orthogonal to the last singular vector; what came of it is not.
    if (std::min(estimate, least) > CLEARLY_REGULAR * largest) break;
  }
  return estimate;
}

// The square of the least singular value that is told from zero, of an m×n matrix with such a sum of squares: see
// `strategies.refusals`.
template <class T>
double squared_noise(Int m, double squares) {
  const double level = 2 * double(std::max<Int>(m, 8)) * epsilon<T>;
  return level * level * squares;
}

}  // namespace bs
