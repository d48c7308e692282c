// Systems with a triangular matrix. Of A X = B: B̄ = A⁻ᴴG, and Ā is the triangle of −B̄ Xᴴ, without
// the diagonal where that is one and not read.
#include "../include/pack.hpp"
#include "../include/task.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Whether BLAS is faster than substitution of n rows with k right-hand sides by columns, or by products with rows.
template <bool BY_PRODUCTS, class T>
bool is_for_blas(Int n, Int k) {
  const double work = double(n) * double(n) * double(k);
  return work >= (is_complex<T> ? 4e3 : BY_PRODUCTS ? 2e3 : k > FEW_RIGHT_HAND_SIDES ? 1e4 : 1e6);
}

// X ← op(A)⁻¹X; if `BY_ROWS`, the columns given are those of Xᵀ.
template <Triangle KIND, bool BY_ROWS, class T>
void substitute_by_blas(Columns<T> A, Columns<T> X) {
  constexpr int op = (KIND & 12) / Adjoint;
  constexpr bool conjugates_alone = op == (BY_ROWS ? Adjoint : Conjugate) / Adjoint;
  constexpr char uplo = KIND & Upper ? 'U' : 'L', diagonal = KIND & UnitDiagonal ? 'U' : 'N';
  constexpr char how[] = {BY_ROWS ? 'R' : 'L', uplo, (BY_ROWS ? "TNNC" : "NCTN")[op], diagonal};
  if (conjugates_alone) conjugate(X);
  lapack::solve_triangle(how, A, X);
  if (conjugates_alone) conjugate(X);
}

// Likewise; of columns by substitution, where that is faster.
template <Triangle KIND, bool BY_ROWS, class T>
void substitute_columns(Columns<T> A, Columns<T> X) {
  constexpr int op = KIND & 12;
  constexpr bool by_products = op == Transpose || op == Adjoint;
  // BLAS takes no columns that overlap, as those of an expanded matrix do.
  if (BY_ROWS || (is_for_blas<by_products, T>(X.m, X.n) && A.ld >= A.m)) substitute_by_blas<KIND, BY_ROWS>(A, X);
  else substitute<KIND>(A, X);
}

// Likewise for a triangle with any strides: by columns, or by rows as the transpose of the other triangle.
template <Triangle KIND, bool BY_ROWS, class T>
void substitute_anyhow(View<T> A, Columns<T> copied, Columns<T> X) {
  constexpr Triangle other = Triangle((KIND & (Upper | UnitDiagonal)) ^ Upper);
  constexpr bool is_adjoint = (KIND & Conjugate) == Adjoint;
  if (A.along == 1) {
    constexpr Triangle by_rows = is_adjoint ? other | Conjugate : other | Transpose;
    substitute_columns<by_rows, BY_ROWS>(as_columns(A), X);
    return;
  }
  Columns<T> F{A.data, A.m, A.n, A.along};
  if (A.down != 1) copy(copied, A), F = copied;
  substitute_columns<KIND, BY_ROWS>(F, X);
}

// Whether BLAS is faster with rows, as they lie, than with columns.
template <class T>
bool is_for_blas_by_rows(View<T> A, View<T> X) {
  const auto F = A.along == 1 ? A.t() : A;
  const bool is_packed_or_copied = F.has_packed_columns() || F.down != 1;
  // In single precision BLAS is slow with columns on a triangle by columns, which that of a system from the right is.
  const Int fewest = std::is_same_v<T, float> && A.down == 1 ? 8 : X.m;
  return X.n > FEW_RIGHT_HAND_SIDES && X.n >= fewest && X.t().has_packed_columns() && is_packed_or_copied;
}

template <class T>
Columns<T> scratch_for(Arena& arena, Batch<T> A) {
  return A.along == 1 || A.down == 1 ? Columns<T>{nullptr, 0, 0, 0} : arena.columns<T>(A.m, A.n);
}

// For X by columns, where it does not lie so.
template <class T>
Columns<T> columns_for(Arena& arena, Batch<T> X) {
  return arena.columns<T>(X.n == 1 ? 0 : X.m, X.n);
}

// X ← A⁻¹B or A⁻ᴴB; where X is returned: by rows as it lies, or else by columns in the memory given.
template <Triangle KIND, class T>
View<T> substituted(View<T> A, Columns<T> copied, View<T> B, View<T> X, Columns<T> by_columns) {
  const bool is_small = is_for_rows(X);
  if (is_small || is_for_blas_by_rows(A, X)) {
    copy(X, B);
    if (is_small) substitute_rows<KIND>(A, X);
    else substitute_anyhow<KIND, true>(A, copied, as_columns(X));
    return X;
  }
  const auto Y = X.n == 1 ? Columns<T>{X.data, X.m, 1, X.m} : by_columns;
  copy(Y, B);
  substitute_anyhow<KIND, false>(A, copied, Y);
  if (X.n != 1) copy(X, Y);
  return Y.view();
}

