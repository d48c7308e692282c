// Decompositions of any rank r, A = U C Vᴴ with orthonormal columns in U and V and a nonsingular r×r matrix C: a
// truncated SVD, and a complete orthogonal decomposition. Declined is a matrix whose norm is far from one, if it is not
// zero.
#pragma once

#include <numeric>

#include "lapack.hpp"
#include "reflectors.hpp"
#include "scale.hpp"
#include "task.hpp"

namespace bs {

// The singular values that count, as C. `how` is "LN" for C⁻¹B, "LC" for C⁻ᴴB, "RN" and "RC" for the same from the
// right.
template <class T>
struct DiagonalCore {
  using Matrix = T;
  using Number = Real<T>;
  const Real<T>* values;
  DiagonalCore(Batch<Real<T>> kept, Int i, Int, bool) : values(kept.vector(i)) {}
  void solve(const char* how, Columns<T> B) const {
    const bool is_left = how[0] == 'L';
    each_entry(B, [&](auto i, auto j) { B(i, j) = times_real(B(i, j), 1 / values[is_left ? i : j]); });
  }
};

// An upper triangle, as C of wide matrices and as Cᴴ of others.
template <class T>
struct TriangularCore {
  using Matrix = T;
  using Number = T;
  Columns<T> R;
  bool is_wide;
  TriangularCore(Batch<T> kept, Int i, Int r, bool is_wide) : R(kept.columns(i).part(0, r, 0, r)), is_wide(is_wide) {}
  void solve(const char* how, Columns<T> B) const {
    const char op = (how[1] == 'N') == is_wide ? 'N' : 'C', letters[] = {how[0], 'U', op, 'N', 0};
    lapack::solve_triangle(letters, R, B);
  }
};

constexpr double ALIKE = 64;  // how many times longer than another a row or column may be that is like it

template <class T>
bool has_alike_columns(Columns<T> F) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (Int j = 0; j < F.n; ++j) {
    const double squares = sum_of_squares(F.column(j), F.m);
    least = std::min(least, squares), most = std::max(most, squares);
  }
  return most <= ALIKE * ALIKE * least;
}

// An SVD, cut after the singular values that count. It is accurate beside the longest row and column: declined is a
// matrix whose longer side has rows or columns that differ much in length.
template <class T>
struct Svd {
  using Core = DiagonalCore<T>;
  Columns<T> F;
  T* work;
  Real<T>* real_work;
  std::int32_t* integer_work;
  double* row_squares;
  Int length;
  double atol, rtol, norm = 0;

  // What LAPACK asks for at least, and blocks of 64 columns.
  Svd(const Task& task, Arena& arena, Int m, Int n)
      : F(arena.columns<T>(m, n)), row_squares(arena.take<double>(m)), atol(task.atol()), rtol(task.rtol()) {
    const Int k = std::min(m, n);
    length = 5 * k * k + 16 * k + 64 * (m + n);
    work = arena.take<T>(length);
    real_work = arena.take<Real<T>>(5 * k * k + 5 * k + 2 * k * (m + n));
    integer_work = arena.take<std::int32_t>(8 * k);
  }

  // Write the SVD; how many singular values count.
  Int decompose(View<T> A, Columns<T> U, Batch<Real<T>> kept, Int i, Columns<T> Vh) {
    copy(F, A);
    const Int m = F.m, n = F.n, k = std::min(m, n);
    Real<T>* s = kept.vector(i);
    norm = std::sqrt(safe_squares_of_matrix(F));
    if (!(norm >= 0) || (m >= n && !has_alike_columns(F)) || (m <= n && !has_alike_rows())) return UNDECIDED;
    if (!lapack::decompose(F, s, U, Vh, work, length, real_work, integer_work)) return UNDECIDED;
    const double threshold = std::max(atol, rtol * double(s[0]));
    return std::count_if(s, s + k, [&](Real<T> value) { return double(value) > threshold; });
  }

 private:
  bool has_alike_rows() const {
    std::fill_n(row_squares, F.m, 0.0);
    for (Int j = 0; j < F.n; ++j) {
      for (Int i = 0; i < F.m; ++i) row_squares[i] += square(F(i, j));
    }
    const auto [least, most] = std::minmax_element(row_squares, row_squares + F.m);
    return *most <= ALIKE * ALIKE * *least;
  }
};

// A complete orthogonal decomposition (Golub & Van Loan, "Matrix Computations", 4th ed., section 5.4.7) of tall
// F = A or Aᴴ: F = Q R, with column pivoting R Π = Q₂ S, of which the rows of S beyond the rank are dropped, and
// (S Πᵀ)ᴴ = V T, so that F = Q Q₂ Tᴴ Vᴴ. Where the first columns of F are independent, R is S already. Declined is a
// matrix whose rank is not certain: where more is dropped than rounding leaves, or ‖T⁻¹‖ does not prove that all
// singular values that are kept count.
template <class T>
struct Cod {
  using Core = TriangularCore<T>;
  bool is_wide;
  Columns<T> F, R, left, inner, right, inverse;
  T *scales, *pivoted_scales, *scales_of_right, *work;
  double* squares;  // of what is left of the columns of R
  Int *order, length;
  double atol, rtol, norm = 0;

