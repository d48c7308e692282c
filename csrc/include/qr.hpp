// QR factorizations by reflectors of packs of matrices. Reflectors and their signs are LAPACK's (geqrf).
#pragma once

#include "pack.hpp"

namespace bs {

namespace detail {

// Divide column j of one matrix of a pack, from the diagonal on, by a power of two that brings its norm near one; that
// power, which is one for a column that is zero or not finite.
template <class P>
Real<Scalar<P>> normalize_lane(Columns<P> F, Int j, int w) {
  using R = Real<Scalar<P>>;
  R largest = 0;
  for (Int i = j; i < F.m; ++i) largest = std::max(largest, modulus(lane(F(i, j), w)));
  if (!(largest > 0 && largest <= std::numeric_limits<R>::max())) return 1;
  int exponent;
  std::frexp(largest, &exponent);
  const R power = std::ldexp(R(1), exponent - 1);
  for (Int i = j; i < F.m; ++i) set_lane(F(i, j), w, lane(F(i, j), w) / Scalar<P>(power));
  return power;
}

}  // namespace detail

// Column c of Q ← (I − τ v vᴴ) times it, v being reflector j of F.
template <class P>
BS_INLINE void apply_reflector(Columns<P> F, Int j, Columns<P> Q, Int c, P scale) {
  const P *v = F.column(j) + j + 1, along = (Q(j, c) + dot<true>(v, Q.column(c) + j + 1, F.m - j - 1)) * scale;
  Q(j, c) -= along;
  subtract_multiple(Q.column(c) + j + 1, v, along, F.m - j - 1);
}

// Overwrite column j, from the diagonal on, by an entry of R and the reflector I − τ v vᴴ that leaves it; τ.
template <class P>
BS_INLINE P make_reflector(Columns<P> F, Int j) {
  using R = Real<Scalar<P>>;
  using S = Scalar<P>;
  using limits = std::numeric_limits<R>;
  Real<P> below(0), norm;
  for (Int i = j + 1; i < F.m; ++i) below += squared_modulus(F(i, j));
  norm = below + squared_modulus(F(j, j));
  P divisor, scale;
  for (int w = 0; w < width_of<P>; ++w) {
    R of_matrix = lane(norm, w), power = 1;
    bool has_below = j + 1 < F.m;
    if (of_matrix > limits::max() || (has_below ? lane(below, w) : of_matrix) < limits::min() / limits::epsilon()) {
      has_below = false;  // some squares may overflow, or lose digits below the smallest number
      for (Int i = j + 1; i < F.m; ++i) has_below |= lane(F(i, j), w) != S(0);
      power = detail::normalize_lane(F, j, w), of_matrix = 0;
      for (Int i = j; i < F.m; ++i) of_matrix += squared_modulus(lane(F(i, j), w));
    }
    const S head = lane(F(j, j), w);
    const R size = std::sqrt(of_matrix);
    S beta(real(head) < 0 ? size : -size);  // minus zero is not negative, as in MKL
    if (has_below || imag(head) != 0) {
      set_lane(scale, w, (beta - head) / beta), set_lane(divisor, w, head - beta);
    } else {
      set_lane(scale, w, S(0)), set_lane(divisor, w, S(1)), beta = head;
    }
    set_lane(F(j, j), w, times_real(beta, power));
  }
  const P reciprocal = P(1) / divisor;
  for (Int i = j + 1; i < F.m; ++i) F(i, j) *= reciprocal;
  return scale;
}

// Overwrite tall matrices by R and n reflectors, and reflect what further columns there are.
template <class P>
void reflect(Columns<P> F, P* scales, Int n) {
  for (Int j = 0; j < n; ++j) {
    scales[j] = make_reflector(F, j);
    for (Int c = j + 1; c < F.n; ++c) apply_reflector(F, j, F, c, conj(scales[j]));
  }
}

// The columns of Q that span the range.
template <class P>
void write_basis(Columns<P> F, const P* scales, Columns<P> Q) {
  fill_with_zeros(Q);
  for (Int j = Q.n - 1; j >= 0; --j) {
    Q(j, j) = P(1);
    for (Int c = j; c < Q.n; ++c) apply_reflector(F, j, Q, c, scales[j]);
  }
}

// The upper triangle of F, and zeros below; whether no entry of the diagonal is zero.
template <class M, class T>
bool copy_upper(Columns<T> R, const M& F) {
  bool is_regular = true;
  for (Int j = 0; j < R.n; ++j) {
    for (int w = 0; w < width_of<T>; ++w) is_regular &= lane(F(j, j), w) != Scalar<T>(0);
    for (Int i = 0; i < R.m; ++i) R(i, j) = i <= j ? F(i, j) : T(0);
  }
  return is_regular;
}

}  // namespace bs
