// Matrices: views with any strides, columns one after the other as LAPACK has them, and of a known size.
#pragma once

#include <cstring>
#include <utility>

#include "numbers.hpp"
#include "threads.hpp"

namespace bs {

template <Int V>
using Const = std::integral_constant<Int, V>;
template <class A>
constexpr bool is_const = !std::is_same_v<std::decay_t<A>, Int>;
constexpr Int MOST_UNROLLED = 4;  // beyond, unrolled code is larger and no faster

namespace detail {
template <Int FIRST, class F, Int... I>
BS_INLINE void unroll(F& body, std::integer_sequence<Int, I...>) {
  (body(Const<FIRST + I>{}), ...);
}
}  // namespace detail

// body(i) for first ≤ i < last; unrolled, with constant i, where both are small constants.
template <class A, class B, class F>
BS_INLINE void loop(A first, B last, F&& body) {
  if constexpr (is_const<A> && is_const<B>) {
    constexpr Int start = A::value, stop = B::value;
    if constexpr (stop <= start) {
    } else if constexpr (stop <= MOST_UNROLLED) {
      detail::unroll<start>(body, std::make_integer_sequence<Int, stop - start>{});
    } else {
      for (Int i = start; i < stop; ++i) body(i);
    }
  } else {
    for (Int i = first; i < Int(last); ++i) body(i);
  }
}
template <class B, class F>
BS_INLINE void loop(B count, F&& body) {
  loop(Const<0>{}, count, body);
}
// The same from the last one down.
template <class B, class F>
BS_INLINE void loop_down(B count, F&& body) {
  if constexpr (is_const<B>) {
    loop(count, [&](auto i) BS_LAMBDA {
      if constexpr (is_const<decltype(i)>) body(Const<B::value - 1 - decltype(i)::value>{});
      else body(B::value - 1 - i);
    });
  } else {
    for (Int i = count - 1; i >= 0; --i) body(i);
  }
}
template <class A>
BS_INLINE auto next(A i) {
  if constexpr (is_const<A>) return Const<A::value + 1>{};
  else return i + 1;
}
template <class A, class B>
BS_INLINE auto smaller(A a, B b) {
  if constexpr (is_const<A> && is_const<B>) return Const<(A::value < B::value ? A::value : B::value)>{};
  else return std::min<Int>(a, b);
}

constexpr Int UNDECIDED = -1;  // stands for a rank that cannot be told

// Of two extents that are equal, one that the compiler knows.
template <class A, class B>
BS_INLINE auto known(A a, B b) {
  if constexpr (is_const<A>) return a;
  else return b;
}

template <class T>
struct View {
  T* data;
  Int m, n, down, along;  // extents, and strides from row to row and from column to column
  BS_INLINE T& operator()(Int i, Int j) const { return data[i * down + j * along]; }
  BS_INLINE Int height() const { return m; }
  BS_INLINE Int width() const { return n; }
  BS_INLINE View view() const { return *this; }
  BS_INLINE View t() const { return {data, n, m, along, down}; }
  // Whether BLAS takes it where it lies: not if columns overlap, as those of an expanded one do.
  BS_INLINE bool has_packed_columns() const { return down == 1 && along >= m; }
  BS_INLINE View rows(Int first, Int last) const { return {data + first * down, last - first, n, down, along}; }
};

template <class T>
struct Columns {
  T* data;
  Int m, n, ld;
  BS_INLINE T& operator()(Int i, Int j) const { return data[i + j * ld]; }
  BS_INLINE T* column(Int j) const { return data + j * ld; }
  BS_INLINE Int height() const { return m; }
  BS_INLINE Int width() const { return n; }
  BS_INLINE Columns part(Int top, Int bottom, Int left, Int right) const {
    return {data + top + left * ld, bottom - top, right - left, ld};
  }
  BS_INLINE Columns columns(Int left, Int right) const { return part(0, m, left, right); }
  BS_INLINE View<T> view() const { return {data, m, n, 1, ld}; }
  BS_INLINE View<T> t() const { return {data, n, m, ld, 1}; }
};

// Rows that lie one after the other, as the columns of the transpose.
template <class T>
BS_INLINE Columns<T> as_columns(View<T> rows) {
  return {rows.data, rows.n, rows.m, rows.down};
}

template <class T, int M, int N>
struct Local {
  T entries[M * N];
  BS_INLINE T& operator()(Int i, Int j) { return entries[i + j * M]; }
  BS_INLINE const T& operator()(Int i, Int j) const { return entries[i + j * M]; }
  BS_INLINE T* column(Int j) { return entries + j * M; }
  BS_INLINE const T* column(Int j) const { return entries + j * M; }
  BS_INLINE Const<M> height() const { return {}; }
  BS_INLINE Const<N> width() const { return {}; }
  BS_INLINE View<T> view() { return {entries, M, N, 1, M}; }
};

// Of M rows and any number of columns.
template <class T, int M>
struct Strip {
  T* data;
  Int n;
  BS_INLINE T& operator()(Int i, Int j) const { return data[i + j * M]; }
  BS_INLINE T* column(Int j) const { return data + j * M; }
  BS_INLINE Const<M> height() const { return {}; }
  BS_INLINE Int width() const { return n; }
  BS_INLINE View<T> view() const { return {data, M, n, 1, M}; }
};

template <class M>
using Entry = std::decay_t<decltype(std::declval<M&>()(0, 0))>;

// body(i, j) of all entries, column by column.
template <class M, class F>
BS_INLINE void each_entry(const M& matrix, F&& body) {
  loop(matrix.width(), [&](auto j) BS_LAMBDA { loop(matrix.height(), [&](auto i) BS_LAMBDA { body(i, j); }); });
}
template <class M>
BS_INLINE void fill_with_zeros(M&& matrix) {
  each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { matrix(i, j) = Entry<M>(0); });
}
template <class M>
BS_INLINE void fill_with_identity(M&& matrix) {
  each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { matrix(i, j) = Entry<M>(Int(i) == Int(j) ? 1 : 0); });
}
template <class M>
BS_INLINE void conjugate([[maybe_unused]] M&& matrix) {
  if constexpr (is_complex<Entry<M>>) {
    each_entry(matrix, [&](auto i, auto j) BS_LAMBDA { matrix(i, j) = conj(matrix(i, j)); });
  }
}

