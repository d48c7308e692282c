// Inverses, solutions and determinants of square matrices, and what is solved with them as least squares.
#include "../include/determinant.hpp"
#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

// Of a matrix with an entry that is not finite no result is finite: NaN in place of factors that have no pivots. False
// of another matrix.
template <class T>
BS_COLD bool write_undefined(View<T> A, Columns<T> LU, Pivot* pivots) {
  if (is_finite(A)) return false;
  fill_with_nan(LU);
  for (Int k = 0; k < LU.n; ++k) pivots[k] = Pivot(k + 1);
  return true;
}

// X = A⁻¹, by columns.
template <class T, int N>
struct Inverse {
  decltype(scratch<T, N, N>(std::declval<Arena&>(), 0, 0)) F, X;
  Numbers<Pivot, N> pivots;
  Numbers<double, N> before;
  double squares = 0;
  Inverse(Arena& arena, Int n)
      : F(scratch<T, N, N>(arena, n, n)), X(scratch<T, N, N>(arena, n, n)), pivots(arena, n), before(arena, n) {}

  BS_INLINE bool compute(View<T> A, Columns<T> result) {
    copy(F, A);
    if (!factor(F, pivots.get(), before.get(), &squares)) return write_undefined(A, result, pivots.get());
    if constexpr (N > 0) {
      invert_small(F, pivots.get(), X);
      copy(result, X);
    } else {
      invert_columns(F, pivots.get(), result);
    }
    return true;
  }
};

template <int N, class T>
void inv(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1);
  Inverse<T, N> inverse(arena, X.m);
  task.each(arena, [&](Int i) BS_LAMBDA { return inverse.compute(A[i], X.columns(i)); });
}

// A⁻¹ of a matrix that is of full rank for certain.
template <class T>
void pinv_square(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1);
  Inverse<T, 0> inverse(arena, X.m);
  const Threshold<T> threshold(task);
  task.each(arena, [&](Int i) {
    return inverse.compute(A[i], X.columns(i)) &&
           sum_of_squares(X.columns(i)) * threshold.squared(X.m, inverse.squares) < 1;
  });
}

// In packs; with `CHECKS_RANK` as `pinv_square`.
template <class T, bool CHECKS_RANK = false>
void inv_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), result = task.argument<T>(1).t();
  const Int n = A.n;
  auto F = arena.columns<P>(n, n), X = arena.columns<P>(n, n);
  auto* pivots = arena.take<PivotOf<P>>(n);
  auto* before = arena.take<double>(n * width_of<P>);
  const Threshold<T> threshold(task);
  each_pack<T>(
      task, arena,
      [&](Int first, Int last) {
        double squares[width_of<P>];
        gather(F, A, first, last);
        if (!factor(F, pivots, before, squares)) return false;
        invert_columns(F, pivots, X);
        scatter(X, result, first, last);
        return !CHECKS_RANK || are_of_full_rank(threshold, X, n, squares);
      },
      [&](Int i) {
        Arena own;
        Inverse<T, 0> inverse(own, CHECKS_RANK ? 0 : n);
        if (CHECKS_RANK || !own.is_ok() || !inverse.compute(A[i], inverse.X)) return false;
        copy(result[i], inverse.X);
        return true;
      });
}

// Ā = −A⁻ᴴ G A⁻ᴴ from X = A⁻¹, given by columns; for results by rows, Āᴴ = −X Gᴴ X.
template <int N, class T>
void inv_backward(Task task, Arena& arena) {
  const auto X = task.argument<T>(0), G = task.argument<T>(1), result = task.argument<T>(2);
  const Int n = X.m;
  auto W = scratch<T, N, N>(arena, n, n), half = scratch<T, N, N>(arena, n, n), inverse = W;
  task.each(arena, [&](Int i) BS_LAMBDA {
    if constexpr (N > 0) {
      copy(W, G[i]);
      const double power = normalize(W);
      if (power == 0) return false;
      copy(inverse, X.columns(i));
      conjugate(inverse);
      multiply_small<false>(half, transposed(inverse), W, -1);
      auto gradient = result[i];
      loop(Const<N>{}, [&](auto r) BS_LAMBDA {
        loop(Const<N>{}, [&](auto c) BS_LAMBDA {
          T total(0);
          loop(Const<N>{}, [&](auto k) BS_LAMBDA { total += half(r, k) * inverse(c, k); });
          gradient(r, c) = total;
        });
      });
      multiply_by(gradient, power);
    } else {
      // Gᴴ where it lies, or a copy.
      const auto lies = G[i].t();
      const bool is_its_own = !is_complex<T> && lies.has_packed_columns() && is_normalized(lies);
      const Columns<T> adjoint_of_G = is_its_own ? Columns<T>{lies.data, n, n, lies.along} : W;
      const double power = is_its_own ? 1 : copy_normalized(W, lies);
      if (power == 0) return false;
      if (!is_its_own) conjugate(W);
      lapack::multiply("NN", 1, 0, half, X.columns(i), adjoint_of_G);
      lapack::multiply("NN", -1, 0, result.columns(i), half, X.columns(i));
      conjugate(result.columns(i));
      multiply_by(result.columns(i), power);
    }
    return true;
  });
}

