// Cholesky factors of few rows and of packs, and the reverse of a factorization A = L Lᴴ.
//
// With T the transpose of the Hermitian gradient, which starts as that of the cotangent, and T₂₂ finished
// (`strategies.builtin.blocked_cholesky`):
//     T₁₂ ← L₁₁⁻ᵀ (T₁₂ / 2 − L₂₁ᵀ T₂₂)              T₂₁ ← T₁₂ᴴ
//     T₁₁ ← T₁₁ − 2 L₂₁ᵀ T₂₁,                        and T₁₁ as a matrix by itself.
// The result depends on the lower triangle of the cotangent only.
#pragma once

#include "lapack.hpp"
#include "task.hpp"

namespace bs {

// Columns of a block, of one where there are many columns, and of the blocks that it is made of.
constexpr Int CHOLESKY_BLOCK = 96, CHOLESKY_WIDE_BLOCK = 144, MANY_COLUMNS = 1024, CHOLESKY_NARROW = 24;

template <class R>
BS_INLINE R square_root(R x) {
  if constexpr (std::is_floating_point_v<R>) return std::sqrt(x);
  else {
    for (int w = 0; w < R::width; ++w) x.set(w, std::sqrt(x[w]));
    return x;
  }
}

// A = L Lᴴ in place, the lower triangle; whether all pivots are positive.
template <class M>
BS_INLINE bool factor_positive_definite(M& F) {
  using T = Entry<M>;
  const auto n = F.height();
  bool is_definite = true;
  loop(n, [&](auto c) BS_LAMBDA {
    loop(c, [&](auto k) BS_LAMBDA {
      const T factor = conj(F(c, k));
      loop(c, n, [&](auto r) BS_LAMBDA { F(r, c) -= F(r, k) * factor; });
    });
    Real<T> pivot = real(F(c, c));
    if constexpr (is_pack<T>) {
      for (int w = 0; w < width_of<T>; ++w) is_definite &= pivot[w] > 0;
    } else {
      is_definite &= pivot > 0;
    }
    pivot = square_root(pivot);
    F(c, c) = T(pivot);
    loop(next(c), n, [&](auto r) BS_LAMBDA { F(r, c) = times_real(F(r, c), Real<T>(1) / pivot); });
  });
  return is_definite;
}

// The Hermitian gradient of an n×n matrix in place of a cotangent, of which the lower triangle counts, a column at a
// time. If the size of H is a constant beyond a few, columns are read as wholes, however short. `product` is scratch.
template <class ML, class MH, class N, class T = Entry<MH>>
BS_INLINE void reverse_cholesky_small(const ML& L, MH& H, N n, T* product) {
  constexpr bool is_padded = is_const<decltype(H.height())> && !is_const<N>;
  loop_down(n, [&](auto j) BS_LAMBDA {
    const auto last = [&] {
      if constexpr (is_padded) return H.height();
      else return n;
    }();
    const auto first = [&] {
      if constexpr (is_padded) return Const<0>{};
      else return next(j);
    }();
    loop(first, last, [&](auto r) BS_LAMBDA { product[r] = T(0); });
    loop(next(j), n, [&](auto c) BS_LAMBDA {
      const T factor = L(c, j);
      loop(first, last, [&](auto r) BS_LAMBDA { product[r] += H(r, c) * factor; });
    });
    const Real<T> reciprocal = Real<T>(1) / real(L(j, j)), half(0.5f);
    Real<T> diagonal = real(H(j, j)) * half;
    loop(next(j), n, [&](auto r) BS_LAMBDA {
      const T entry = times_real(times_real(H(r, j), half) - product[r], reciprocal);
      H(r, j) = entry, H(j, r) = conj(entry);
      diagonal -= real(conj(L(r, j)) * entry);
    });
    H(j, j) = T(diagonal * reciprocal);
  });
}

namespace detail {

// From S, the transpose of a cotangent, to T; they may be the same.
template <Int WIDTH, class T>
void reverse_cholesky_padded(Columns<T> L, View<T> S, Columns<T> t) {
  Local<T, WIDTH, WIDTH> H{};
  T product[WIDTH];
  const Int n = L.n;
  for (Int c = 0; c < n; ++c) {
    for (Int r = 0; r <= c; ++r) H(c, r) = S(r, c);
  }
  reverse_cholesky_small(L, H, n, product);
  for (Int c = 0; c < n; ++c) {
    for (Int r = 0; r < n; ++r) t(r, c) = conj(H(r, c));
  }
}

template <class T>
BS_COLD void reverse_cholesky_block(Columns<T> L, View<T> S, Columns<T> t) {
  if (L.n <= 4) reverse_cholesky_padded<4>(L, S, t);
  else if (L.n <= 8) reverse_cholesky_padded<8>(L, S, t);
  else if (L.n <= 16) reverse_cholesky_padded<16>(L, S, t);
  else reverse_cholesky_padded<CHOLESKY_NARROW>(L, S, t);
}

// All of a block's recurrences but the last, which it leaves as one of the block alone.
template <class T>
void finish_cholesky_beside(Columns<T> L, Columns<T> t, Int start, Int stop) {
  const Int n = L.n;
  if (stop == n) return;
  const auto below = L.part(stop, n, start, stop);
  const auto right = t.part(start, stop, stop, n), mirrored = t.part(stop, n, start, stop);
  lapack::multiply("TN", -1, 0.5, right, below, t.part(stop, n, stop, n));
  lapack::solve_triangle("LLTN", L.part(start, stop, start, stop), right);
  copy(mirrored, right.t());
  conjugate(mirrored);
  lapack::multiply("TN", -2, 1, t.part(start, stop, start, stop), below, mirrored);
}

}  // namespace detail

// Write T from the cotangent G, which may be the transpose of T.
template <class T>
BS_COLD void reverse_cholesky(Columns<T> L, View<T> G, Columns<T> t) {
  const Int n = L.n;
  if (n <= CHOLESKY_NARROW) {
    detail::reverse_cholesky_block(L, G.t(), t);
    return;
  }
  const lapack::ThreadLimit<T> limit(double(n) * double(n) * double(n), REVERSE_WORTH_THREADS);
  const Int width = n > MANY_COLUMNS ? CHOLESKY_WIDE_BLOCK : CHOLESKY_BLOCK;
  for (Int start = (n - 1) / width * width; start >= 0; start -= width) {
    const Int stop = std::min(start + width, n), size = stop - start;
    const View<T> of_block{&G(start, start), n - start, size, G.down, G.along};
    copy(t.part(start, stop, start, n), of_block.t());
    detail::finish_cholesky_beside(L, t, start, stop);
    const auto factor = L.part(start, stop, start, stop), block = t.part(start, stop, start, stop);
    for (Int left = (size - 1) / CHOLESKY_NARROW * CHOLESKY_NARROW; left >= 0; left -= CHOLESKY_NARROW) {
      const Int right = std::min(left + CHOLESKY_NARROW, size);
      detail::finish_cholesky_beside(factor, block, left, right);
      const auto small = block.part(left, right, left, right);
      detail::reverse_cholesky_block(factor.part(left, right, left, right), small.view(), small);
    }
  }
}

// The lower triangle; what is above is left alone.
template <int N, class T, class M>
BS_INLINE void copy_lower(Local<T, N, N>& F, const M& A) {
  loop(Const<N>{}, [&](auto c) BS_LAMBDA { loop(c, Const<N>{}, [&](auto r) BS_LAMBDA { F(r, c) = A(r, c); }); });
}

}  // namespace bs