// The adjoint or transpose of a matrix, and rows of it, as they are read.
template <bool CONJUGATED, class M>
struct Turned {
  const M& matrix;
  BS_INLINE auto operator()(Int i, Int j) const { return conj_if<CONJUGATED>(matrix(j, i)); }
  BS_INLINE auto height() const { return matrix.width(); }
  BS_INLINE auto width() const { return matrix.height(); }
};
template <class M>
BS_INLINE Turned<true, M> adjoint(const M& matrix) {
  return {matrix};
}
template <class M>
BS_INLINE Turned<false, M> transposed(const M& matrix) {
  return {matrix};
}

namespace detail {

template <class T>
void copy_rows(View<T> target, View<T> source) {
  for (Int i = 0; i < target.m; ++i) {
    T* to = target.data + i * target.down;
    const T* from = source.data + i * source.down;
    if (target.along == 1 && source.along == 1) {
      for (Int j = 0; j < target.n; ++j) to[j] = from[j];
    } else {
      for (Int j = 0; j < target.n; ++j) to[j * target.along] = from[j * source.along];
    }
  }
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define BS_SHUFFLE __builtin_shufflevector
#endif
#endif

// Four rows as four columns. A store of each entry would be as slow as one of four.
template <class T>
BS_INLINE void copy_square(T* columns, Int along, const T* rows, Int down) {
#if defined(BS_SHUFFLE)
  typedef std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t> Row
      __attribute__((vector_size(4 * sizeof(T))));
  Row a, b, c, d;
  std::memcpy(&a, rows, sizeof a), std::memcpy(&b, rows + down, sizeof b);
  std::memcpy(&c, rows + 2 * down, sizeof c), std::memcpy(&d, rows + 3 * down, sizeof d);
  const Row even_ab = BS_SHUFFLE(a, b, 0, 4, 2, 6), odd_ab = BS_SHUFFLE(a, b, 1, 5, 3, 7);
  const Row even_cd = BS_SHUFFLE(c, d, 0, 4, 2, 6), odd_cd = BS_SHUFFLE(c, d, 1, 5, 3, 7);
  a = BS_SHUFFLE(even_ab, even_cd, 0, 1, 4, 5), b = BS_SHUFFLE(odd_ab, odd_cd, 0, 1, 4, 5);
  c = BS_SHUFFLE(even_ab, even_cd, 2, 3, 6, 7), d = BS_SHUFFLE(odd_ab, odd_cd, 2, 3, 6, 7);
  std::memcpy(columns, &a, sizeof a), std::memcpy(columns + along, &b, sizeof b);
  std::memcpy(columns + 2 * along, &c, sizeof c), std::memcpy(columns + 3 * along, &d, sizeof d);
#else
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) columns[i + j * along] = rows[i * down + j];
  }
#endif
}

