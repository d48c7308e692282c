// Which pivots of packed LU factors may be roundoff, as `strategies.factors.lu_rank` has it.
//
// D is what roundoff is expected to be in a pivot, and a regular one is REGULAR times as large. The cheapest test
// answers: norms and bounds for most matrices, random vectors for most pivots of large ones, and D itself.
//
// Let R and C be diagonal matrices of the norms of the rows of L S and of the columns of S⁻¹U, where S has the largest
// entries of the rows of U, y a row of L⁻¹ and x a column of U⁻¹. With |L||U| bounded by those norms (Cauchy and
// Schwarz), D beside the pivot is ε ‖y R‖ ‖C x‖, whatever the scales of rows and columns.
#pragma once

#include "condition.hpp"

namespace bs {

constexpr double REGULAR = 3;            // how often a pivot is more than the roundoff that is expected in it
constexpr double LARGE_ROUNDOFF = 8;     // roundoff in a scalar product, over ε and the norms, stays below it
constexpr Int MOST_WITHOUT_RANDOM = 24;  // rows up to which random vectors save no time
constexpr Int MOST_ONE_BY_ONE = 4;       // pivots up to which they do not, either
constexpr Int MOST_WITH_PRODUCT = 256;   // rows up to which |L||U| takes less time than to ask again outside
constexpr Int RANDOM_VECTORS = 8;
constexpr double RANDOM_SAFETY = 20;  // an estimate from so many is all but never so many times too small

// What the tests work in, for matrices whose smaller side is k.
template <class T>
struct RoundoffScratch {
  using Wide = std::conditional_t<is_complex<T>, Complex<double>, double>;
  double *of_x, *of_y, *of_L;            // k each
  double *row_squares, *column_squares;  // k each
  Wide *y, *x;                           // RANDOM_VECTORS · k each
  double *random, *moduli;
  bool* candidates;
  Columns<Wide> factors;  // k × k
  Columns<double> product;