  Cod(const Task& task, Arena& arena, Int m, Int n)
      : is_wide(m < n),
        F(arena.columns<T>(std::max(m, n), std::min(m, n))),
        R(arena.columns<T>(F.n, F.n)),
        left(arena.columns<T>(F.m, F.n)),
        inner(arena.columns<T>(F.n, F.n)),
        right(arena.columns<T>(F.n, F.n)),
        inverse(arena.columns<T>(F.n, F.n)),
        scales(arena.take<T>(F.n)),
        pivoted_scales(arena.take<T>(F.n)),
        scales_of_right(arena.take<T>(F.n)),
        work(arena.take<T>(WORK_PER_COLUMN * F.n)),
        squares(arena.take<double>(F.n)),
        order(arena.take<Int>(F.n)),
        length(WORK_PER_COLUMN * F.n),
        atol(task.atol()),
        rtol(task.rtol()) {}

  // Write U, C and Vᴴ, beyond the rank zeros, and of C the identity; the rank.
  Int decompose(View<T> A, Columns<T> U, Batch<T> kept, Int i, Columns<T> Vh) {
    copy(F, is_wide ? A.t() : A);
    if (is_wide) conjugate(F);
    norm = std::sqrt(safe_squares_of_matrix(F));
    if (!(norm >= 0)) return UNDECIDED;
    fill_with_zeros(U);
    fill_with_zeros(Vh);
    if (norm == 0) return fill_with_identity(kept.columns(i)), 0;
    lapack::reflect(F, scales, work, length);
    copy_upper(R, F);
    const double noise = double(std::max<Int>(F.m, 8)) * epsilon<T> * norm;
    std::iota(order, order + F.n, 0);
    // Without pivots T would not be graded as columns are, and lose the digits of small ones.
    Int r = has_alike_columns(R) ? count_rows(noise) : 0;
    const bool has_pivots = !write_core(kept, i, r);
    if (has_pivots) {
      r = reflect_pivoted(noise);
      if (!write_core(kept, i, r)) return UNDECIDED;
    }
    const auto V = right.columns(0, r), span = (has_pivots ? left : F).columns(0, r);
    lapack::form_basis(V, scales_of_right, work, length);
    if (has_pivots) {
      const auto basis = R.columns(0, r);
      lapack::form_basis(basis, pivoted_scales, work, length);
      fill_with_zeros(span);
      copy(span.part(0, F.n, 0, r), basis);
      lapack::apply_basis("N", F, scales, span, work, length);
    } else {
      lapack::form_basis(span, scales, work, length);
    }
    copy(U.columns(0, r), is_wide ? V : span);
    const auto rows = Vh.part(0, r, 0, Vh.n);
    copy(rows, (is_wide ? span : V).t());
    conjugate(rows);
    return r;
  }

 private:
  // What may be dropped: noise, and no more than the tolerances, by a lower bound of the first singular value.
  double most_dropped(double noise, double first) const { return std::min(noise, tolerance(first)); }
  // Up to what singular values count as zero, by the first, or by a bound of it.
  double tolerance(double first) const { return std::max(atol, rtol * first); }

  // As many rows of R as are not to be dropped; none if the shortest shows that a singular value of them should be.
  Int count_rows(double noise) const {
    const Int n = R.n;
    std::fill_n(squares, n, 0.0);
    for (Int c = 0; c < n; ++c) {
      for (Int k = 0; k <= c; ++k) squares[k] += square(R(k, c));
    }
    Int r = n;
    for (double dropped = 0; r > 1; --r) {
      dropped += squares[r - 1];
      const double most = most_dropped(noise, norm / std::sqrt(double(r - 1)));
      if (dropped > most * most) break;
    }
    const double least = tolerance(norm);
    return *std::min_element(squares, squares + r) < least * least ? 0 : r;
  }

  // Write C and what V is made of, from so many rows of R; whether no singular value that is kept should be dropped.
  bool write_core(Batch<T> kept, Int i, Int r) const {
    if (r == 0) return false;
    const auto V = right.columns(0, r), T_inverse = inverse.part(0, r, 0, r);
    const auto rows = inner.part(0, r, 0, F.n);  // of R, its columns in their first order
    fill_with_zeros(rows);
    for (Int c = 0; c < F.n; ++c) std::copy_n(R.column(c), std::min(c + 1, r), rows.column(order[c]));
    copy(V, rows.t());
    conjugate(V);
    lapack::reflect(V, scales_of_right, work, length);
    const Core core(kept, i, r, is_wide);
    fill_with_identity(kept.columns(i));
    if (!copy_upper(core.R, V)) return false;
    fill_with_identity(T_inverse);
    core.solve("LN", T_inverse);
    return std::sqrt(sum_of_squares(T_inverse)) * tolerance(norm) < 1;
  }

  // Reflect R and order its columns until what is left is to be dropped; after how many steps. Norms are computed and
  // not updated, which would lose what cancels.
  Int reflect_pivoted(double noise) {
    const Int n = R.n;
    double first = 0;
    for (Int c = 0; c < n; ++c) squares[c] = sum_of_squares(R.column(c), n);
    for (Int c = 0; c < n; ++c) first = std::max(first, squares[c]);
    const double most = most_dropped(noise, std::sqrt(first));
    for (Int k = 0; k < n; ++k) {
      if (std::accumulate(squares + k, squares + n, 0.0) <= most * most) return k;
      const Int pivot = std::max_element(squares + k, squares + n) - squares;
      if (pivot != k) {
        std::swap_ranges(R.column(k), R.column(k) + n, R.column(pivot));
        std::swap(order[k], order[pivot]), std::swap(squares[k], squares[pivot]);
      }
      pivoted_scales[k] = make_reflector(R, k);
      for (Int c = k + 1; c < n; ++c) {
        apply_reflector(R, k, R, c, conj(pivoted_scales[k]));
        squares[c] = sum_of_squares(R.column(c) + k + 1, n - k - 1);
      }
    }
    return n;
  }
};

}  // namespace bs
