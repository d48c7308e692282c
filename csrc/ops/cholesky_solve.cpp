// Solutions and inverses by Cholesky factors, and their backward. Declined are factors with a zero on the diagonal, and
// norms that are far from one.
#include "../include/cholesky.hpp"
#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

constexpr Int TILE = 8;

// Factors where they lie, if their columns or their rows are packed; else copies.
template <class T>
struct Factors {
  Batch<T> L;
  Columns<T> scratch{nullptr, 0, 0, 0};
  Factors(Arena& arena, Batch<T> of) : L(of) {
    if (!L[0].has_packed_columns() && !L[0].t().has_packed_columns()) scratch = arena.columns<T>(L.m, L.n);
  }
  PackedTriangle<T> operator[](Int i) const {
    if (L[i].has_packed_columns()) return {{L.vector(i), L.m, L.n, L.along}, false};
    if (L[i].t().has_packed_columns()) return {{L.vector(i), L.n, L.m, L.down}, true};
    copy(scratch, L[i]);
    return {scratch, false};
  }
};

// Σ |l|² of a factor whose norm is near one, and whose diagonal has no zero; −1 of another.
template <class T>
double usual_squares(PackedTriangle<T> L) {
  double squares = 0;
  const Columns<T> F = L.columns;
  for (Int j = 0; j < F.n; ++j) {
    if (F(j, j) == T(0)) return -1;
    squares += L.is_transposed ? sum_of_squares(F.column(j), j + 1) : sum_of_squares(F.column(j) + j, F.n - j);
  }
  return RANGE<T>.holds(squares) ? squares : -1;
}
template <int N, class T>
BS_INLINE double usual_squares(const Local<T, N, N>& F) {
  bool has_no_zero = true;
  loop(Const<N>{}, [&](auto i) BS_LAMBDA { has_no_zero &= F(i, i) != T(0); });
  return has_no_zero ? safe_squares(F) : -1;
}

// Whether a factor is usual, and right-hand sides are in range beside it.
template <class F, class M>
BS_INLINE bool are_usual(const F& L, const M& sides) {
  const double squares = usual_squares(L);
  return squares >= 0 && are_safe_sides(sides, squares * std::sqrt(squares));
}

// Of many right-hand sides, row after row, half = L⁻¹X and X ← L⁻ᴴL⁻¹X.
template <class T>
void solve_rows(View<T> L, View<T> half, View<T> X) {
  substitute_rows<Lower>(L, X);
  copy(half, X);
  substitute_rows<Lower | Adjoint>(L, X);
}

template <int N, class T>
bool has_many(View<T> right_hand_sides) {
  return (N == 0 || right_hand_sides.n > FEW_RIGHT_HAND_SIDES) && is_for_rows(right_hand_sides);
}

// `cholesky_solve` of many right-hand sides.
template <class T>
void cholesky_solve_many(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), B = task.argument<T>(1), result = task.argument<T>(2), half = task.argument<T>(3);
  const Factors<T> factors(arena, L);
  const auto rows = arena.columns<T>(half.n, half.m);
  task.each(arena, [&](Int i) {
    copy(rows, B[i].t());
    if (!are_usual(factors[i], rows)) return false;
    solve_rows(L[i], half[i], rows.t());
    copy(result.columns(i), rows.t());
    return true;
  });
}

// Its gradients, as `cholesky_solve_backward` has them.
template <class T>
void cholesky_solve_many_backward(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), X = task.argument<T>(1), half = task.argument<T>(2), G = task.argument<T>(3);
  const auto result = task.argument<T>(4), rhs_result = task.argument<T>(5);
  const Int n = half.m, k = half.n;
  const auto rows = arena.columns<T>(k, n), of_cotangent = arena.columns<T>(k, n), solution = arena.columns<T>(k, n);
  task.each(arena, [&](Int i) {
    const double power = copy_normalized(rows, G[i].t());
    if (power == 0) return false;
    solve_rows(L[i], of_cotangent.t(), rows.t());
    copy(rhs_result[i], rows.t());
    copy(solution, X.columns(i).t());
    const auto t = result.columns(i), of_B = half.columns(i);
    for (Int r = 0; r < n; ++r) {
      for (Int c = 0; c < n; ++c) {
        t(c, r) = -dot<true>(of_B.column(c), rows.column(r), k) -
                  dot<true>(of_cotangent.column(c), solution.column(r), k);
      }
    }
    multiply_by(rhs_result[i], power);
    multiply_by(result[i], power);
    return true;
  });
}

// X = L⁻ᴴL⁻¹B by columns, and L⁻¹B row after row.
template <int N, class T>
void cholesky_solve(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), B = task.argument<T>(1), result = task.argument<T>(2), half = task.argument<T>(3);
  if (has_many<N>(half[0])) return cholesky_solve_many<T>(task, arena);
  const Factors<T> factors(arena, L);
  auto Y = scratch<T, N, 0>(arena, half.m, half.n);
  task.each(arena, [&](Int i) BS_LAMBDA {
    if constexpr (N > 0) {
      Local<T, N, N> F{};
      copy_lower(F, L[i]);
      copy(Y, B[i]);
      if (!are_usual(F, Y)) return false;
      substitute<Lower>(F, Y);
      copy(half[i], Y);
      substitute<Lower | Adjoint>(F, Y);
      copy(result.columns(i), Y);
    } else {
      const auto X = result.columns(i);
      const auto factor = factors[i];
      copy(X, B[i]);
      if (!are_usual(factor, X)) return false;
      solve_lower<false>(factor, X);
      copy(half[i], X);
      solve_lower<true>(factor, X);
    }
    return true;
  });
}

