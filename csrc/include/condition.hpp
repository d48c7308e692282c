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
// Divide each vector by its norm; the norms, or zero where there is none to divide by.
template <class T>
void divide_by_norm(T* y, Int n, double* norms) {
  using R = Real<T>;
  R largest(0), squares(0);
  for (Int i = 0; i < n; ++i) largest = larger(modulus(y[i]), largest);
  const R reciprocal = R(1) / largest;
  for (Int i = 0; i < n; ++i) y[i] = times_real(y[i], reciprocal);
  if constexpr (is_pack<T>) {
    for (Int i = 0; i < n; ++i) squares += squared_modulus(y[i]);
  } else {
    squares = R(sum_of_squares(y, n));
  }
  R of_norm;
  for (int w = 0; w < width_of<T>; ++w) {
    const double size = lane(largest, w), norm = std::sqrt(double(lane(squares, w)));
    norms[w] = size > 0 && norm > 0 && size * norm <= double(std::numeric_limits<Scalar<R>>::max()) ? size * norm : 0;
    set_lane(of_norm, w, Scalar<R>(1 / norm));
  }
  for (Int i = 0; i < n; ++i) y[i] = times_real(y[i], of_norm);
}
}  // namespace detail

// Estimates of σ_n from the columns of R, or of packed L and U; zero if a diagonal entry is. `first` is from
// `write_first_vector`, and y is scratch of the same length.
template <bool OF_LU, class T>
BS_COLD void write_smallest_singular_values(Columns<T> F, const double* first, T* y, double* estimates) {
  constexpr int width = width_of<T>;
  const Int n = F.n;
  double largest[width], least[width];
  for (int w = 0; w < width; ++w) {
    largest[w] = 0, least[w] = std::numeric_limits<double>::infinity();
    for (Int i = 0; i < n; ++i) {
      const double pivot = modulus(lane(F(i, i), w));
      largest[w] = std::max(largest[w], pivot), least[w] = std::min(least[w], pivot);
    }
  }
  for (Int i = 0; i < n; ++i) y[i] = T(Real<T>(Scalar<Real<T>>(first[i])));
  for (int step = 0; step < 2; ++step) {
    double of_y[width], of_z[width];
    for (Int i = 0; i < n; ++i) y[i] = (y[i] - dot<true>(F.column(i), y, i)) / conj(F(i, i));
    if constexpr (OF_LU) {
      for (Int i = n - 1; i >= 0; --i) y[i] -= dot<true>(F.column(i) + i + 1, y + i + 1, n - i - 1);
    }
    detail::divide_by_norm(y, n, of_y);
    if constexpr (OF_LU) {
      for (Int i = 0; i < n; ++i) subtract_multiple(y + i + 1, F.column(i) + i + 1, y[i], n - i - 1);
    }
    for (Int i = n - 1; i >= 0; --i) {
      y[i] /= F(i, i);
      subtract_multiple(y, F.column(i), y[i], i);
    }
    detail::divide_by_norm(y, n, of_z);
    bool is_enough = true;
    for (int w = 0; w < width; ++w) {
      estimates[w] = of_y[w] > 0 && of_z[w] > 0 ? 1 / of_z[w] : 0;
      // The first vector may have been orthogonal to the last singular vector; what came of it is not.
      is_enough &= estimates[w] == 0 || std::min(estimates[w], least[w]) > CLEARLY_REGULAR * largest[w];
    }
    if (is_enough) break;
  }
}

// Below which a singular value may be what rounding makes of zero (`strategies.factors.rank_guards`), or may count as
// zero by the tolerances of the task. These are doubled, since what is compared may be an estimate.
template <class T>
class Threshold {
  double atol, rtol;

 public:
  explicit Threshold(const Task& task) : atol(2 * task.atol()), rtol(2 * task.rtol()) {}
  // Its square, of an m×n matrix with such a sum of squares.
  double squared(Int m, double squares) const {
    const double level = std::max(2 * double(std::max<Int>(m, 8)) * epsilon<T>, rtol);
    return std::max(level * level * squares, atol * atol);
  }
};

// Whether matrices of m rows, of such sums of squares, are of full rank for certain, by R or packed L and U.
template <bool OF_LU, class T>
class RankTest {
  Threshold<Scalar<T>> threshold;
  double* first;
  T* y;

 public:
  RankTest(const Task& task, Arena& arena, Int n) : threshold(task), first(arena.take<double>(n)), y(arena.take<T>(n)) {
    if (arena.is_ok()) write_first_vector(first, n);
  }
  bool is_full(Columns<T> F, Int m, const double* squares) const {
    double smallest[width_of<T>];
    write_smallest_singular_values<OF_LU>(F, first, y, smallest);
    bool found = true;
    for (int w = 0; w < width_of<T>; ++w) { found &= smallest[w] * smallest[w] > threshold.squared(m, squares[w]); }
    return found;
  }
};

}  // namespace bs
