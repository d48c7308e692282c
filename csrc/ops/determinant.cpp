// Determinants of square matrices, by factors and by minors.
#include "../include/determinant.hpp"
#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Factors of a matrix of which the determinant is easy; whether it is. For few rows that is seen while the
// factors are in registers, and the determinant is their product where no partial one is out of range.
template <int N, class T>
BS_INLINE bool easy_determinant(
    View<T> A, Columns<T> LU, Pivot* pivots, DeterminantScratch<T>& s, ScaledNumber<T>& result) {
  if constexpr (N > 0) {
    Local<T, N, N> F;
    copy(F, A);
    Real<T> largest[N];
    const Real<T> least_row = write_largest(F, largest);
    const bool is_regular = eliminate(F, pivots);
    copy(LU, F);
    const double far = std::ldexp(1.0, (is_double<T> ? 1000 : 120) / N);
    result = {T(1), 0};
    loop(Const<N>{}, [&](auto c) BS_LAMBDA { result.mantissa *= pivots[c] == c + 1 ? F(c, c) : -F(c, c); });
    if (is_regular && is_clearly_easy(F, largest, least_row, far)) return true;
  } else {
    copy(LU, A);
    if (!eliminate_columns(LU, pivots)) return false;
  }
  result = determinant_of(LU, pivots);
  return is_easy_determinant(A, LU, pivots, s);
}

// The same of other matrices. LAPACK goes on after a zero pivot: then the determinant without that pivot, or zero where
// adj(A) is.
template <class T>
BS_COLD bool hard_determinant(
    View<T> A, Columns<T> LU, Pivot* pivots, DeterminantScratch<T>& s, ScaledNumber<T>& result, bool& is_zero) {
  if (!is_by_lapack(LU)) copy(LU, A), lapack::eliminate(LU, pivots);
  is_zero = zero_pivot(LU) < LU.n;
  result = determinant_of(LU, pivots);
  if (!is_zero) {
    return is_easy_determinant(A, LU, pivots, s) || determinant_by_scaled_rows(A, LU, pivots, s, result);
  }
  if (!write_largest_of_columns(A, s.largest)) return false;
  write_inverse_order(pivots, 1, LU.n, s.order, LU.n);
  if (hazard_of(A, LU, s, true).second != Hazard::None) return false;
  if (zero_rows(LU, s) > 1) return true;
  const Int k = zero_pivot(LU);
  T& pivot = LU(k, k);
  pivot = T(1), result = determinant_of(LU, pivots), pivot = T(0);
  return result.mantissa != T(0);  // or others are zero, too, and the rank is in question
}

// LU by columns and pivots, and det A, of a matrix of which it is easy, or that is singular or not finite; then
// write(det A, whether that is zero, and this is what `hard_determinant` has).
template <int N, class T, class F>
BS_INLINE bool write_determinant(View<T> A, Columns<T> LU, Pivot* pivots, DeterminantScratch<T>& s, F&& write) {
  ScaledNumber<T> found{T(0), 0};
  bool is_zero = false;
  if (!easy_determinant<N>(A, LU, pivots, s, found)) {
    if (!is_finite(A)) {
      write_undefined(LU, pivots);
      found = {LU(0, 0), 0};
    } else if (!hard_determinant(A, LU, pivots, s, found, is_zero)) return false;
  }
  write(found, is_zero);
  return true;
}

// Those of a batch; then write(i, det A, whether it is zero).
template <int N, class T, class F>
BS_INLINE void determinants(Task task, Arena& arena, Batch<T> A, Batch<T> LU, Batch<Pivot> pivots, F&& write) {
  DeterminantScratch<T> s(arena, A.n);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const auto write_one = [&](ScaledNumber<T> found, bool is_zero) BS_LAMBDA { write(i, found, is_zero); };
    return write_determinant<N>(A[i], LU.columns(i), pivots.vector(i), s, write_one);
  });
}

// The same in packs.
template <class T, class F>
BS_INLINE void determinants_across(Task task, Arena& arena, Batch<T> A, Batch<T> LU, Batch<Pivot> pivots, F&& write) {
  using P = Packed<T>;
  const Int n = A.n;
  DeterminantScratch<T> s(arena, n);
  auto factors = arena.columns<P>(n, n);
  auto* of_pack = arena.take<PivotOf<P>>(n);
  auto* largest = arena.take<Real<P>>(n);
  each_pack<T>(
      task, arena,
      [&](Int first, Int last) BS_LAMBDA {
        gather(factors, A, first, last);
        const Real<P> least_row = write_largest(factors, largest);
        if (!eliminate_columns(factors, of_pack)) return false;
        scatter(factors, LU.t(), first, last);
        scatter_pivots<P>(of_pack, pivots, first, last);
        const bool is_easy = is_clearly_easy(factors, largest, least_row, FAR<T>);
        for (Int i = first; i < last; ++i) {
          const auto LU_i = LU.columns(i);
          if (!is_easy && !is_easy_determinant(A[i], LU_i, pivots.vector(i), s)) return false;
          write(i, determinant_of(LU_i, pivots.vector(i)), false);
        }
        return true;
      },
      [&](Int i) {
        const auto write_one = [&](ScaledNumber<T> found, bool is_zero) { write(i, found, is_zero); };
        return write_determinant<0>(A[i], LU.columns(i), pivots.vector(i), s, write_one);
      });
}

