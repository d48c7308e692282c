// The products and substitutions of formulas: by BLAS for a matrix, written out for a pack of them.
#pragma once

#include "lapack.hpp"
#include "triangular.hpp"

namespace bs {

template <char OP, class M>
BS_INLINE auto operand(const M& matrix) {
  if constexpr (OP == 'C') return adjoint(matrix);
  else if constexpr (OP == 'T') return transposed(matrix);
  else return matrix;
}

// C ← factor op(A) op(B), or C + factor op(A) op(B), by the letters of BLAS.
template <char A_OP, char B_OP, bool ADDS, class T>
void multiply(Columns<T> C, const Columns<T>& A, const Columns<T>& B, int factor) {
  if constexpr (is_pack<T>) {
    multiply_small<ADDS>(C, operand<A_OP>(A), operand<B_OP>(B), factor);
  } else {
    const char ops[] = {A_OP, B_OP};
    lapack::multiply(ops, factor, ADDS, C, A, B);
  }
}

// X ← R⁻¹X, or R⁻ᴴX, of an upper triangle.
template <bool ADJOINT, class T>
void solve_upper(Columns<T> R, Columns<T> X) {
  if constexpr (is_pack<T>) substitute<ADJOINT ? Upper | Adjoint : Upper>(R, X);
  else lapack::solve_triangle(ADJOINT ? "LUCN" : "LUNN", R, X);
}

// X ← (RᴴR)⁻¹X.
template <class T>
void apply_gram_inverse(Columns<T> R, Columns<T> X) {
  solve_upper<true>(R, X);
  solve_upper<false>(R, X);
}

}  // namespace bs
