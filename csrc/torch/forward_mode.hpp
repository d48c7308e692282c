// Forward mode of the fast path: `FastPath._in_forward_mode` at a level of torch.func, without Python but for the
// formula of the tangents.

#pragma once

#include "levels.hpp"
#include "plan_cache.hpp"

namespace backward_strategies {

// The tangent in the layout of the output, since forward mode copies others, level by level.
inline Tensor laid_out_like(const Tensor& tangent, const Tensor& output) {
  if (tangent.strides() == output.strides()) { return tangent; }
  return tangent.new_empty_strided(output.sizes(), output.strides()).copy_(tangent);
}

// Outputs of inputs that are constant below the innermost level, with their tangents; nothing where Python is to see.
inline std::optional<variable_list> in_forward_mode(
    PlanCache& cache, PyObject* choice, PyObject* const* arguments, size_t count) {
  if (cache.tangents.is_none() || !is_transformed_alone() || PyList_GET_SIZE(watchers) != 0) { return std::nullopt; }
  const auto& innermost = at::functorch::getDynamicLayerStack().back();
  const int64_t level = innermost.layerId();
  auto given = cache.parsed(arguments, count);
  if (innermost.key() != TransformType::Jvp || !given) { return std::nullopt; }
  variable_list tangents;
  bool any = false;
  for (auto& input : given->inputs) {
    const auto dual = without_ended_levels(input);
    const auto& tangent = dual._fw_grad(0);
    if (tangent.defined() && tangent._is_zerotensor()) { return std::nullopt; }
    tangents.push_back(tangent.defined() ? unwrapped(tangent, level) : tangent);
    any = any || tangent.defined();
    input = unwrapped(dual, level);
    // What belongs to another level would lose its derivative.
    if (has_only(input, OF_CPU | PENDING) && !input._fw_grad(0).defined()) {
      input = below_levels([&] { return resolved(input); });
    }
    const bool is_recorded = input.requires_grad() || (tangent.defined() && tangents.back().requires_grad());
    if (!is_readable(input) || (at::GradMode::is_enabled() && is_recorded)) { return std::nullopt; }
  }
  if (!any) { return std::nullopt; }
  auto found = below_levels([&] { return cache.compute(cache.followed(choice), std::move(*given)); });
  if (!found) { return std::nullopt; }
  const auto& [outputs, kept] = found->computed;
  variable_list of_outputs;
  {
    const BelowLevel below;
    const auto result = cache.tangents(
        found->plan->found, as_tuple(found->inputs), as_tuple(outputs), as_tuple(kept), as_tuple(tangents));
    if (result.is_none()) { return std::nullopt; }
    for (const auto& each : result) {
      of_outputs.push_back(laid_out_like(each.cast<Tensor>(), outputs[of_outputs.size()]));
    }
  }
  variable_list duals;
  for (const auto& each : outputs) { duals.push_back(at::functorch::makeTensorWrapper(each, level)); }
  for (size_t i = 0; i < of_outputs.size(); ++i) {
    duals[i]._set_fw_grad(at::functorch::makeTensorWrapper(of_outputs[i], level), 0, /*is_inplace_op=*/false);
  }
  return duals;
}

}  // namespace backward_strategies
