// Least squares of tall and wide matrices of full rank, from QR factorizations. Declined are matrices that are nearly
// deficient and norms that are far from one.
#include "../include/products.hpp"
#include "../include/reflectors.hpp"
#include "../include/rows.hpp"
#include "table.hpp"

namespace bs {
namespace {

// X = A⁺B of tall A, row after row, squared residuals, the rank; R by columns.
template <class T>
void lstsq(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), R = task.argument<T>(5);
  const auto residuals = task.argument<Real<T>>(3);
  const auto rank = task.argument<Int>(4);
  const Int m = A.m, n = A.n, k = B.n;
  Reflectors<T> reflectors(task, arena, n, k);
  auto F = arena.columns<T>(m, n), Y = arena.columns<T>(m, k);
  task.each(arena, [&](Int i) {
    rank.number(i) = n;
    copy(F, A[i]);
    copy(Y, B[i]);
    const double squares = safe_squares_of_matrix(F);
    if (squares < 0 || !are_safe_sides(Y, squares)) return false;
    reflectors.reflect(F);
    if (!reflectors.copy_clear_triangle(R.columns(i), F, squares)) return false;
    lapack::apply_basis("C", F, reflectors.scales, Y, reflectors.work, reflectors.length);
    for (Int j = 0; j < k; ++j) residuals.vector(i)[j] = Real<T>(sum_of_squares(Y.column(j) + n, m - n));
    const auto solution = Y.part(0, n, 0, k);
    lapack::solve_triangle("LUNN", R.columns(i), solution);
    copy(X[i], solution);
    return true;
  });
}

template <class T>
void lstsq_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), R = task.argument<T>(5);
  const auto residuals = task.argument<Real<T>>(3);
  const auto rank = task.argument<Int>(4);
  const Int m = A.m, n = A.n, k = B.n;
  // [A B], which is reflected as a whole.
  auto both = arena.columns<P>(m, n + k), upper = arena.columns<P>(n, n);
  auto* scales = arena.take<P>(n);
  const RankTest<false, P> test(task, arena, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double squares[width_of<P>];
    const auto F = both.columns(0, n), Y = both.columns(n, n + k), solution = Y.part(0, n, 0, k);
    gather(F, A, first, last);
    gather(Y, B, first, last);
    if (!are_in_safe_range(F, squares, RANGE_OF_MATRIX<P>) || !are_safe_lanes(Y, squares)) return false;
    reflect(both, scales, n);
    if (!copy_upper(upper, F) || !test.is_full(upper, m, squares)) return false;
    scatter(upper, R.t(), first, last);
    for (Int i = first; i < last; ++i) rank.number(i) = n;
    for (Int j = 0; j < k; ++j) {
      for (Int i = first; i < last; ++i) {
        double total = 0;
        for (Int r = n; r < m; ++r) total += square(lane(Y(r, j), int(i - first)));
        residuals.vector(i)[j] = Real<T>(total);
      }
    }
    substitute<Upper>(upper, solution);
    scatter(solution, X, first, last);
    return true;
  });
}

// The formula of `strategies.formulas.lstsq` for tall A = Q R of full rank: with w = (AᴴA)⁻¹G, corrected once as in
// `strategies.factors.Reflected`, Z = A w, B̄ = Z + 2 (B − A X) diag(g) and Ā = −B̄ Xᴴ + (B − A X) wᴴ, where g is the
// cotangent of the squared residuals: these are orthogonal to A, so that a change of X is none of theirs.
template <class T>
struct LstsqGradient {
  Columns<T> w, rest, gram, X;  // w starts as G
  LstsqGradient(Arena& arena, Int n, Int k)
      : w(arena.columns<T>(n, k)),
        rest(arena.columns<T>(n, k)),
        gram(arena.columns<T>(n, k)),
        X(arena.columns<T>(n, k)) {}

  void begin(Columns<T> R) const {
    copy(rest, w);
    apply_gram_inverse(R, w);
  }
  // Add to w what is missing, given AᴴA w.
  void correct(Columns<T> R) const {
    each_entry(rest, [&](auto i, auto j) { rest(i, j) -= gram(i, j); });
    apply_gram_inverse(R, rest);
    each_entry(w, [&](auto i, auto j) { w(i, j) += rest(i, j); });
  }
  // B̄ in place of Z.
  void write_rhs(Columns<T> A, Columns<T> R, Columns<T> Z) const {
    begin(R);
    multiply<'N', 'N', false>(Z, A, w, 1);
    multiply<'C', 'N', false>(gram, A, Z, 1);
    correct(R);
    multiply<'N', 'N', true>(Z, A, rest, 1);
  }
  // The transpose of Ā from B, which is overwritten, and what the squared residuals add to B̄.
  void write_transpose(Columns<T> A, Columns<T> B, View<Real<T>> of_residuals, Columns<T> Z, Columns<T> t) const {
    multiply<'N', 'N', true>(B, A, X, -1);
    add_of_residuals(Z, B, of_residuals);
    conjugate(w);
    conjugate(X);
    multiply<'N', 'T', false>(t, w, B, 1);
    multiply<'N', 'T', true>(t, X, Z, -1);
  }
};

