// The node of autograd: `strategies.autograd.fast_path_node`.

#pragma once

#include <pybind11/gil_safe_call_once.h>
#include <torch/csrc/autograd/custom_function.h>

#include "plan.hpp"

// The name of the nodes is that of their type.
namespace backward_strategies {

using torch::autograd::AutogradContext;

// `strategies.autograd.fast_path_node`, found once.
inline const py::object& in_python() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> module;
  const auto imported = [] { return py::object(py::module_::import("strategies.autograd.fast_path_node")); };
  return module.call_once_and_store_result(imported).get_stored();
}

// What a function of that returns: tensors, or None.
template <typename... Arguments>
variable_list called(const char* name, const Plan& plan, Arguments&&... arguments) {
  const py::object found = in_python().attr(name)(plan.found, std::forward<Arguments>(arguments)...);
  variable_list result;
  for (const auto& each : found) { result.push_back(each.is_none() ? Tensor() : each.cast<Tensor>()); }
  return result;
}

using Flags = std::vector<bool>;

inline py::tuple as_tuple(const Flags& flags) {
  py::tuple result(flags.size());
  for (size_t i = 0; i < flags.size(); ++i) { result[i] = static_cast<bool>(flags[i]); }
  return result;
}

inline variable_list by_generic_path(
    const Plan& plan, const variable_list& saved, const variable_list& cotangents, const Flags& needed) {
  py::gil_scoped_acquire lock;
  try {
    return called("differentiated", plan, as_tuple(saved), as_tuple(cotangents), as_tuple(needed));
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

// The tensors where the flags are, undefined ones elsewhere.
inline variable_list spread(const variable_list& tensors, const Flags& flags) {
  variable_list result(flags.size());
  for (size_t i = 0, next = 0; i < flags.size(); ++i) {
    if (flags[i]) { result[i] = tensors[next++]; }
  }
  return result;
}

inline variable_list chosen(const variable_list& tensors, const Flags& flags) {
  variable_list result;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) { result.push_back(tensors[i]); }
  }
  return result;
}

// The gradients that are needed, for autograd, as functions of what is saved and of cotangents: `_GradientNode` of
// `strategies.autograd.fast_path_node`.
struct Gradient : torch::autograd::Function<Gradient> {
  struct Given : torch::CustomClassHolder {
    PlanPointer plan;
    variable_list gradients;
    Flags needed, defined;  // of what is saved, and of cotangents, those that are
  };

  // All gradients; those that are not needed are undefined.
  static variable_list recorded(
      PlanPointer plan, variable_list gradients, const Flags& needed, variable_list saved,
      const variable_list& cotangents) {
    auto given = c10::make_intrusive<Given>();
    given->plan = std::move(plan);
    // Copies, since the caller may write into gradients.
    for (const auto& each : gradients) { given->gradients.push_back(each.clone()); }
    given->needed = needed;
    saved.insert(saved.end(), cotangents.begin(), cotangents.end());
    for (const auto& each : saved) { given->defined.push_back(each.defined()); }
    const auto tensors = chosen(saved, given->defined);
    return spread(apply(given, Computed{chosen(gradients, needed), {}}, at::TensorList(tensors)), needed);
  }

  static variable_list forward(
      AutogradContext* context, const c10::intrusive_ptr<Given>& given, const Computed& outputs,
      at::TensorList tensors) {
    context->saved_data["given"] = c10::IValue::make_capsule(given);
    context->save_for_backward(tensors.vec());
    context->set_materialize_grads(false);
    return outputs.outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
    const auto capsule = context->saved_data["given"].toCapsule();
    const auto& given = static_cast<const Given&>(*capsule);
    const auto saved = context->get_saved_variables();
    variable_list result(2 + saved.size());  // what is given besides tensors has no gradient
    const auto is_given = [](const Tensor& cotangent) { return cotangent.defined(); };
    if (std::none_of(cotangents.begin(), cotangents.end(), is_given)) { return result; }
    Flags needed;
    for (size_t i = 0, edge = 0; i < given.defined.size(); ++i) {
      needed.push_back(given.defined[i] && context->needs_input_grad(edge++));
    }
    py::gil_scoped_acquire lock;
    try {
      const auto second = called(
          "gradients_of_gradients", *given.plan, as_tuple(spread(saved, given.defined)), as_tuple(given.gradients),
          as_tuple(spread(cotangents, given.needed)), as_tuple(needed), as_tuple(given.needed));
      const auto of_saved = chosen(second, given.defined);
      std::copy(of_saved.begin(), of_saved.end(), result.begin() + 2);
    } catch (py::error_already_set& error) { Plan::raise(error); }
    return result;
  }
};

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
      Flags needed;
      for (size_t i = 0; i < plan.arity; ++i) { needed.push_back(context->needs_input_grad(i)); }
      const auto pointer = c10::static_intrusive_pointer_cast<Plan>(capsule);
      gradients = gradients.empty() ? by_generic_path(plan, saved, cotangents, needed)
                                    : Gradient::recorded(pointer, std::move(gradients), needed, saved, cotangents);
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
