// Pseudo-inverses and least squares of matrices of any rank r, from A = U C Vᴴ with orthonormal columns in U and V and
// a nonsingular r×r matrix C: that of a truncated SVD, or of a complete orthogonal decomposition. Kept are U and Vᴴ by
// columns, min(m, n) of each, of which the first r are meant. Declined is a matrix whose norm is far from one.
#include <numeric>

#include "../include/lapack.hpp"
#include "../include/qr.hpp"
#include "../include/rows.hpp"
#include "../include/scale.hpp"
#include "table.hpp"

namespace bs {
namespace {

// The singular values that count, as C. `how` is "LN" for C⁻¹B, "LC" for C⁻ᴴB, "RN" and "RC" for the same from the
// right.
template <class T>
struct Diagonal {
  using Matrix = T;
  using Number = Real<T>;
  const Real<T>* values;
  Diagonal(Batch<Real<T>> kept, Int i, Int, bool) : values(kept.vector(i)) {}
  void solve(const char* how, Columns<T> B) const {
    const bool is_left = how[0] == 'L';
    each_entry(B, [&](auto i, auto j) { B(i, j) = times_real(B(i, j), 1 / values[is_left ? i : j]); });
  }
};

// An upper triangle, as C of wide matrices and as Cᴴ of others.
template <class T>
struct Triangle {
  using Matrix = T;
  using Number = T;
  Columns<T> R;
  bool is_wide;
  Triangle(Batch<T> kept, Int i, Int r, bool is_wide) : R(kept.columns(i).part(0, r, 0, r)), is_wide(is_wide) {}
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
  using Core = Diagonal<T>;
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

