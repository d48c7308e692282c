// Tangents and second derivatives of an operator on the CPU, from what its plan has kept: what surrounds the formulas,
// which are Python's (`Derivative.compute` of `strategies.autograd.derivative_operators`).

#pragma once

#include <limits>

#include "operators.hpp"

namespace backward_strategies {

// As `strategies.autograd.copies.apart`: row by row, in memory of its own.
inline Tensor apart(const Tensor& output, const variable_list& given) {
  const auto own = (output._is_zerotensor() ? output.clone() : resolved(output)).contiguous();
  const auto shares = [&](const Tensor& each) { return each.has_storage() && each.is_alias_of(own); };
  return std::any_of(given.begin(), given.end(), shares) ? own.clone() : own;
}

struct OperatorDerivative : c10::OperatorKernel {
  const OperatorSpec* spec;
  const RecordSpec* record;
  // `Derivative.compute` and `Derivative.of_computed`, which outlive the interpreter.
  py::handle in_python, of_computed;

  OperatorDerivative(const OperatorSpec* of, const RecordSpec* recorded, py::object otherwise, py::object formula)
      : spec(of), record(recorded), in_python(otherwise.release()), of_computed(formula.release()) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    auto derived = by_plan(torch::jit::last(*stack, count));
    if (!derived) {
      call_python(in_python, op, stack);
      return;
    }
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(*derived));
  }

 private:
  std::optional<variable_list> by_plan(at::ArrayRef<c10::IValue> arguments) const {
    const auto operands = arguments[0].toTensorVector();
    const size_t saves = record->saves, orders = record->kinds.size();
    const auto& kept = arguments[saves].toTensor();
    const auto& used = arguments[arguments.size() - 1 - orders].toTensor();
    const auto flags = arguments[arguments.size() - orders].toBoolList();
    py::gil_scoped_acquire lock;
    const auto plan = spec->plan_of(used);
    const auto options = arguments.slice(1 + saves, arguments.size() - 2 - saves - orders);
    const auto inputs = spec->inputs(operands, options);
    if (!spec->are_of(plan, inputs, kept) || are_many(operands, arguments)) { return std::nullopt; }
    static const auto* missing = new Tensor(at::empty({0}));  // stands for outputs that the operator does not return
    variable_list outputs(plan->outputs.size(), *missing), workspace;
    for (size_t i = 0; i + 1 < saves; ++i) { outputs[spec->returned[i]] = arguments[1 + i].toTensor(); }
    if (plan->bytes() > 0) { workspace.push_back(kept.narrow(0, 0, plan->bytes())); }
    const at::AutoGradMode without_graphs(false);
    const c10::impl::ForceDispatchKeyGuard usual(c10::default_included_set, c10::default_excluded_set);
    try {
      const auto fields = py::make_tuple(plan->found, as_tuple(inputs), as_tuple(outputs), as_tuple(workspace));
      const py::object found = record->kinds == "f" ? tangents(fields, operands, flags, spec->path(options))
                                                    : of_computed(*fields, as_python(arguments));
      if (found.is_none()) { return std::nullopt; }
      variable_list derived;
      const auto places = like_outputs(arguments);
      for (const auto& each : found) {
        if (record->kinds == "f" && derived.size() == spec->differentiable) { break; }
        const size_t i = derived.size();
        const bool by_columns = i < places.size() && has(spec->by_columns, places[i]);
        const auto tensor = each.cast<Tensor>();
        derived.push_back(by_columns ? apart(tensor.mT(), operands).mT() : apart(tensor, operands));
      }
      return derived;
    } catch (py::error_already_set& error) { Plan::raise(error); }
  }

  // For each tensor that is returned the output whose layout it has, as `Derivative._places`; beyond the last, and
  // where that is none, it lies by rows. Tangents have those of their outputs, and so have gradients by cotangents.
  Positions like_outputs(at::ArrayRef<c10::IValue> arguments) const {
    constexpr auto none = std::numeric_limits<size_t>::max();
    Positions places;
    const auto flags = arguments.back().toBoolList();
    if (record->kinds == "f") {
      for (size_t i = 0; i < spec->differentiable; ++i) { places.push_back(i); }
    } else if (record->kinds == "bb") {
      for (size_t i = 0; i < flags.size(); ++i) {
        if (flags[i]) { places.push_back(i < spec->arity ? none : i - spec->arity); }
      }
    }
    return places;
  }

  // Whether cotangents or tangents have more dimensions than they have by what they are of.
  bool are_many(const variable_list& operands, at::ArrayRef<c10::IValue> arguments) const {
    if (!record->is_of_many()) { return false; }
    const auto like = record->like(arguments);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool is_input = like[i] < spec->arity;
      const auto dims = is_input ? operands[like[i]].dim() : arguments[1 + like[i] - spec->arity].toTensor().dim();
      if (operands[i].dim() != dims) { return true; }
    }
    return false;
  }

  // Those of what a plan has computed, by its formula in Python.
  py::object tangents(
      const py::tuple& fields, const variable_list& operands, const c10::List<bool>& flags,
      const OperatorSpec::Path* path) const {
    if (path == nullptr || path->cache->tangents.is_none()) { return py::none(); }
    variable_list given(spec->arity + spec->constants);
    for (size_t i = 0, next = spec->arity; i < spec->arity; ++i) {
      if (flags[i]) { given[i] = operands[next++]; }
    }
    return path->cache->tangents(*fields, as_tuple(given));
  }
};

}  // namespace backward_strategies