  RoundoffScratch(Arena& arena, Int k)
      : of_x(arena.take<double>(k)),
        of_y(arena.take<double>(k)),
        of_L(arena.take<double>(k)),
        row_squares(arena.take<double>(k)),
        column_squares(arena.take<double>(k)),
        y(arena.take<Wide>(RANDOM_VECTORS * k)),
        x(arena.take<Wide>(RANDOM_VECTORS * k)),
        random(arena.take<double>(RANDOM_VECTORS * k)),
        moduli(arena.take<double>(k)),
        candidates(arena.take<bool>(k)),
        factors(arena.columns<Wide>(k, k)),
        product(k <= MOST_WITH_PRODUCT ? arena.columns<double>(k, k) : Columns<double>{nullptr, 0, 0, 0}) {}
};

// What D over ε and a regular pivot stays below.
template <class T>
constexpr double REGULAR_LIMIT = 1 / (REGULAR * epsilon<T>);

// So many of the first pivots of k×k factors are regular by bounds that hold for all signs of the entries of L and
// U; the last by a factor of `safety`.
//
// Here S is the identity. As L⁻¹L = I, y_i = e_i − Σ l_is y_s, the sum over s < i, and so ‖y_i R‖ is at most
// R_i + Σ |l_is| ‖y_s R‖. In the same way ‖C x_i‖ ≤ (C_i + Σ |u_si| ‖C x_s‖) / |u_ii|.
template <class T>
BS_COLD Int clear_pivots(Columns<T> F, double safety, double* of_x, double* of_y, double* of_L) {
  const Int k = F.n;
  std::fill_n(of_y, k, 0.0), std::fill_n(of_L, k, 0.0);
  for (Int i = 0; i < k; ++i) {
    const T* column = F.column(i);
    const double pivot = magnitude(column[i]);
    double of_U = 0, terms = 0;
    for (Int s = 0; s <= i; ++s) of_U += square(column[s]);
    for (Int s = 0; s < i; ++s) terms += modulus(column[s]) * of_x[s];
    of_x[i] = (std::max(std::sqrt(of_U), pivot) + terms) / pivot;  // the squares may underflow
    of_y[i] += std::sqrt(1 + of_L[i]);
    const double limit = i < k - 1 ? REGULAR_LIMIT<T> : REGULAR_LIMIT<T> / safety;
    if (!(of_y[i] * of_x[i] < limit)) return i;
    for (Int s = i + 1; s < k; ++s) {
      of_L[s] += square(column[s]);
      of_y[s] += modulus(column[s]) * of_y[i];
    }
  }
  return k;
}

namespace detail {

// Column j of factors, that of U over its largest entry: the pivots beside D stay as they are, and squares in range.
template <class T, class Wide>
void read_column(Columns<T> F, Int j, Columns<Wide> target) {
  const Int rows_of_U = std::min(j + 1, F.m);
  double largest = 0;
  for (Int i = 0; i < rows_of_U; ++i) largest = std::max(largest, double(modulus(F(i, j))));
  if (largest == 0) largest = 1;
  for (Int i = 0; i < F.m; ++i) {
    const double divisor = i < rows_of_U ? largest : 1;
    if constexpr (is_complex<T>) target(i, j) = Wide(F(i, j).re / divisor, F(i, j).im / divisor);
    else target(i, j) = F(i, j) / divisor;
  }
}

template <class T>
void read_factors(Columns<T> F, RoundoffScratch<T>& s) {
  const Int k = F.n;
  double *largest = s.moduli, *reciprocals = s.of_L;  // of the squares of the largest entries of the rows of U
  std::fill_n(largest, k, 0x1p-1000);
  for (Int j = 0; j < k; ++j) {
    read_column(F, j, s.factors);
    const auto* column = s.factors.column(j);
    for (Int i = 0; i <= j; ++i) {
      const double size = square(column[i]), before = largest[i];
      largest[i] = before < size ? size : before;
    }
  }
  for (Int i = 0; i < k; ++i) s.row_squares[i] = largest[i], reciprocals[i] = 1 / largest[i];
  for (Int j = 0; j < k; ++j) {
    const auto* column = s.factors.column(j);
    double sum = 0;
    BS_SUM(sum)
    for (Int i = 0; i <= j; ++i) sum += square(column[i]) * reciprocals[i];
    s.column_squares[j] = sum;
    for (Int i = j + 1; i < k; ++i) s.row_squares[i] += square(column[i]) * largest[j];
  }
}

template <class Wide>
Wide reciprocal(Wide pivot) {
  return times_real(conj(pivot), 1 / square(pivot));
}

// Row i of L⁻¹ and column i of U⁻¹.
template <class Wide>
void write_rows_of_inverses(Columns<Wide> F, Int i, Wide* y, Wide* x) {
  std::fill_n(x, i, Wide(0));
  y[i] = x[i] = Wide(1);
  for (Int s = i; s >= 0; --s) {
    if (s < i) y[s] = -dot<false>(F.column(s) + s + 1, y + s + 1, i - s);
    x[s] = x[s] * reciprocal(F(s, s));
    subtract_multiple(x, F.column(s), x[s], s);
  }
}

// |L||U|.
template <class Wide>
void write_product_of_moduli(Columns<Wide> F, Columns<double> product) {
  const Int k = F.n;
  fill_with_zeros(product);
  for (Int s = 0; s < k; ++s) {
    for (Int j = s; j < k; ++j) {
      const double factor = magnitude(F(s, j));
      product(s, j) += factor;
      for (Int i = s + 1; i < k; ++i) product(i, j) += magnitude(F(i, s)) * factor;
    }
  }
}

// Leave as candidates the pivots that may not be regular, and those of NaN. The entries of L⁻¹ R z and U⁻ᵀ C z for
// random z have ‖y R‖ and ‖C x‖ as standard deviations: two substitutions for all pivots together.
template <class T>
void narrow_candidates(RoundoffScratch<T>& s, Int k) {
  using Wide = typename RoundoffScratch<T>::Wide;
  write_first_vector(s.random, RANDOM_VECTORS * k);
  const double scale = std::sqrt(double(RANDOM_VECTORS * k) / sum_of_squares(s.random, RANDOM_VECTORS * k));
  std::fill_n(s.y, RANDOM_VECTORS * k, Wide(0));
  for (Int i = 0; i < k; ++i) {
    const Wide* column = s.factors.column(i);
    const Wide of_pivot = reciprocal(column[i]);
    const double of_row = std::sqrt(s.row_squares[i]), of_U = std::sqrt(s.column_squares[i]);
    double squares_of_y = 0, squares_of_x = 0;
    for (Int p = 0; p < RANDOM_VECTORS; ++p) {
      Wide *y = s.y + p * k, *x = s.x + p * k;
      const double z = scale * s.random[p * k + i];
      y[i] += Wide(of_row * z);
      x[i] = (Wide(of_U * z) - dot<false>(column, x, i)) * of_pivot;
      squares_of_y += square(y[i]), squares_of_x += square(x[i]);
      subtract_multiple(y + i + 1, column + i + 1, y[i], k - i - 1);
    }
    // z may be orthogonal to y R or C x; neither is shorter than its last entry. NaN stays.
    const double least_of_y = RANDOM_VECTORS * s.row_squares[i];
    const double entry = of_U * magnitude(of_pivot), least_of_x = RANDOM_VECTORS * entry * entry;
    if (squares_of_y < least_of_y) squares_of_y = least_of_y;
    if (squares_of_x < least_of_x) squares_of_x = least_of_x;
    const double found = std::sqrt(squares_of_y) * std::sqrt(squares_of_x) * RANDOM_SAFETY;
    if (found < REGULAR_LIMIT<T> * RANDOM_VECTORS) s.candidates[i] = false;
  }
}

// An upper bound of D over ε and pivot i, ‖y R‖ ‖C x‖, of which y and x are written.
template <class T>
double roundoff_bound(RoundoffScratch<T>& s, Int i) {
  write_rows_of_inverses(s.factors, i, s.y, s.x);
  double of_y = 0, of_x = 0;
  for (Int a = 0; a <= i; ++a) {
    of_y += square(s.y[a]) * s.row_squares[a];
    of_x += square(s.x[a]) * s.column_squares[a];
  }
  return std::sqrt(of_y) * std::sqrt(of_x);
}

// D over ε and pivot i, after its bound: with T = |L||U|, its square is the sum of those of |y|_a T_ab |x|_b.
template <class T>
double roundoff(const RoundoffScratch<T>& s, Int i, Columns<double> product) {
  double total = 0;
  for (Int a = 0; a <= i; ++a) s.moduli[a] = magnitude(s.y[a]);
  for (Int b = 0; b <= i; ++b) {
    const double weight = magnitude(s.x[b]);
    const double* column = product.column(b);
    double of_column = 0;
    BS_SUM(of_column)
    for (Int a = 0; a <= i; ++a) {
      const double term = s.moduli[a] * column[a] * weight;
      of_column += term * term;
    }
    total += of_column;
  }
  return std::sqrt(total);
}

// Whether some candidate is not regular; safety is asked of the last pivot. In large matrices the bound counts for D.
template <class T>
bool some_irregular(RoundoffScratch<T>& s, Int k, double safety) {
  bool has_product = false;
  for (Int i = 0; i < k; ++i) {
    if (!s.candidates[i]) continue;
    const double limit = i < k - 1 ? REGULAR_LIMIT<T> : REGULAR_LIMIT<T> / safety;
    if (roundoff_bound(s, i) < limit) continue;
    if (k > MOST_WITH_PRODUCT) return true;
    if (!has_product) write_product_of_moduli(s.factors, s.product);
    has_product = true;
    if (!(roundoff(s, i, s.product) < limit)) return true;
  }
  return false;
}

}  // namespace detail

// Whether some pivot of k×k factors, after the first `known` ones, may be roundoff or is not finite; safety is asked of
// the last.
template <class T>
BS_COLD bool some_pivot_is_doubtful(Columns<T> F, Int known, double safety, RoundoffScratch<T>& s) {
  const Int k = F.n, first = std::max(known, clear_pivots(F, safety, s.of_x, s.of_y, s.of_L));
  if (first == k) return false;
  detail::read_factors(F, s);
  for (Int i = 0; i < k; ++i) s.candidates[i] = i >= first;
  if (k > MOST_WITHOUT_RANDOM && k - first > MOST_ONE_BY_ONE) detail::narrow_candidates(s, k);
  return detail::some_irregular(s, k, safety);
}

// Whether the last pivot of k×k factors may be.
template <class T>
bool last_pivot_may_be_roundoff(Columns<T> F, RoundoffScratch<T>& s) {
  const Int k = F.n;
  if (clear_pivots(F, 1.0, s.of_x, s.of_y, s.of_L) == k) return false;
  detail::read_factors(F, s);
  for (Int i = 0; i < k; ++i) s.candidates[i] = i == k - 1;
  return detail::some_irregular(s, k, 1.0);
}

// How many of the first pivots, of each matrix of a pack, are that much larger than the norm of their row of L by that
// of their column of U. The terms of a pivot, Σ |l_is| |u_si|, would not do: they are small where l_is is roundoff, as
// in the row that repeats another one. So an l_is of that size counts as a row of infinite norm.
template <class T>
BS_COLD Int large_pivots(Columns<T> F, double* of_rows) {
  constexpr int width = width_of<T>;
  const double of_sum = square(LARGE_ROUNDOFF * double(epsilon<T>));
  const Int k = F.n;
  const double small = std::min(std::pow(double(epsilon<T>), 0.25), 1 / std::sqrt(double(k * k * k)));
  std::fill_n(of_rows, k * width, 1.0);
  double of_column[width], roundoff[width];
  for (Int i = 0; i < k; ++i) {
    add_squares(F, i, i + 1, of_column);
    bool are_large = true;
    for (int w = 0; w < width; ++w) {
      const double pivot = square(lane(F(i, i), w));
      are_large &= pivot > small * small * of_rows[i * width + w] * of_column[w];
      are_large &= of_column[w] > 0x1p-900;  // squares may underflow
      roundoff[w] = of_sum * of_column[w] / pivot;
    }
    if (!are_large) return i;
    for (Int r = i + 1; r < k; ++r) {
      double* of_row = of_rows + r * width;
      for (int w = 0; w < width; ++w) {
        const double factor = square(lane(F(r, i), w));
        const bool may_be_roundoff = (factor < roundoff[w] * of_row[w]) & (factor > 0);
        of_row[w] += may_be_roundoff ? std::numeric_limits<double>::infinity() : factor;
      }
    }
  }
  return k;
}

// What is asked of the last of k pivots, for the mean of so many entries that are left then: it may be roundoff
// although the pivot is regular.
template <class T>
double safety_of_last(Columns<T> F, Int k) {
  return std::max(1.0, std::sqrt(double(F.m - k + 1) * double(F.n - k + 1)) / 2);
}

// Whether some pivot of m×n factors may be.
template <class T>
BS_COLD bool some_pivot_may_be_roundoff(Columns<T> F, RoundoffScratch<T>& s) {
  const Int k = std::min(F.m, F.n);
  const auto square_part = F.part(0, k, 0, k);
  const Int known = large_pivots(square_part, s.of_L);
  if (known == k) return false;
  return some_pivot_is_doubtful(square_part, known, safety_of_last(F, k), s);
}

}  // namespace bs
