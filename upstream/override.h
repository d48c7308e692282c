// Puts a derivative in the place of PyTorch's own: the node that PyTorch's
// kernel makes is replaced by one that calls the derivative, with the same
// edges. Results and forward mode stay those of PyTorch's kernel.

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
    const auto is_defined = [](const at::Tensor& gradient) {
      return gradient.defined();
    };
    if (std::none_of(gradients.begin(), gradients.end(), is_defined)) {
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
  Override(const c10::OperatorHandle& operation, Derivative derivative)
      : original_(operation.getComputedKernelForDispatchKey(
            c10::DispatchKey::AutogradCPU)),
        derivative_(std::move(derivative)) {}

  void operator()(
      const c10::OperatorHandle& operation,
      c10::DispatchKeySet keys,
      torch::jit::Stack* stack) const {
    const auto arguments =
        torch::jit::last(*stack, operation.schema().arguments().size()).vec();
    original_.callBoxed(operation, keys, stack);
    const auto results =
        torch::jit::last(*stack, operation.schema().returns().size()).vec();
    variable_list differentiable;
    for (const auto& result : results) {
      if (result.isTensor() && result.toTensor().grad_fn()) {
        differentiable.push_back(result.toTensor());
      }
    }
    if (differentiable.empty()) {
      return;
    }
    auto edges = differentiable.front().grad_fn()->next_edges();
    auto node =
        c10::make_intrusive<OverrideBackward>(std::move(edges), derivative_);
    for (const auto& result : differentiable) {
      torch::autograd::impl::set_gradient_edge(
          result,
          {node, node->add_input_metadata(result)});
    }
    node->save(arguments, results);
  }

 private:
  c10::SafeKernelFunction original_;
  Derivative derivative_;
};

// Defines the operators `enable` and `disable` of a library. PyTorch's kernel
// is registered for all backends together, so one for the CPU goes before it,
// and leaves it in place when it is taken back.
inline void define(
    torch::Library& library,
    const char* name,
    const char* overload,
    Derivative derivative) {
  static std::optional<torch::Library> registered;
  library.def("enable() -> ()", [=] {
    if (registered) {
      return;
    }
    const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    auto kernel = std::make_unique<Override>(operation, derivative);
    registered.emplace(
        torch::Library::IMPL,
        "aten",
        c10::DispatchKey::AutogradCPU,
        __FILE__,
        __LINE__);
    registered->impl(
        c10::str(name, *overload ? "." : "", overload).c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
  });
  library.def("disable() -> ()", [] { registered.reset(); });
}

} // namespace upstream
