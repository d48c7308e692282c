// How a kernel reads its task, takes its groups, and works in scratch memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "api.h"
#include "matrix.hpp"

namespace bs {

constexpr Int LARGE_BYTES = Int(1) << 22;  // from which on memory is asked for in large pages

// Scratch memory of one thread in one call: a little on the stack, more from the heap in few pieces. What it
// gives is uninitialized, and nothing where there is no more memory; the kernel asks once, with `is_ok`.
class Arena {
  static constexpr std::size_t LITTLE = 8192, LINE = 64;
  alignas(LINE) unsigned char own[LITTLE];
  unsigned char *free_from = own, *end = own + LITTLE;
  struct Piece {
    Piece* before;
  }* pieces = nullptr;
  bool has_failed = false;

 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  ~Arena() {
    while (pieces) {
      Piece* before = pieces->before;
      ::operator delete(pieces, std::align_val_t(LINE), std::nothrow);
      pieces = before;
    }
  }

  template <class T>
  T* take(Int count) {
    static_assert(alignof(T) <= LINE);
    const std::size_t bytes = (std::size_t(count) * sizeof(T) + LINE - 1) / LINE * LINE;
    if (bytes > std::size_t(end - free_from)) {
      // Nothing is returned to a piece, so that the rest of the last one is not missed.
      auto* piece = static_cast<Piece*>(::operator new(bytes + LINE, std::align_val_t(LINE), std::nothrow));
      if (!piece) {
        has_failed = true;
        return nullptr;
      }
      piece->before = pieces, pieces = piece;
      auto* data = reinterpret_cast<unsigned char*>(piece) + LINE;
      advise(data, bytes);
      return reinterpret_cast<T*>(data);
    }
    auto* data = free_from;
    free_from += bytes;
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  Columns<T> columns(Int m, Int n) {
    // Rows of packs whose columns lie a power of two apart would share a few lines of the cache.
    const Int ld = is_pack<T> && m * Int(sizeof(T)) % 1024 == 0 ? m + 1 : m;
    return {take<T>(ld * n), m, n, ld};
  }
  bool is_ok() const { return !has_failed; }

 private:
  // Touching large pages for the first time takes a quarter of the time. No more than a hint.
  static void advise([[maybe_unused]] unsigned char* data, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
    if (Int(bytes) < LARGE_BYTES) return;
    const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE)), start = std::uintptr_t(data);
    const auto first = (start + page - 1) / page * page;
    madvise(reinterpret_cast<void*>(first), start + bytes - first, MADV_HUGEPAGE);
#endif
  }
};

// Memory for a matrix of M rows and N columns; zero stands for a number that the compiler does not know.
template <class T, int M, int N>
BS_INLINE auto scratch([[maybe_unused]] Arena& arena, [[maybe_unused]] Int m, [[maybe_unused]] Int n) {
  if constexpr (M > 0 && N > 0) return Local<T, M, N>{};
  else if constexpr (M > 0) return Strip<T, M>{arena.take<T>(M * n), n};
  else return arena.columns<T>(m, n);
}
template <class T, int N>
struct Numbers {
  T own[N];
  Numbers(Arena&, Int) {}
  BS_INLINE T& operator[](Int i) { return own[i]; }
  BS_INLINE T* get() { return own; }
};
template <class T>
struct Numbers<T, 0> {
  T* data;
  Numbers(Arena& arena, Int n) : data(arena.take<T>(n)) {}
  BS_INLINE T& operator[](Int i) { return data[i]; }
  BS_INLINE T* get() { return data; }
};

using Pivot = std::int32_t;  // LAPACK's integers

// One argument of a task: a matrix, vector or number of each matrix of the batch.
template <class T>
struct Batch {
  T* data;
  Int count, m, n, step, down, along;
  BS_INLINE View<T> operator[](Int i) const { return {data + i * step, m, n, down, along}; }
  // Without data where the argument is missing.
  BS_INLINE View<T> if_given(Int i) const { return data ? (*this)[i] : View<T>{}; }
  // What lies row after row, as the columns of its transpose.
  bool has_columns() const { return along == 1 && down == n; }
  BS_INLINE Columns<T> columns(Int i) const { return {data + i * step, n, m, n}; }
  BS_INLINE T* vector(Int i) const { return data + i * step; }
  BS_INLINE T& number(Int i) const { return data[i * step]; }
  BS_INLINE Batch t() const { return {data, count, n, m, step, along, down}; }
  // Some rows, up to the last, of column j.
  BS_INLINE Batch column(Int j, Int first, Int last) const {
    return {data + first * down + j * along, count, last - first, 1, step, down, along};
  }
};

class Task {
  bs_task* task;

 public:
  explicit Task(bs_task* of) : task(of) {}

  template <class T>
  Batch<T> argument(int position) const {
    const bs_array& a = task->array[position];
    return {static_cast<T*>(a.data), a.extent[0], a.extent[1], a.extent[2], a.stride[0], a.stride[1], a.stride[2]};
  }
  Int count() const { return task->count; }
  Int group() const { return task->group; }
  double atol() const { return task->atol; }
  double rtol() const { return task->rtol; }

  // Of a lack of memory is told even if a matrix is declined.
  void fail(bs_status status) const {
    Int none = BS_OK;
    if (status == BS_NO_MEMORY) task->status.store(status, std::memory_order_relaxed);
    else task->status.compare_exchange_strong(none, status, std::memory_order_relaxed);
  }

  // body(first, last) of the groups of this thread, which declines a group, or has no memory, by returning false.
  template <class F>
  BS_INLINE void groups(const Arena& arena, F&& body) const {
    while (arena.is_ok()) {
      const Int first = task->next.fetch_add(1, std::memory_order_relaxed) * task->group;
      if (first >= task->count) return;
      const bool is_done = body(first, std::min(first + task->group, task->count));
      if (!arena.is_ok()) break;
      if (!is_done) fail(BS_DECLINED);
      task->finished.fetch_add(1, std::memory_order_relaxed);
    }
    fail(BS_NO_MEMORY);
  }

  // body(i) of the matrices of this thread's groups.
  template <class F>
  BS_INLINE void each(const Arena& arena, F&& body) const {
    groups(arena, [&](Int first, Int last) BS_LAMBDA {
      bool is_done = true;
      for (Int i = first; i < last; ++i) is_done &= body(i);
      return is_done;
    });
  }
};

// What LAPACK reports of each matrix, where a kernel `REPORTS` it.
template <bool REPORTS>
class Info {
  Batch<Pivot> numbers;

 public:
  Info(const Task& task, int position) : numbers(task.argument<Pivot>(REPORTS ? position : 0)) {}
  BS_INLINE Pivot* of(Int i) const { return REPORTS ? &numbers.number(i) : nullptr; }
  BS_INLINE void clear(Int first, Int last) const {
    for (Int i = first; REPORTS && i < last; ++i) numbers.number(i) = 0;
  }
};

}  // namespace bs
