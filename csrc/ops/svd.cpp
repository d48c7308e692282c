// Pseudo-inverses and least squares of matrices of any rank, from a truncated SVD: A = U diag(s) Vᴴ, cut after the r
// singular values that count. Kept are U and Vᴴ by columns, with all min(m, n) singular vectors. Declined is a matrix
// whose norm is far from one, or whose longer side has rows or columns that differ much in length: an SVD is accurate
// beside the longest of them.
#include "../include/rows.hpp"
#include "../include/scale.hpp"
#include "../include/lapack.hpp"
#include "table.hpp"

namespace bs {
namespace {

constexpr double ALIKE = 64;  // how many times longer than another a row or column may be that is like it

template <class T>
struct Decomposition {
  Columns<T> F;
  T* work;
  Real<T>* real_work;
  std::int32_t* integer_work;
  double* row_squares;
  Int length;
  double atol, rtol;

  // What LAPACK asks for at least, and blocks of 64 columns.
  Decomposition(const Task& task, Arena& arena, Int m, Int n)
      : F(arena.columns<T>(m, n)), row_squares(arena.take<double>(m)), atol(task.atol()), rtol(task.rtol()) {
    const Int k = std::min(m, n);
    length = 5 * k * k + 16 * k + 64 * (m + n);
    work = arena.take<T>(length);
    real_work = arena.take<Real<T>>(5 * k * k + 5 * k + 2 * k * (m + n));
    integer_work = arena.take<std::int32_t>(8 * k);
  }

  // Write the SVD; how many singular values count, or zero if it cannot be told.
  Int rank_of(View<T> A, Columns<T> U, Real<T>* s, Columns<T> Vh) {
    copy(F, A);
    const Int m = F.m, n = F.n, k = std::min(m, n);
    if (!(safe_squares_of_matrix(F) > 0) || (m >= n && !has_alike_columns()) || (m <= n && !has_alike_rows())) return 0;
    if (!lapack::decompose(F, s, U, Vh, work, length, real_work, integer_work)) return 0;
    const double threshold = std::max(atol, rtol * double(s[0]));
    return std::count_if(s, s + k, [&](Real<T> value) { return double(value) > threshold; });
  }