// det A; LU by columns, pivots, and mantissa · 2^exponent, det A or what `hard_determinant` has.
template <int N, class T, bool ACROSS = false>
void det(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), value = task.argument<T>(1), LU = task.argument<T>(2),
             mantissa = task.argument<T>(4);
  const auto pivots = task.argument<Pivot>(3);
  const auto exponent = task.argument<Int>(5);
  const auto write = [&](Int i, ScaledNumber<T> found, bool is_zero) BS_LAMBDA {
    mantissa.number(i) = found.mantissa, exponent.number(i) = found.exponent;
    value.number(i) = is_zero ? T(0) : found.value();
  };
  if constexpr (ACROSS) determinants_across<T>(task, arena, A, LU, pivots, write);
  else determinants<N>(task, arena, A, LU, pivots, write);
}

// The sign and log|det A|; LU by columns and pivots.
template <int N, class T, bool ACROSS = false>
void slogdet(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), sign = task.argument<T>(1), LU = task.argument<T>(3);
  const auto logarithm = task.argument<Real<T>>(2);
  const auto pivots = task.argument<Pivot>(4);
  const auto write = [&](Int i, ScaledNumber<T> found, bool is_zero) BS_LAMBDA {
    sign.number(i) = is_zero ? T(0) : found.sign();
    logarithm.number(i) = is_zero ? -std::numeric_limits<Real<T>>::infinity() : found.logarithm();
  };
  if constexpr (ACROSS) determinants_across<T>(task, arena, A, LU, pivots, write);
  else determinants<N>(task, arena, A, LU, pivots, write);
}

// A multiple of A⁻ᴴ, row after row: its transpose is the conjugate of A⁻¹.
template <int N, class T>
BS_INLINE void write_multiple_of_adjoint_inverse(T scale, Columns<T> LU, const Pivot* pivots, Columns<T> result) {
  if constexpr (N > 0) {
    Local<T, N, N> F, X;
    copy(F, LU);
    invert_small(F, pivots, X);
    each_entry(X, [&](auto i, auto j) BS_LAMBDA { result(i, j) = scale * conj(X(i, j)); });
  } else {
    invert_columns(LU, pivots, result);
    each_entry(result, [&](auto i, auto j) BS_LAMBDA { result(i, j) = scale * conj(result(i, j)); });
  }
}

template <class T>
void multiply_by_power(View<T> A, Int exponent) {
  if (exponent == 0) return;
  each_entry(A, [&](auto i, auto j) { A(i, j) = ScaledNumber<T>::times_power(A(i, j), exponent); });
}

// A multiple of adj(A)ᴴ over the product of all pivots but the k-th, which is zero: adj(A) is that times x wᵀ L⁻¹ Pᵀ,
// with U x = 0, wᵀU = 0 and x_k = w_k = 1.
template <class T>
BS_COLD void write_multiple_of_cofactors(
    T scale, Columns<T> LU, const Pivot* pivots, Int k, Columns<T> result, T* x, T* w) {
  const Int n = LU.n;
  std::fill_n(x, n, T(0)), std::fill_n(w, n, T(0));
  x[k] = w[k] = T(1);
  for (Int i = k; i >= 0; --i) {
    if (i < k) x[i] /= LU(i, i);
    subtract_multiple(x, LU.column(i), x[i], i);
  }
  for (Int j = k + 1; j < n; ++j) w[j] = -dot<false>(LU.column(j) + k, w + k, j - k) / LU(j, j);
  for (Int i = n - 1; i >= 0; --i) w[i] -= dot<false>(LU.column(i) + i + 1, w + i + 1, n - i - 1);
  for (Int i = n - 1; i >= 0; --i) std::swap(w[i], w[pivots[i] - 1]);
  for (Int j = 0; j < n; ++j) {
    for (Int i = 0; i < n; ++i) result(i, j) = scale * conj(x[i]) * conj(w[j]);
  }
}