template <Int ROWS, class T>
BS_INLINE void copy_strip(View<T> target, View<T> source, Int top, Int left, Int right) {
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    if (target.down == 1 && source.along == 1) {
      for (; left + 4 <= right; left += 4) {
        for (Int i = 0; i < ROWS; i += 4) {
          copy_square(&target(top + i, left), target.along, &source(top + i, left), source.down);
        }
      }
    }
  }
  for (Int j = left; j < right; ++j) {
    for (Int i = 0; i < ROWS; ++i) target(top + i, j) = source(top + i, j);
  }
}

constexpr Int STRIP = 32;  // rows that are copied together into the other layout

// Of one layout into the other. Short rows some lines of the cache at a time; of long columns, which may lie a
// power of two apart, the first line would be out of the cache at the end: tile by tile.
template <class T>
void copy_across(View<T> target, View<T> source) {
  constexpr Int tile = 8, long_row = 1024 / Int(sizeof(T));
  const Int m = target.m, n = target.n, tiled = m / tile * tile;
  Int done = 0;
  if (n < long_row) {
    for (; done + STRIP <= m; done += STRIP) copy_strip<STRIP>(target, source, done, 0, n);
  }
  for (; done < tiled; done += tile) {
    const Int width = n < long_row ? n : tile;
    for (Int j = 0; j < n; j += width) copy_strip<tile>(target, source, done, j, std::min(j + width, n));
  }
  copy_rows(target.rows(tiled, m), source.rows(tiled, m));
}

template <class T>
void copy_part(View<T> target, View<T> source) {
  if (target.along <= target.down && source.along <= source.down) {
    copy_rows(target, source);
  } else if (target.down <= target.along && source.down <= source.along) {
    copy_rows(target.t(), source.t());
  } else {
    copy_across(target, source);
  }
}

template <class T>
BS_COLD void copy(View<T> target, View<T> source) {
  const Int entries = target.m * target.n;
  if (entries < PASS_WORTH_THREADS) {
    copy_part(target, source);
  } else if (target.m < target.n) {
    copy(target.t(), source.t());
  } else {
    const Int rows = (target.m / (SHARES_OF_PASS * STRIP) + 1) * STRIP;
    share(entries, (target.m + rows - 1) / rows, [&](Int i) {
      const Int top = i * rows, bottom = std::min(target.m, top + rows);
      copy_part(target.rows(top, bottom), source.rows(top, bottom));
    });
  }
}

}  // namespace detail

// Entry by entry, whatever the strides.
template <class A, class B>
BS_INLINE void copy(A&& target, B&& source) {
  const auto m = known(target.height(), source.height());
  if constexpr (is_const<decltype(m)>) {
    loop(known(target.width(), source.width()), [&](auto j) BS_LAMBDA {
      loop(m, [&](auto i) BS_LAMBDA { target(i, j) = source(i, j); });
    });
  } else {
    detail::copy(target.view(), source.view());
  }
}

// y ← y − factor x, of contiguous numbers.
template <bool CONJUGATED = false, class T>
BS_INLINE void subtract_multiple(T* y, const T* x, T factor, Int n) {
  for (Int i = 0; i < n; ++i) y[i] -= conj_if<CONJUGATED>(x[i]) * factor;
}

// Σ x_i y_i, or of the conjugate of x, of contiguous numbers, added in any order.
template <bool CONJUGATED, class T>
BS_INLINE T dot(const T* x, const T* y, Int n) {
  if constexpr (is_pack<T>) {
    T total(0);
    for (Int i = 0; i < n; ++i) total += conj_if<CONJUGATED>(x[i]) * y[i];
    return total;
  } else if constexpr (is_complex<T>) {
    Real<T> re = 0, im = 0;
    BS_SUM(re, im)
    for (Int i = 0; i < n; ++i) {
      const T term = conj_if<CONJUGATED>(x[i]) * y[i];
      re += term.re, im += term.im;
    }
    return {re, im};
  } else {
    T total = 0;
    BS_SUM(total)
    for (Int i = 0; i < n; ++i) total += x[i] * y[i];
    return total;
  }
}

// C ← factor A B, or C + factor A B, without a library: of few rows or columns, and of packs.
template <bool ADDS, class C, class A, class B>
BS_INLINE void multiply_small(C&& c, const A& a, const B& b, int factor) {
  using T = Entry<C>;
  loop(b.width(), [&](auto j) BS_LAMBDA {
    loop(c.height(), [&](auto i) BS_LAMBDA {
      T total(0);
      loop(a.width(), [&](auto k) BS_LAMBDA { total += a(i, k) * b(k, j); });
      if constexpr (ADDS) c(i, j) = factor > 0 ? c(i, j) + total : c(i, j) - total;
      else c(i, j) = factor > 0 ? total : -total;
    });
  });
}

}  // namespace bs