// B̄ = W = L⁻ᴴL⁻¹G, and −W (L⁻¹B)ᴴ − X (L⁻¹G)ᴴ.
template <int N, class T>
void cholesky_solve_backward(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), X = task.argument<T>(1), half = task.argument<T>(2), G = task.argument<T>(3);
  const auto result = task.argument<T>(4), rhs_result = task.argument<T>(5);
  if (has_many<N>(half[0])) return cholesky_solve_many_backward<T>(task, arena);
  const Int n = half.m, k = half.n;
  const Factors<T> factors(arena, L);
  auto W = scratch<T, N, 0>(arena, n, k), of_cotangent = scratch<T, N, 0>(arena, n, k);
  auto cotangent_rows = arena.columns<T>(k, n);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const double power = copy_normalized(W, G[i]);
    if (power == 0) return false;
    if constexpr (N > 0) {
      Local<T, N, N> F{};
      copy_lower(F, L[i]);
      substitute<Lower>(F, W);
      copy(of_cotangent, W);
      substitute<Lower | Adjoint>(F, W);
    } else {
      const auto factor = factors[i];
      solve_lower<false>(factor, W);
      copy(of_cotangent, W);
      solve_lower<true>(factor, W);
    }
    copy(rhs_result[i], W);
    // The transpose of the gradient, by columns: −conj(L⁻¹B) Wᵀ − conj(L⁻¹G) Xᵀ.
    const auto t = result.columns(i), solution = X.columns(i);
    if (N > 0 || k <= FEW_RIGHT_HAND_SIDES) {
      const auto half_of = half[i];
      for (Int j = 0; j < n; ++j) {
        T* column = t.column(j);
        for (Int q = 0; q < k; ++q) {
          const T w = W(j, q), x = solution(j, q);
          const T* of_G = of_cotangent.column(q);
          for (Int r = 0; r < n; ++r) {
            const T term = conj(half_of(r, q)) * w + conj(of_G[r]) * x;
            column[r] = q == 0 ? -term : column[r] - term;
          }
        }
      }
    } else {
      copy(cotangent_rows, of_cotangent.view().t());
      const Columns<T> lies{W.column(0), n, k, n};
      lapack::multiply("CT", -1, 0, t, half.columns(i), lies);
      lapack::multiply("CT", -1, 1, t, cotangent_rows, solution);
    }
    multiply_by(rhs_result[i], power);
    multiply_by(result[i], power);
    return true;
  });
}

// Make A Hermitian, tile by tile; what is above the diagonal is overwritten.
template <class T>
void mirror_lower(Columns<T> A) {
  for (Int first = 0; first < A.n; first += TILE) {
    for (Int j = first + 1; j < A.n; ++j) {
      for (Int i = first; i < std::min(first + TILE, j); ++i) A(i, j) = conj(A(j, i));
    }
  }
}

// X = L⁻ᴴL⁻¹, by columns.
template <int N, class T>
void cholesky_inverse(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), result = task.argument<T>(1);
  const Factors<T> factors(arena, L);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const auto X = result.columns(i);
    if constexpr (N > 0) {
      Local<T, N, N> F{}, Y;
      copy_lower(F, L[i]);
      if (usual_squares(F) < 0) return false;
      fill_with_identity(Y);
      substitute<Lower>(F, Y);
      substitute<Lower | Adjoint>(F, Y);
      copy(X, Y);
    } else {
      const auto factor = factors[i];
      if (usual_squares(factor) < 0) return false;
      if (X.m * X.n <= MOST_OF_SUBSTITUTION) {
        fill_with_identity(X);
        solve_lower<false>(factor, X);
        solve_lower<true>(factor, X);
      } else {
        copy(X, L[i]);
        lapack::invert_positive_definite(X);
      }
    }
    mirror_lower(X);
    return true;
  });
}

// −(L⁻¹ (Ḡ + Ḡᴴ) X)ᴴ.
template <int N, class T>
void cholesky_inverse_backward(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), X = task.argument<T>(1), G = task.argument<T>(2), result = task.argument<T>(3);
  const Int n = X.m;
  const Factors<T> factors(arena, L);
  auto both = scratch<T, N, N>(arena, n, n), P = both;
  task.each(arena, [&](Int i) BS_LAMBDA {
    const auto cotangent = G[i];
    // Tile by tile, so that both are read along lines of the cache.
    for (Int top = 0; top < n; top += TILE) {
      for (Int left = 0; left <= top; left += TILE) {
        for (Int r = top; r < std::min(top + TILE, n); ++r) {
          for (Int c = left; c < std::min(left + TILE, r + 1); ++c) {
            both(r, c) = cotangent(r, c) + conj(cotangent(c, r));
            both(c, r) = conj(both(r, c));
          }
        }
      }
    }
    const double power = normalize(both);
    if (power == 0) return false;
    const auto gradient = result.columns(i);
    if constexpr (N > 0) {
      Local<T, N, N> F{};
      copy_lower(F, L[i]);
      multiply_small<false>(P, both, X.columns(i), 1);
      substitute<Lower>(F, P);
      copy(gradient, P);
    } else {
      // Of a Hermitian matrix columns are rows, and faster to multiply by.
      lapack::multiply("CN", 1, 0, gradient, both, X.columns(i));
      solve_lower<false>(factors[i], gradient);
    }
    // By rows it is the transpose of this.
    each_entry(gradient, [&](auto r, auto c) BS_LAMBDA { gradient(r, c) = -conj(gradient(r, c)); });
    multiply_by(gradient, power);
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    cholesky_solve, BS_ROWS_TO_4(cholesky_solve), BS_ROWS_TO_4(cholesky_solve_backward), BS_ROWS_TO_4(cholesky_inverse),
    BS_ROWS_TO_4(cholesky_inverse_backward))
