// Kernels for operators of PyTorch itself by the plans of the fast path: `strategies.integration.installation`.
//
// They are registered for AutogradCPU, before PyTorch's own, which are for all devices. A call for which there is no
// plan goes on to PyTorch's as it is, and what finds that out is asked in the order of what it costs.

#pragma once

#include "operators.hpp"

#include <ATen/ops/cholesky_inverse_ops.h>
#include <ATen/ops/cholesky_solve_ops.h>
#include <ATen/ops/linalg_cholesky_ops.h>
#include <ATen/ops/linalg_cholesky_ex_ops.h>
#include <ATen/ops/linalg_det_ops.h>
#include <ATen/ops/linalg_inv_ops.h>
#include <ATen/ops/linalg_inv_ex_ops.h>
#include <ATen/ops/linalg_lstsq_ops.h>
#include <ATen/ops/linalg_lu_ops.h>
#include <ATen/ops/linalg_lu_factor_ops.h>
#include <ATen/ops/linalg_lu_factor_ex_ops.h>
#include <ATen/ops/linalg_lu_solve_ops.h>
#include <ATen/ops/linalg_pinv_ops.h>
#include <ATen/ops/linalg_qr_ops.h>
#include <ATen/ops/linalg_slogdet_ops.h>
#include <ATen/ops/linalg_solve_ops.h>
#include <ATen/ops/linalg_solve_ex_ops.h>
#include <ATen/ops/linalg_solve_triangular_ops.h>
#include <c10/util/ScopeExit.h>

#include <array>
#include <string_view>
#include <utility>

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
        usual(calls.attr("usual")),
        takes_tolerances(field<bool>(calls, "takes_tolerances")),
        is_transposed(field<bool>(calls, "is_transposed")),
        returned(field<std::vector<std::optional<size_t>>>(calls, "returned")),
        by_columns(field<Positions>(calls, "by_columns")),
        by_rows(field<Positions>(calls, "by_rows")) {}

  // What can be told without the interpreter: no plan is for empty matrices, or for batches that are broadcast.
  bool hold(at::ArrayRef<c10::IValue> arguments) const {
    const auto& matrix = arguments[inputs[0]].toTensor();
    if (matrix.dim() < 2) { return false; }
    const auto batch = matrix.sizes().slice(0, matrix.dim() - 2);
    return usual.hold(arguments.slice(inputs.size())) && std::all_of(inputs.begin(), inputs.end(), [&](size_t i) {
             const auto& input = arguments[i].toTensor();
             return input.numel() > 0 && input.dim() <= matrix.dim() && input.sizes().size() > batch.size() &&
                    input.sizes().slice(0, batch.size()) == batch;
           });
  }

  // With the interpreter's lock. What Python has to say costs most, and is asked where there are plans.
  std::optional<variable_list> compute(at::ArrayRef<c10::IValue> arguments, const py::object& is_computing) const {
    variable_list given, results;
    for (const auto i : inputs) {
      const auto& input = arguments[i].toTensor();
      if (is_transposed && input.dim() < 2) { return std::nullopt; }
      given.push_back(is_transposed ? input.mT() : input);
    }
    const auto tolerances = tolerances_in(arguments);
    if (!tolerances) { return std::nullopt; }
    const auto chosen = cache->followed(cache->automatic.ptr());
    if (cache->known(chosen, given, *tolerances).empty() || is_computing().cast<bool>() ||
        !std::all_of(inputs.begin(), inputs.end(), [&](size_t i) {
          return is_usual_type(py::cast(arguments[i].toTensor()).ptr());
        })) {
      return std::nullopt;
    }
    const auto outputs = cache->by_plans(chosen, {given, *tolerances});
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
      const auto number = each.isTensor() ? UsualOptions::tolerance(each) : std::nullopt;
      if (!number) { return std::nullopt; }
      result.push_back(*number);
    }
    return result;
  }

  static at::ScalarType real(const Tensor& tensor) { return c10::toRealValueType(tensor.scalar_type()); }
};

// An operator that can be installed. It lives as long as the process.
struct AtenOperator {
  std::string name;
  void (*add)(const AtenOperator*, torch::Library&);  // its kernel
  std::vector<AtenCalls> calls;
  py::object is_computing;
  std::unique_ptr<torch::Library> registration;

