// Systems with a triangular matrix. Of A X = B: B̄ = A⁻ᴴG, and Ā is the triangle of −B̄ Xᴴ, without
// the diagonal where that is one and not read.
#include "../include/task.hpp"
#include "../include/triangular.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Whether BLAS is faster than substitution of n rows with k right-hand sides by columns, or by products with rows.
template <bool BY_PRODUCTS, class T>
bool is_for_blas(Int n, Int k) {
  const double work = double(n) * double(n) * double(k);
  return work >= (BY_PRODUCTS && !is_complex<T> ? 2e3 : k > FEW_RIGHT_HAND_SIDES ? 1e4 : 1e6);
}

// `substitute` of columns, by BLAS where that is faster.
template <Triangle KIND, class T>
void substitute_columns(Columns<T> A, Columns<T> X) {
  constexpr int op = KIND & 12;
  constexpr bool by_products = op == Transpose || op == Adjoint;
  // BLAS takes no columns that overlap, as those of an expanded matrix do.
  if (!is_for_blas<by_products, T>(X.m, X.n) || A.ld < A.m) return substitute<KIND>(A, X);
  constexpr bool conjugates_alone = op == Conjugate;
  constexpr char uplo = KIND & Upper ? 'U' : 'L', diagonal = KIND & UnitDiagonal ? 'U' : 'N';
  constexpr char how[] = {'L', uplo, "NCTN"[op / Adjoint], diagonal};
  if (conjugates_alone) conjugate(X);
  lapack::solve_triangle(how, A, X);
  if (conjugates_alone) conjugate(X);
}

// X ← A⁻¹X or A⁻ᴴX of a triangle with any strides: by columns, or by rows as the transpose of the other triangle.
template <Triangle KIND, class T>
void substitute_anyhow(View<T> A, Columns<T> copied, Columns<T> X) {
  constexpr Triangle other = Triangle((KIND & (Upper | UnitDiagonal)) ^ Upper);
  constexpr bool is_adjoint = (KIND & Conjugate) == Adjoint;
  if (A.along == 1) {
    constexpr Triangle by_rows = is_adjoint ? other | Conjugate : other | Transpose;
    substitute_columns<by_rows>(Columns<T>{A.data, A.n, A.m, A.down}, X);
    return;
  }
  Columns<T> F{A.data, A.m, A.n, A.along};
  if (A.down != 1) copy(copied, A), F = copied;
  substitute_columns<KIND>(F, X);
}

template <class T>
Columns<T> scratch_for(Arena& arena, Batch<T> A) {
  return A.along == 1 || A.down == 1 ? Columns<T>{nullptr, 0, 0, 0} : arena.columns<T>(A.m, A.n);
}

template <Triangle KIND, class T>
void solve_triangular(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto copied = scratch_for(arena, A);
  const bool is_single = X.n == 1;  // and lies as a column, too
  const auto scratch = arena.columns<T>(is_single ? 0 : X.m, X.n);
  task.each(arena, [&](Int i) {
    const auto Y = is_single ? Columns<T>{X.vector(i), X.m, 1, X.m} : scratch;
    copy(Y, B[i]);
    substitute_anyhow<KIND>(A[i], copied, Y);
    if (!is_single) copy(X[i], Y);
    return true;
  });
}

// The triangle of −Y Xᴴ, row after row, among zeros.
template <Triangle KIND, class T>
void write_gradient(T* result, View<T> X, Columns<T> Y) {
  constexpr bool is_upper = KIND & Upper, is_unit = KIND & UnitDiagonal;
  const Int n = X.m, k = X.n;
  const auto first = [&](Int r) { return is_upper ? r + is_unit : 0; };
  const auto last = [&](Int r) { return is_upper ? n : r + 1 - is_unit; };
  if (k > FEW_RIGHT_HAND_SIDES && is_for_blas<false, T>(n, k) && X.along == 1 && X.down >= k) {
    // Its transpose by columns: (Xᵀ)ᴴYᵀ, where Xᵀ is what lies by columns.
    lapack::multiply("CT", -1, false, Columns<T>{result, n, n, n}, Columns<T>{X.data, k, n, X.down}, Y);
    for (Int r = 0; r < n; ++r) {
      std::fill(result + r * n, result + r * n + first(r), T(0));
      std::fill(result + r * n + last(r), result + r * n + n, T(0));
    }
    return;
  }
  for (Int r = 0; r < n; ++r) {
    T* row = result + r * n;
    std::fill_n(row, n, T(0));
    for (Int q = 0; q < k; ++q) {
      const T y = -Y(r, q);
      for (Int c = first(r); c < last(r); ++c) row[c] += y * conj(X(c, q));
    }
  }
}

template <Triangle KIND, class T>
void solve_triangular_backward(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1), G = task.argument<T>(2);
  const auto result = task.argument<T>(3), rhs_result = task.argument<T>(4);
  const Int n = X.m, k = X.n;
  const auto copied = scratch_for(arena, A);
  const auto scratch = arena.columns<T>(k == 1 ? 0 : n, k);
  task.each(arena, [&](Int i) {
    const auto Y = k == 1 ? Columns<T>{rhs_result.vector(i), n, 1, n} : scratch;
    copy(Y, G[i]);
    substitute_anyhow<KIND | Adjoint>(A[i], copied, Y);
    if (k > 1) copy(rhs_result[i], Y);
    write_gradient<KIND>(result.vector(i), X[i], Y);
    return true;
  });
}

}  // namespace
}  // namespace bs

#define BS_TRIANGLE(name, kind) \
  BS_NAMED(name, solve_triangular<kind, T>), BS_NAMED(name "_backward", solve_triangular_backward<kind, T>)

BS_DEFINE_FAMILY(
    triangular, BS_TRIANGLE("solve_lower", Lower), BS_TRIANGLE("solve_upper", Upper),
    BS_TRIANGLE("solve_unit_lower", Lower | UnitDiagonal), BS_TRIANGLE("solve_unit_upper", Upper | UnitDiagonal))
