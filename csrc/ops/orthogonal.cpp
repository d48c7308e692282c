// QR factorizations, and pseudo-inverses and least squares of tall and wide matrices of full rank from them.
// Declined are matrices that are nearly deficient and norms that are far from one.
#include "../include/condition.hpp"
#include "../include/products.hpp"
#include "../include/qr.hpp"
#include "../include/rows.hpp"
#include "table.hpp"

namespace bs {
namespace {

constexpr Int WORK_PER_COLUMN = 64;  // of LAPACK's reflectors: blocks of so many

// Reflectors of one matrix by LAPACK, and what there is to do with them.
template <class T>
struct Reflectors {
  T *scales, *work;
  RankTest<false, T> test;
  Int length;
  Reflectors(const Task& task, Arena& arena, Int n, Int k = 1)
      : scales(arena.take<T>(n)),
        work(arena.take<T>(WORK_PER_COLUMN * std::max(n, k))),
        test(task, arena, n),
        length(WORK_PER_COLUMN * std::max(n, k)) {}
  void reflect(Columns<T> F) { lapack::reflect(F, scales, work, length); }
  void form_basis(Columns<T> F) { lapack::form_basis(F, scales, work, length); }

  // Copy R; whether the matrix, of such a sum of squares, is of full rank for certain.
  bool copy_clear_triangle(Columns<T> R, Columns<T> F, double squares) {
    return copy_upper(R, F) && test.is_full(R, F.m, &squares);
  }
};

// A = Q R of Aᵀ, which is given; Q and R by columns.
template <class T>
void qr(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), Q = task.argument<T>(1), R = task.argument<T>(2);
  Reflectors<T> reflectors(task, arena, A.m);
  task.each(arena, [&](Int i) {
    const auto basis = Q.columns(i), upper = R.columns(i);
    if (const Int k = basis.n; k < upper.n) {
      copy(upper, A[i].t());
      reflectors.reflect(upper);
      copy(basis, upper.columns(0, k));
      for (Int c = 0; c < k; ++c) std::fill(upper.column(c) + c + 1, upper.column(c) + k, T(0));
    } else {
      copy(basis, A[i].t());
      reflectors.reflect(basis);
      copy_upper(upper, basis);
    }
    reflectors.form_basis(basis);
    return true;
  });
}

template <class T>
void qr_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), Q = task.argument<T>(1).t(), R = task.argument<T>(2).t();
  const Int m = A.m, n = A.n;
  auto F = arena.columns<P>(m, n), basis = arena.columns<P>(m, n), upper = arena.columns<P>(n, n);
  auto* scales = arena.take<P>(n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    gather(F, A, first, last);
    reflect(F, scales, n);
    write_basis(F, scales, basis);
    copy_upper(upper, F);
    scatter(basis, Q, first, last);
    scatter(upper, R, first, last);
    return true;
  });
}

// Whether no diagonal entry of R is as small, beside its column, as rounding may leave it, nor so small that its
// reciprocal is out of range; false of NaN.
template <class P>
bool is_independent(Columns<P> R) {
  using limits = std::numeric_limits<Real<Scalar<P>>>;
  const double noise = 2 * double(std::max<Int>(R.n, 8)) * epsilon<P>;
  bool found = true;
  for (Int c = 0; c < R.n; ++c) {
    double squares[width_of<P>];
    add_squares(R, c, c + 1, squares);
    for (int w = 0; w < width_of<P>; ++w) {
      found &= magnitude(lane(R(c, c), w)) > std::max(noise * std::sqrt(squares[w]), 4.0 * limits::min());
    }
  }
  return found;
}

// The middle factor of the gradient: M if A is tall, else W + M, of which the upper triangle is that of R̄Rᴴ. W, which
// is QᴴQ̄, is overwritten; N is W − R̄Rᴴ, of which the upper triangle is read.
template <class P>
void add_middle(Columns<P> W, Columns<P> N, bool is_tall) {
  for (Int c = 0; c < W.n; ++c) {
    W(c, c) = (is_tall ? P(0) : W(c, c)) - P(real(N(c, c)));
    for (Int r = 0; r < c; ++r) {
      W(r, c) = is_tall ? -N(r, c) : W(r, c) - N(r, c);
      W(c, r) = (is_tall ? P(0) : W(c, r)) - conj(N(r, c));
    }
  }
}

// Ā by columns, from Q̄ᵀ and R̄: `strategies.formulas.qr`.
template <class T>
void qr_backward(Task task, Arena& arena) {
  const auto Q = task.argument<T>(0), R = task.argument<T>(1), of_Q = task.argument<T>(2), of_R = task.argument<T>(3);
  const auto result = task.argument<T>(4);
  const Int k = Q.m, m = Q.n, n = R.m;
  auto H = arena.columns<T>(k, k), W = arena.columns<T>(k, k), N = arena.columns<T>(k, k);
  const auto of_tail = arena.columns<T>(k, n - k);  // R̄₂
  task.each(arena, [&](Int i) {
    const auto G = result.columns(i).columns(0, k), basis = Q.columns(i), upper = R.columns(i).columns(0, k);
    copy(G, of_Q[i].t());
    copy_upper(H, of_R[i]);
    if (!is_independent(upper)) return false;
    lapack::multiply("CN", 1, 0, W, basis, G);
    if (n > k) {
      copy(of_tail, of_R[i].t().rows(k, n).t());
      lapack::multiply("NC", 1, 1, W, R.columns(i).columns(k, n), of_tail);
      lapack::multiply("NN", 1, 0, result.columns(i).columns(k, n), basis, of_tail);
    }
    copy(N, W);
    lapack::multiply("NC", -1, 1, N, H, upper);
    add_middle(W, N, m > k);
    lapack::multiply("NN", 1, m > k, G, basis, W);
    lapack::solve_triangle("RUCN", upper, G);
    return true;
  });
}