  std::optional<variable_list> by_plans(at::ArrayRef<c10::IValue> arguments) const {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](auto& each) { return each.hold(arguments); });
    if (found == calls.end() || !Py_IsInitialized()) { return std::nullopt; }
    py::gil_scoped_acquire lock;
    try {
      if (PyList_GET_SIZE(watchers) != 0 || is_own_call()) { return std::nullopt; }
      return found->compute(arguments, is_computing);
    } catch (py::error_already_set& error) { Plan::raise(error); }
  }

 private:
  // Strategies are made of PyTorch's operators: as `is_own` of `strategies.integration.call_site`.
  static bool is_own_call() {
    static constexpr std::string_view package = "strategies";
    static PyObject* const key = PyUnicode_InternFromString("__name__");
    PyObject* globals = PyEval_GetGlobals();  // of the innermost frame, if there is one
    PyObject* name = globals == nullptr ? nullptr : PyDict_GetItemWithError(globals, key);
    if (name == nullptr || !PyUnicode_Check(name)) { return false; }
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(name, &size);
    if (text == nullptr) { throw py::error_already_set(); }
    const std::string_view module(text, size);
    return module.substr(0, module.find('.')) == package;
  }
};

// Whether PyTorch's kernel computes a call that the plans have declined: what that consists of, they would decline.
inline thread_local bool is_declined = false;

// The kernel of an operator of PyTorch, which is a class of `at::_ops`.
template <typename Op, typename Schema = typename Op::schema>
struct AtenKernel;

template <typename Op, typename Result, typename... Arguments>
struct AtenKernel<Op, Result(Arguments...)> {
  static inline const AtenOperator* installed;

  static Result call(c10::DispatchKeySet keys, Arguments... arguments) {
    const bool is_usual = !is_declined && is_plain() && (... && is_readable_if_tensor(arguments));
    if (is_usual) {
      const std::array<c10::IValue, sizeof...(Arguments)> values{c10::IValue(arguments)...};
      if (auto results = installed->by_plans(values)) { return returned(*results, static_cast<Result*>(nullptr)); }
    }
    const auto previous = std::exchange(is_declined, is_declined || is_usual);
    const auto restore = c10::make_scope_exit([previous] { is_declined = previous; });
    // Of the keys for autograd, PyTorch's kernel is under all but that for the CPU. What comes before them has been:
    // the dispatcher of Python, which tracers switch on, would begin anew.
    return Op::redispatch((keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradOther), arguments...);
  }

 private:
  static bool is_readable_if_tensor(const Tensor& tensor) { return tensor.defined() && is_readable(tensor); }
  template <typename Other>
  static bool is_readable_if_tensor(const Other&) {
    return true;
  }

  static Tensor returned(variable_list& results, Tensor*) { return std::move(results[0]); }
  template <typename... Tensors>
  static std::tuple<Tensors...> returned(variable_list& results, std::tuple<Tensors...>*) {
    size_t i = 0;
    return std::tuple<Tensors...>{static_cast<Tensors>(std::move(results[i++]))...};
  }
};

template <typename... Ops>
auto kernels() {
  std::unordered_map<std::string, decltype(AtenOperator::add)> result;
  const auto add = [&](auto* kernel, std::string name, const std::string& overload) {
    using Kernel = std::remove_pointer_t<decltype(kernel)>;
    if (!overload.empty()) { name += "." + overload; }
    result.emplace(std::move(name), [](const AtenOperator* of, torch::Library& library) {
      Kernel::installed = of;
      library.impl(of->name.c_str(), TORCH_FN(Kernel::call));
    });
  };
  (..., add(static_cast<AtenKernel<Ops>*>(nullptr), Ops::name, Ops::overload_name));
  return result;
}

// As operators of PyTorch are named, without "aten::".
inline AtenOperator* aten_operator(const std::string& name, const py::list& calls, py::object is_computing) {
  using namespace at::_ops;
  static const auto known = kernels<
      cholesky_inverse, cholesky_solve, linalg_cholesky, linalg_cholesky_ex, linalg_det, linalg_inv, linalg_inv_ex,
      linalg_lstsq, linalg_lu, linalg_lu_factor, linalg_lu_factor_ex, linalg_lu_solve, linalg_pinv_atol_rtol_tensor,
      linalg_qr, linalg_slogdet, linalg_solve, linalg_solve_ex, linalg_solve_triangular>();
  auto* made = new AtenOperator{"aten::" + name, known.at("aten::" + name), {}, std::move(is_computing), {}};
  for (const auto& each : calls) { made->calls.emplace_back(each); }
  return made;
}

inline void install(AtenOperator& each) {
  auto registration = std::make_unique<torch::Library>(
      torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__, __LINE__);
  each.add(&each, *registration);
  each.registration = std::move(registration);
}

inline void uninstall(AtenOperator& each) { each.registration.reset(); }

}  // namespace backward_strategies
