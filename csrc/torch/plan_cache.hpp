// The plans of an operation, by what was chosen and layouts: `_candidate_plans` of `strategies.autograd.fast_path`.

#pragma once

#include <unordered_map>

#include "node.hpp"

namespace backward_strategies {

struct HashOfWords {
  size_t operator()(const Words& words) const {
    uint64_t hash = 14695981039346656037u;  // FNV-1a, by words
    for (const auto word : words) { hash = (hash ^ static_cast<uint64_t>(word)) * 1099511628211u; }
    return hash ^ (hash >> 32);
  }
};

inline PyObject* parameter_class;

// Whether no class defines what functions of a tensor do.
inline bool is_usual_type(PyObject* tensor) {
  auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  return kind == THPVariableClass || kind == parameter_class;
}

inline PyObject *active, *override, *by_default, *policy;  // of `strategies.policy`

// What "auto" follows: `active`, whose frame would cost as much as all else of a look-up.
inline py::object followed_by_auto() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(override, nullptr, &value) < 0) { throw py::error_already_set(); }
  const auto held = py::reinterpret_steal<py::object>(value);
  if (!held.is_none()) {
    const py::object choice = held[py::int_(0)];
    return py::isinstance(choice, policy) ? py::object(py::handle(active)()[py::int_(0)]) : choice;
  }
  static PyObject* arguments = nullptr;
  static int threads = 0;
  if (const int now = at::get_num_threads(); now != threads) {
    Py_XSETREF(arguments, py::make_tuple("cpu", now).release().ptr());
    threads = now;
  }
  const auto found = py::reinterpret_steal<py::object>(PyObject_CallObject(by_default, arguments));
  if (!found) { throw py::error_already_set(); }
  return py::object(found[py::int_(0)]);
}

struct PlanCache;

// The inputs that the plans of a cache have declined last: the function that is called then asks for them again.
struct Declined {
  const PlanCache* cache = nullptr;
  std::vector<const void*> data;

  void clear() { cache = nullptr; }
  void set(const PlanCache* by, at::TensorList inputs) {
    cache = by;
    data.clear();
    for (const auto& input : inputs) { data.push_back(input.const_data_ptr()); }
  }
  // Whether these are they, for once.
  bool take(const PlanCache* by, at::TensorList inputs) {
    return std::exchange(cache, nullptr) == by && data.size() == inputs.size() &&
           std::equal(data.begin(), data.end(), inputs.begin(), [](const void* address, const auto& input) {
             return address == input.const_data_ptr();
           });
  }
};

inline thread_local Declined declined;

struct PlanCache {
  py::object find, automatic;
  size_t arity, most_tolerances;
  py::object tangents;  // of outputs, from what a plan has computed and the tangents of inputs; or None

  struct Known {
    py::object chosen;  // whose address is part of the key
    std::vector<PlanPointer> plans;
  };

  static constexpr size_t most = 4096;
  std::unordered_map<Words, Known, HashOfWords> layouts;

  // That of a fast path as Python holds it.
  static PlanCache* of(const py::handle& fast_path) {
    return static_cast<PlanCache*>(PyCapsule_GetPointer(PyCFunction_GetSelf(fast_path.ptr()), nullptr));
  }

  struct Given {
    variable_list inputs;
    std::vector<double> tolerances;
  };

  // What was computed, by which plan, from inputs as that has read them.
  struct ByPlan {
    PlanPointer plan;
    variable_list inputs;
    Computed computed;
  };

  // Inputs and tolerances; nothing where the generic path is to be taken.
  std::optional<Given> usual(PyObject* const* given, size_t count) const {
    if (!is_plain() || PyList_GET_SIZE(watchers) != 0) { return std::nullopt; }
    auto found = parsed(given, count);
    if (!found) { return std::nullopt; }
    for (auto& input : found->inputs) {
      input = resolved(input);
      if (!is_readable(input)) { return std::nullopt; }
    }
    return found;
  }

  // The same, of any tensors.
  std::optional<Given> parsed(PyObject* const* given, size_t count) const {
    if (count != arity && count != arity + most_tolerances) { return std::nullopt; }
    Given found;
    for (size_t i = 0; i < arity; ++i) {
      if (!is_usual_type(given[i])) { return std::nullopt; }
      found.inputs.push_back(THPVariable_Unpack(given[i]));
    }
    for (size_t i = arity; i < count; ++i) {
      if (!PyFloat_CheckExact(given[i])) { return std::nullopt; }
      found.tolerances.push_back(PyFloat_AS_DOUBLE(given[i]));
    }
    return found;
  }

  // Nothing where no plan computes inputs that are readable.
  std::optional<ByPlan> compute(const py::object& chosen, Given given) {
    auto& inputs = given.inputs;
    for (const auto& plan : known(chosen, inputs, given.tolerances)) {
      if (plan->copies) {
        for (auto& input : inputs) { input = input.contiguous(); }
      }
      if (auto computed = plan->compute(inputs)) { return ByPlan{plan, std::move(inputs), std::move(*computed)}; }
    }
    return std::nullopt;
  }

  // Outputs for autograd, likewise.
  std::optional<variable_list> by_plans(const py::object& chosen, Given given) {
    auto found = compute(chosen, std::move(given));
    if (!found) { return std::nullopt; }
    auto& [plan, inputs, computed] = *found;
    const bool needs = at::GradMode::is_enabled() &&
                       std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.requires_grad(); });
    return needs ? FastPath::apply(plan, computed, at::TensorList(inputs)) : std::move(computed.outputs);
  }

  // The strategy or policy that is meant.
  py::object followed(PyObject* choice) {
    if (!PyUnicode_Check(choice)) { return py::reinterpret_borrow<py::object>(choice); }
    if (choice == automatic.ptr() || PyUnicode_Compare(choice, automatic.ptr()) == 0) { return followed_by_auto(); }
    Py_INCREF(choice);
    PyUnicode_InternInPlace(&choice);  // equal names have one address
    return py::reinterpret_steal<py::object>(choice);
  }

  std::vector<PlanPointer> known(
      const py::object& chosen, at::TensorList inputs, const std::vector<double>& tolerances) {
    static thread_local Words key;
    key.clear();
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
    if (const auto at = layouts.find(key); at != layouts.end()) { return at->second.plans; }
    Words kept(key);  // what is called may come here
    py::list arguments;
    for (const auto& input : inputs) { arguments.append(py::cast(input)); }
    for (const double tolerance : tolerances) { arguments.append(tolerance); }
    Known made{chosen, {}};
    for (const auto& found : find(chosen, *py::tuple(arguments))) {
      made.plans.push_back(c10::make_intrusive<Plan>(found));
    }
    if (layouts.size() >= most) { layouts.clear(); }
    return layouts.emplace(std::move(kept), std::move(made)).first->second.plans;
  }
};

}  // namespace backward_strategies
