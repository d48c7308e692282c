// The fast path without Python: `strategies.autograd.fast_path` and `Plan` of `strategies.kernels.cpu.plans`, which say
// what each step is for. Of a layout that was seen before, a call is a look-up here, a kernel and a node of
// autograd; what has to be found out, and what is rare, Python does.

#include "aten.hpp"

namespace backward_strategies {

namespace {

PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  auto* cache = static_cast<PlanCache*>(PyCapsule_GetPointer(self, nullptr));
  const auto outputs = cache->call(arguments[0], arguments + 1, count - 1);
  if (!outputs) { Py_RETURN_NONE; }
  PyObject* result = PyTuple_New(outputs->size());
  for (size_t i = 0; i < outputs->size(); ++i) { PyTuple_SET_ITEM(result, i, THPVariable_Wrap((*outputs)[i])); }
  return result;
  END_HANDLE_TH_ERRORS
}

PyMethodDef call_definition = {
    "fast_path", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
    "The outputs of an operation; None where the generic path is to be taken."};

py::object fast_path(py::object find, py::object parameter, size_t arity, size_t most_tolerances) {
  // They live as long as the process, as the operations do.
  auto* made = new PlanCache{std::move(find), py::str("auto"), std::move(parameter), arity, most_tolerances, {}};
  const py::capsule self(made);
  return py::reinterpret_steal<py::object>(PyCFunction_New(&call_definition, self.ptr()));
}

void set_up(std::array<size_t, 4> words, double worth, const py::list& heard, std::array<py::object, 4> of_policy) {
  std::tie(header_words, argument_words, status_word, finished_word) = std::tuple_cat(words);
  worth_a_thread = worth;
  watchers = py::object(heard).release().ptr();
  active = of_policy[0].release().ptr();
  override = of_policy[1].release().ptr();
  by_default = of_policy[2].release().ptr();
  policy = of_policy[3].release().ptr();
}

}  // namespace

}  // namespace backward_strategies

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace backward_strategies;
  module.def("set_up", &set_up);
  module.def("set_team", [](intptr_t address) { team = reinterpret_cast<Team>(address); });
  module.def("fast_path", &fast_path);
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
