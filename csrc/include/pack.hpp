// Matrices of a batch side by side in packs: however small they are, an instruction is the same for all of them.
#pragma once

#include "condition.hpp"
#include "lu.hpp"

namespace bs {

// The matrices from the first one on; the last one repeated where they end.
template <class T>
BS_COLD void gather(Columns<Packed<T>> target, Batch<T> source, Int first, Int last) {
  constexpr int width = width_of<Packed<T>>;
  const T* data[width];
  for (int w = 0; w < width; ++w) data[w] = source.data + std::min(first + w, last - 1) * source.step;
  for (Int j = 0; j < target.n; ++j) {
    for (Int i = 0; i < target.m; ++i) {
      const Int offset = i * source.down + j * source.along;
      Packed<T>& entry = target(i, j);
      for (int w = 0; w < width; ++w) set_lane(entry, w, data[w][offset]);
    }
  }
}

// Back to where `gather` takes them from.
template <class T>
BS_COLD void scatter(Columns<Packed<T>> source, Batch<T> target, Int first, Int last) {
  const auto write = [&](Int i, Int j, int count) BS_LAMBDA {
    T* data = target.data + first * target.step + i * target.down + j * target.along;
    const Packed<T>& entry = source(i, j);
    for (int w = 0; w < count; ++w) data[w * target.step] = lane(entry, w);
  };
  constexpr int width = width_of<Packed<T>>;
  for (Int j = 0; j < source.n; ++j) {
    for (Int i = 0; i < source.m; ++i) {
      if (last - first == width) write(i, j, width);
      else write(i, j, int(last - first));
    }
  }
}

template <class P>
void gather_pivots(PivotOf<P>* target, Batch<Pivot> source, Int first, Int last) {
  for (Int k = 0; k < source.m; ++k) {
    for (int w = 0; w < width_of<P>; ++w) target[k][w] = source.vector(std::min(first + w, last - 1))[k];
  }
}
template <class P>
void scatter_pivots(const PivotOf<P>* source, Batch<Pivot> target, Int first, Int last) {
  for (Int i = first; i < last; ++i) {
    for (Int k = 0; k < target.m; ++k) target.vector(i)[k] = source[k][i - first];
  }
}

// body(first, last) of each so many matrices as are in a pack, of the groups of this thread; alone(i) of each matrix of
// a pack that the body declines.
template <class T, class F, class A>
BS_INLINE void each_pack(Task task, const Arena& arena, F&& body, A&& alone) {
  task.groups(arena, [&](Int first, Int last) BS_LAMBDA {
    bool is_done = true;
    for (Int end; first < last; first = end) {
      end = std::min<Int>(first + width_of<Packed<T>>, last);
      if (body(first, end)) continue;
      for (Int i = first; i < end; ++i) is_done = is_done && alone(i);
    }
    return is_done;
  });
}

template <class T, class F>
BS_INLINE void each_pack(Task task, const Arena& arena, F&& body) {
  each_pack<T>(task, arena, body, [](Int) { return false; });
}

// Σ |x|² of each matrix.
template <class P>
void add_squares_of_lanes(Columns<P> F, double* squares) {
  for (int w = 0; w < width_of<P>; ++w) squares[w] = 0;
  for (Int j = 0; j < F.n; ++j) {
    for (Int i = 0; i < F.m; ++i) {
      for (int w = 0; w < width_of<P>; ++w) squares[w] += square(lane(F(i, j), w));
    }
  }
}

// `safe_squares` of each matrix is not negative.
template <class P>
bool are_in_safe_range(Columns<P> F, double* squares, Range range = RANGE<P>) {
  add_squares_of_lanes(F, squares);
  bool result = true;
  for (int w = 0; w < width_of<P>; ++w) result &= range.holds(squares[w]);
  return result;
}

// A lane of a matrix of packs.
template <class P>
struct LaneOf {
  Columns<P> packs;
  int w;
  BS_INLINE Scalar<P> operator()(Int i, Int j) const { return lane(packs(i, j), w); }
  BS_INLINE Int height() const { return packs.m; }
  BS_INLINE Int width() const { return packs.n; }
};

// `are_safe_sides` in each lane, beside matrices of such sums of squares.
template <class P>
bool are_safe_lanes(Columns<P> sides, const double* squares_of_matrices) {
  double squares[width_of<P>];
  add_squares_of_lanes(sides, squares);
  bool result = true;
  for (int w = 0; w < width_of<P>; ++w) {
    result &= are_safe_sides(LaneOf<P>{sides, w}, squares[w], squares_of_matrices[w]);
  }
  return result;
}

// Whether matrices of m rows, of such sums of squares, are of full rank for certain, by their pseudoinverses.
template <class P>
bool are_of_full_rank(const Threshold<Scalar<P>>& threshold, Columns<P> inverses, Int m, const double* squares) {
  double of_inverses[width_of<P>];
  add_squares_of_lanes(inverses, of_inverses);
  bool result = true;
  for (int w = 0; w < width_of<P>; ++w) result &= of_inverses[w] * threshold.squared(m, squares[w]) < 1;
  return result;
}

// `normalize` each matrix; the powers, and whether there is one for each.
template <class P>
BS_COLD bool normalize_lanes(Columns<P> F, double* powers) {
  constexpr int width = width_of<P>;
  double squares[width];
  for (int w = 0; w < width; ++w) powers[w] = 1;
  if (are_in_safe_range(F, squares)) return true;
  for (int w = 0; w < width; ++w) {
    const LaneOf<P> matrix{F, w};
    if (safe_squares(matrix, squares[w]) >= 0) continue;
    powers[w] = normalizing_power(matrix);
    if (powers[w] == 0) return false;
    const auto factor = Real<Scalar<P>>(1 / powers[w]);
    each_entry(F, [&](auto i, auto j) BS_LAMBDA { set_lane(F(i, j), w, times_real(lane(F(i, j), w), factor)); });
  }
  return true;
}

template <class P>
void multiply_lanes_by(Columns<P> F, const double* powers) {
  Real<P> factor;
  bool is_one = true;
  for (int w = 0; w < width_of<P>; ++w) factor.set(w, Real<Scalar<P>>(powers[w])), is_one &= powers[w] == 1;
  if (!is_one) each_entry(F, [&](auto i, auto j) BS_LAMBDA { F(i, j) = times_real(F(i, j), factor); });
}

}  // namespace bs