template <class T>
void inv_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto X = task.argument<T>(0).t(), G = task.argument<T>(1), result = task.argument<T>(2);
  const Int n = G.n;
  auto inverse = arena.columns<P>(n, n), W = arena.columns<P>(n, n), half = arena.columns<P>(n, n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(inverse, X, first, last);
    gather(W, G, first, last);
    if (!normalize_lanes(W, powers)) return false;
    multiply_small<false>(half, adjoint(inverse), W, -1);
    multiply_small<false>(W, half, adjoint(inverse), 1);
    multiply_lanes_by(W, powers);
    scatter(W, result, first, last);
    return true;
  });
}

// X = A⁻¹B, row after row; LU by columns and pivots.
template <class T, int N>
struct Solution {
  decltype(scratch<T, N, N>(std::declval<Arena&>(), 0, 0)) F;
  decltype(scratch<T, N, 0>(std::declval<Arena&>(), 0, 0)) Y;
  Numbers<double, N> before;
  double squares = 0;
  Solution(Arena& arena, Int n, Int k)
      : F(N > 0 ? scratch<T, N, N>(arena, n, n) : decltype(F){}), Y(scratch<T, N, 0>(arena, n, k)), before(arena, n) {}

  BS_INLINE bool compute(View<T> A, View<T> B, View<T> X, Columns<T> LU, Pivot* pivots) {
    copy(Y, B);
    const auto write_nothing = [&] {
      fill_with_nan(X);
      return write_undefined(A, LU, pivots);
    };
    if constexpr (N > 0) {
      copy(F, A);
      if (!factor(F, pivots, before.get(), &squares)) return write_nothing();
      if (!are_safe_sides(Y, squares) && is_finite(B)) return false;
      copy(LU, F);
      solve_small(F, pivots, Y);
    } else {
      copy(LU, A);
      if (!factor(LU, pivots, before.get(), &squares)) return write_nothing();
      if (!are_safe_sides(Y, squares) && is_finite(B)) return false;
      solve_columns(LU, pivots, Y);
    }
    copy(X, Y);
    return true;
  }
};

template <int N, class T>
void solve(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), LU = task.argument<T>(3);
  const auto pivots = task.argument<Pivot>(4);
  Solution<T, N> solution(arena, X.m, X.n);
  task.each(
      arena, [&](Int i) BS_LAMBDA { return solution.compute(A[i], B[i], X[i], LU.columns(i), pivots.vector(i)); });
}

// The same of a matrix that is of full rank for certain, and its rank.
template <class T>
void lstsq_square(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2), LU = task.argument<T>(4);
  const auto rank = task.argument<Int>(3);
  const auto pivots = task.argument<Pivot>(5);
  Solution<T, 0> solution(arena, X.m, X.n);
  const RankTest<true, T> test(task, arena, X.m);
  task.each(arena, [&](Int i) {
    rank.number(i) = X.m;
    return solution.compute(A[i], B[i], X[i], LU.columns(i), pivots.vector(i)) &&
           test.is_full(LU.columns(i), X.m, &solution.squares);
  });
}

// In packs; with `WITH_RANK` as `lstsq_square`.
template <class T, bool WITH_RANK = false>
void solve_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto LU = task.argument<T>(3 + WITH_RANK);
  const auto pivots = task.argument<Pivot>(4 + WITH_RANK);
  const RankTest<true, P> test(task, arena, WITH_RANK ? X.m : 0);
  const Int n = A.n;
  auto F = arena.columns<P>(n, n), Y = arena.columns<P>(n, X.n);
  auto* of_pack = arena.take<PivotOf<P>>(n);
  auto* before = arena.take<double>(n * width_of<P>);
  each_pack<T>(
      task, arena,
      [&](Int first, Int last) {
        double squares[width_of<P>];
        gather(Y, B, first, last);
        gather(F, A, first, last);
        if (!factor(F, of_pack, before, squares) || !are_safe_lanes(Y, squares)) return false;
        scatter(F, LU.t(), first, last);
        scatter_pivots<P>(of_pack, pivots, first, last);
        solve_small(F, of_pack, Y);
        scatter(Y, X, first, last);
        if (!WITH_RANK) return true;
        for (Int i = first; i < last; ++i) task.argument<Int>(3).number(i) = n;
        return test.is_full(F, n, squares);
      },
      [&](Int i) {
        Arena own;
        Solution<T, 0> solution(own, WITH_RANK ? 0 : n, X.n);
        return !WITH_RANK && own.is_ok() && solution.compute(A[i], B[i], X[i], LU.columns(i), pivots.vector(i));
      });
}