// Ā = ḡ adj(A)ᴴ of a matrix, which is conj(det A) A⁻ᴴ if that is not singular.
template <class T>
struct Adjugate {
  Batch<T> LU, mantissa, cotangent, result;
  Batch<Pivot> pivots;
  Batch<Int> exponent;
  T *x, *w;
  Adjugate(Task task, Arena& arena)
      : LU(task.argument<T>(0)),
        mantissa(task.argument<T>(2)),
        cotangent(task.argument<T>(4)),
        result(task.argument<T>(5)),
        pivots(task.argument<Pivot>(1)),
        exponent(task.argument<Int>(3)),
        x(arena.take<T>(LU.m)),
        w(arena.take<T>(LU.m)) {}
  T scale(Int i) const { return cotangent.number(i) * conj(mantissa.number(i)); }
  template <int N>
  BS_INLINE void write(Int i) const {
    const auto F = LU.columns(i), t = result.columns(i);
    const Int k = zero_pivot(F);
    if (k == F.n) write_multiple_of_adjoint_inverse<N>(scale(i), F, pivots.vector(i), t);
    else if (mantissa.number(i) == T(0)) each_entry(t, [&](auto a, auto b) { t(a, b) = scale(i); });
    else write_multiple_of_cofactors(scale(i), F, pivots.vector(i), k, t, x, w);
    multiply_by_power(result[i], exponent.number(i));
  }
};

template <int N, class T>
void det_backward(Task task, Arena& arena) {
  const Adjugate<T> of(task, arena);
  task.each(arena, [&](Int i) BS_LAMBDA {
    of.template write<N>(i);
    return true;
  });
}

// Ā = ḡ A⁻ᴴ of real A, whose sign is constant; (ḡ + i Im(s̄ conj(s))) A⁻ᴴ of complex A, s being the sign. There is none
// of a singular matrix.
template <int N, class T>
void slogdet_backward(Task task, Arena& arena) {
  constexpr int first = is_complex<T>;  // the sign comes before, and its cotangent
  const auto sign = task.argument<T>(0), LU = task.argument<T>(first), of_sign = task.argument<T>(3);
  const auto result = task.argument<T>(3 + 2 * first);
  const auto pivots = task.argument<Pivot>(first + 1);
  const auto of_logarithm = task.argument<Real<T>>(2 + 2 * first);
  task.each(arena, [&](Int i) BS_LAMBDA {
    if (zero_pivot(LU.columns(i)) < LU.m) return false;
    T scale(of_logarithm.number(i));
    if constexpr (is_complex<T>) scale.im = imag(of_sign.number(i) * conj(sign.number(i)));
    write_multiple_of_adjoint_inverse<N>(scale, LU.columns(i), pivots.vector(i), result.columns(i));
    return true;
  });
}

// A multiple of A⁻ᴴ in packs: `scale(i)` times two to the power of `exponent(i)` of each matrix; alone(i) where one of
// the pack is singular.
template <class T, class F, class E, class S>
void adjoint_inverses_across(
    Task task, Arena& arena, Batch<T> LU, Batch<Pivot> pivots, Batch<T> result, F&& scale, E&& exponent, S&& alone) {
  using P = Packed<T>;
  const Int n = LU.n;
  auto factors = arena.columns<P>(n, n), X = arena.columns<P>(n, n);
  auto* of_pack = arena.take<PivotOf<P>>(n);
  const auto together = [&](Int first, Int last) {
    for (Int i = first; i < last; ++i) {
      if (zero_pivot(LU[i]) < n) return false;
    }
    gather(factors, LU.t(), first, last);
    gather_pivots<P>(of_pack, pivots, first, last);
    invert_columns(factors, of_pack, X);
    P scales;
    for (int w = 0; w < width_of<P>; ++w) set_lane(scales, w, scale(std::min(first + w, last - 1)));
    each_entry(X, [&](auto i, auto j) { X(i, j) = scales * conj(X(i, j)); });
    scatter(X, result.t(), first, last);
    for (Int i = first; i < last; ++i) multiply_by_power(result[i], exponent(i));
    return true;
  };
  each_pack<T>(task, arena, together, alone);
}

template <class T>
void slogdet_backward_across(Task task, Arena& arena) {
  constexpr int first = is_complex<T>;
  const auto sign = task.argument<T>(0), of_sign = task.argument<T>(3);
  const auto of_logarithm = task.argument<Real<T>>(2 + 2 * first);
  adjoint_inverses_across<T>(
      task, arena, task.argument<T>(first), task.argument<Pivot>(first + 1), task.argument<T>(3 + 2 * first),
      [&](Int i) {
        T scale(of_logarithm.number(i));
        if constexpr (is_complex<T>) scale.im = imag(of_sign.number(i) * conj(sign.number(i)));
        return scale;
      },
      [](Int) { return Int(0); }, [](Int) { return false; });
}

