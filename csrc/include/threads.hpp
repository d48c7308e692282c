// How many threads a kernel, and the BLAS that it calls, may use.
#pragma once

#include <atomic>

#include "api.h"
#include "numbers.hpp"

namespace bs {

// Sets the number of BLAS threads of the calling thread; returns the one before.
inline int (*set_blas_threads)(int) = nullptr;
inline bs_team team = nullptr;

namespace detail {
inline thread_local int limits = 0;  // why this thread shares no work: nothing forbids it if they are none
}

// While it lives, and if asked to, a kernel and BLAS use one thread where this one calls them.
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

constexpr Int PASS_WORTH_THREADS = Int(1) << 16;  // entries from which on threads share a pass
constexpr Int SHARES_OF_PASS = 8;                 // at most, of copies and sums

// Calls piece(i) for 0 ≤ i < pieces in any order, which together pass over so many entries. Where these are enough,
// threads take the next piece as soon as they are done with one. They are as many as torch has, so that its pool keeps
// its size. No piece is shared again.
template <class F>
void share(Int entries, Int pieces, const F& piece) {
  struct Work {
    const F& piece;
    const Int pieces;
    std::atomic<Int> next{0};
  } work{piece, pieces};
  const auto take = [](void* of) {
    auto& all = *static_cast<Work*>(of);
    ++detail::limits;
    for (Int i; (i = all.next.fetch_add(1)) < all.pieces;) all.piece(i);
    --detail::limits;
    BS_CLEAR_UPPER_HALVES();
  };
  if (team && entries >= PASS_WORTH_THREADS && !detail::limits) team(take, &work, 0, 0);
  else take(&work);
}

}  // namespace bs