// Row after row.
template <class T>
void qr_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto Q = task.argument<T>(0).t(), R = task.argument<T>(1).t();
  const auto of_Q = task.argument<T>(2), of_R = task.argument<T>(3), result = task.argument<T>(4);
  const Int m = Q.m, n = Q.n;
  auto basis = arena.columns<P>(m, n), F = arena.columns<P>(n, n), G = arena.columns<P>(m, n);
  auto H = arena.columns<P>(n, n), W = arena.columns<P>(n, n), N = arena.columns<P>(n, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    gather(F, R, first, last);
    if (!is_independent(F)) return false;
    gather(basis, Q, first, last);
    gather(G, of_Q, first, last);
    gather(N, of_R, first, last);
    copy_upper(H, N);
    multiply_small<false>(W, adjoint(basis), G, 1);
    copy(N, W);
    for (Int c = 0; c < n; ++c) {  // both are upper triangles
      for (Int r = 0; r <= c; ++r) {
        for (Int k = c; k < n; ++k) N(r, c) -= H(r, k) * conj(F(c, k));
      }
    }
    add_middle(W, N, m > n);
    if (m > n) multiply_small<true>(G, basis, W, 1);
    else multiply_small<false>(G, basis, W, 1);
    // G R⁻ᴴ.
    for (Int c = n - 1; c >= 0; --c) {
      const P reciprocal = P(1) / conj(F(c, c));
      for (Int r = 0; r < m; ++r) G(r, c) *= reciprocal;
      for (Int k = 0; k < c; ++k) subtract_multiple(G.column(k), G.column(c), conj(F(k, c)), m);
    }
    scatter(G, result, first, last);
    return true;
  });
}

// A⁺ = R⁻¹Qᴴ of tall A, row after row; Q and R by columns.
template <class T>
void pinv(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1), Q = task.argument<T>(2), R = task.argument<T>(3);
  Reflectors<T> reflectors(task, arena, A.n);
  const Threshold<T> threshold(task);
  task.each(arena, [&](Int i) {
    const auto basis = Q.columns(i), upper = R.columns(i), t = X.columns(i);
    copy(basis, A[i]);
    const double squares = safe_squares_of_matrix(basis);
    if (squares < 0) return false;
    reflectors.reflect(basis);
    if (!copy_upper(upper, basis)) return false;
    reflectors.form_basis(basis);
    copy(t, basis);
    conjugate(t);
    lapack::solve_triangle("RUTN", upper, t);
    return sum_of_squares(t) * threshold.squared(A.m, squares) < 1;
  });
}

template <class T>
void pinv_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), X = task.argument<T>(1), Q = task.argument<T>(2).t(), R = task.argument<T>(3).t();
  const Int m = A.m, n = A.n;
  auto F = arena.columns<P>(m, n), basis = arena.columns<P>(m, n), upper = arena.columns<P>(n, n);
  auto Y = arena.columns<P>(n, m);
  auto* scales = arena.take<P>(n);
  const Threshold<T> threshold(task);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double squares[width_of<P>];
    gather(F, A, first, last);
    if (!are_in_safe_range(F, squares, RANGE_OF_MATRIX<P>)) return false;
    reflect(F, scales, n);
    if (!copy_upper(upper, F)) return false;
    write_basis(F, scales, basis);
    each_entry(Y, [&](auto i, auto j) { Y(i, j) = conj(basis(j, i)); });
    substitute<Upper>(upper, Y);
    if (!are_of_full_rank(threshold, Y, m, squares)) return false;
    scatter(Y, X, first, last);
    scatter(basis, Q, first, last);
    scatter(upper, R, first, last);
    return true;
  });
}

// The formula of `strategies.formulas.pinv` at full column rank, A = Q R: the gradient from W, the adjoint of the
// cotangent.
template <class T>
struct PinvGradient {
  Columns<T> in_range, gram, K, along;
  PinvGradient(Arena& arena, Int n)
      : in_range(arena.columns<T>(n, n)),
        gram(arena.columns<T>(n, n)),
        K(arena.columns<T>(n, n)),
        along(arena.columns<T>(n, n)) {}