template <class T>
void det_backward_across(Task task, Arena& arena) {
  const Adjugate<T> of(task, arena);
  const auto alone = [&](Int i) {
    if (!of.LU.has_columns() || !of.result.has_columns()) return false;
    of.template write<0>(i);
    return true;
  };
  adjoint_inverses_across<T>(
      task, arena, of.LU, of.pivots, of.result, [&](Int i) { return of.scale(i); },
      [&](Int i) { return of.exponent.number(i); }, alone);
}

// Determinants of up to three rows, and their gradients by minors, which singular matrices have, too. A minor is a
// sum of two products of entries, each of another column and row: its roundoff is what perturbations of the entries by
// roundoff would do. Of larger minors that does not hold, nor of the determinant as a sum of six products, which is
// therefore the product of pivots. Declined where that may be out of range.
template <int N, class T>
void det_by_minors(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), value = task.argument<T>(1);
  constexpr double least = is_double<T> ? 0x1p-250 : 0x1p-40, most = is_double<T> ? 0x1p165 : 0x1p20;
  constexpr double least_product = is_double<T> ? 0x1p-900 : 0x1p-100;
  task.each(arena, [&](Int i) BS_LAMBDA {
    Local<T, N, N> F;
    Pivot pivots[N];
    copy(F, A[i]);
    bool is_in_range = true;
    each_entry(F, [&](auto r, auto c) BS_LAMBDA {
      const double size = modulus(F(r, c));
      is_in_range &= size == 0 || (least < size && size < most);
    });
    if (!is_in_range) return false;
    T product(0);
    if (eliminate(F, pivots)) {
      product = T(1);
      loop(Const<N>{}, [&](auto k) BS_LAMBDA { product *= pivots[k] == k + 1 ? F(k, k) : -F(k, k); });
      if (!(magnitude(product) > least_product)) return false;
    }
    value.number(i) = product;
    return true;
  });
}

// Ā = ḡ conj(C) with C, the cofactors.
template <int N, class T>
void det_by_minors_backward(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), cotangent = task.argument<T>(1), result = task.argument<T>(2);
  task.each(arena, [&](Int i) BS_LAMBDA {
    Local<T, N, N> F;
    copy(F, A[i]);
    const auto gradient = result[i];
    each_entry(F, [&](auto r, auto c) BS_LAMBDA {
      // With rows and columns in cyclic order there are no signs, but for two rows.
      T minor(1);
      if constexpr (N == 2) minor = (r == c ? T(1) : T(-1)) * F(1 - r, 1 - c);
      if constexpr (N == 3) {
        const Int a = (r + 1) % 3, b = (r + 2) % 3, x = (c + 1) % 3, y = (c + 2) % 3;
        minor = F(a, x) * F(b, y) - F(a, y) * F(b, x);
      }
      gradient(r, c) = cotangent.number(i) * conj(minor);
    });
    return true;
  });
}

// det A as `strategies.factors.determinant` has it, for what follows from it there: mantissas; exponents, negligible
// pivots and the hazard; the inverse row order.
template <class T>
void determinant(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), LU = task.argument<T>(1), mantissa = task.argument<T>(3);
  const auto pivots = task.argument<Pivot>(2);
  const auto notes = task.argument<Int>(4), order = task.argument<Int>(5);
  const Int n = LU.n;
  DeterminantScratch<T> s(arena, n);
  auto F = arena.columns<T>(n, n);
  auto* of_matrix = arena.take<Pivot>(n);
  task.each(arena, [&](Int i) {
    copy(F, LU[i]);
    s.order = order.vector(i);
    write_inverse_order(pivots.vector(i), pivots.down, n, s.order, n);
    auto* note = notes.vector(i);
    for (Int k = 0; k < n; ++k) of_matrix[k] = pivots.vector(i)[k * pivots.down];
    const auto found = determinant_of(F, of_matrix);
    mantissa.number(i) = found.mantissa, note[0] = found.exponent, note[1] = note[2] = 0;
    if (!write_largest_of_columns(A[i], s.largest)) {
      note[2] = Int(Hazard::NotFinite);
    } else if (negligible_bound(A[i], F, s.largest) != 0) {
      const auto [negligible, hazard] = hazard_of(A[i], F, s);
      note[1] = negligible, note[2] = Int(hazard);
    }
    return true;
  });
}

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    determinant, BS_ROWS_1_TO_3("det", det_by_minors), BS_ROWS_1_TO_3("det_backward", det_by_minors_backward),
    BS_ROWS("det", det, 0), BS_ROWS("det_backward", det_backward, 0), BS_ROWS_TO_4(slogdet),
    BS_ROWS_TO_4(slogdet_backward), BS_NAMED("det_across", det<0, T, true>),
    BS_NAMED("slogdet_across", slogdet<0, T, true>), BS_KERNEL(det_backward_across), BS_KERNEL(slogdet_backward_across),
    BS_KERNEL(determinant))