  // Write the SVD; how many singular values count, or zero if it cannot be told.
  Int decompose(View<T> A, Columns<T> U, Batch<Real<T>> kept, Int i, Columns<T> Vh) {
    copy(F, A);
    const Int m = F.m, n = F.n, k = std::min(m, n);
    Real<T>* s = kept.vector(i);
    norm = std::sqrt(safe_squares_of_matrix(F));
    if (!(norm > 0) || (m >= n && !has_alike_columns(F)) || (m <= n && !has_alike_rows())) return 0;
    if (!lapack::decompose(F, s, U, Vh, work, length, real_work, integer_work)) return 0;
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
  using Core = Triangle<T>;
  static constexpr Int BLOCK = 64;  // columns of LAPACK's reflectors

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
        work(arena.take<T>(BLOCK * F.n)),
        squares(arena.take<double>(F.n)),
        order(arena.take<Int>(F.n)),
        length(BLOCK * F.n),
        atol(task.atol()),
        rtol(task.rtol()) {}

  // Write U, C and Vᴴ, beyond the rank zeros, and of C the identity; the rank, or zero if it is not certain.
  Int decompose(View<T> A, Columns<T> U, Batch<T> kept, Int i, Columns<T> Vh) {
    copy(F, is_wide ? A.t() : A);
    if (is_wide) conjugate(F);
    norm = std::sqrt(safe_squares_of_matrix(F));
    if (!(norm > 0)) return 0;
    lapack::reflect(F, scales, work, length);
    copy_upper(R, F);
    const double noise = double(std::max<Int>(F.m, 8)) * epsilon<T> * norm;
    std::iota(order, order + F.n, 0);
    // Without pivots T would not be graded as columns are, and lose the digits of small ones.
    Int r = has_alike_columns(R) ? count_rows(noise) : 0;
    const bool has_pivots = !write_core(kept, i, r);
    if (has_pivots) {
      r = reflect_pivoted(noise);
      if (!write_core(kept, i, r)) return 0;
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
    fill_with_zeros(U);
    fill_with_zeros(Vh);
    copy(U.columns(0, r), is_wide ? V : span);
    const auto rows = Vh.part(0, r, 0, Vh.n);
    copy(rows, (is_wide ? span : V).t());
    conjugate(rows);
    return r;
  }

 private:
  // What may be dropped: noise, and no more than the tolerances, by a lower bound of the first singular value.
  double most_dropped(double noise, double first) const { return std::min(noise, std::max(atol, rtol * first)); }

  // As many rows of R as are not to be dropped.
  Int count_rows(double noise) const {
    const Int n = R.n;
    std::fill_n(squares, n, 0.0);
    for (Int c = 0; c < n; ++c) {
      for (Int k = 0; k <= c; ++k) squares[k] += square(R(k, c));
    }
    const double most = most_dropped(noise, norm / std::sqrt(double(n)));
    Int r = n;
    for (double dropped = 0; r > 0 && (dropped += squares[r - 1]) <= most * most;) --r;
    return r;
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
    return std::sqrt(sum_of_squares(T_inverse)) * std::max(atol, rtol * norm) < 1;
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

// A⁺ of tall A, row after row; U, Vᴴ, C and the rank.
template <template <class> class By, class T>
void pinv(Task task, Arena& arena) {
  using Core = typename By<T>::Core;
  const auto A = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(2), V = task.argument<T>(3);
  const auto C = task.argument<typename Core::Number>(4);
  const auto rank = task.argument<Int>(5);
  By<T> by(task, arena, A.m, A.n);
  auto scaled = arena.columns<T>(A.m, std::min(A.m, A.n));
  task.each(arena, [&](Int i) {
    const Int r = rank.number(i) = by.decompose(A[i], U.columns(i), C, i, V.columns(i));
    if (r == 0) return false;
    const auto left = scaled.columns(0, r);
    copy(left, U.columns(i).columns(0, r));
    Core(C, i, r, false).solve("RC", left);
    lapack::multiply("NN", 1, 0, X.columns(i), left, V.columns(i).part(0, r, 0, A.n));
    conjugate(X.columns(i));
    return true;
  });
}

// X = A⁺B, row after row, the rank, C, U and Vᴴ; of tall matrices the squared residuals, too, before the rank.
template <template <class> class By, bool IS_TALL, class T>
void lstsq(Task task, Arena& arena) {
  using Core = typename By<T>::Core;
  constexpr int next = IS_TALL;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto residuals = task.argument<Real<T>>(3);
  const auto C = task.argument<typename Core::Number>(4 + next);
  const auto rank = task.argument<Int>(3 + next);
  const auto U = task.argument<T>(5 + next), V = task.argument<T>(6 + next);
  const Int m = A.m, n = A.n, k = B.n;
  By<T> by(task, arena, m, n);
  auto Y = arena.columns<T>(m, k), coordinates = arena.columns<T>(std::min(m, n), k), solution = arena.columns<T>(n, k);
  task.each(arena, [&](Int i) {
    copy(Y, B[i]);
    const Int r = rank.number(i) = by.decompose(A[i], U.columns(i), C, i, V.columns(i));
    if (r == 0 || !are_safe_sides(Y, by.norm * by.norm)) return false;
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("CN", 1, 0, along, U.columns(i).columns(0, r), Y);
    Core(C, i, r, m < n).solve("LN", along);
    lapack::multiply("CN", 1, 0, solution, V.columns(i).part(0, r, 0, n), along);
    copy(X[i], solution);
    if constexpr (IS_TALL) {
      copy(by.F, A[i]);
      lapack::multiply("NN", -1, 1, Y, by.F, solution);
      for (Int j = 0; j < k; ++j) residuals.vector(i)[j] = Real<T>(sum_of_squares(Y.column(j), m));
    }
    return true;
  });
}

// The formula of `strategies.formulas.pinv`, row after row: with P = G U, Q = VᴴG, H = VᴴG U and E = C⁻ᴴH,
// Āᴴ = V C⁻¹ (C⁻ᴴQ − (E + Eᴴ) Uᴴ) + (P − V H) C⁻ᴴC⁻¹ Uᴴ.
template <class Core>
void pinv_backward(Task task, Arena& arena) {
  using T = typename Core::Matrix;
  const auto U = task.argument<T>(0), V = task.argument<T>(1), G = task.argument<T>(4), result = task.argument<T>(5);
  const auto C = task.argument<typename Core::Number>(2);
  const auto rank = task.argument<Int>(3);
  const Int n = G.m, m = G.n, k = std::min(m, n);
  auto W = arena.columns<T>(n, m), of_P = arena.columns<T>(n, k), of_Q = arena.columns<T>(k, m);
  auto of_H = arena.columns<T>(k, k), both = arena.columns<T>(k, k);
  task.each(arena, [&](Int i) {
    copy(W, G[i]);
    const double power = normalize(W);
    if (power == 0) return false;
    const Int r = rank.number(i);
    const Core core(C, i, r, false);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto P = of_P.columns(0, r), Q = of_Q.part(0, r, 0, m), H = of_H.part(0, r, 0, r), E = both.part(0, r, 0, r);
    lapack::multiply("NN", 1, 0, P, W, left);
    lapack::multiply("NN", 1, 0, Q, right, W);
    lapack::multiply("NN", 1, 0, H, right, P);
    // What is out of a range that is everything is zero, and not roundoff.
    if (r == n) fill_with_zeros(P);
    else lapack::multiply("CN", -1, 1, P, right, H);
    core.solve("RC", P);
    core.solve("RN", P);
    core.solve("LC", Q);
    core.solve("LC", H);
    each_entry(E, [&](auto a, auto j) { E(a, j) = (r == m ? T(0) : H(a, j)) + conj(H(j, a)); });
    lapack::multiply("NC", -1, r < m, Q, E, left);
    core.solve("LN", Q);
    lapack::multiply("CN", 1, 0, t, right, Q);
    lapack::multiply("NC", 1, 1, t, P, left);
    conjugate(t);
    multiply_by(t, power);
    return true;
  });
}

// The formula of `strategies.formulas.lstsq`, row after row: B̄ = Z = A⁺ᴴG and Ā = −Z Xᴴ + (B − A X) wᴴ + Y Nᴴ with
// w = A⁺Z, N = G − A⁺A G and Y = A⁺ᴴX.
template <class Core>
void lstsq_backward(Task task, Arena& arena) {
  using T = typename Core::Matrix;
  const auto B = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(4), V = task.argument<T>(5);
  const auto G = task.argument<T>(6), result = task.argument<T>(8), rhs_result = task.argument<T>(9);
  const auto of_residuals = task.argument<Real<T>>(7);
  const auto rank = task.argument<Int>(2);
  const auto C = task.argument<typename Core::Number>(3);
  const Int n = X.m, m = B.m, k = B.n;
  auto N = arena.columns<T>(n, k), w = arena.columns<T>(n, k), turned = arena.columns<T>(k, n);
  auto Z = arena.columns<T>(m, k), residual = arena.columns<T>(m, k), Y = arena.columns<T>(m, k);
  auto coordinates = arena.columns<T>(std::min(m, n), k);
  task.each(arena, [&](Int i) {
    const auto g = of_residuals.if_given(i);
    copy(N, G[i]);
    const double power = normalize(N);
    if (power == 0 || (g.data && power != 1)) return false;
    const Int r = rank.number(i);
    const Core core(C, i, r, m < n);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("NN", 1, 0, along, right, N);
    if (r == n) fill_with_zeros(N);
    else lapack::multiply("CN", -1, 1, N, right, along);
    core.solve("LC", along);
    lapack::multiply("NN", 1, 0, Z, left, along);
    core.solve("LN", along);
    lapack::multiply("CN", 1, 0, w, right, along);
    copy(residual, B[i]);
    lapack::multiply("CN", 1, 0, along, left, residual);
    if (r == m) fill_with_zeros(residual);
    else lapack::multiply("NN", -1, 1, residual, left, along);
    add_of_residuals(Z, residual, g);
    copy(rhs_result[i], Z);
    copy(turned, w.t());
    lapack::multiply("CT", 1, 0, t, turned, residual);
    lapack::multiply("CT", -1, 1, t, X.columns(i), Z);
    copy(w, X[i]);
    lapack::multiply("NN", 1, 0, along, right, w);
    core.solve("LC", along);
    lapack::multiply("NN", 1, 0, Y, left, along);
    copy(turned, N.t());
    lapack::multiply("CT", 1, 1, t, turned, Y);
    multiply_by(rhs_result[i], power);
    multiply_by(t, power);
    return true;
  });
}

}  // namespace
}  // namespace bs

#define BS_BY(suffix, By)                                                                                  \
  BS_NAMED("pinv_" suffix, pinv<By, T>), BS_NAMED("pinv_" suffix "_backward", pinv_backward<By<T>::Core>), \
      BS_NAMED("lstsq_" suffix, lstsq<By, true, T>),                                                       \
      BS_NAMED("lstsq_" suffix "_without_residuals", lstsq<By, false, T>),                                 \
      BS_NAMED("lstsq_" suffix "_backward", lstsq_backward<By<T>::Core>)

BS_DEFINE_FAMILY(any_rank, BS_BY("svd", Svd), BS_BY("cod", Cod))
