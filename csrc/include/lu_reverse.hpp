// The reverse of an LU factorization, block by block, in one buffer.
//
// Transposed, the recurrences of `strategies.builtin.blocked_lu` have no adjoint in them. With F = conj(LU) and
// T = (L̄\Ū)ᵀ, and T₂₂ finished:
//     T₁₂ ← U₁₁⁻¹ (T₁₂ − U₁₂ T₂₂)                     T₂₁ ← (T₂₁ − T₂₂ L₂₁) L₁₁⁻¹
//     T₁₁ ← T₁₁ − triu₁(U₁₂ T₂₁) − tril(T₁₂ L₂₁),     and T₁₁ as a matrix by itself.
#pragma once

#include "lapack.hpp"
#include "task.hpp"

namespace bs {

// Columns of a block, and of the blocks that it is made of, from 24 to 2048 columns the fastest. Products whose
// columns lie a power of two apart are slower.
constexpr Int REVERSE_BLOCK = 96, REVERSE_NARROW = 48;

// The reverse of m×n factors, conjugated, a column and a row at a time: T, n×m, is overwritten. If the size of T is
// constant, columns are read as wholes, beyond their ends zeros: two to five times faster than loops of varying
// lengths. `row` and `column` are scratch.
template <class MF, class MT, class T = Entry<MT>>
BS_INLINE void reverse_small(const MF& f, MT& t, Int m, Int n, T* row, T* column) {
  constexpr bool is_padded = is_const<decltype(t.height())>;
  if constexpr (is_padded) std::fill_n(row, Int(t.height()), T(0));
  for (Int j = std::min(m, n) - 1; j >= 0; --j) {
    const Int first = is_padded ? 0 : j + 1;
    const auto last = [&] {
      if constexpr (is_padded) return t.height();
      else return n;
    }();
    for (Int c = j + 1; c < n; ++c) row[c] = f(j, c);
    for (Int r = first; r < last; ++r) column[r] = t(r, j);
    const T reciprocal = T(1) / f(j, j);
    T diagonal = t(j, j);
    for (Int c = j + 1; c < m; ++c) {
      const T* of_t = t.column(c);
      const T multiple = f(c, j);
      const T product = dot<false>(row + first, of_t + first, last - first);
      for (Int r = first; r < last; ++r) column[r] -= of_t[r] * multiple;
      const T entry = (t(j, c) - product) * reciprocal;
      t(j, c) = entry;
      diagonal -= entry * multiple;
    }
    for (Int r = j + 1; r < n; ++r) t(r, j) = column[r];
    t(j, j) = diagonal;
  }
}

namespace detail {

template <Int WIDTH, class T>
void reverse_padded(Columns<T> F, Columns<T> target) {
  Local<T, WIDTH, WIDTH> f, t{};
  T row[WIDTH], column[WIDTH];
  const Int n = F.n;
  for (Int j = 0; j < n; ++j) {
    std::copy_n(F.column(j), n, f.column(j));
    std::copy_n(target.column(j), n, t.column(j));
  }
  reverse_small(f, t, n, n, row, column);
  for (Int j = 0; j < n; ++j) std::copy_n(t.column(j), n, target.column(j));
}

template <class T>
void reverse_diagonal_block(Columns<T> F, Columns<T> t) {
  if (F.n <= 4) reverse_padded<4>(F, t);
  else if (F.n <= 8) reverse_padded<8>(F, t);
  else if (F.n <= 16) reverse_padded<16>(F, t);
  else reverse_padded<REVERSE_NARROW>(F, t);
}

// Rows and columns i to j of triu₁(U₁₂T₂₁) and tril(T₁₂L₂₁), and what is right of and below them.
template <class T>
void subtract_strip(Columns<T> F, Columns<T> t, Int i, Int j, Int stop) {
  const Int m = F.m, n = F.n;
  T of_upper[REVERSE_NARROW * REVERSE_NARROW], of_lower[REVERSE_NARROW * REVERSE_NARROW];
  const Columns<T> upper{of_upper, j - i, j - i, j - i}, lower{of_lower, j - i, j - i, j - i};
  if (stop < n) {
    const auto U = F.part(i, j, stop, n);
    lapack::multiply("NN", -1, 0, upper, U, t.part(stop, n, i, j));
    if (j < stop) lapack::multiply("NN", -1, 1, t.part(i, j, j, stop), U, t.part(stop, n, j, stop));
    for (Int c = 0; c < j - i; ++c) {
      for (Int r = 0; r < c; ++r) t(i + r, i + c) += upper(r, c);
    }
  }
  if (stop < m) {
    const auto L = F.part(stop, m, i, j);
    lapack::multiply("NN", -1, 0, lower, t.part(i, j, stop, m), L);
    if (j < stop) lapack::multiply("NN", -1, 1, t.part(j, stop, i, j), t.part(j, stop, stop, m), L);
    for (Int c = 0; c < j - i; ++c) {
      for (Int r = c; r < j - i; ++r) t(i + r, i + c) += lower(r, c);
    }
  }
}

// All of a block's recurrences but the last, which it leaves as one of the block alone.
template <class T>
void finish_beside(Columns<T> F, Columns<T> t, Int start, Int stop) {
  const Int m = F.m, n = F.n;
  const bool has_below = stop < m, has_right = stop < n;
  const auto block = F.part(start, stop, start, stop);
  const auto right = t.part(start, stop, stop, m), below = t.part(stop, n, start, stop);
  if (has_below && has_right) {
    const auto rest = t.part(stop, n, stop, m);
    lapack::multiply("NN", -1, 1, right, F.part(start, stop, stop, n), rest);
    lapack::multiply("NN", -1, 1, below, rest, F.part(stop, m, start, stop));
  }
  if (has_below) lapack::solve_triangle("LUNN", block, right);
  if (has_right) lapack::solve_triangle("RLNU", block, below);
  if (!has_below && !has_right) return;
  for (Int i = start; i < stop; i += REVERSE_NARROW) {
    subtract_strip(F, t, i, std::min(i + REVERSE_NARROW, stop), stop);
  }
}

template <Int WIDTH, class T, class F>
void reverse_in_blocks(Columns<T> factors, Columns<T> t, Int k, F&& reverse_block) {
  for (Int start = (k - 1) / WIDTH * WIDTH; start >= 0; start -= WIDTH) {
    const Int stop = std::min(start + WIDTH, k);
    finish_beside(factors, t, start, stop);
    reverse_block(factors.part(start, stop, start, stop), t.part(start, stop, start, stop));
  }
}

}  // namespace detail

// Overwrite T, the transposed cotangent, by that of the matrix whose m×n factors of some rank F is the conjugate of.
// Beyond the rank T is zero.
template <class T>
BS_COLD void reverse_elimination(Columns<T> F, Columns<T> t, Int rank) {
  const double flops = double(F.m) * double(F.n) * double(std::min(F.m, F.n));
  const lapack::ThreadLimit<T> limit(flops, REVERSE_WORTH_THREADS);
  detail::reverse_in_blocks<REVERSE_BLOCK>(F, t, rank, [](Columns<T> block, Columns<T> of_block) {
    detail::reverse_in_blocks<REVERSE_NARROW>(block, of_block, block.n, detail::reverse_diagonal_block<T>);
  });
}

// In place, cycle by cycle: column i of the result is column order[i]. Scratch: a column, and a flag for each.
template <class T>
void permute_columns(Columns<T> t, const Int* order, T* kept, bool* is_done) {
  std::fill_n(is_done, t.n, false);
  for (Int first = 0; first < t.n; ++first) {
    if (is_done[first] || order[first] == first) continue;
    std::copy_n(t.column(first), t.m, kept);
    Int target = first;
    for (; order[target] != first; target = order[target]) {
      std::copy_n(t.column(order[target]), t.m, t.column(target));
      is_done[target] = true;
    }
    std::copy_n(kept, t.m, t.column(target));
    is_done[target] = true;
  }
}

}  // namespace bs
