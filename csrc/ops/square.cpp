// Inverses and solutions of square matrices, and what is solved with them as least squares.
#include <optional>

#include "../include/lu.hpp"
#include "../include/pack.hpp"
#include "table.hpp"

namespace bs {
namespace {

// X = A⁻¹, by columns; with a place for `info`, of a matrix that has a zero pivot, too.
template <class T, int N>
struct Inverse {
  decltype(scratch<T, N, N>(std::declval<Arena&>(), 0, 0)) F, X;
  Numbers<Pivot, N> pivots;
  Numbers<double, N> before;
  double squares = 0;
  Inverse(Arena& arena, Int n)
      : F(scratch<T, N, N>(arena, n, n)), X(scratch<T, N, N>(arena, n, n)), pivots(arena, n), before(arena, n) {}

  BS_INLINE bool compute(View<T> A, Columns<T> result, Pivot* info = nullptr) {
    if (info) *info = 0;
    copy(F, A);
    if (!factor(F, pivots.get(), before.get(), &squares)) { return report(A, F, squares, result, pivots.get(), info); }
    if constexpr (N > 0) {
      invert_small(F, pivots.get(), X);
      copy(result, X);
    } else {
      invert_columns(F, pivots.get(), result);
    }
    return true;
  }
};

template <int N, class T, bool REPORTS = false>
void inv(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), X = task.argument<T>(1);
  const Info<REPORTS> info(task, 2);
  Inverse<T, N> inverse(arena, X.m);
  task.each(arena, [&](Int i) BS_LAMBDA { return inverse.compute(A[i], X.columns(i), info.of(i)); });
}
template <int N, class T>
void inv_ex(Task task, Arena& arena) {
  inv<N, T, true>(task, arena);
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
template <class T, bool CHECKS_RANK = false, bool REPORTS = false>
void inv_across(Task task, Arena& arena) {
  using P = Packed<T>;
  const auto A = task.argument<T>(0), result = task.argument<T>(1).t();
  const Info<REPORTS> info(task, 2);
  const Int n = A.n;
  auto F = arena.columns<P>(n, n), X = arena.columns<P>(n, n);
  std::optional<Inverse<T, 0>> alone;
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
        info.clear(first, last);
        return !CHECKS_RANK || are_of_full_rank(threshold, X, n, squares);
      },
      [&](Int i) {
        if (CHECKS_RANK) return false;
        if (!alone) alone.emplace(arena, n);
        if (!arena.is_ok() || !alone->compute(A[i], alone->X, info.of(i))) return false;
        copy(result[i], alone->X);
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

  BS_INLINE bool compute(
      View<T> A, View<T> B, View<T> X, Columns<T> LU, Pivot* pivots, [[maybe_unused]] Pivot* info = nullptr) {
    if (info) *info = 0;
    copy(Y, B);
    const auto write_nothing = [&](auto factors) {
      fill_with_nan(X);
      return report(A, factors, squares, LU, pivots, info);
    };
    if constexpr (N > 0) {
      copy(F, A);
      if (!factor(F, pivots, before.get(), &squares)) return write_nothing(F);
      if (!are_safe_sides(Y, squares) && is_finite(B)) return false;
      copy(LU, F);
      solve_small(F, pivots, Y);
    } else {
      copy(LU, A);
      if (!factor(LU, pivots, before.get(), &squares)) return write_nothing(LU);
      if (!are_safe_sides(Y, squares) && is_finite(B)) return false;
      solve_columns(LU, pivots, Y);
    }
    copy(X, Y);
    return true;
  }
};

template <int N, class T, bool REPORTS = false>
void solve(Task task, Arena& arena) {
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const Info<REPORTS> info(task, 3);
  const auto LU = task.argument<T>(3 + REPORTS);
  const auto pivots = task.argument<Pivot>(4 + REPORTS);
  Solution<T, N> solution(arena, X.m, X.n);
  task.each(arena, [&](Int i) BS_LAMBDA {
    return solution.compute(A[i], B[i], X[i], LU.columns(i), pivots.vector(i), info.of(i));
  });
}
template <int N, class T>
void solve_ex(Task task, Arena& arena) {
  solve<N, T, true>(task, arena);
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
template <class T, bool WITH_RANK = false, bool REPORTS = false>
void solve_across(Task task, Arena& arena) {
  using P = Packed<T>;
  constexpr int kept = 3 + (WITH_RANK || REPORTS);
  const auto A = task.argument<T>(0), B = task.argument<T>(1), X = task.argument<T>(2);
  const auto LU = task.argument<T>(kept);
  const auto pivots = task.argument<Pivot>(kept + 1);
  const Info<REPORTS> info(task, 3);
  const RankTest<true, P> test(task, arena, WITH_RANK ? X.m : 0);
  const Int n = A.n;
  auto F = arena.columns<P>(n, n), Y = arena.columns<P>(n, X.n);
  std::optional<Solution<T, 0>> alone;
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
        info.clear(first, last);
        if (!WITH_RANK) return true;
        for (Int i = first; i < last; ++i) task.argument<Int>(3).number(i) = n;
        return test.is_full(F, n, squares);
      },
      [&](Int i) {
        if (WITH_RANK) return false;
        if (!alone) alone.emplace(arena, n, X.n);
        return arena.is_ok() && alone->compute(A[i], B[i], X[i], LU.columns(i), pivots.vector(i), info.of(i));
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

}  // namespace
}  // namespace bs

BS_DEFINE_FAMILY(
    square, BS_ROWS_TO_4(inv), BS_ROWS_TO_4(inv_ex), BS_ROWS_TO_4(inv_backward), BS_ROWS_TO_4(solve),
    BS_ROWS_TO_4(solve_ex), BS_ROWS_TO_4(solve_backward), BS_KERNEL(pinv_square), BS_KERNEL(lstsq_square),
    BS_KERNEL(inv_across), BS_KERNEL(inv_backward_across), BS_KERNEL(solve_across), BS_KERNEL(solve_backward_across),
    BS_NAMED("pinv_square_across", inv_across<T, true>), BS_NAMED("inv_ex_across", inv_across<T, false, true>),
    BS_NAMED("solve_ex_across", solve_across<T, false, true>), BS_NAMED("lstsq_square_across", solve_across<T, true>))
