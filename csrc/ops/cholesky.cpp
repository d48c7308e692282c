// Cholesky factors of positive definite matrices and their backward: the formula of `strategies.formulas.cholesky`.
// Declined are matrices that are not positive definite, and norms that are far from one.
#include "../include/cholesky.hpp"

#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

template <class T>
void clear_above_diagonal(Columns<T> L) {
  for (Int j = 1; j < L.n; ++j) std::fill_n(L.column(j), std::min(j, L.m), T(0));
}

// L by LAPACK. In double precision two threads are faster with the upper factor of the transpose, as which a matrix
// that lies by rows is copied; then one triangle is transposed.
template <class T>
bool factor_columns(View<T> A, Columns<T> L) {
  if constexpr (!std::is_same_v<T, double>) {
    copy(L, A);
    clear_above_diagonal(L);
    return lapack::factor_positive_definite(L, "L");
  } else {
    constexpr Int width = 32;
    copy(L, A.t());
    if (!lapack::factor_positive_definite(L, "U")) return false;
    share(L.n * L.n, (L.n + width - 1) / width, [&](Int i) {
      const Int start = i * width, stop = std::min(start + width, L.n);
      const auto right = L.part(start, stop, stop, L.n);
      copy(L.part(stop, L.n, start, stop), right.t());
      fill_with_zeros(right);
      for (Int j = start; j < stop; ++j) {
        for (Int r = j + 1; r < stop; ++r) L(r, j) = std::exchange(L(j, r), 0);
      }
    });
    return true;
  }
}

// L by columns, with zeros above its diagonal.
template <int N, class T>
void cholesky(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), result = task.argument<T>(1);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const auto L = result.columns(i);
    // The trace of A is Σ |l|²; its norm lies between that and that over √n.
    if constexpr (N > 0) {
      Local<T, N, N> F{};
      copy_lower(F, A[i]);
      const bool is_definite = factor_positive_definite(F);
      const double trace = sum_of_squares(F);
      if (!is_definite || safe_squares(F, trace, RANGE_OF_MATRIX<T>) < 0) return false;
      copy(L, F);
      return true;
    } else {
      double trace = 0;
      for (Int k = 0; k < A.n; ++k) trace += double(real(A[i](k, k)));
      return RANGE_OF_MATRIX<T>.holds(trace) && factor_columns(A[i], L);
    }
  });
}

template <class T>
void cholesky_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), result = task.argument<T>(1).t();
  const Int n = A.n;
  auto F = arena.columns<P>(n, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    gather(F, A, first, last);
    const bool is_definite = factor_positive_definite(F);
    clear_above_diagonal(F);
    double traces[width_of<P>];
    add_squares_of_lanes(F, traces);
    bool is_usual = is_definite;
    for (int w = 0; w < width_of<P>; ++w) { is_usual &= RANGE_OF_MATRIX<T>.holds(traces[w]); }
    if (is_usual) scatter(F, result, first, last);
    return is_usual;
  });
}

// The Hermitian gradient.
template <int N, class T>
void cholesky_backward(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), G = task.argument<T>(1), result = task.argument<T>(2);
  task.each(arena, [&](Int i) BS_LAMBDA {
    if constexpr (N > 0) {
      Local<T, N, N> F, H{};
      T product[N];
      copy(F, L.columns(i));
      copy_lower(H, G[i]);
      const double power = normalize(H);
      if (power == 0) return false;
      reverse_cholesky_small(F, H, Const<N>{}, product);
      copy(result[i], H);
      multiply_by(result[i], power);
    } else {
      const auto t = result.columns(i);
      if (is_normalized(G[i])) {
        reverse_cholesky(L.columns(i), G[i], t);
        return true;
      }
      copy(t, G[i].t());
      const double power = normalize(t);
      if (power == 0) return false;
      reverse_cholesky(L.columns(i), t.t(), t);
      multiply_by(t, power);
    }
    return true;
  });
}

template <class T>
void cholesky_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto L = task.argument<T>(0), G = task.argument<T>(1), result = task.argument<T>(2);
  const Int n = G.n;
  auto F = arena.columns<P>(n, n), H = arena.columns<P>(n, n);
  auto* product = arena.take<P>(n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(H, G, first, last);
    clear_above_diagonal(H);
    if (!normalize_lanes(H, powers)) return false;
    gather(F, L.t(), first, last);
    reverse_cholesky_small(F, H, n, product);
    multiply_lanes_by(H, powers);
    scatter(H, result, first, last);
    return true;
  });
}

// The same of factors of any strides of columns, whatever their norms: (…, n, n).
template <class T>
void reverse_cholesky_of_each(Task task, Arena& arena) {
  const auto L = task.argument<T>(0), G = task.argument<T>(1), result = task.argument<T>(2);
  task.each(arena, [&](Int i) {
    reverse_cholesky(Columns<T>{L.data + i * L.step, L.m, L.n, L.along}, G[i], result.columns(i));
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    cholesky, BS_ROWS_TO_4(cholesky), BS_ROWS_TO_4(cholesky_backward), BS_KERNEL(cholesky_across),
    BS_KERNEL(cholesky_backward_across), BS_NAMED("reverse_cholesky", reverse_cholesky_of_each<T>))
