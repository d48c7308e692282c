// What autograd records of an operator and of its gradient, at every level of torch.func: `_Function` of
// `strategies.autograd.registered` without Python.

#pragma once

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "plan.hpp"

namespace backward_strategies {

using Stack = torch::jit::Stack;

inline py::tuple as_python(at::ArrayRef<c10::IValue> arguments) {
  py::tuple given(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) { given[i] = torch::jit::toPyObject(arguments[i]); }
  return given;
}

inline void call_python(py::handle function, const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  py::gil_scoped_acquire lock;
  try {
    const py::object found = function(*as_python(arguments));
    const auto& returns = schema.returns();
    if (returns.size() == 1) {
      stack->push_back(torch::jit::toIValue(found, returns[0].type()));
      return;
    }
    size_t i = 0;
    for (const auto& each : found) { stack->push_back(torch::jit::toIValue(each, returns[i++].type())); }
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

// What autograd records of an operator, or of one that is a derivative of another.
struct RecordSpec {
  std::string gradient, tangents;  // the names of the operators that are its derivatives; empty where there is none
  size_t arity;                    // how many inputs the operation has
  // Of a derivative, how many arguments are what the other operator has returned. They follow its operands, which are
  // one list of inputs, and cotangents or tangents.
  size_t saves;
  size_t differentiable;  // how many outputs of the operation are; all that a derivative returns is
  bool takes_vectors;     // as right-hand sides
  std::string kinds;      // of a derivative, the letters of "backward" and "forward", the first one's first
  py::object recorded;    // what records it in Python: in forward mode outside of torch.func, and what is refused
  py::object mapped;      // what maps it in Python

  variable_list operands(at::ArrayRef<c10::IValue> arguments) const {
    if (saves) { return arguments[0].toTensorVector(); }
    return tensors(arguments.slice(0, arity));
  }
  Stack rest(at::ArrayRef<c10::IValue> arguments) const { return arguments.slice(saves ? 1 : arity).vec(); }
  // The arguments of a derivative but the last, which are flags. What a derivative has returned is among the operands;
  // what others have follows them. Of the rest, the last output of those stands for the strategy.
  Stack arguments(variable_list operands, const variable_list& returned, Stack rest) const {
    if (saves) { operands.insert(operands.end(), returned.begin(), returned.end()); }
    Stack stack{operands};
    if (!saves) {
      stack.insert(stack.end(), returned.begin(), returned.end() - 1);
      rest.back() = returned.back();
    }
    std::move(rest.begin(), rest.end(), std::back_inserter(stack));
    return stack;
  }
  // Whether each cotangent and each tangent may be many, over first dimensions.
  bool is_of_many() const { return kinds == "b" || kinds == "f" || kinds == "bf"; }
  // For each operand of a derivative the input, or after those the differentiable output, that it is like:
  // `Derivative._like`.
  Positions like(at::ArrayRef<c10::IValue> arguments) const {
    const auto flags = arguments.slice(arguments.size() - kinds.size());
    const size_t inputs = arity, every = kinds[0] == 'b' ? arity + differentiable : arity;
    Positions found;
    const auto append = [&](size_t count, const c10::List<bool>& flagged) {
      for (size_t i = 0; i < count; ++i) {
        if (flagged[i]) { found.push_back(i); }
      }
    };
    for (size_t i = 0; i < every; ++i) { found.push_back(i); }
    if (kinds != "b") { append(every, flags.back().toBoolList()); }
    if (kinds.size() > 1) { append(inputs, flags.front().toBoolList()); }
    return found;
  }
  static variable_list derivative(const std::string& name, Stack stack) {
    c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").callBoxed(&stack);
    return stack.back().toTensorVector();
  }
  static variable_list tensors(at::ArrayRef<c10::IValue> values) {
    variable_list result;
    for (const auto& each : values) { result.push_back(each.toTensor()); }
    return result;
  }
};

// A node of autograd: torch.func has one at each level, but no `torch::autograd::Function`.
struct OperatorNode : torch::autograd::Node {
  using Saved = std::vector<torch::autograd::SavedVariable>;
  const RecordSpec* spec;
  Saved operands, outputs, others;  // tensors among the rest of the arguments
  Stack rest;

  // The outputs, or of a derivative copies of them.
  void save(const variable_list& given, Stack more, const variable_list& returned) {
    for (const auto& each : given) { operands.emplace_back(each, false); }
    const size_t recorded = spec->saves ? 0 : num_inputs();
    for (size_t i = 0; i < returned.size(); ++i) { outputs.emplace_back(returned[i], /*is_output=*/i < recorded); }
    for (auto& each : more) {
      if (each.isTensor()) { others.emplace_back(std::exchange(each, Tensor()).toTensor(), false); }
    }
    rest = std::move(more);
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto* list : {&operands, &outputs, &others}) {
      for (auto& each : *list) { each.reset_data(); }
    }
  }

  variable_list apply(variable_list&& cotangents) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    variable_list gradients(operands.size());
    const auto is_given = [](const Tensor& cotangent) { return cotangent.defined(); };
    if (std::none_of(cotangents.begin(), cotangents.end(), is_given)) { return gradients; }
    variable_list given, returned;
    for (const auto& each : operands) { given.push_back(each.unpack()); }
    for (const auto& each : outputs) { returned.push_back(each.unpack(getptr())); }
    Stack more = rest;
    for (size_t i = 0, next = 0; i < more.size(); ++i) {
      if (more[i].isTensor()) { more[i] = others[next++].unpack(); }
    }
    for (size_t i = 0; i < cotangents.size(); ++i) {
      given.push_back(cotangents[i].defined() ? cotangents[i] : at::zeros_like(returned[i]));
    }
    Stack stack = spec->arguments(std::move(given), returned, std::move(more));
    c10::List<bool> needed;
    for (size_t i = 0; i < operands.size(); ++i) { needed.push_back(task_should_compute_output(i)); }
    stack.emplace_back(needed);
    const auto found = spec->derivative(spec->gradient, std::move(stack));
    for (size_t i = 0, next = 0; i < operands.size(); ++i) {
      if (needed[i]) { gradients[i] = found[next++]; }
    }
    return gradients;
  }
};

// Nodes of older releases of PyTorch are held by shared pointers.
template <typename Node>
auto new_node() {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, Node>) {
    return c10::make_intrusive<Node>();
  } else {
    return std::make_shared<Node>();
  }
}

