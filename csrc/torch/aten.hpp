// Kernels for operators of PyTorch itself by the plans of the fast path: `strategies.integration.installation`.
//
// They are registered for AutogradCPU, before PyTorch's own, which are for all devices. A call for which there is no
// plan goes on to PyTorch's as it is.

#pragma once

#include <string_view>

#include "operators.hpp"

namespace backward_strategies {

// Calls of an operator that a fast path computes: `AtenCalls` of `strategies.autograd.aten`.
struct AtenCalls {
  PlanCache* cache;
  Positions inputs;
  UsualOptions usual;  // of the arguments that follow the inputs
  bool takes_tolerances, is_transposed;
  std::vector<std::optional<size_t>> returned;
  Positions by_columns, by_rows;

  explicit AtenCalls(const py::handle& calls)
      : cache(PlanCache::of(calls.attr("compiled"))),
        inputs(field<Positions>(calls, "inputs")),
        usual(usual_options(calls.attr("usual"))),
        takes_tolerances(field<bool>(calls, "takes_tolerances")),
        is_transposed(field<bool>(calls, "is_transposed")),
        returned(field<std::vector<std::optional<size_t>>>(calls, "returned")),
        by_columns(field<Positions>(calls, "by_columns")),
        by_rows(field<Positions>(calls, "by_rows")) {}

  bool hold(at::ArrayRef<c10::IValue> arguments) const {
    return are_usual(usual, arguments.slice(inputs.size())) && std::all_of(inputs.begin(), inputs.end(), [&](size_t i) {
             const auto& input = arguments[i].toTensor();
             return input.defined() && is_readable(input);
           });
  }

  // With the interpreter's lock.
  std::optional<variable_list> compute(at::ArrayRef<c10::IValue> arguments) const {
    variable_list given, results;
    for (const auto i : inputs) {
      const auto& input = arguments[i].toTensor();
      if (!is_usual_type(py::cast(input).ptr()) || (is_transposed && input.dim() < 2)) { return std::nullopt; }
      given.push_back(is_transposed ? input.mT() : input);
    }
    const auto tolerances = tolerances_in(arguments);
    if (!tolerances) { return std::nullopt; }
    const auto outputs = cache->by_plans(cache->followed(cache->automatic.ptr()), {given, *tolerances});
    if (!outputs) { return std::nullopt; }
    for (size_t i = 0; i < returned.size(); ++i) {
      const auto& from = returned[i];
      auto result = from ? (*outputs)[*from] : at::empty({0}, given[0].options().dtype(real(given[0])));
      if (is_transposed) { result = result.mT(); }
      if (has(by_rows, i)) { result = result.contiguous(); }
      const bool has_columns = has(by_columns, i) && result.dim() > 1 && result.size(-1) > 1;
      results.push_back(has_columns ? laid_out(result, true) : result);
    }
    return results;
  }

 private:
  // Atol and rtol, which follow the inputs; empty where both are None, nothing where they are no two numbers.
  std::optional<std::vector<double>> tolerances_in(at::ArrayRef<c10::IValue> arguments) const {
    std::vector<double> result;
    if (!takes_tolerances || (arguments[inputs.size()].isNone() && arguments[inputs.size() + 1].isNone())) {
      return result;
    }
    for (const auto& each : arguments.slice(inputs.size(), 2)) {
      if (!each.isTensor()) { return std::nullopt; }
      const auto& tensor = each.toTensor();
      if (!is_readable(tensor) || tensor.dim() != 0 || tensor.requires_grad() || !tensor.is_floating_point()) {
        return std::nullopt;
      }
      result.push_back(std::max(tensor.item<double>(), 0.0));
      if (!std::isfinite(result.back())) { return std::nullopt; }
    }
    return result;
  }

  static at::ScalarType real(const Tensor& tensor) { return c10::toRealValueType(tensor.scalar_type()); }
};

// An operator that can be installed. It lives as long as the process.
struct AtenOperator {
  c10::OperatorHandle op;
  c10::DispatchKey of_torch;  // under which PyTorch has its own kernel for the CPU
  std::vector<AtenCalls> calls;
  py::object is_computing;
  std::unique_ptr<torch::Library> registration;

  AtenOperator(c10::OperatorHandle handle, const py::list& some, py::object computing)
      : op(std::move(handle)),
        of_torch(
            op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)
                ? c10::DispatchKey::CompositeImplicitAutograd
                : c10::DispatchKey::Autograd),
        is_computing(std::move(computing)) {
    for (const auto& each : some) { calls.emplace_back(each); }
  }

  void call(Stack* stack) const {
    const size_t count = op.schema().arguments().size();
    if (auto results = by_plans(torch::jit::last(*stack, count))) {
      torch::jit::drop(*stack, count);
      for (auto& each : *results) { stack->emplace_back(std::move(each)); }
    } else {
      c10::Dispatcher::singleton().callBoxedForDispatchKey(op, of_torch, stack);
    }
  }

 private:
  std::optional<variable_list> by_plans(at::ArrayRef<c10::IValue> arguments) const {
    if (!is_plain() || !Py_IsInitialized()) { return std::nullopt; }
    const auto found = std::find_if(calls.begin(), calls.end(), [&](auto& each) { return each.hold(arguments); });
    if (found == calls.end()) { return std::nullopt; }
    py::gil_scoped_acquire lock;
    try {
      if (PyList_GET_SIZE(watchers) != 0 || is_own_call()) { return std::nullopt; }
      return found->compute(arguments);
    } catch (py::error_already_set& error) { Plan::raise(error); }
  }

  // Strategies are made of PyTorch's operators: as `is_own` of `strategies.integration.call_site`, and `is_computing`.
  bool is_own_call() const {
    static constexpr std::string_view package = "strategies";
    PyObject* globals = PyEval_GetGlobals();  // of the innermost frame, if there is one
    PyObject* name = globals == nullptr ? nullptr : PyDict_GetItemString(globals, "__name__");
    if (name != nullptr && PyUnicode_Check(name)) {
      const auto module = py::reinterpret_borrow<py::str>(name).cast<std::string>();
      if (module.substr(0, module.find('.')) == package) { return true; }
    }
    return is_computing().cast<bool>();
  }
};

struct AtenKernel : c10::OperatorKernel {
  const AtenOperator* installed;
  explicit AtenKernel(const AtenOperator* of) : installed(of) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) { installed->call(stack); }
};

// As operators of PyTorch are named, without "aten::".
inline AtenOperator* aten_operator(const std::string& name, const py::list& calls, py::object is_computing) {
  const auto dot = std::min(name.find('.'), name.size());
  const auto overload = name.substr(std::min(dot + 1, name.size()));
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + name.substr(0, dot)).c_str(), overload.c_str());
  return new AtenOperator(op, calls, std::move(is_computing));
}

inline void install(AtenOperator& each) {
  auto kernel = std::make_unique<AtenKernel>(&each);
  auto* const raw = kernel.get();
  auto registration = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", std::nullopt, __FILE__, __LINE__);
  registration->impl(
      toString(each.op.operator_name()).c_str(),
      torch::dispatch(c10::DispatchKey::AutogradCPU, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
  // Not freed with the registration: another thread may be about to call it.
  c10::raw::intrusive_ptr::incref(raw);
  each.registration = std::move(registration);
}

inline void uninstall(AtenOperator& each) { each.registration.reset(); }

}  // namespace backward_strategies
