// QR factorizations, and pseudo-inverses of matrices of full rank from them. Declined are matrices that are nearly
// deficient and norms that are far from one.
#include "../include/products.hpp"
#include "../include/reflectors.hpp"
#include "table.hpp"

namespace bs {
namespace {

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

// The gradient of a QR as `strategies.formulas.qr` has it, of m×k bases.
template <class P>
struct QrGradient {
  bool is_tall;
  Int size;  // of the leading block of R that it divides by
  QrGradient(Int m, Int k) : is_tall(m > k), size(is_tall || is_complex<Scalar<P>> ? k : k - 1) {}

  // In place of Z, −M of tall matrices, else what Y is before the division.
  void write_middle(Columns<P> Z) const {
    for (Int c = 0; c < Z.n; ++c) {
      const P diagonal(real(Z(c, c)));
      Z(c, c) = is_tall ? -diagonal : Z(c, c) - diagonal;
      for (Int r = c + 1; r < Z.n; ++r) {
        Z(r, c) = is_tall ? -conj(Z(c, r)) : Z(r, c) - conj(Z(c, r));
        Z(c, r) = is_tall ? -Z(c, r) : P(0);
      }
    }
  }
};

// Ā by columns, from Q̄ᵀ and R̄.
template <class T>
void qr_backward(Task task, Arena& arena) {
  const auto Q = task.argument<T>(0), R = task.argument<T>(1), of_Q = task.argument<T>(2), of_R = task.argument<T>(3);
  const auto result = task.argument<T>(4);
  const Int k = Q.m, m = Q.n, n = R.m;
  auto H = arena.columns<T>(k, k), Z = arena.columns<T>(k, k);
  const auto of_tail = arena.columns<T>(k, n - k);  // R̄₂
  const QrGradient<T> by(m, k);
  task.each(arena, [&](Int i) {
    const auto G = result.columns(i).columns(0, k), basis = Q.columns(i), upper = R.columns(i).columns(0, k);
    const auto divisor = upper.part(0, by.size, 0, by.size);
    copy(G, of_Q[i].t());
    copy_upper(H, of_R[i]);
    if (!is_independent(divisor)) return false;
    lapack::multiply("CN", 1, 0, Z, basis, G);
    lapack::multiply("NC", -1, 1, Z, H, upper);
    if (n > k) {
      copy(of_tail, of_R[i].t().rows(k, n).t());
      lapack::multiply("NC", -1, 1, Z, of_tail, R.columns(i).columns(k, n));
      lapack::multiply("NN", 1, 0, result.columns(i).columns(k, n), basis, of_tail);
    }
    by.write_middle(Z);
    if (by.is_tall) {
      lapack::multiply("NN", 1, 1, G, basis, Z);
      lapack::solve_triangle("RUCN", upper, G);
    } else {
      lapack::solve_triangle("RUCN", divisor, Z.columns(0, by.size));
      each_entry(H, [&](Int r, Int c) { H(r, c) += Z(r, c); });
      lapack::multiply("NN", 1, 0, G, basis, H);
    }
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
  auto H = arena.columns<P>(n, n), Z = arena.columns<P>(n, n);
  const QrGradient<P> by(m, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    gather(F, R, first, last);
    if (!is_independent(F.part(0, by.size, 0, by.size))) return false;
    gather(basis, Q, first, last);
    gather(G, of_Q, first, last);
    gather(Z, of_R, first, last);
    copy_upper(H, Z);
    multiply_small<false>(Z, adjoint(basis), G, 1);
    for (Int c = 0; c < n; ++c) {  // H and F are upper triangles
      for (Int r = 0; r < n; ++r) {
        for (Int k = std::max(r, c); k < n; ++k) Z(r, c) -= H(r, k) * conj(F(c, k));
      }
    }
    by.write_middle(Z);
    if (by.is_tall) multiply_small<true>(G, basis, Z, 1);
    const auto divided = by.is_tall ? G : Z;
    for (Int c = by.size - 1; c >= 0; --c) {  // by Rᴴ, from the right
      const P reciprocal = P(1) / conj(F(c, c));
      for (Int r = 0; r < divided.m; ++r) divided(r, c) *= reciprocal;
      for (Int k = 0; k < c; ++k) subtract_multiple(divided.column(k), divided.column(c), conj(F(k, c)), divided.m);
    }
    if (!by.is_tall) {
      each_entry(H, [&](Int r, Int c) { H(r, c) += Z(r, c); });
      multiply_small<false>(G, basis, H, 1);
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

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    orthogonal, BS_KERNEL(qr), BS_KERNEL(qr_backward), BS_KERNEL(qr_across), BS_KERNEL(qr_backward_across),
    BS_KERNEL(pinv), BS_KERNEL(pinv_backward), BS_KERNEL(pinv_across), BS_KERNEL(pinv_backward_across))
