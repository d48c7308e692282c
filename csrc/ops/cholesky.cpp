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

// L by LAPACK, and the order of the first minor that is not positive definite. In double precision two threads are
// faster with the upper factor of the transpose, as which a matrix that lies by rows is copied; then one triangle is
// transposed.
template <class T>
Int factor_columns(View<T> A, Columns<T> L) {
  if constexpr (!std::is_same_v<T, double>) {
    copy(L, A);
    clear_above_diagonal(L);
    return lapack::factor_positive_definite(L, "L");
  } else {
    constexpr Int width = 32;
    copy(L, A.t());
    const Int order = lapack::factor_positive_definite(L, "U"), n = order == 0 ? L.n : order;
    share(n * n, (n + width - 1) / width, [&](Int i) {
      const Int start = i * width, stop = std::min(start + width, n);
      const auto right = L.part(start, stop, stop, n);
      copy(L.part(stop, n, start, stop), right.t());
      fill_with_zeros(right);
      for (Int j = start; j < stop; ++j) {
        for (Int r = j + 1; r < stop; ++r) L(r, j) = std::exchange(L(j, r), 0);
      }
    });
    return order;
  }
}

// The same, where there is a place for the order. Declined is a norm that is far from one, unless the order is
// reported.
template <class T>
bool write_columns(View<T> A, Columns<T> L, Pivot* info) {
  // The trace of A is Σ |l|²; its norm lies between that and that over √n.
  double trace = 0;
  for (Int k = 0; k < A.n; ++k) trace += double(real(A(k, k)));
  const bool is_usual = RANGE_OF_MATRIX<T>.holds(trace);
  if (!info && !is_usual) return false;
  const Int order = factor_columns(A, L);
  if (info) *info = Pivot(order);
  for (Int k = 0; order > 0 && k < L.n; ++k) {
    const Int done = std::max(order - 1, k);
    if (k >= order) std::fill_n(L.column(k), k, T(0));
    fill_with_nan(L.part(done, L.n, k, k + 1));
  }
  return order == 0 ? is_usual : info != nullptr;
}

// L by columns, with zeros above its diagonal; with `REPORTS`, of a matrix that is not positive definite, too: the
// order of the first minor that is not, from whose last row on L is NaN, as all of the gradient is then.
template <int N, class T, bool REPORTS = false>
void cholesky(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), result = task.argument<T>(1);
  const Info<REPORTS> info(task, 2);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const auto L = result.columns(i);
    if constexpr (N > 0) {
      Local<T, N, N> F{};
      copy_lower(F, A[i]);
      const bool is_definite = factor_positive_definite(F);
      const double trace = sum_of_squares(F);
      if (!is_definite || safe_squares(F, trace, RANGE_OF_MATRIX<T>) < 0) {
        return REPORTS && write_columns(A[i], L, info.of(i));
      }
      copy(L, F);
      info.clear(i, i + 1);
      return true;
    } else {
      return write_columns(A[i], L, info.of(i));
    }
  });
}
template <int N, class T>
void cholesky_ex(Task task, Arena& arena) {
  cholesky<N, T, true>(task, arena);
}

template <class T, bool REPORTS = false>
void cholesky_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), result = task.argument<T>(1).t();
  const Info<REPORTS> info(task, 2);
  const Int n = A.n;
  auto F = arena.columns<P>(n, n);
  const auto together = [&](Int first, Int last) {
    gather(F, A, first, last);
    const bool is_definite = factor_positive_definite(F);
    clear_above_diagonal(F);
    double traces[width_of<P>];
    add_squares_of_lanes(F, traces);
    bool is_usual = is_definite;
    for (int w = 0; w < width_of<P>; ++w) { is_usual &= RANGE_OF_MATRIX<T>.holds(traces[w]); }
    if (is_usual) scatter(F, result, first, last), info.clear(first, last);
    return is_usual;
  };
  each_pack<T>(task, arena, together, [&](Int i) {
    return REPORTS && write_columns(A[i], task.argument<T>(1).columns(i), info.of(i));
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
    BS_KERNEL(cholesky_backward_across), BS_ROWS_TO_4(cholesky_ex),
    BS_NAMED("cholesky_ex_across", cholesky_across<T, true>), BS_NAMED("reverse_cholesky", reverse_cholesky_of_each<T>))
