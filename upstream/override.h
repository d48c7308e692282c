// Puts derivatives in the place of PyTorch's own: the node that PyTorch's
// kernel makes is replaced by one that calls the derivative, with the same
// edges. Results stay those of PyTorch's kernel, and tangents, too, where an
// operation has no other ones: then the kernel gets its arguments without them.

#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace upstream {

using torch::autograd::variable_list;

// What a formula in PyTorch's derivatives.yaml can name.
struct Call {
  std::vector<c10::IValue> arguments, results;
  std::vector<bool> needed; // for each differentiable argument
};

// The gradients of the differentiable arguments, from those of the
// differentiable results.
using Derivative =
    std::function<variable_list(const variable_list&, const Call&)>;

// The tangents of the first results, from those of all arguments that are
// tensors, undefined where there is none.
using Tangents = Derivative;

struct Formulas {
  const char *name, *overload; // of the operation
  Derivative derivative;
  Tangents tangents = {};
};

inline bool is_any_defined(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.defined();
  });
}

// Values of a call, the tensors among them as autograd saves them.
class Saved {
 public:
  Saved(const std::vector<c10::IValue>& values, bool are_results)
      : values_(values) {
    for (auto& value : values_) {
      if (!value.isTensor()) {
        continue;
      }
      variables_.emplace_back(
          value.toTensor(),
          are_results && value.toTensor().requires_grad());
      value = c10::IValue();
      places_.push_back(&value - values_.data());
    }
  }

  template <class NodePointer>
  std::vector<c10::IValue> unpack(const NodePointer& node) const {
    auto values = values_;
    for (size_t i = 0; i < places_.size(); ++i) {
      values[places_[i]] = variables_[i].unpack(node);
    }
    return values;
  }

  void release() {
    for (auto& variable : variables_) {
      variable.reset_data();
    }
  }

 private:
  std::vector<c10::IValue> values_;
  std::vector<size_t> places_;
  std::vector<torch::autograd::SavedVariable> variables_;
};

class OverrideBackward : public torch::autograd::Node {
 public:
  OverrideBackward(torch::autograd::edge_list&& edges, Derivative derivative)
      : Node(std::move(edges)), derivative_(std::move(derivative)) {}

  void save(
      const std::vector<c10::IValue>& arguments,
      const std::vector<c10::IValue>& results) {
    arguments_.emplace(arguments, false);
    results_.emplace(results, true);
  }

  variable_list apply(variable_list&& gradients) override {
    // As in PyTorch's generated nodes, a derivative is not asked where it would
    // be of nothing.
    if (!is_any_defined(gradients)) {
      return variable_list(num_outputs());
    }
    Call call{arguments_->unpack(getptr()), results_->unpack(getptr()), {}};
    for (size_t i = 0; i < num_outputs(); ++i) {
      call.needed.push_back(should_compute_output(i));
    }
    return derivative_(gradients, call);
  }

  void release_variables() override {
    arguments_->release();
    results_->release();
  }

 private:
  Derivative derivative_;
  std::optional<Saved> arguments_, results_;
};

class Override : public c10::OperatorKernel {
 public:
  Override(const c10::OperatorHandle& operation, const Formulas& formulas)
      : original_(operation.getComputedKernelForDispatchKey(
            c10::DispatchKey::AutogradCPU)),
        formulas_(formulas) {}

  void operator()(
      const c10::OperatorHandle& operation,
      c10::DispatchKeySet keys,
      torch::jit::Stack* stack) const {
    const auto count = operation.schema().arguments().size();
    const auto given = torch::jit::last(*stack, count).vec();
    variable_list tangents;
    if (formulas_.tangents) {
      tangents = take_tangents(*stack, count);
    }
    const auto arguments = torch::jit::last(*stack, count).vec();
    original_.callBoxed(operation, keys, stack);
    const auto results =
        torch::jit::last(*stack, operation.schema().returns().size()).vec();
    const auto node = replaced_node(results);
    if (is_any_defined(tangents)) {
      const auto found =
          formulas_.tangents(tangents, Call{arguments, results, {}});
      for (size_t i = 0; i < found.size(); ++i) {
        results[i].toTensor()._set_fw_grad(
            found[i],
            /*level=*/0,
            /*is_inplace_op=*/false);
      }
    }
    if (node) {
      node->save(given, results); // with their tangents
    }
  }

 private:
  // The tangents of the last values that are tensors, which then have none.
  static variable_list take_tangents(torch::jit::Stack& stack, size_t count) {
    variable_list tangents;
    for (auto i = stack.size() - count; i < stack.size(); ++i) {
      if (!stack[i].isTensor()) {
        continue;
      }
      const auto tensor = stack[i].toTensor();
      tangents.push_back(tensor._fw_grad(/*level=*/0));
      if (tangents.back().defined()) {
        stack[i] = tensor._fw_primal(/*level=*/0);
      }
    }
    return tangents;
  }

  // Of the differentiable results, if there are any.
  c10::intrusive_ptr<OverrideBackward> replaced_node(
      const std::vector<c10::IValue>& results) const {
    variable_list differentiable;
    for (const auto& result : results) {
      if (result.isTensor() && result.toTensor().grad_fn()) {
        differentiable.push_back(result.toTensor());
      }
    }
    if (differentiable.empty()) {
      return {};
    }
    auto edges = differentiable.front().grad_fn()->next_edges();
    auto node = c10::make_intrusive<OverrideBackward>(
        std::move(edges),
        formulas_.derivative);
    for (const auto& result : differentiable) {
      torch::autograd::impl::set_gradient_edge(
          result,
          {node, node->add_input_metadata(result)});
    }
    return node;
  }

  c10::SafeKernelFunction original_;
  Formulas formulas_;
};

// Defines the operators `enable` and `disable` of a library. PyTorch's kernels
// are registered for all backends together, so one for the CPU goes before
// them, and leaves them in place when it is taken back.
inline void define(torch::Library& library, std::vector<Formulas> all) {
  static std::optional<torch::Library> registered;
  library.def("enable() -> ()", [all = std::move(all)] {
    if (registered) {
      return;
    }
    registered.emplace(
        torch::Library::IMPL,
        "aten",
        c10::DispatchKey::AutogradCPU,
        __FILE__,
        __LINE__);
    for (const auto& each : all) {
      const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(
          each.name,
          each.overload);
      registered->impl(
          c10::str(each.name, *each.overload ? "." : "", each.overload).c_str(),
          torch::CppFunction::makeFromBoxedFunctor(
              std::make_unique<Override>(operation, each)));
    }
  });
  library.def("disable() -> ()", [] { registered.reset(); });
}

} // namespace upstream
