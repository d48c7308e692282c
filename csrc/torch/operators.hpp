// The operators of `strategies.autograd.operators` on the CPU: what `Operator.compute` and `_Derivative.compute` do, by
// plans where there are some. What the backward needs besides inputs and outputs is kept in an output of the forward.

#pragma once

#include <ATen/ExpandUtils.h>
#include <torch/library.h>

#include "plan_cache.hpp"
#include "record.hpp"

namespace backward_strategies {

// The plans that operators have used, by numbers that are handed on to their derivatives. One that is forgotten
// meanwhile is no more than missed.
struct UsedPlans {
  static constexpr size_t most = 1 << 14;
  std::unordered_map<int64_t, PlanPointer> plans;  // guarded by the lock of the interpreter
  int64_t last = 0;

  int64_t add(const PlanPointer& plan) {
    if (plan->number == 0) { plan->number = --last; }
    if (plans.size() >= most) { plans.clear(); }
    plans.emplace(plan->number, plan);
    return plan->number;
  }
  PlanPointer find(int64_t number) const {
    const auto at = plans.find(number);
    return at == plans.end() ? PlanPointer() : at->second;
  }
};

inline UsedPlans used_plans;

// The options for which there are plans.
struct UsualOptions {
  std::vector<std::optional<c10::IValue>> values;  // nothing stands for any
  Positions tolerances;                            // that relative to the largest singular value is the last
  Positions in_tensors;                            // the same as tensors of one number, if they may be

  explicit UsualOptions(const py::handle& options) {
    for (const auto& each : options) {
      if (each.is(py::type::of(py::float_()))) { tolerances.push_back(values.size()); }
      if (each.ptr() == THPVariableClass) { in_tensors.push_back(values.size()); }
      if (each.ptr() == Py_Ellipsis || py::isinstance<py::type>(each)) {
        values.emplace_back();
      } else {
        values.push_back(
            each.is_none()                  ? c10::IValue()
            : py::isinstance<py::str>(each) ? c10::IValue(each.cast<std::string>())
                                            : c10::IValue(each.cast<bool>()));
      }
    }
  }

  bool hold(at::ArrayRef<c10::IValue> options) const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] && !(*values[i] == options[i])) { return false; }
    }
    return true;
  }

  // Atol and rtol; empty where there is neither, nothing where they are no two numbers.
  std::optional<std::vector<double>> tolerances_in(at::ArrayRef<c10::IValue> options) const {
    std::vector<const c10::IValue*> given;
    for (size_t i = 0; i < tolerances.size(); ++i) {
      const bool is_tensor = !in_tensors.empty() && !options[in_tensors[i]].isNone();
      given.push_back(&options[is_tensor ? in_tensors[i] : tolerances[i]]);
    }
    const auto is_none = [](const c10::IValue* each) { return each->isNone(); };
    if (std::all_of(given.begin(), given.end(), is_none)) { return std::vector<double>(); }
    std::vector<double> result(2 - tolerances.size());
    for (const auto* each : given) {
      // The default of rtol beside atol depends on that, if it is a number.
      if (is_none(each) && each == given.back() && !given.front()->isTensor()) { return std::nullopt; }
      const auto number = is_none(each) ? 0.0 : tolerance(*each);
      if (!number) { return std::nullopt; }
      result.push_back(*number);
    }
    return result;
  }

  // The number that a tolerance is, or that a tensor holds; nothing where it has to be looked at.
  static std::optional<double> tolerance(const c10::IValue& value) {
    if (value.isDouble() && value.toDouble() < 0) { return std::nullopt; }
    if (value.isTensor()) {
      const auto& tensor = value.toTensor();
      if (!is_readable(tensor) || tensor.dim() != 0 || tensor.requires_grad() || !tensor.is_floating_point()) {
        return std::nullopt;
      }
    }
    const double number = value.isTensor() ? std::max(value.toTensor().item<double>(), 0.0) : value.toDouble();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
};

struct OperatorSpec {
  // A fast path, and the options that it is for.
  struct Path {
    PlanCache* cache;
    UsualOptions usual;
  };

  std::vector<Path> paths;
  size_t arity, differentiable;
  bool takes_vectors;
  size_t constants;      // how many options, from the first, are further inputs of the fast paths, as pivots are
  Positions returned;    // which outputs of the fast path are those of the operator
  Positions by_columns;  // which of these lie by columns
  py::object workspace;  // how many bytes the forward returns as kept, by the shapes of the inputs

  // That for some options, if there is one.
  const Path* path(at::ArrayRef<c10::IValue> options) const {
    const auto holds = [&](auto& each) { return each.usual.hold(options.slice(constants)); };
    const auto found = std::find_if(paths.begin(), paths.end(), holds);
    return found == paths.end() ? nullptr : &*found;
  }

  // What has computed it, by the number that stands for it; nothing where Python is to see. With the lock.
  static PlanPointer plan_of(const Tensor& used) {
    const bool is_number = used.device().is_cpu() && is_readable(used) && used.numel() == 1;
    return is_number && PyList_GET_SIZE(watchers) == 0 ? used_plans.find(*used.const_data_ptr<int64_t>())
                                                       : PlanPointer();
  }

