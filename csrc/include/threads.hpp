// How many threads a kernel, and the BLAS that it calls, may use.
#pragma once

#include <atomic>

#include "numbers.hpp"

namespace bs {

inline int (*set_blas_threads)(int) = nullptr;  // of the calling thread; returns what it was
inline void (*team)(void (*)(void*), void*, unsigned, unsigned) = nullptr;  // `bs_set_team`

namespace detail {
inline thread_local int limits = 0;  // of the calling thread to itself
}

// Keeps a kernel and BLAS to one thread, as long as it lives, if asked to.
class OneThread {
  bool is_asked;
  int before = -1;

 public:
  explicit OneThread(bool asked) : is_asked(asked) {
    detail::limits += is_asked;
    if (is_asked && set_blas_threads) before = set_blas_threads(1);
  }
  OneThread(const OneThread&) = delete;
  ~OneThread() {
    detail::limits -= is_asked;
    if (before >= 0) set_blas_threads(before);
  }
};

constexpr Int PASS_WORTH_THREADS = Int(1) << 16;  // entries that are read or written once
constexpr Int SHARES_OF_PASS = 8;

// A pass over so many entries, piece(i) for 0 ≤ i < pieces in any order: threads take one piece after the other.
template <class F>
void share(Int entries, Int pieces, const F& piece) {
  struct Work {
    const F& piece;
    const Int pieces;
    std::atomic<Int> next{0};
  } work{piece, pieces};
  const auto take = [](void* of) {
    auto& all = *static_cast<Work*>(of);
    for (Int i; (i = all.next.fetch_add(1)) < all.pieces;) all.piece(i);
    BS_CLEAR_UPPER_HALVES();
  };
  if (team && entries >= PASS_WORTH_THREADS && !detail::limits) team(take, &work, 0, 0);
  else take(&work);
}

}  // namespace bs