// B̄ = A⁻ᴴG and Ā = −B̄ Xᴴ, from A = P L U.
template <int N, class T>
void solve_backward(Task task, Arena& arena) {
  const auto X = task.argument<T>(0), LU = task.argument<T>(1), G = task.argument<T>(3);
  const auto result = task.argument<T>(4), rhs_result = task.argument<T>(5);
  const auto pivots = task.argument<Pivot>(2);
  const Int n = X.m, k = X.n;
  auto Y = scratch<T, N, 0>(arena, n, k);
  auto F = N > 0 ? scratch<T, N, N>(arena, n, n) : decltype(scratch<T, N, N>(arena, n, n)){};
  task.each(arena, [&](Int i) BS_LAMBDA {
    const double power = copy_normalized(Y, G[i]);
    if (power == 0) return false;
    if constexpr (N > 0) {
      copy(F, LU.columns(i));
      solve_adjoint_small(F, pivots.vector(i), Y);
      const auto solution = X[i], gradient = result[i];
      loop(Const<N>{}, [&](auto r) BS_LAMBDA {
        loop(Const<N>{}, [&](auto c) BS_LAMBDA {
          T total(0);
          for (Int j = 0; j < k; ++j) total += Y(r, j) * conj(solution(c, j));
          gradient(r, c) = -total;
        });
      });
    } else {
      lapack::solve_eliminated("C", LU.columns(i), pivots.vector(i), Y);
      lapack::multiply("CT", -1, 0, result.columns(i), X.columns(i), Y);
    }
    copy(rhs_result[i], Y);
    multiply_by(rhs_result[i], power);
    multiply_by(result[i], power);
    return true;
  });
}

template <class T>
void solve_backward_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto X = task.argument<T>(0), LU = task.argument<T>(1).t(), G = task.argument<T>(3);
  const auto result = task.argument<T>(4), rhs_result = task.argument<T>(5);
  const auto pivots = task.argument<Pivot>(2);
  const Int n = X.m, k = X.n;
  auto F = arena.columns<P>(n, n), Y = arena.columns<P>(n, k), solution = arena.columns<P>(n, k);
  auto* of_pack = arena.take<PivotOf<P>>(n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    double powers[width_of<P>];
    gather(Y, G, first, last);
    if (!normalize_lanes(Y, powers)) return false;
    gather(F, LU, first, last);
    gather_pivots<P>(of_pack, pivots, first, last);
    gather(solution, X, first, last);
    solve_adjoint_small(F, of_pack, Y);
    multiply_small<false>(F, Y, adjoint(solution), -1);
    multiply_lanes_by(Y, powers);
    multiply_lanes_by(F, powers);
    scatter(Y, rhs_result, first, last);
    scatter(F, result, first, last);
    return true;
  });
}

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

// LU by columns and pivots, and det A, of a matrix of which it is easy, or not finite.
template <int N, class T>
BS_INLINE bool write_determinant(
    View<T> A, Columns<T> LU, Pivot* pivots, DeterminantScratch<T>& s, ScaledNumber<T>& result) {
  if (easy_determinant<N>(A, LU, pivots, s, result)) return true;
  if (!write_undefined(A, LU, pivots)) return false;
  result = {LU(0, 0), 0};
  return true;
}

// Those of a batch; then write(i, det A).
template <int N, class T, class F>
BS_INLINE void determinants(Task task, Arena& arena, Batch<T> A, Batch<T> LU, Batch<Pivot> pivots, F&& write) {
  DeterminantScratch<T> s(arena, A.n);
  task.each(arena, [&](Int i) BS_LAMBDA {
    ScaledNumber<T> found{T(0), 0};
    if (!write_determinant<N>(A[i], LU.columns(i), pivots.vector(i), s, found)) return false;
    write(i, found);
    return true;
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
          write(i, determinant_of(LU_i, pivots.vector(i)));
        }
        return true;
      },
      [&](Int i) {
        ScaledNumber<T> found{T(0), 0};
        if (!write_determinant<0>(A[i], LU.columns(i), pivots.vector(i), s, found)) return false;
        write(i, found);
        return true;
      });
}