// Where autograd records nothing, what is below it; else a node, or tangents. Those of torch.func alone: a level of
// that has no graph besides.
struct OperatorRecord : c10::OperatorKernel {
  const RecordSpec* spec;
  explicit OperatorRecord(const RecordSpec* of) : spec(of) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const auto given = torch::jit::last(*stack, op.schema().arguments().size()).vec();
    const auto operands = spec->operands(given);
    const auto any = [&](const auto& is) { return std::any_of(operands.begin(), operands.end(), is); };
    const bool has_graph = at::GradMode::is_enabled() && any([](const Tensor& each) { return each.requires_grad(); });
    if (any([](const Tensor& each) { return each._fw_grad(0).defined(); })) {
      const bool is_level = std::all_of(operands.begin(), operands.end(), is_of_level) && !has_graph;
      const bool is_usual = is_level && !spec->tangents.empty();
      return is_usual ? in_forward_mode(op, stack, operands, given) : call_python(spec->recorded, op, stack);
    }
    if (has_graph && spec->gradient.empty()) { return call_python(spec->recorded, op, stack); }
    variable_list copies;  // as the caller may write into derivatives
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      op.callBoxed(stack);
      if (has_graph && spec->saves) {
        for (const auto& each : outputs_of(op, *stack)) { copies.push_back(each.clone()); }
      }
    }
    if (!has_graph) { return; }
    const auto outputs = outputs_of(op, *stack);
    auto node = new_node<OperatorNode>();
    node->spec = spec;
    node->set_next_edges(torch::autograd::collect_next_edges(operands));
    const auto end = spec->saves ? outputs.end() : outputs.begin() + spec->differentiable;
    torch::autograd::set_history(variable_list(outputs.begin(), end), node);
    node->save(operands, spec->rest(given), spec->saves ? copies : outputs);
  }

 private:
  // Whether it is a tensor of a level of torch.func that differentiates, with a tangent of that or none.
  static bool is_of_level(const Tensor& tensor) {
    const auto& tangent = tensor._fw_grad(0);
    return tensor.key_set().has(c10::DispatchKey::FuncTorchGradWrapper) &&
           !(tangent.defined() && tangent._is_zerotensor());
  }

  variable_list outputs_of(const c10::OperatorHandle& op, const Stack& stack) const {
    return spec->saves ? stack.back().toTensorVector()
                       : spec->tensors(torch::jit::last(stack, op.schema().returns().size()));
  }

  // The outputs and their tangents, both by operators that see nothing of this level.
  void in_forward_mode(
      const c10::OperatorHandle& op, Stack* stack, variable_list operands, at::ArrayRef<c10::IValue> given) const {
    const at::AutoGradMode with_graphs(true);
    const at::AutoFwGradMode with_tangents(true);
    const at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(stack);
    const auto outputs = outputs_of(op, *stack);
    c10::List<bool> needed;
    for (size_t i = 0, count = operands.size(); i < count; ++i) {
      const Tensor tangent = operands[i]._fw_grad(0);
      needed.push_back(tangent.defined());
      if (tangent.defined()) { operands.push_back(tangent); }
    }
    Stack more = spec->arguments(std::move(operands), outputs, spec->rest(given));
    more.emplace_back(needed);
    const auto tangents = spec->derivative(spec->tangents, std::move(more));
    for (size_t i = 0; i < tangents.size(); ++i) { outputs[i]._set_fw_grad(tangents[i], 0, /*is_inplace_op=*/false); }
  }
};

}  // namespace backward_strategies