template <Triangle KIND, class T>
void solve_triangular(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto copied = scratch_for(arena, A), by_columns = columns_for(arena, X);
  task.each(arena, [&](Int i) {
    substituted<KIND>(A[i], copied, B[i], X[i], by_columns);
    return true;
  });
}

template <Triangle KIND, class T>
void solve_triangular_across(Task task, Arena& arena) {
  using P = Packed<T>;
  constexpr bool is_upper = KIND & Upper, is_unit = KIND & UnitDiagonal;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  auto F = arena.columns<P>(X.m, X.m), Y = arena.columns<P>(X.m, X.n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    for (Int j = 0; j < F.n; ++j) {
      const Int top = is_upper ? 0 : j + is_unit, end = is_upper ? j + 1 - is_unit : F.m;
      gather(F.part(top, end, j, j + 1), A.column(j, top, end), first, last);
    }
    gather(Y, B, first, last);
    substitute<KIND>(F, Y);
    scatter(Y, X, first, last);
    return true;
  });
}

// The triangle of −Y Xᴴ, row after row, among zeros.
template <Triangle KIND, class T>
void write_gradient(T* result, View<T> X, View<T> Y) {
  constexpr bool is_upper = KIND & Upper, is_unit = KIND & UnitDiagonal;
  const Int n = X.m, k = X.n;
  const auto first = [&](Int r) { return is_upper ? r + is_unit : 0; };
  const auto last = [&](Int r) { return is_upper ? n : r + 1 - is_unit; };
  if (k > FEW_RIGHT_HAND_SIDES && is_for_blas<false, T>(n, k) && X.t().has_packed_columns()) {
    // Its transpose by columns: (Xᵀ)ᴴYᵀ, where Xᵀ is what lies by columns, and Y or Yᵀ.
    const bool has_columns = Y.down == 1;
    const auto of_Y = has_columns ? as_columns(Y.t()) : as_columns(Y);
    lapack::multiply(has_columns ? "CT" : "CN", -1, false, Columns<T>{result, n, n, n}, as_columns(X), of_Y);
    for (Int r = 0; r < n; ++r) {
      std::fill(result + r * n, result + r * n + first(r), T(0));
      std::fill(result + r * n + last(r), result + r * n + n, T(0));
    }
    return;
  }
  for (Int r = 0; r < n; ++r) {
    T* row = result + r * n;
    std::fill_n(row, n, T(0));
    if (k > FEW_RIGHT_HAND_SIDES && X.along == 1 && Y.along == 1) {
      for (Int c = first(r); c < last(r); ++c) row[c] = -dot<true>(X.data + c * X.down, Y.data + r * Y.down, k);
      continue;
    }
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
  const auto copied = scratch_for(arena, A), by_columns = columns_for(arena, X);
  task.each(arena, [&](Int i) {
    const auto Y = substituted<KIND | Adjoint>(A[i], copied, G[i], rhs_result[i], by_columns);
    write_gradient<KIND>(result.vector(i), X[i], Y);
    return true;
  });
}

// Whether these are row swaps of LAPACK, one after the other.
inline bool are_swaps(View<Pivot> pivots) {
  const auto is_row = [&](Pivot pivot) { return 0 < pivot && pivot <= pivots.m; };
  return pivots.down == 1 && std::all_of(pivots.data, pivots.data + pivots.m, is_row);
}

// The triangles of A or Aᴴ in the order of substitution.
template <bool ADJOINT>
constexpr Triangle half_of = ADJOINT ? Upper | Adjoint : Lower | UnitDiagonal;
template <bool ADJOINT>
constexpr Triangle rest_of = ADJOINT ? Lower | UnitDiagonal | Adjoint : Upper;

// X = A⁻¹B or A⁻ᴴB from packed factors of A = P L U, by way of Y = L⁻¹PᵀB or T = U⁻ᴴB.
template <bool ADJOINT, class T>
void lu_solve(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(3), half = task.argument<T>(4);
  const auto pivots = task.argument<Pivot>(2);
  const auto copied = scratch_for(arena, LU), by_columns = columns_for(arena, X);
  task.each(arena, [&](Int i) {
    if (!are_swaps(pivots[i])) return false;
    auto Y = half[i], Z = X[i];
    copy(Y, B[i]);
    if (!ADJOINT) swap_rows<true>(Y, pivots.vector(i));
    const auto solved = substituted<half_of<ADJOINT>>(LU[i], copied, Y, Y, by_columns);
    substituted<rest_of<ADJOINT>>(LU[i], copied, solved, Z, by_columns);
    if (ADJOINT) swap_rows<false>(Z, pivots.vector(i));
    return true;
  });
}

template <bool ADJOINT, class T>
void lu_solve_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto LU = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(3), half = task.argument<T>(4);
  const auto pivots = task.argument<Pivot>(2);
  auto F = arena.columns<P>(X.m, X.m), Y = arena.columns<P>(X.m, X.n);
  auto* of_pack = arena.take<PivotOf<P>>(X.m);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    for (Int i = first; i < last; ++i) {
      if (!are_swaps(pivots[i])) return false;
    }
    gather(F, LU, first, last);
    gather(Y, B, first, last);
    gather_pivots<P>(of_pack, pivots, first, last);
    if (!ADJOINT) swap_rows<true>(Y, of_pack);
    substitute<half_of<ADJOINT>>(F, Y);
    scatter(Y, half, first, last);
    substitute<rest_of<ADJOINT>>(F, Y);
    if (ADJOINT) swap_rows<false>(Y, of_pack);
    scatter(Y, X, first, last);
    return true;
  });
}

