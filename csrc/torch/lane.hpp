// The node of autograd, and the plans of an operation by layouts: `strategies.autograd.lane`.

#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/python_variable.h>

#include <unordered_map>

#include "plan.hpp"

// The name of the nodes is that of their type.
namespace backward_strategies {

using torch::autograd::AutogradContext;

inline variable_list by_general_road(
    const Plan& plan, const variable_list& saved, const variable_list& cotangents, const std::vector<bool>& needed) {
  py::gil_scoped_acquire lock;
  try {
    const auto tuple = [](const Tensor* first, size_t count) {
      py::tuple result(count);
      for (size_t i = 0; i < count; ++i) {
        result[i] = first[i].defined() ? py::cast(first[i]) : py::object(py::none());
      }
      return result;
    };
    const auto inputs = tuple(saved.data(), plan.arity);
    const auto outputs = tuple(saved.data() + plan.arity, plan.saved.size());
    const auto of_outputs = tuple(cotangents.data(), cotangents.size());
    py::tuple of_inputs(needed.size());
    for (size_t i = 0; i < needed.size(); ++i) { of_inputs[i] = static_cast<bool>(needed[i]); }
    const auto lane = py::module_::import("strategies.autograd.lane");
    const py::object gradients = lane.attr("_differentiated")(plan.found, inputs, outputs, of_outputs, of_inputs);
    variable_list result;
    for (const auto& each : gradients) { result.push_back(each.is_none() ? Tensor() : each.cast<Tensor>()); }
    return result;
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

// What was computed, for autograd: `_FastLane` of `strategies.autograd.lane`.
struct FastLane : torch::autograd::Function<FastLane> {
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
    const auto saved = context->get_saved_variables();
    variable_list gradients;
    if (is_plain() && !at::GradMode::is_enabled() && PyList_GET_SIZE(watchers) == 0) {
      if (auto used = usual(plan, cotangents)) { gradients = plan.differentiate(saved, std::move(*used)); }
    }
    if (gradients.empty()) {
      std::vector<bool> needed;
      for (size_t i = 0; i < plan.arity; ++i) { needed.push_back(context->needs_input_grad(i)); }
      gradients = by_general_road(plan, saved, cotangents, needed);
    }
    // Neither the plan nor what was computed is a variable.
    gradients.insert(gradients.begin(), 2, Tensor());
    return gradients;
  }

  // The cotangents that the lane takes; nothing if one of them is not a usual one.
  static std::optional<variable_list> usual(const Plan& plan, const variable_list& cotangents) {
    variable_list used;
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (has(plan.ignored, i)) { continue; }
      const bool is_taken = has(plan.cotangents, i);
      if (!cotangents[i].defined()) {
        if (is_taken) { used.push_back(has(plan.optional, i) ? Tensor() : plan.outputs[i].allocate().zero_()); }
      } else if (is_taken && is_readable(cotangents[i])) {
        used.push_back(cotangents[i]);
      } else {
        return std::nullopt;
      }
    }
    return used;
  }
};

struct HashOfWords {
  size_t operator()(const Words& words) const {
    uint64_t hash = 14695981039346656037u;  // FNV-1a, by words
    for (const auto word : words) { hash = (hash ^ static_cast<uint64_t>(word)) * 1099511628211u; }
    return hash ^ (hash >> 32);
  }
};

// What is known of an operation: `_find` of `strategies.autograd.lane`, by what was chosen and layouts.
struct Lane {
  py::object find, in_force, automatic, parameter;
  size_t arity, most_tolerances;

  struct Ways {
    py::object chosen;  // whose address is part of the key
    std::vector<PlanPointer> plans;
  };

  static constexpr size_t most = 4096;
  std::unordered_map<Words, Ways, HashOfWords> ways;

  // Outputs, or nothing where the general road is to be taken.
  std::optional<variable_list> call(PyObject* choice, PyObject* const* given, size_t count) {
    if (!is_plain() || PyList_GET_SIZE(watchers) != 0) { return std::nullopt; }
    variable_list inputs;
    if (count != arity && count != arity + most_tolerances) { return std::nullopt; }
    for (size_t i = arity; i < count; ++i) {
      if (!PyFloat_CheckExact(given[i])) { return std::nullopt; }
    }
    for (size_t i = 0; i < arity; ++i) {
      auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(given[i]));
      if (kind != THPVariableClass && kind != parameter.ptr()) { return std::nullopt; }
      inputs.push_back(THPVariable_Unpack(given[i]));
      if (!is_readable(inputs.back())) { return std::nullopt; }
    }
    std::vector<double> tolerances;
    for (size_t i = inputs.size(); i < count; ++i) { tolerances.push_back(PyFloat_AS_DOUBLE(given[i])); }
    for (const auto& plan : known(followed(choice), inputs, tolerances)) {
      if (plan->copies) {
        for (auto& input : inputs) { input = input.contiguous(); }
      }
      if (auto computed = plan->compute(inputs)) {
        const bool needs = at::GradMode::is_enabled() &&
                           std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.requires_grad(); });
        return needs ? FastLane::apply(plan, *computed, at::TensorList(inputs)) : std::move(computed->outputs);
      }
    }
    return std::nullopt;
  }

  // The strategy or policy that is meant.
  py::object followed(PyObject* choice) {
    if (!PyUnicode_Check(choice)) { return py::reinterpret_borrow<py::object>(choice); }
    if (choice == automatic.ptr() || PyUnicode_Compare(choice, automatic.ptr()) == 0) {
      return py::object(in_force()[py::int_(0)]);
    }
    Py_INCREF(choice);
    PyUnicode_InternInPlace(&choice);  // equal names have one address
    return py::reinterpret_steal<py::object>(choice);
  }

  std::vector<PlanPointer> known(
      const py::object& chosen, const variable_list& inputs, const std::vector<double>& tolerances = {}) {
    Words key;
    key.reserve(24);
    key.push_back(reinterpret_cast<int64_t>(chosen.ptr()));
    for (const auto& input : inputs) {
      key.push_back(static_cast<int64_t>(input.scalar_type()) << 32 | input.dim());
      key.insert(key.end(), input.sizes().begin(), input.sizes().end());
      key.insert(key.end(), input.strides().begin(), input.strides().end());
    }
    for (const double tolerance : tolerances) {
      key.emplace_back();
      std::memcpy(&key.back(), &tolerance, sizeof tolerance);
    }
    if (const auto at = ways.find(key); at != ways.end()) { return at->second.plans; }
    py::list arguments;
    for (const auto& input : inputs) { arguments.append(py::cast(input)); }
    for (const double tolerance : tolerances) { arguments.append(tolerance); }
    Ways made{chosen, {}};
    for (const auto& found : find(chosen, *py::tuple(arguments))) {
      made.plans.push_back(c10::make_intrusive<Plan>(found));
    }
    if (ways.size() >= most) { ways.clear(); }
    return ways.emplace(std::move(key), std::move(made)).first->second.plans;
  }
};

}  // namespace backward_strategies
