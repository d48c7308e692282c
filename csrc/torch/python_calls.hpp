// Calls of a public function that its fast paths compute: `python_calls` of `strategies.autograd.cpp`.

#pragma once

#include <torch/csrc/jit/frontend/tracer.h>

#include "node.hpp"
#include "plan_cache.hpp"

namespace backward_strategies {

// Whether neither a tracer nor autocast sees what is called.
inline bool is_seen_by_autograd_alone() {
  return !torch::jit::tracer::isTracing() &&
         c10::impl::tls_local_dispatch_key_set().excluded_.has_all(c10::autocast_dispatch_keyset);
}

// Those for one fast path: `AtenCalls` of `strategies.autograd.aten`.
struct CallsOfPath {
  PlanCache* cache;
  Positions inputs;
  std::vector<py::object> usual;  // of the arguments that follow the inputs
  bool takes_tolerances, is_transposed;

  explicit CallsOfPath(const py::handle& calls)
      : cache(PlanCache::of(calls.attr("compiled"))),
        inputs(field<Positions>(calls, "inputs")),
        usual(field<std::vector<py::object>>(calls, "usual")),
        takes_tolerances(field<bool>(calls, "takes_tolerances")),
        is_transposed(field<bool>(calls, "is_transposed")) {}

  // Tolerances are None. Where any value is usual, it is a bool.
  bool hold(PyObject* const* arguments) const {
    for (size_t i = 0; i < usual.size(); ++i) {
      PyObject *expected = usual[i].ptr(), *given = arguments[inputs.size() + i];
      const bool is_any = expected == Py_Ellipsis, is_tolerance = takes_tolerances && i < 2;
      const bool is_usual = is_tolerance                ? given == Py_None
                            : is_any                    ? PyBool_Check(given)
                            : PyUnicode_Check(expected) ? is_text(given, expected)
                                                        : given == expected;
      if (!is_usual) { return false; }
    }
    return true;
  }

  std::optional<variable_list> compute(PyObject* choice, PyObject* const* arguments) const {
    declined.clear();
    std::array<PyObject*, 3> ordered;
    for (size_t i = 0; i < inputs.size(); ++i) { ordered[i] = arguments[inputs[i]]; }
    auto given = cache->usual(ordered.data(), inputs.size());
    if (!given) { return std::nullopt; }
    for (auto& input : given->inputs) {
      if (!is_transposed) { break; }
      if (input.dim() < 2) { return std::nullopt; }
      input = input.mT();
    }
    auto outputs = cache->by_plans(cache->followed(choice), *given);
    if (!outputs) {
      declined.set(cache, given->inputs);
    } else if (is_transposed) {
      for (auto& output : *outputs) { output = output.mT(); }
    }
    return outputs;
  }

 private:
  static bool is_text(PyObject* given, PyObject* expected) {
    return given == expected || (PyUnicode_Check(given) && PyUnicode_Compare(given, expected) == 0);
  }
};

// A function: its parameters, of which the last is the strategy, and the kind of its result.
struct PythonCalls {
  static constexpr size_t most_parameters = 8;
  std::vector<py::object> names, defaults;  // one that is undefined has no default
  size_t most_positional;
  std::vector<CallsOfPath> paths;
  py::object result;  // a type of named tuples; None where the first output is the result

  // The result for a tuple and a dictionary of arguments; None where the function itself is to be called.
  py::object compute(PyObject* given, PyObject* options) const {
    std::array<PyObject*, most_parameters> arguments;
    if (!is_plain() || !is_seen_by_autograd_alone() || !bind(given, options, arguments.data())) { return py::none(); }
    for (const auto& path : paths) {
      if (!path.hold(arguments.data())) { continue; }
      auto outputs = path.compute(arguments[names.size() - 1], arguments.data());
      if (!outputs) { return py::none(); }
      if (result.is_none()) { return py::reinterpret_steal<py::object>(THPVariable_Wrap((*outputs)[0])); }
      const auto values = py::make_tuple(as_tuple(*outputs));
      auto* kind = reinterpret_cast<PyTypeObject*>(result.ptr());
      return py::reinterpret_steal<py::object>(PyTuple_Type.tp_new(kind, values.ptr(), nullptr));
    }
    return py::none();
  }

 private:
  // Whether the arguments are those of the function, with what it has as defaults.
  bool bind(PyObject* given, PyObject* options, PyObject** arguments) const {
    const size_t count = PyTuple_GET_SIZE(given);
    if (count > most_positional) { return false; }
    for (size_t i = 0; i < names.size(); ++i) {
      arguments[i] = i < count ? PyTuple_GET_ITEM(given, i) : defaults[i].ptr();
    }
    Py_ssize_t at = 0;
    for (PyObject *name, *value; PyDict_Next(options, &at, &name, &value);) {
      size_t i = count;
      while (i < names.size() && names[i].ptr() != name) { ++i; }  // names are interned, as keywords are
      if (i == names.size()) { return false; }
      arguments[i] = value;
    }
    return std::all_of(arguments, arguments + names.size(), [](auto* each) { return each != nullptr; });
  }
};

}  // namespace backward_strategies
