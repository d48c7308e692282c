// Levels of torch.func: what `strategies.autograd.transforms` does, without Python.

#pragma once

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>

#include "plan.hpp"

namespace backward_strategies {

using at::functorch::TransformType;

constexpr c10::DispatchKeySet OF_LEVELS({Key::FuncTorchBatched, Key::FuncTorchGradWrapper});

// Whether a transform of torch.func is in force, and no other mode that sees operators or functions.
inline bool is_transformed_alone() {
  return !at::functorch::getDynamicLayerStack().empty() && c10::impl::TorchDispatchModeTLS::stack_len() == 0 &&
         at::impl::PythonTorchFunctionTLS::stack_len() == 0;
}

inline bool has_level(TransformType kind) {
  const auto& levels = at::functorch::getDynamicLayerStack();
  return std::any_of(levels.begin(), levels.end(), [&](const auto& level) { return level.key() == kind; });
}

// The transforms in force by their letters, the outermost first.
inline std::string levels() {
  std::string kinds;
  for (const auto& level : at::functorch::getDynamicLayerStack()) { kinds += "TVGJF"[static_cast<int>(level.key())]; }
  return kinds;
}

// Within its life, what is called is called below the innermost level.
class BelowLevel {
 public:
  BelowLevel() : level(at::functorch::popDynamicLayer()) {
    const auto& meta = level.interpreter().meta();
    const auto* reverse = std::get_if<at::functorch::GradInterpreterMeta>(&meta);
    const auto* forward = std::get_if<at::functorch::JvpInterpreterMeta>(&meta);
    if (reverse != nullptr && !reverse->prevGradMode_) { without_graphs.emplace(false); }
    if (forward != nullptr && !forward->prevFwdGradMode_) { without_tangents.emplace(false); }
  }
  ~BelowLevel() { at::functorch::pushDynamicLayer(std::move(level)); }
  BelowLevel(const BelowLevel&) = delete;
  BelowLevel& operator=(const BelowLevel&) = delete;

 private:
  at::functorch::DynamicLayer level;
  std::optional<at::AutoGradMode> without_graphs;
  std::optional<at::AutoFwGradMode> without_tangents;
};

// What is computed below all levels.
template <typename Compute>
auto below_levels(const Compute& compute) -> decltype(compute()) {
  if (at::functorch::getDynamicLayerStack().empty()) { return compute(); }
  const BelowLevel below;
  return below_levels(compute);
}

// What wrappers of ended levels hold.
inline Tensor without_ended_levels(Tensor tensor) {
  while (at::functorch::isDeadTensorWrapper(tensor)) { tensor = at::functorch::unwrapIfDead(tensor); }
  return tensor;
}

// A tensor of a level that differentiates as it is below that.
inline Tensor unwrapped(const Tensor& tensor, int64_t level) {
  const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor);
  return wrapper != nullptr && wrapper->level() == level ? wrapper->value() : tensor;
}

// What wrappers of all levels hold.
inline Tensor without_levels(Tensor tensor) {
  while (true) {
    if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) {
      tensor = wrapper->value();
    } else if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
      tensor = batched->value();
    } else {
      return tensor;
    }
  }
}

// A tensor with the samples of a `vmap` in one of its dimensions, or without samples.
struct Samples {
  Tensor value;
  std::optional<int64_t> dim;

  Samples(const Tensor& tensor, int64_t level) : value(tensor) {
    const auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
    if (batched != nullptr && batched->level() == level) {
      value = batched->value();
      dim = batched->bdim();
    }
  }

  int64_t ndim() const { return value.dim() - (dim ? 1 : 0); }

  // With that dimension, of a size, at a place.
  Tensor at(int64_t place, int64_t size) const {
    if (dim) { return *dim == place ? value : value.movedim(*dim, place); }
    Words sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.begin() + place, size);
    return value.unsqueeze(place).expand(sizes);
  }
};

// What a function returns for all samples of the `vmap` that is the innermost level: `over_samples` of
// `strategies.autograd.transforms`.
inline py::object over_samples(const py::object& function, const variable_list& tensors) {
  const int64_t level = at::functorch::getDynamicLayerStack().back().layerId();
  std::vector<Samples> samples;
  std::optional<int64_t> size;
  for (const auto& each : tensors) {
    const auto& [value, dim] = samples.emplace_back(without_ended_levels(each), level);
    if (dim) { size = value.size(*dim); }
  }
  py::tuple given(tensors.size());
  const BelowLevel below;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto& [value, dim] = samples[i];
    given[i] = py::cast(!size ? value : !dim ? value.unsqueeze(0) : *dim == 0 ? value : value.movedim(*dim, 0));
  }
  const py::object found = function(*given);
  if (!size) { return found; }
  const auto wrapped = [&](const py::handle& output) {
    const auto& tensor = THPVariable_Unpack(output.ptr());
    return py::cast(tensor.size(0) == *size ? at::functorch::makeBatched(tensor, 0, level) : tensor.squeeze(0));
  };
  if (THPVariable_Check(found.ptr())) { return wrapped(found); }
  py::list outputs;
  for (const auto& each : found) { outputs.append(wrapped(each)); }
  return found.attr("_make")(outputs);
}

}  // namespace backward_strategies