 private:
  bool has_alike_columns() const {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (Int j = 0; j < F.n; ++j) {
      const double squares = sum_of_squares(F.column(j), F.m);
      least = std::min(least, squares), most = std::max(most, squares);
    }
    return most <= ALIKE * ALIKE * least;
  }
  bool has_alike_rows() const {
    std::fill_n(row_squares, F.m, 0.0);
    for (Int j = 0; j < F.n; ++j) {
      for (Int i = 0; i < F.m; ++i) row_squares[i] += square(F(i, j));
    }
    const auto [least, most] = std::minmax_element(row_squares, row_squares + F.m);
    return *most <= ALIKE * ALIKE * *least;
  }
};

template <class T>
void divide_rows(Columns<T> A, const Real<T>* divisors) {
  each_entry(A, [&](auto i, auto j) { A(i, j) = times_real(A(i, j), 1 / divisors[i]); });
}

// A⁺, row after row; U, V, s and the rank.
template <class T>
void pinv_svd(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(2), V = task.argument<T>(3);
  const auto s = task.argument<Real<T>>(4);
  const auto rank = task.argument<Int>(5);
  Decomposition<T> decomposition(task, arena, A.m, A.n);
  auto scaled = arena.columns<T>(A.m, std::min(A.m, A.n));
  task.each(arena, [&](Int i) {
    const Real<T>* values = s.vector(i);
    const Int r = rank.number(i) = decomposition.rank_of(A[i], U.columns(i), s.vector(i), V.columns(i));
    if (r == 0) return false;
    const auto left = scaled.columns(0, r), basis = U.columns(i);
    each_entry(left, [&](auto a, auto j) { left(a, j) = times_real(basis(a, j), 1 / values[j]); });
    lapack::multiply("NN", 1, 0, X.columns(i), left, V.columns(i).part(0, r, 0, A.n));
    conjugate(X.columns(i));
    return true;
  });
}

// X = A⁺B, row after row, the rank, s, U and V; of tall matrices the squared residuals, too, before the rank.
template <bool IS_TALL, class T>
void lstsq_svd(Task task, Arena& arena) {
  constexpr int next = IS_TALL;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto residuals = task.argument<Real<T>>(3), s = task.argument<Real<T>>(4 + next);
  const auto rank = task.argument<Int>(3 + next);
  const auto U = task.argument<T>(5 + next), V = task.argument<T>(6 + next);
  const Int m = A.m, n = A.n, k = B.n;
  Decomposition<T> decomposition(task, arena, m, n);
  auto Y = arena.columns<T>(m, k), coordinates = arena.columns<T>(std::min(m, n), k), solution = arena.columns<T>(n, k);
  task.each(arena, [&](Int i) {
    copy(Y, B[i]);
    const Int r = rank.number(i) = safe_squares(Y) < 0
                                       ? 0
                                       : decomposition.rank_of(A[i], U.columns(i), s.vector(i), V.columns(i));
    if (r == 0) return false;
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("CN", 1, 0, along, U.columns(i).columns(0, r), Y);
    divide_rows(along, s.vector(i));
    lapack::multiply("CN", 1, 0, solution, V.columns(i).part(0, r, 0, n), along);
    copy(X[i], solution);
    if constexpr (IS_TALL) {
      copy(decomposition.F, A[i]);
      lapack::multiply("NN", -1, 1, Y, decomposition.F, solution);
      for (Int j = 0; j < k; ++j) residuals.vector(i)[j] = Real<T>(sum_of_squares(Y.column(j), m));
    }
    return true;
  });
}

// The formula of `strategies.formulas.pinv`, row after row: with P = G U, Q = VᴴG, C = VᴴG U and s as a diagonal
// matrix, Āᴴ = V (s⁻² (Q − C Uᴴ) − s⁻¹ Cᴴ s⁻¹ Uᴴ) + (P − V C) s⁻² Uᴴ.
template <class T>
void pinv_svd_backward(Task task, Arena& arena) {
  const auto U = task.argument<T>(0), V = task.argument<T>(1), G = task.argument<T>(4), result = task.argument<T>(5);
  const auto s = task.argument<Real<T>>(2);
  const auto rank = task.argument<Int>(3);
  const Int n = G.m, m = G.n, k = std::min(m, n);
  auto H = arena.columns<T>(n, m), of_P = arena.columns<T>(n, k), of_Q = arena.columns<T>(k, m);
  auto of_C = arena.columns<T>(k, k), both = arena.columns<T>(k, k);
  task.each(arena, [&](Int i) {
    copy(H, G[i]);
    const double power = normalize(H);
    if (power == 0) return false;
    const Int r = rank.number(i);
    const Real<T>* values = s.vector(i);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto P = of_P.columns(0, r), Q = of_Q.part(0, r, 0, m), C = of_C.part(0, r, 0, r), D = both.part(0, r, 0, r);
    lapack::multiply("NN", 1, 0, P, H, left);
    lapack::multiply("NN", 1, 0, Q, right, H);
    lapack::multiply("NN", 1, 0, C, right, P);
    lapack::multiply("CN", -1, 1, P, right, C);
    each_entry(P, [&](auto a, auto j) { P(a, j) = times_real(times_real(P(a, j), -1 / values[j]), 1 / values[j]); });
    each_entry(D, [&](auto a, auto j) {
      const T scaled = times_real(C(a, j), 1 / values[a]), turned = times_real(conj(C(j, a)), 1 / values[j]);
      D(a, j) = times_real(scaled + turned, 1 / values[a]);
    });
    divide_rows(Q, values);
    divide_rows(Q, values);
    lapack::multiply("NC", -1, 1, Q, D, left);
    lapack::multiply("CN", 1, 0, t, right, Q);
    lapack::multiply("NC", -1, 1, t, P, left);
    conjugate(t);
    multiply_by(t, power);
    return true;
  });
}

// The formula of `strategies.formulas.lstsq`, row after row: B̄ = Z = A⁺ᴴG and Ā = −Z Xᴴ + (B − A X) wᴴ + Y Nᴴ with
// w = A⁺Z, N = G − A⁺A G and Y = A⁺ᴴX.
template <class T>
void lstsq_svd_backward(Task task, Arena& arena) {
  const auto B = task.argument<T>(0), X = task.argument<T>(1), U = task.argument<T>(4), V = task.argument<T>(5);
  const auto G = task.argument<T>(6), result = task.argument<T>(8), rhs_result = task.argument<T>(9);
  const auto of_residuals = task.argument<Real<T>>(7);
  const auto rank = task.argument<Int>(2);
  const auto s = task.argument<Real<T>>(3);
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
    const Real<T>* values = s.vector(i);
    const auto left = U.columns(i).columns(0, r), right = V.columns(i).part(0, r, 0, n), t = result.columns(i);
    const auto along = coordinates.part(0, r, 0, k);
    lapack::multiply("NN", 1, 0, along, right, N);
    lapack::multiply("CN", -1, 1, N, right, along);
    divide_rows(along, values);
    lapack::multiply("NN", 1, 0, Z, left, along);
    divide_rows(along, values);
    lapack::multiply("CN", 1, 0, w, right, along);
    copy(residual, B[i]);
    lapack::multiply("CN", 1, 0, along, left, residual);
    lapack::multiply("NN", -1, 1, residual, left, along);
    add_of_residuals(Z, residual, g);
    copy(rhs_result[i], Z);
    copy(turned, w.t());
    lapack::multiply("CT", 1, 0, t, turned, residual);
    lapack::multiply("CT", -1, 1, t, X.columns(i), Z);
    copy(w, X[i]);
    lapack::multiply("NN", 1, 0, along, right, w);
    divide_rows(along, values);
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

BS_DEFINE_FAMILY(
    svd, BS_KERNEL(pinv_svd), BS_KERNEL(pinv_svd_backward), BS_NAMED("lstsq_svd", lstsq_svd<true, T>),
    BS_NAMED("lstsq_svd_without_residuals", lstsq_svd<false, T>), BS_KERNEL(lstsq_svd_backward))
