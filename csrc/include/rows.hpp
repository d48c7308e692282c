// Least squares with few right-hand sides, a row of the matrix at a time: products with few columns take a library
// longer than to read the matrix.
#pragma once

#include "matrix.hpp"

namespace bs {

template <class T>
struct Rows {
  T* data;
  Int m, n;
  BS_INLINE T* operator[](Int i) const { return data + i * n; }
};

// Add AᴴA w of some rows of A.
template <class T>
void add_gram_product(Rows<T> A, Int first, Int last, Columns<T> w, Columns<T> gram) {
  for (Int i = first; i < last; ++i) {
    const T* row = A[i];
    for (Int q = 0; q < w.n; ++q) {
      const T along = dot<false>(row, w.column(q), A.n);
      T* of_gram = gram.column(q);
      for (Int c = 0; c < A.n; ++c) of_gram[c] += conj(row[c]) * along;
    }
  }
}

// Add 2 (B − A X) diag(g) to B̄: what the squared residuals have to do with it, of which g is the cotangent, if there is
// one. Residuals are orthogonal to A, so that a change of X is none of theirs.
template <class T>
void add_of_residuals(Columns<T> of_B, Columns<T> residuals, View<Real<T>> g) {
  if (!g.data) return;
  each_entry(of_B, [&](auto i, auto j) { of_B(i, j) += times_real(residuals(i, j), g(j, 0) + g(j, 0)); });
}

// Some rows of Z = A w + 2 (B − A X) diag(g) and of the gradient −Z Xᴴ + (B − A X) wᴴ; there may be no g.
template <class T>
void write_lstsq_rows(
    Rows<T> A, Rows<T> B, Columns<T> w, Columns<T> X, View<Real<T>> g, Rows<T> Z, Rows<T> gradient, Int first,
    Int last) {
  for (Int i = first; i < last; ++i) {
    const T* row = A[i];
    T* result = gradient[i];
    for (Int q = 0; q < w.n; ++q) {
      const T *of_w = w.column(q), *of_X = X.column(q);
      const T residual = B[i][q] - dot<false>(row, of_X, A.n);
      T along = dot<false>(row, of_w, A.n);
      if (g.data) along += times_real(residual, 2 * g(q, 0));
      Z[i][q] = along;
      for (Int c = 0; c < A.n; ++c) {
        const T change = residual * conj(of_w[c]) - along * conj(of_X[c]);
        result[c] = q == 0 ? change : result[c] + change;
      }
    }
  }
}

}  // namespace bs