  // The inputs of the fast paths: those of the operator, and constants.
  variable_list inputs(at::ArrayRef<Tensor> operands, at::ArrayRef<c10::IValue> options) const {
    variable_list found(operands.begin(), operands.begin() + arity);
    for (const auto& each : options.slice(0, constants)) { found.push_back(each.toTensor()); }
    return found;
  }

  // Whether a plan has kept this, of such inputs: of mapped ones there are more matrices than the plan is for.
  bool are_of(const PlanPointer& plan, const variable_list& inputs, const Tensor& kept) const {
    if (!plan || kept.numel() < plan->bytes()) { return false; }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (static_cast<size_t>(inputs[i].dim()) != plan->saved_strides[i].size()) { return false; }
    }
    return true;
  }
};

inline Tensor laid_out(const Tensor& tensor, bool by_columns) {
  return by_columns ? tensor.mT().contiguous().mT() : tensor.contiguous();
}

struct OperatorForward : c10::OperatorKernel {
  const OperatorSpec* spec;
  py::handle in_python;  // which outlives the interpreter
  std::unordered_map<Words, int64_t, HashOfWords> sizes;
  OperatorForward(const OperatorSpec* of, py::object otherwise) : spec(of), in_python(otherwise.release()) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    if (auto results = by_plans(torch::jit::last(*stack, count))) {
      torch::jit::drop(*stack, count);
      for (auto& each : *results) { stack->emplace_back(std::move(each)); }
    } else {
      call_python(in_python, op, stack);
    }
  }

 private:
  std::optional<variable_list> by_plans(at::ArrayRef<c10::IValue> arguments) {
    const auto options = arguments.slice(spec->arity, arguments.size() - spec->arity - 1);
    variable_list operands;
    for (const auto& each : arguments.slice(0, spec->arity)) { operands.push_back(each.toTensor()); }
    const auto inputs = spec->inputs(operands, options);
    if (!std::all_of(inputs.begin(), inputs.end(), is_readable)) { return std::nullopt; }
    if (!spec->takes_vectors && operands.back().dim() != operands[0].dim()) { return std::nullopt; }
    py::gil_scoped_acquire lock;
    try {
      const auto* path = spec->path(options);
      if (PyList_GET_SIZE(watchers) != 0 || path == nullptr) { return std::nullopt; }
      const auto tolerances = path->usual.tolerances_in(options.slice(spec->constants));
      if (!tolerances) { return std::nullopt; }
      const py::str choice(arguments.back().toStringRef());
      const auto chosen = path->cache->followed(choice.ptr());
      const Tensor workspace = at::detail::empty_cpu({bytes_for(operands)}, at::kByte);
      for (const auto& plan : path->cache->known(chosen, inputs, *tolerances)) {
        if (plan->copies || plan->bytes() > workspace.numel() || !has_all_saved(*plan)) { return std::nullopt; }
        plan->clear_gaps(workspace);
        if (auto computed = plan->compute(inputs, workspace)) {
          variable_list results;
          for (size_t i = 0; i < spec->returned.size(); ++i) {
            results.push_back(laid_out(computed->outputs[spec->returned[i]], has(spec->by_columns, i)));
          }
          results.push_back(workspace);
          results.emplace_back(at::detail::empty_cpu({}, at::kLong));
          *results.back().mutable_data_ptr<int64_t>() = used_plans.add(plan);
          return results;
        }
      }
    } catch (py::error_already_set& error) { Plan::raise(error); }
    return std::nullopt;
  }

  bool has_all_saved(const Plan& plan) const {
    return std::all_of(plan.saved.begin(), plan.saved.end(), [&](size_t i) { return has(spec->returned, i); });
  }

  int64_t bytes_for(const variable_list& inputs) {
    Words key;
    for (const auto& input : inputs) {
      key.push_back(static_cast<int64_t>(input.scalar_type()) << 32 | input.dim());
      key.insert(key.end(), input.sizes().begin(), input.sizes().end());
    }
    if (const auto at = sizes.find(key); at != sizes.end()) { return at->second; }
    py::tuple given(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) { given[i] = py::cast(inputs[i]); }
    if (sizes.size() >= PlanCache::most) { sizes.clear(); }
    return sizes[std::move(key)] = spec->workspace(*given).cast<int64_t>();
  }
};

