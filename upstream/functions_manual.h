// What PyTorch's FunctionsManual.cpp has before the derivatives here, as far as
// they need it; the functions are written anew.

#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/LinearAlgebraUtils.h>

#include <array>
#include <cmath>
#include <tuple>

namespace torch::autograd::generated::details {

using at::areAnyTensorSubclassLike;
using at::Tensor;

// The tensor (..., m, n) whose strictly lower triangle is that of L and whose
// upper triangle is that of U, of which one may be undefined.
inline Tensor lu_unpack_backward(
    const Tensor& L,
    const Tensor& U,
    const c10::SymInt& m,
    const c10::SymInt& n) {
  const auto k = std::min(m, n);
  const auto lower = L.defined()
                         ? at::constant_pad_nd_symint(L.tril(-1), {0, n - k})
                         : Tensor();
  const auto upper =
      U.defined() ? at::constant_pad_nd_symint(U.triu(), {0, 0, 0, m - k})
                  : Tensor();
  return !L.defined() ? upper : !U.defined() ? lower : lower + upper;
}

// By f of the matrices that are chosen in a batch, by g of the others.
template <class F, class G>
Tensor masked_fmap(
    const Tensor& chosen,
    const F& f,
    const G& g,
    const Tensor& first,
    const Tensor& second,
    const Tensor& third) {
  const auto count = chosen.sum().item<int64_t>();
  if (count == chosen.numel()) {
    return f(first, second, third);
  }
  if (count == 0) {
    return g(first, second, third);
  }
  const auto others = chosen.logical_not();
  return at::empty_like(first)
      .index_put(
          {chosen},
          f(first.index({chosen}),
            second.index({chosen}),
            third.index({chosen})))
      .index_put(
          {others},
          g(first.index({others}),
            second.index({others}),
            third.index({others})));
}

} // namespace torch::autograd::generated::details