// −tril₋₁(l rᴴ) − triu(u vᴴ), column after column, of rows that lie one after the other.
template <class T>
void write_packed(T* result, View<T> l, View<T> r, View<T> u, View<T> v) {
  const Int n = u.m, k = u.n;
  for (Int c = 0; c < n; ++c) {
    T* column = result + c * n;
    const auto write = [&](View<T> left, View<T> right, Int row, Int last) {
      const T* factors = right.data + c * k;
      if (k == 1) {
        for (; row < last; ++row) column[row] = -left.data[row] * conj(*factors);
      } else {
        for (; row < last; ++row) column[row] = -dot<true>(factors, left.data + row * k, k);
      }
    };
    write(u, v, 0, c + 1);
    write(l, r, c + 1, n);
  }
}

// Its gradients, as strategies/formulas/lu_solve.py derives them.
template <bool ADJOINT, class T>
void lu_solve_backward(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0), X = task.argument<T>(2), half = task.argument<T>(3), G = task.argument<T>(4);
  const auto gradient = task.argument<T>(5), rhs_gradient = task.argument<T>(6);
  const auto pivots = task.argument<Pivot>(1);
  const auto copied = scratch_for(arena, LU), by_columns = columns_for(arena, X);
  auto V = arena.columns<T>(X.n, X.m).t(), Z = arena.columns<T>(X.n, ADJOINT ? X.m : 0).t();
  task.each(arena, [&](Int i) {
    if (!are_swaps(pivots[i])) return false;
    const Pivot* swaps = pivots.vector(i);
    auto W = rhs_gradient[i];
    if (ADJOINT) {
      copy(V, G[i]), copy(Z, X[i]);
      swap_rows<true>(V, swaps), swap_rows<true>(Z, swaps);
      const auto solved = substituted<Lower | UnitDiagonal>(LU[i], copied, V, V, by_columns);
      substituted<Upper>(LU[i], copied, solved, W, by_columns);
      write_packed(gradient.vector(i), Z, V, half[i], W);
    } else {
      const auto solved = substituted<Upper | Adjoint>(LU[i], copied, G[i], V, by_columns);
      substituted<Lower | UnitDiagonal | Adjoint>(LU[i], copied, solved, W, by_columns);
      write_packed(gradient.vector(i), W, half[i], V, X[i]);
      swap_rows<false>(W, swaps);
    }
    return true;
  });
}

}  // namespace
}  // namespace bs

#define BS_TRIANGLE(name, kind)                                                                          \
  BS_NAMED(name, solve_triangular<kind, T>), BS_NAMED(name "_across", solve_triangular_across<kind, T>), \
      BS_NAMED(name "_backward", solve_triangular_backward<kind, T>)

BS_DEFINE_FAMILY(
    triangular, BS_TRIANGLE("solve_lower", Lower), BS_TRIANGLE("solve_upper", Upper),
    BS_TRIANGLE("solve_unit_lower", Lower | UnitDiagonal), BS_TRIANGLE("solve_unit_upper", Upper | UnitDiagonal),
    BS_NAMED("lu_solve_across", lu_solve_across<false, T>),
    BS_NAMED("lu_solve_adjoint_across", lu_solve_across<true, T>), BS_NAMED("lu_solve", lu_solve<false, T>),
    BS_NAMED("lu_solve_backward", lu_solve_backward<false, T>), BS_NAMED("lu_solve_adjoint", lu_solve<true, T>),
    BS_NAMED("lu_solve_adjoint_backward", lu_solve_backward<true, T>))
