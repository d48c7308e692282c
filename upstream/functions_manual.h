// What PyTorch's FunctionsManual.cpp has at its head, as far as the derivatives
// here need it.

#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <array>
#include <tuple>

namespace torch::autograd::generated::details {

using at::Tensor;

} // namespace torch::autograd::generated::details