// det A; LU by columns, pivots, and det A = mantissa · 2^exponent.
template <int N, class T, bool ACROSS = false>
void det(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), value = task.argument<T>(1), LU = task.argument<T>(2),
             mantissa = task.argument<T>(4);
  const auto pivots = task.argument<Pivot>(3);
  const auto exponent = task.argument<Int>(5);
  const auto write = [&](Int i, ScaledNumber<T> found) BS_LAMBDA {
    mantissa.number(i) = found.mantissa, exponent.number(i) = found.exponent, value.number(i) = found.value();
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
  const auto write = [&](Int i, ScaledNumber<T> found)
                         BS_LAMBDA { sign.number(i) = found.sign(), logarithm.number(i) = found.logarithm(); };
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

// Ā = ḡ conj(det A) A⁻ᴴ.
template <int N, class T>
void det_backward(Task task, Arena& arena) {
  const auto LU = task.argument<T>(0), mantissa = task.argument<T>(2), cotangent = task.argument<T>(4),
             result = task.argument<T>(5);
  const auto pivots = task.argument<Pivot>(1);
  const auto exponent = task.argument<Int>(3);
  task.each(arena, [&](Int i) BS_LAMBDA {
    const T scale = cotangent.number(i) * conj(mantissa.number(i));
    write_multiple_of_adjoint_inverse<N>(scale, LU.columns(i), pivots.vector(i), result.columns(i));
    multiply_by_power(result[i], exponent.number(i));
    return true;
  });
}

// Ā = ḡ A⁻ᴴ of real A, whose sign is constant; (ḡ + i Im(s̄ conj(s))) A⁻ᴴ of complex A, s being the sign.
template <int N, class T>
void slogdet_backward(Task task, Arena& arena) {
  constexpr int first = is_complex<T>;  // the sign comes before, and its cotangent
  const auto sign = task.argument<T>(0), LU = task.argument<T>(first), of_sign = task.argument<T>(3);
  const auto result = task.argument<T>(3 + 2 * first);
  const auto pivots = task.argument<Pivot>(first + 1);
  const auto of_logarithm = task.argument<Real<T>>(2 + 2 * first);
  task.each(arena, [&](Int i) BS_LAMBDA {
    T scale(of_logarithm.number(i));
    if constexpr (is_complex<T>) scale.im = imag(of_sign.number(i) * conj(sign.number(i)));
    write_multiple_of_adjoint_inverse<N>(scale, LU.columns(i), pivots.vector(i), result.columns(i));
    return true;
  });
}

// A multiple of A⁻ᴴ in packs: `scale(i)` times two to the power of `exponent(i)` of each matrix.
template <class T, class F, class E>
void adjoint_inverses_across(
    Task task, Arena& arena, Batch<T> LU, Batch<Pivot> pivots, Batch<T> result, F&& scale, E&& exponent) {
  using P = Packed<T>;
  const Int n = LU.n;
  auto factors = arena.columns<P>(n, n), X = arena.columns<P>(n, n);
  auto* of_pack = arena.take<PivotOf<P>>(n);
  each_pack<T>(task, arena, [&](Int first, Int last) {
    gather(factors, LU.t(), first, last);
    gather_pivots<P>(of_pack, pivots, first, last);
    invert_columns(factors, of_pack, X);
    P scales;
    for (int w = 0; w < width_of<P>; ++w) set_lane(scales, w, scale(std::min(first + w, last - 1)));
    each_entry(X, [&](auto i, auto j) { X(i, j) = scales * conj(X(i, j)); });
    scatter(X, result.t(), first, last);
    for (Int i = first; i < last; ++i) multiply_by_power(result[i], exponent(i));
    return true;
  });
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
      [](Int) { return Int(0); });
}

template <class T>
void det_backward_across(Task task, Arena& arena) {
  const auto mantissa = task.argument<T>(2), cotangent = task.argument<T>(4), result = task.argument<T>(5);
  const auto exponent = task.argument<Int>(3);
  adjoint_inverses_across<T>(
      task, arena, task.argument<T>(0), task.argument<Pivot>(1), result,
      [&](Int i) { return cotangent.number(i) * conj(mantissa.number(i)); }, [&](Int i) { return exponent.number(i); });
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
    square, BS_ROWS_TO_4(inv), BS_ROWS_TO_4(inv_backward), BS_ROWS_TO_4(solve), BS_ROWS_TO_4(solve_backward),
    BS_ROWS_1_TO_3("det", det_by_minors), BS_ROWS_1_TO_3("det_backward", det_by_minors_backward),
    BS_ROWS("det", det, 0), BS_ROWS("det_backward", det_backward, 0), BS_ROWS_TO_4(slogdet),
    BS_ROWS_TO_4(slogdet_backward), BS_KERNEL(pinv_square), BS_KERNEL(lstsq_square), BS_KERNEL(inv_across),
    BS_KERNEL(inv_backward_across), BS_KERNEL(solve_across), BS_KERNEL(solve_backward_across),
    BS_NAMED("pinv_square_across", inv_across<T, true>), BS_NAMED("lstsq_square_across", solve_across<T, true>),
    BS_NAMED("det_across", det<0, T, true>), BS_NAMED("slogdet_across", slogdet<0, T, true>),
    BS_KERNEL(det_backward_across), BS_KERNEL(slogdet_backward_across), BS_KERNEL(determinant))