// With few right-hand sides row after row of A.
template <class T>
void lstsq_backward(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), R = task.argument<T>(3);
  const auto G = task.argument<T>(4), result = task.argument<T>(6), rhs_result = task.argument<T>(7);
  const auto of_residuals = task.argument<Real<T>>(5);
  const Int m = A.m, n = A.n, k = B.n;
  const LstsqGradient<T> formula(arena, n, k);
  const bool has_few = k <= FEW_RIGHT_HAND_SIDES;
  // Copies, by rows or by columns, unless there are few right-hand sides and A and B lie by rows.
  const bool has_rows = A.along == 1 && A.down == n && B.along == 1 && B.down == k;
  const Columns<T> nothing{nullptr, 0, 0, 0};
  const auto F = !has_few ? arena.columns<T>(m, n) : has_rows ? nothing : arena.columns<T>(n, m);
  const auto Y = !has_few ? arena.columns<T>(m, k) : has_rows ? nothing : arena.columns<T>(k, m);
  const auto Z = has_few ? nothing : arena.columns<T>(m, k);
  task.each(arena, [&](Int i) {
    const auto upper = R.columns(i);
    const auto g = of_residuals.if_given(i);
    copy(formula.w, G[i]);
    const double power = normalize(formula.w);
    if (power == 0 || (g.data && power != 1)) return false;
    copy(formula.X, X[i]);
    if (has_few) {
      Rows<T> of_A{A.vector(i), m, n}, of_B{B.vector(i), m, k};
      if (!has_rows) {
        copy(F, A[i].t());
        copy(Y, B[i].t());
        of_A.data = F.data, of_B.data = Y.data;
      }
      formula.begin(upper);
      fill_with_zeros(formula.gram);
      add_gram_product(of_A, 0, m, formula.w, formula.gram);
      formula.correct(upper);
      const Rows<T> gradient{result.vector(i), m, n}, of_rhs{rhs_result.vector(i), m, k};
      write_lstsq_rows(of_A, of_B, formula.w, formula.X, g, of_rhs, gradient, 0, m);
    } else {
      copy(F, A[i]);
      copy(Y, B[i]);
      formula.write_rhs(F, upper, Z);
      formula.write_transpose(F, Y, g, Z, result.columns(i));
      copy(rhs_result[i], Z);
    }
    multiply_by(rhs_result[i], power);
    multiply_by(result[i], power);
    return true;
  });
}

template <class T>
void lstsq_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), R = task.argument<T>(3).t();
  const auto G = task.argument<T>(4), result = task.argument<T>(6), rhs_result = task.argument<T>(7);
  const auto of_residuals = task.argument<Real<T>>(5);
  const Int m = A.m, n = A.n, k = B.n;
  const LstsqGradient<P> formula(arena, n, k);
  const auto g = arena.columns<Real<P>>(k, of_residuals.data ? 1 : 0);
  auto F = arena.columns<P>(m, n), upper = arena.columns<P>(n, n), t = arena.columns<P>(n, m);
  auto Z = arena.columns<P>(m, k), Y = arena.columns<P>(m, k);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(formula.w, G, first, last);
    if (!normalize_lanes(formula.w, powers)) return false;
    if (of_residuals.data) {
      if (std::any_of(powers, powers + width_of<P>, [](double power) { return power != 1; })) return false;
      gather(g, of_residuals, first, last);
    }
    gather(F, A, first, last);
    gather(upper, R, first, last);
    gather(formula.X, X, first, last);
    gather(Y, B, first, last);
    formula.write_rhs(F, upper, Z);
    formula.write_transpose(F, Y, of_residuals.data ? g.view() : View<Real<P>>{}, Z, t);
    multiply_lanes_by(Z, powers);
    multiply_lanes_by(t, powers);
    scatter(Z, rhs_result, first, last);
    scatter(t, result.t(), first, last);
    return true;
  });
}

// X = A⁺B of wide A, row after row, and the rank; of Aᴴ = Q R what LAPACK leaves, by columns: A⁺ = Q R⁻ᴴ.
template <class T>
void lstsq_wide(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto reflected = task.argument<T>(4), scales = task.argument<T>(5);
  const auto rank = task.argument<Int>(3);
  const Int m = A.m, n = A.n, k = B.n;
  Reflectors<T> reflectors(task, arena, m, k);
  auto R = arena.columns<T>(m, m), solution = arena.columns<T>(n, k);
  task.each(arena, [&](Int i) {
    const auto F = reflected.columns(i), along = solution.part(0, m, 0, k);
    rank.number(i) = m;
    copy(F, A[i].t());
    conjugate(F);
    fill_with_zeros(solution);
    copy(along, B[i]);
    const double squares = safe_squares_of_matrix(F);
    if (squares < 0 || !are_safe_sides(along, squares)) return false;
    reflectors.reflect(F);
    std::copy_n(reflectors.scales, m, scales.vector(i));
    if (!reflectors.copy_clear_triangle(R, F, squares)) return false;
    lapack::solve_triangle("LUCN", R, along);
    lapack::apply_basis("N", F, reflectors.scales, solution, reflectors.work, reflectors.length);
    copy(X[i], solution);
    return true;
  });
}