  void write(Columns<T> Q, Columns<T> R, Columns<T> W, Columns<T> gradient) const {
    multiply<'C', 'N', false>(in_range, Q, W, 1);
    fill_with_identity(gram);
    apply_gram_inverse(R, gram);
    copy(K, in_range);
    solve_upper<false>(R, K);
    each_entry(along, [&](auto i, auto j) { along(i, j) = -conj(K(j, i)); });
    solve_upper<true>(R, along);
    multiply<'N', 'N', true>(along, in_range, gram, -1);
    multiply<'N', 'N', false>(gradient, W, gram, 1);
    multiply<'N', 'N', true>(gradient, Q, along, 1);
  }
};

// Gradients are written by columns: a tall product by rows takes many times as long.
template <class T>
void pinv_backward(Task task, Arena& arena) {
  const auto Q = task.argument<T>(0), R = task.argument<T>(1), G = task.argument<T>(2), result = task.argument<T>(3);
  const Int n = Q.m, m = Q.n;
  auto W = arena.columns<T>(m, n);
  const PinvGradient<T> formula(arena, n);
  task.each(arena, [&](Int i) {
    copy(W, G[i].t());
    const double power = normalize(W);
    if (power == 0) return false;
    conjugate(W);
    formula.write(Q.columns(i), R.columns(i), W, result.columns(i));
    multiply_by(result.columns(i), power);
    return true;
  });
}

template <class T>
void pinv_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto Q = task.argument<T>(0).t(), R = task.argument<T>(1).t(), G = task.argument<T>(2);
  const auto result = task.argument<T>(3).t();
  const Int m = Q.m, n = Q.n;
  auto basis = arena.columns<P>(m, n), F = arena.columns<P>(n, n), W = arena.columns<P>(m, n);
  auto gradient = arena.columns<P>(m, n);
  const PinvGradient<P> formula(arena, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(W, G.t(), first, last);
    if (!normalize_lanes(W, powers)) return false;
    conjugate(W);
    gather(basis, Q, first, last);
    gather(F, R, first, last);
    formula.write(basis, F, W, gradient);
    multiply_lanes_by(gradient, powers);
    scatter(gradient, result, first, last);
    return true;
  });
}

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

// X = A⁺B of wide A, row after row, and the rank; Q and R of Aᴴ, by columns: A⁺ = Q R⁻ᴴ.
template <class T>
void lstsq_wide(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto Q = task.argument<T>(4), R = task.argument<T>(5);
  const auto rank = task.argument<Int>(3);
  const Int m = A.m, n = A.n, k = B.n;
  Reflectors<T> reflectors(task, arena, m);
  auto Y = arena.columns<T>(m, k), solution = arena.columns<T>(n, k);
  task.each(arena, [&](Int i) {
    const auto basis = Q.columns(i);
    rank.number(i) = m;
    copy(basis, A[i].t());
    conjugate(basis);
    copy(Y, B[i]);
    const double squares = safe_squares_of_matrix(basis);
    if (squares < 0 || !are_safe_sides(Y, squares)) return false;
    reflectors.reflect(basis);
    if (!reflectors.copy_clear_triangle(R.columns(i), basis, squares)) return false;
    reflectors.form_basis(basis);
    lapack::solve_triangle("LUCN", R.columns(i), Y);
    lapack::multiply("NN", 1, 0, solution, basis, Y);
    copy(X[i], solution);
    return true;
  });
}

// Ā = Y Nᴴ − Z Xᴴ and B̄ = Z = R⁻¹QᴴG, row after row, with N = G − Q QᴴG and Y = A⁺ᴴX = (RᴴR)⁻¹B.
template <class T>
void lstsq_wide_backward(Task task, Arena& arena) {
  const auto B = task.argument<T>(0), X = task.argument<T>(1), Q = task.argument<T>(2), R = task.argument<T>(3);
  const auto G = task.argument<T>(4), result = task.argument<T>(5), rhs_result = task.argument<T>(6);
  const Int n = X.m, m = B.m, k = B.n;
  auto N = arena.columns<T>(n, k), rows_of_N = arena.columns<T>(k, n), Z = arena.columns<T>(m, k),
       Y = arena.columns<T>(m, k);
  task.each(arena, [&](Int i) {
    const auto basis = Q.columns(i), upper = R.columns(i), t = result.columns(i);
    copy(N, G[i]);
    const double power = normalize(N);
    if (power == 0) return false;
    copy(Y, B[i]);
    lapack::multiply("CN", 1, 0, Z, basis, N);
    lapack::multiply("NN", -1, 1, N, basis, Z);
    lapack::solve_triangle("LUNN", upper, Z);
    copy(rhs_result[i], Z);
    apply_gram_inverse(upper, Y);
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
    orthogonal, BS_KERNEL(qr), BS_KERNEL(qr_backward), BS_KERNEL(qr_across), BS_KERNEL(qr_backward_across),
    BS_KERNEL(pinv), BS_KERNEL(pinv_backward), BS_KERNEL(pinv_across), BS_KERNEL(pinv_backward_across),
    BS_KERNEL(lstsq), BS_KERNEL(lstsq_backward), BS_KERNEL(lstsq_across), BS_KERNEL(lstsq_backward_across),
    BS_KERNEL(lstsq_wide), BS_KERNEL(lstsq_wide_backward), BS_KERNEL(gram_by_rows), BS_KERNEL(lstsq_by_rows))
