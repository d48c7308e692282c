// The fast path without Python: `strategies.autograd.fast_path` and `Plan` of `strategies.kernels.cpu.plans`, which say
// what each step is for. Of a layout that was seen before, a call is a look-up here, a kernel and a node of
// autograd; what has to be found out, and what is rare, Python does.

#include "aten.hpp"
#include "forward_mode.hpp"
#include "norms.hpp"
#include "python_calls.hpp"
#include "registration.hpp"

namespace backward_strategies {

namespace {

PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  auto* cache = static_cast<PlanCache*>(PyCapsule_GetPointer(self, nullptr));
  auto given = cache->usual(arguments + 1, count - 1);
  if (given && declined.take(cache, given->inputs)) { Py_RETURN_NONE; }
  const auto outputs = given ? cache->by_plans(cache->followed(arguments[0]), std::move(*given))
                             : in_forward_mode(*cache, arguments[0], arguments + 1, count - 1);
  if (!outputs) { Py_RETURN_NONE; }
  return as_tuple(*outputs).release().ptr();
  END_HANDLE_TH_ERRORS
}

// `FastPath._compute`, of a fast path as Python holds it.
py::object computed(const py::handle& fast_path, const py::handle& choice, const py::args& arguments) {
  auto* cache = PlanCache::of(fast_path);
  auto given = cache->usual(PySequence_Fast_ITEMS(arguments.ptr()), arguments.size());
  if (!given) { return py::none(); }
  const auto found = cache->compute(cache->followed(choice.ptr()), std::move(*given));
  if (!found) { return py::none(); }
  const auto& [outputs, kept] = found->computed;
  return py::make_tuple(found->plan->found, as_tuple(found->inputs), as_tuple(outputs), as_tuple(kept));
}

PyObject* compute_python_call(PyObject* self, PyObject* const* given, Py_ssize_t) {
  HANDLE_TH_ERRORS
  return static_cast<PythonCalls*>(PyCapsule_GetPointer(self, nullptr))->compute(given[0], given[1]).release().ptr();
  END_HANDLE_TH_ERRORS
}

PyMethodDef call_definition = {
    "fast_path", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
    "The outputs of an operation; None where the generic path is to be taken."};

py::object fast_path(py::object find, size_t arity, size_t most_tolerances, py::object tangents) {
  // They live as long as the process, as the operations do.
  auto* made = new PlanCache{std::move(find), py::str("auto"), arity, most_tolerances, std::move(tangents), {}};
  const py::capsule self(made);
  return py::reinterpret_steal<py::object>(PyCFunction_New(&call_definition, self.ptr()));
}

PyMethodDef python_calls_definition = {
    "python_calls", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(compute_python_call)), METH_FASTCALL,
    "The result for a tuple and a dictionary of arguments; None where the function itself is to be called."};

py::object python_calls(
    std::vector<py::object> names, const std::vector<py::object>& defaults, size_t most_positional,
    const py::list& paths, py::object result) {
  if (names.size() > PythonCalls::most_parameters) { throw py::value_error("too many parameters"); }
  auto* made = new PythonCalls{std::move(names), {}, most_positional, {}, std::move(result)};
  for (const auto& each : defaults) { made->defaults.push_back(each.is(py::ellipsis()) ? py::object() : each); }
  for (const auto& each : paths) {
    const auto& path = made->paths.emplace_back(each);
    if (path.inputs.size() + path.usual.size() + 1 != made->names.size()) {
      throw py::value_error("the parameters are inputs, options and the strategy");
    }
  }
  const py::capsule self(made);
  return py::reinterpret_steal<py::object>(PyCFunction_New(&python_calls_definition, self.ptr()));
}

// Whether no tracer and no autocast sees a call, of a tuple and a dictionary, whose tensors have values of no half
// precision, are in no lists, and have these keys alone.
bool is_usual_call(PyObject* const* given, c10::DispatchKeySet keys) {
  if (!is_seen_by_autograd_alone()) { return false; }
  const auto is_usual = [&](PyObject* object) {
    if (!THPVariable_Check(object)) { return !PyList_Check(object) && !PyTuple_Check(object); }
    const auto& tensor = THPVariable_Unpack(object);
    return is_usual_type(object) && has_only(tensor, keys) && (tensor.is_cpu() || tensor.is_cuda()) &&
           !c10::isReducedFloatingType(tensor.scalar_type());
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given[0]); ++i) {
    if (!is_usual(PyTuple_GET_ITEM(given[0], i))) { return false; }
  }
  Py_ssize_t position = 0;
  for (PyObject *key, *value; PyDict_Next(given[1], &position, &key, &value);) {
    if (!is_usual(value)) { return false; }
  }
  return true;
}

// Of usual calls those that autograd alone sees. A conjugate or a sign may be pending.
PyObject* is_ordinary(PyObject*, PyObject* const* given, Py_ssize_t) {
  HANDLE_TH_ERRORS
  return PyBool_FromLong(is_plain() && is_usual_call(given, OF_CPU | OF_CUDA | PENDING));
  END_HANDLE_TH_ERRORS
}

// Of usual calls those that transforms of torch.func see, besides.
PyObject* is_transformed(PyObject*, PyObject* const* given, Py_ssize_t) {
  HANDLE_TH_ERRORS
  return PyBool_FromLong(
      is_transformed_alone() && !has_level(TransformType::Functionalize) &&
      is_usual_call(given, OF_CPU | OF_CUDA | PENDING | OF_LEVELS));
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"is_ordinary", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_ordinary)), METH_FASTCALL,
     "Whether nothing but autograd sees a call, which sees values."},
    {"is_transformed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_transformed)), METH_FASTCALL,
     "Whether nothing but autograd and transforms of torch.func see a call, which sees values."}};

void set_up(
    std::array<size_t, 4> words, double worth, const py::list& heard, std::array<py::object, 4> of_policy,
    const py::handle& parameter) {
  std::tie(header_words, argument_words, status_word, finished_word) = std::tuple_cat(words);
  worth_a_thread = worth;
  watchers = py::object(heard).release().ptr();
  active = of_policy[0].release().ptr();
  override = of_policy[1].release().ptr();
  by_default = of_policy[2].release().ptr();
  policy = of_policy[3].release().ptr();
  parameter_class = parameter.inc_ref().ptr();
}

}  // namespace

}  // namespace backward_strategies

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace backward_strategies;
  module.def("set_up", &set_up);
  module.def("set_team", [](intptr_t address) { team = reinterpret_cast<Team>(address); });
  module.def("fast_path", &fast_path);
  module.def("python_calls", &python_calls);
  for (auto& each : methods) {
    module.attr(each.ml_name) = py::reinterpret_steal<py::object>(PyCFunction_New(&each, nullptr));
  }
  module.def("levels", &levels);
  module.def("over_samples", &over_samples);
  module.def("computed", &computed);
  module.def("extreme_norms", &extreme_norms);
  // The tangent of the innermost level, if there is one.
  module.def("tangent", [](const at::Tensor& tensor) { return tensor._fw_grad(0); });
  module.def("set_tangent", [](const at::Tensor& tensor, const at::Tensor& tangent) {
    tensor._set_fw_grad(tangent, 0, /*is_inplace_op=*/false);
  });
  module.def("add_operator", &add_operator);
  py::class_<AtenOperator, std::unique_ptr<AtenOperator, py::nodelete>>(module, "AtenOperator")
      .def(py::init(&aten_operator))
      .def("install", &install)
      .def("uninstall", &uninstall);
  module.def("used", [](int64_t number) {
    const auto plan = used_plans.find(number);
    return plan ? plan->found : py::object(py::none());
  });
}
