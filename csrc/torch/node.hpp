// The node of autograd: `strategies.autograd.fast_path_node`.

#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "plan.hpp"

// The name of the nodes is that of their type.
namespace backward_strategies {

using torch::autograd::AutogradContext;

inline variable_list by_generic_path(
    const Plan& plan, const variable_list& saved, const variable_list& cotangents, const std::vector<bool>& needed,
    const variable_list& computed) {
  py::gil_scoped_acquire lock;
  try {
    py::tuple of_inputs(needed.size());
    for (size_t i = 0; i < needed.size(); ++i) { of_inputs[i] = static_cast<bool>(needed[i]); }
    const auto module = py::module_::import("strategies.autograd.fast_path_node");
    const py::object gradients = module.attr("differentiated")(
        plan.found, as_tuple(saved), as_tuple(cotangents), of_inputs, as_tuple(computed));
    variable_list result;
    for (const auto& each : gradients) { result.push_back(each.is_none() ? Tensor() : each.cast<Tensor>()); }
    return result;
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

// What was computed, for autograd: `strategies.autograd.fast_path_node`.
struct FastPath : torch::autograd::Function<FastPath> {
  static variable_list forward(
      AutogradContext* context, const PlanPointer& plan, const Computed& computed, at::TensorList inputs) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    variable_list saved(inputs.begin(), inputs.end()), constant;
    for (const auto i : plan->unread) { saved[i] = Tensor(); }
    for (const auto i : plan->saved) { saved.push_back(computed.outputs[i]); }
    saved.insert(saved.end(), computed.kept.begin(), computed.kept.end());
    context->save_for_backward(std::move(saved));
    for (const auto i : plan->constant) { constant.push_back(computed.outputs[i]); }
    if (!constant.empty()) { context->mark_non_differentiable(constant); }
    context->set_materialize_grads(false);
    return computed.outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
    const auto capsule = context->saved_data["plan"].toCapsule();
    const auto& plan = static_cast<const Plan&>(*capsule);
    const auto is_given = [](const Tensor& cotangent) { return cotangent.defined(); };
    if (std::none_of(cotangents.begin(), cotangents.end(), is_given)) { return variable_list(2 + plan.arity); }
    const auto saved = context->get_saved_variables();
    variable_list gradients;
    const bool is_recorded = at::GradMode::is_enabled();
    if (is_plain() && (!is_recorded || plan.has_second_backward) && PyList_GET_SIZE(watchers) == 0) {
      if (auto used = usual(plan, cotangents)) { gradients = plan.differentiate(saved, std::move(*used)); }
    }
    if (gradients.empty() || is_recorded) {
      std::vector<bool> needed;
      for (size_t i = 0; i < plan.arity; ++i) { needed.push_back(context->needs_input_grad(i)); }
      gradients = by_generic_path(plan, saved, cotangents, needed, gradients);
    }
    // Neither the plan nor what was computed is a variable, and pivots have no gradient.
    gradients.insert(gradients.begin(), 2, Tensor());
    gradients.resize(2 + plan.arity);
    return gradients;
  }

  // The cotangents that the plan takes; nothing if one of them is not a usual one.
  static std::optional<variable_list> usual(const Plan& plan, const variable_list& cotangents) {
    variable_list used;
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (has(plan.ignored, i)) { continue; }
      const bool is_taken = has(plan.cotangents, i);
      if (!cotangents[i].defined()) {
        if (is_taken) { used.push_back(has(plan.optional, i) ? Tensor() : plan.outputs[i].allocate().zero_()); }
        continue;
      }
      const auto cotangent = resolved(cotangents[i]);
      if (!is_taken || !is_readable(cotangent)) { return std::nullopt; }
      used.push_back(cotangent);
    }
    return used;
  }
};

}  // namespace backward_strategies