struct OperatorBackward : c10::OperatorKernel {
  const OperatorSpec* spec;
  py::handle in_python;  // which outlives the interpreter
  OperatorBackward(const OperatorSpec* of, py::object otherwise) : spec(of), in_python(otherwise.release()) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    if (auto gradients = by_plan(torch::jit::last(*stack, count))) {
      torch::jit::drop(*stack, count);
      stack->emplace_back(c10::List<Tensor>(*gradients));
    } else {
      call_python(in_python, op, stack);
    }
  }

 private:
  // Operands; the outputs and what was kept; options; what was used; which gradients are needed. The cotangents may be
  // many of each output, over first dimensions, and so are the gradients then.
  std::optional<variable_list> by_plan(at::ArrayRef<c10::IValue> arguments) const {
    const auto operands = arguments[0].toTensorVector();
    const size_t outputs = spec->returned.size();
    const auto& kept = arguments[1 + outputs].toTensor();
    PlanPointer plan;
    {
      py::gil_scoped_acquire lock;
      plan = spec->plan_of(arguments[arguments.size() - 2].toTensor());
    }
    const auto inputs = spec->inputs(operands, arguments.slice(2 + outputs, arguments.size() - 4 - outputs));
    if (!spec->are_of(plan, inputs, kept)) { return std::nullopt; }
    variable_list saved(inputs), cotangents;
    for (const auto i : plan->saved) { saved.push_back(arguments[1 + position_of(i)].toTensor()); }
    if (!plan->keeps.empty()) { saved.push_back(kept); }
    for (const auto i : plan->unread) { saved[i] = Tensor(); }
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i].defined()) { continue; }
      if (!is_readable(saved[i])) { return std::nullopt; }
      const auto& due = plan->saved_strides[i];
      const bool is_output = i >= inputs.size() && i < inputs.size() + plan->saved.size();
      if (!is_output || saved[i].strides() == at::IntArrayRef(due)) { continue; }
      if (static_cast<size_t>(saved[i].dim()) != due.size()) { return std::nullopt; }
      saved[i] = at::empty_strided(saved[i].sizes(), due, saved[i].options()).copy_(saved[i]);
    }
    const auto needed = arguments.back().toBoolList();
    Words sizes;
    for (size_t place = 0; place < spec->differentiable; ++place) {
      const auto& cotangent = operands[spec->arity + place];
      const at::IntArrayRef due(plan->outputs[spec->returned[place]].size);
      if (!is_readable(cotangent) || cotangent.dim() < static_cast<int64_t>(due.size())) { return std::nullopt; }
      const size_t more = cotangent.dim() - due.size();
      if (cotangent.sizes().slice(more) != due) { return std::nullopt; }
      const auto together = at::infer_size(sizes, cotangent.sizes().slice(0, more));
      sizes.assign(together.begin(), together.end());
    }
    for (const auto i : plan->cotangents) {
      const size_t place = position_of(i);
      // That of an output that the operator does not return is an optional one.
      cotangents.push_back(place < spec->differentiable ? operands[spec->arity + place] : Tensor());
    }
    return sizes.empty() ? gradients_of(*plan, saved, cotangents, needed)
                         : of_many(*plan, saved, std::move(cotangents), needed, sizes);
  }

  // The gradients of many cotangents, over first dimensions of these sizes.
  std::optional<variable_list> of_many(
      const Plan& plan, const variable_list& saved, variable_list cotangents, const c10::List<bool>& needed,
      const Words& sizes) const {
    const int64_t many = c10::multiply_integers(sizes);
    if (many == 0) { return std::nullopt; }
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (!cotangents[i].defined()) { continue; }
      Words all(sizes);
      const auto& due = plan.outputs[plan.cotangents[i]].size;
      all.insert(all.end(), due.begin(), due.end());
      cotangents[i] = cotangents[i].expand(all).flatten(0, sizes.size() - 1);
    }
    const auto as_given = [&](const Tensor& gradients) {
      Words all(sizes);
      all.insert(all.end(), gradients.sizes().begin() + 1, gradients.sizes().end());
      return gradients.view(all);
    };
    if (plan.is_of_one()) {
      auto gradients = gradients_of(plan, saved, cotangents, needed, many);
      if (!gradients) { return std::nullopt; }
      for (auto& each : *gradients) { each = as_given(each); }
      return gradients;
    }
    std::vector<variable_list> found(std::count(needed.begin(), needed.end(), true));
    for (int64_t at = 0; at < many; ++at) {
      variable_list one;
      for (const auto& each : cotangents) { one.push_back(each.defined() ? each.select(0, at) : each); }
      const auto gradients = gradients_of(plan, saved, one, needed);
      if (!gradients) { return std::nullopt; }
      for (size_t i = 0; i < found.size(); ++i) { found[i].push_back((*gradients)[i]); }
    }
    variable_list results;
    for (const auto& each : found) { results.push_back(as_given(at::stack(each))); }
    return results;
  }

  std::optional<variable_list> gradients_of(
      const Plan& plan, const variable_list& saved, const variable_list& cotangents, const c10::List<bool>& needed,
      std::optional<int64_t> many = std::nullopt) const {
    const auto gradients = plan.differentiate(saved, cotangents, many);
    if (gradients.empty()) { return std::nullopt; }
    variable_list results;
    for (size_t i = 0; i < spec->arity; ++i) {
      if (needed[i]) { results.push_back(gradients[i].contiguous()); }
    }
    return results;
  }

  size_t position_of(size_t output) const {
    return std::find(spec->returned.begin(), spec->returned.end(), output) - spec->returned.begin();
  }
};

}  // namespace backward_strategies