// Ā = Y Nᴴ − Z Xᴴ and B̄ = Z = R⁻¹QᴴG, row after row, with N = G − Q QᴴG and Y = A⁺ᴴX = (RᴴR)⁻¹B.
template <class T>
void lstsq_wide_backward(Task task, Arena& arena) {
  const auto B = task.argument<T>(0), X = task.argument<T>(1), reflected = task.argument<T>(2);
  const auto scales = task.argument<T>(3), G = task.argument<T>(4), result = task.argument<T>(5);
  const auto rhs_result = task.argument<T>(6);
  const Int n = X.m, m = B.m, k = B.n, length = WORK_PER_COLUMN * std::max(m, k);
  auto N = arena.columns<T>(n, k), rows_of_N = arena.columns<T>(k, n), Z = arena.columns<T>(m, k),
       Y = arena.columns<T>(m, k);
  auto* work = arena.take<T>(length);
  task.each(arena, [&](Int i) {
    const auto F = reflected.columns(i), R = F.part(0, m, 0, m), along = N.part(0, m, 0, k), t = result.columns(i);
    copy(N, G[i]);
    const double power = normalize(N);
    if (power == 0) return false;
    copy(Y, B[i]);
    lapack::apply_basis("C", F, scales.vector(i), N, work, length);
    copy(Z, along);
    fill_with_zeros(along);
    lapack::apply_basis("N", F, scales.vector(i), N, work, length);
    lapack::solve_triangle("LUNN", R, Z);
    copy(rhs_result[i], Z);
    apply_gram_inverse(R, Y);
    copy(rows_of_N, N.t());
    lapack::multiply("CT", 1, 0, t, rows_of_N, Y);
    lapack::multiply("CT", -1, 1, t, X.columns(i), Z);
    multiply_by(rhs_result[i], power);
    multiply_by(t, power);
    return true;
  });
}

// The summands of AᴴA w, one for each so many rows of A, in one pass over them. All rows of all A lie one after the
// other; the columns of all w are rows, and so are the summands.
template <class T>
void gram_by_rows(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), w = task.argument<T>(1), summands = task.argument<T>(2);
  const Int n = A.m, k = summands.m / n, matrices = w.count / k;
  const Int height = A.count / matrices, parts = summands.count / matrices, share = (height + parts - 1) / parts;
  task.each(arena, [&](Int part) {
    const Int matrix = part / parts, first = part % parts * share;
    const Columns<T> gram{summands.vector(part), n, k, n}, of_matrix{w.vector(matrix * k), n, k, n};
    fill_with_zeros(gram);
    add_gram_product(
        Rows<T>{A.vector(matrix * height), height, n}, first, std::min(first + share, height), of_matrix, gram);
    return true;
  });
}

// Z = A w and Ā = −Z Xᴴ + (B − A X) wᴴ of tall A, each row read once and written once. All rows of all A, B, Z and Ā
// lie one after the other. The columns of w and of X are rows here: k of w, then k of X, for each matrix.
template <class T>
void lstsq_by_rows(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), both = task.argument<T>(2);
  const auto gradient = task.argument<T>(3), Z = task.argument<T>(4);
  const Int n = A.m, k = B.m, height = A.count / (both.count / (2 * k));
  task.groups(arena, [&](Int first, Int last) {
    while (first < last) {
      const Int matrix = first / height, start = matrix * height, stop = std::min(last, start + height);
      const Columns<T> w{both.vector(2 * k * matrix), n, k, n}, X{both.vector(2 * k * matrix + k), n, k, n};
      const Rows<T> of_A{A.vector(start), height, n}, of_B{B.vector(start), height, k};
      const Rows<T> of_Z{Z.vector(start), height, k}, of_gradient{gradient.vector(start), height, n};
      write_lstsq_rows(of_A, of_B, w, X, View<Real<T>>{}, of_Z, of_gradient, first - start, stop - start);
      first = stop;
    }
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    least_squares, BS_KERNEL(lstsq), BS_KERNEL(lstsq_backward), BS_KERNEL(lstsq_across),
    BS_KERNEL(lstsq_backward_across), BS_KERNEL(lstsq_wide), BS_KERNEL(lstsq_wide_backward), BS_KERNEL(gram_by_rows),
    BS_KERNEL(lstsq_by_rows))
