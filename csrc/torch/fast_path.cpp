// The fast path without Python: `strategies.autograd.lane` and `Plan` of `strategies.kernels.cpu.plans`, which say
// what each step is for. Of a layout that was seen before, a call is a look-up here, a kernel and a node of
// autograd; what has to be found out, and what is rare, Python does.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

// The name of the nodes is that of their type.
namespace backward_strategies {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Words = std::vector<int64_t>;
using Positions = std::vector<size_t>;
using Entry = void (*)(void*);
using Team = void (*)(Entry, void*, unsigned, unsigned);

// As in `strategies.kernels.cpu.task` and `threads`, whose values come with the first lane.
size_t header_words, argument_words, status_word, finished_word;
double worth_a_thread;
std::atomic<Team> team;
PyObject* watchers;

template <typename Result>
Result field(const py::handle& object, const char* name) {
  return object.attr(name).cast<Result>();
}

struct Launch {
  Entry entry;
  Words block;
  unsigned groups;
  double work;

  explicit Launch(const py::handle& launch)
      : entry(reinterpret_cast<Entry>(field<intptr_t>(launch, "address"))),
        groups(field<unsigned>(launch, "groups")),
        work(field<double>(launch, "work")) {
    for (const auto& word : launch.attr("block")) { block.push_back(word.cast<int64_t>()); }
  }

  // Whether the kernel did it: `Launch.__call__`.
  bool run(const c10::SmallVectorImpl<const void*>& addresses) const {
    c10::SmallVector<int64_t, 80> task(block.begin(), block.end());
    size_t position = header_words;
    for (const void* address : addresses) {
      task[position] = reinterpret_cast<int64_t>(address);
      position += argument_words;
    }
    const auto most = std::min<int64_t>(at::get_num_threads(), groups);
    const auto threads = std::min<double>(most, 1 + std::floor(work / worth_a_thread));
    const Team parallel = team;
    if (threads > 1 && parallel != nullptr) {
      parallel(entry, task.data(), static_cast<unsigned>(threads), 0);
    } else {
      entry(task.data());
    }
    return task[finished_word] == groups && task[status_word] == 0;
  }
};

// As in `strategies.allocation`.
void ask_for_large_pages([[maybe_unused]] const Tensor& tensor) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const auto first = (start + page - 1) / page * page;
  madvise(reinterpret_cast<void*>(first), start + tensor.nbytes() - first, MADV_HUGEPAGE);
#endif
}

struct Place {
  Words size, stride;
  at::ScalarType dtype;
  bool is_large, is_zero;

  explicit Place(const py::handle& place)
      : size(field<Words>(place, "size")),
        stride(field<Words>(place, "stride")),
        dtype(reinterpret_cast<THPDtype*>(place.attr("dtype").ptr())->scalar_type),
        is_large(field<bool>(place, "is_large")),
        is_zero(field<bool>(place, "is_zero")) {}

  Tensor allocate() const {
    Tensor tensor = at::detail::empty_strided_cpu(size, stride, dtype);
    if (is_large) { ask_for_large_pages(tensor); }
    if (is_zero) { std::memset(tensor.mutable_data_ptr(), 0, tensor.nbytes()); }
    return tensor;
  }
};

using Addresses = c10::SmallVector<const void*, 16>;

struct Computed {
  variable_list outputs, kept;
};

bool is_plain() {
  const auto& included = c10::impl::tls_local_dispatch_key_set().included_;
  return !included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) &&
         !included.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode) &&
         c10::impl::TorchDispatchModeTLS::stack_len() == 0 && at::impl::PythonTorchFunctionTLS::stack_len() == 0;
}

// Whether the numbers are at the address of the tensor, as its strides say, and it has no tangent.
bool is_readable(const Tensor& tensor) {
  constexpr auto usual = c10::DispatchKeySet(c10::DispatchKey::CPU) |
                         c10::DispatchKeySet(c10::DispatchKey::AutogradCPU) |
                         c10::DispatchKeySet(c10::DispatchKey::AutocastCPU) |
                         c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  return (tensor.key_set().raw_repr() & ~usual.raw_repr()) == 0 && !tensor._fw_grad(0).defined();
}

bool has(const Positions& some, size_t i) { return std::find(some.begin(), some.end(), i) != some.end(); }

struct Plan : torch::CustomClassHolder {
  py::object found, plan;
  bool copies;
  size_t arity;
  std::vector<Place> outputs, gradients, keeps;
  Positions written, cotangents, optional, ignored, constant, saved, reads, unread;
  Words offsets, reads_kept;
  std::optional<std::pair<size_t, size_t>> rank;
  int64_t columns;
  Launch forward;
  std::vector<Words> saved_strides;
  int64_t number = 0;  // as in `UsedPlans`; guarded by the lock of the interpreter

  explicit Plan(const py::handle& of)
      : found(py::reinterpret_borrow<py::object>(of)),
        plan(of.attr("plan")),
        copies(field<bool>(of, "copies")),
        arity(field<size_t>(plan, "arity")),
        outputs(places("outputs")),
        gradients(places("gradients")),
        keeps(places("keeps")),
        written(field<Positions>(plan, "written")),
        cotangents(field<Positions>(plan, "cotangents")),
        optional(field<Positions>(plan, "optional")),
        ignored(field<Positions>(plan, "ignored")),
        constant(field<Positions>(plan, "constant")),
        saved(field<Positions>(plan, "saved")),
        reads(field<Positions>(plan, "reads")),
        unread(field<Positions>(of.attr("lane"), "unread")),
        offsets(field<Words>(plan, "offsets")),
        reads_kept(field<Words>(plan, "reads_kept")),
        rank(field<std::optional<std::pair<size_t, size_t>>>(plan, "rank")),
        columns(field<int64_t>(plan, "columns")),
        forward(plan.attr("forward_launch")),
        saved_strides(field<std::vector<Words>>(plan, "saved_strides")) {}

  // The last reference may go where a graph does, in a thread that has no lock.
  ~Plan() override {
    if (Py_IsInitialized()) {
      py::gil_scoped_acquire lock;
      found = py::object();
      plan = py::object();
    } else {
      found.release();
      plan.release();
    }
  }

  // Bytes of what is kept.
  int64_t bytes() const { return keeps.empty() ? 0 : keeps[0].size[0]; }

  // Zeros between what is kept and after it, so that equal calls keep equal bytes.
  void clear_gaps(const Tensor& workspace) const {
    constexpr int64_t line = 64;  // parts begin there
    auto* base = static_cast<char*>(workspace.mutable_data_ptr());
    for (const auto offset : offsets) {
      if (offset > 0) { std::memset(base + offset - line, 0, line); }
    }
    const int64_t end = std::max<int64_t>(bytes() - line, 0);
    std::memset(base + end, 0, workspace.numel() - end);
  }

  // `Plan.forward`; called with the interpreter's lock. What is kept may be in memory that is given.
  std::optional<Computed> compute(const variable_list& inputs, const Tensor& workspace = {}) const {
    Computed computed;
    Addresses addresses;
    for (const auto& input : inputs) { addresses.push_back(input.const_data_ptr()); }
    for (const auto& output : outputs) { computed.outputs.push_back(output.allocate()); }
    for (const auto i : written) { addresses.push_back(computed.outputs[i].mutable_data_ptr()); }
    for (const auto& place : keeps) {
      computed.kept.push_back(workspace.defined() ? workspace : place.allocate());
      append_kept(addresses, computed.kept.back(), offsets);
    }
    bool is_done;
    {
      py::gil_scoped_release no_lock;
      is_done = forward.run(addresses);
    }
    if (!is_done) { return std::nullopt; }
    if (rank) {
      const auto& ranks = computed.outputs[rank->first];
      const auto* first = ranks.const_data_ptr<int64_t>();
      if (std::any_of(first, first + ranks.numel(), [&](auto r) { return r != columns; })) {
        auto& of_full_rank = computed.outputs[rank->second];
        of_full_rank = at::detail::empty_cpu({0}, of_full_rank.options());
      }
    }
    return computed;
  }

  // `Plan.backward` of the cotangents that it takes, or all undefined; called without the lock.
  variable_list differentiate(const variable_list& kept, variable_list given) const {
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].defined() && kept[i].strides() != at::IntArrayRef(saved_strides[i])) { return {}; }
    }
    auto launch = backward_launch(given);
    if (launch == nullptr) {
      for (auto& each : given) {
        if (each.defined()) { each = each.contiguous(); }
      }
      launch = backward_launch(given);
    }
    Addresses addresses;
    for (const auto i : reads) { addresses.push_back(kept[i].const_data_ptr()); }
    if (!reads_kept.empty()) { append_kept(addresses, kept.back(), reads_kept); }
    for (const auto& each : given) { addresses.push_back(each.defined() ? each.const_data_ptr() : nullptr); }
    variable_list result;
    for (const auto& gradient : gradients) {
      result.push_back(gradient.allocate());
      addresses.push_back(result.back().mutable_data_ptr());
    }
    return launch->run(addresses) ? result : variable_list();
  }

 private:
  struct OfStrides {
    std::vector<std::optional<Words>> strides;
    std::shared_ptr<const Launch> launch;
  };

  mutable std::mutex mutex;
  mutable std::vector<OfStrides> backwards;

  std::vector<Place> places(const char* name) const {
    std::vector<Place> result;
    for (const auto& place : plan.attr(name)) { result.emplace_back(place); }
    return result;
  }

  static void append_kept(Addresses& addresses, const Tensor& kept, const Words& offsets) {
    const auto* base = static_cast<const char*>(kept.const_data_ptr());
    for (const auto offset : offsets) { addresses.push_back(base + offset); }
  }

  // None where cotangents of such strides are no sequence of matrices.
  std::shared_ptr<const Launch> backward_launch(const variable_list& given) const {
    {
      std::lock_guard<std::mutex> guard(mutex);
      for (const auto& [strides, launch] : backwards) {
        bool is_same = true;
        for (size_t i = 0; i < given.size(); ++i) {
          is_same = is_same && given[i].defined() == strides[i].has_value() &&
                    (!strides[i] || given[i].strides() == at::IntArrayRef(*strides[i]));
        }
        if (is_same) { return launch; }
      }
    }
    // The two locks are never held together.
    OfStrides made;
    for (const auto& each : given) {
      made.strides.push_back(each.defined() ? std::optional(each.strides().vec()) : std::nullopt);
    }
    {
      py::gil_scoped_acquire lock;
      try {
        py::tuple strides(made.strides.size());
        for (size_t i = 0; i < made.strides.size(); ++i) {
          strides[i] = made.strides[i] ? py::object(py::tuple(py::cast(*made.strides[i]))) : py::object(py::none());
        }
        const py::object found = plan.attr("backward_launch")(strides);
        made.launch = found.is_none() ? nullptr : std::make_shared<const Launch>(found);
      } catch (py::error_already_set& error) { raise(error); }
    }
    std::lock_guard<std::mutex> guard(mutex);
    backwards.push_back(made);
    return made.launch;
  }

 public:
  // As errors of Python pass through the engine.
  [[noreturn]] static void raise(py::error_already_set& error) {
    error.restore();
    python_error result;
    result.persist();
    throw result;
  }
};

using PlanPointer = c10::intrusive_ptr<Plan>;

variable_list by_general_road(
    const Plan& plan, const variable_list& saved, const variable_list& cotangents, const std::vector<bool>& needed) {
  py::gil_scoped_acquire lock;
  try {
    const auto tuple = [](const Tensor* first, size_t count) {
      py::tuple result(count);
      for (size_t i = 0; i < count; ++i) {
        result[i] = first[i].defined() ? py::cast(first[i]) : py::object(py::none());
      }
      return result;
    };
    const auto inputs = tuple(saved.data(), plan.arity);
    const auto outputs = tuple(saved.data() + plan.arity, plan.saved.size());
    const auto of_outputs = tuple(cotangents.data(), cotangents.size());
    py::tuple of_inputs(needed.size());
    for (size_t i = 0; i < needed.size(); ++i) { of_inputs[i] = static_cast<bool>(needed[i]); }
    const auto lane = py::module_::import("strategies.autograd.lane");
    const py::object gradients = lane.attr("_differentiated")(plan.found, inputs, outputs, of_outputs, of_inputs);
    variable_list result;
    for (const auto& each : gradients) { result.push_back(each.is_none() ? Tensor() : each.cast<Tensor>()); }
    return result;
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

// What was computed, for autograd: `_FastLane` of `strategies.autograd.lane`.
struct FastLane : torch::autograd::Function<FastLane> {
  static variable_list forward(
      AutogradContext* context, const PlanPointer& plan, const Computed& computed, at::TensorList inputs) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    variable_list saved(inputs.begin(), inputs.end()), constant;
    for (const auto i : plan->unread) { saved[i] = Tensor(); }
    for (const auto i : plan->saved) { saved.push_back(computed.outputs[i]); }
    saved.insert(saved.end(), computed.kept.begin(), computed.kept.end());
    context->save_for_backward(std::move(saved));
    for (const auto i : plan->constant) { constant.push_back(computed.outputs[i]); }
    if (!constant.empty()) { context->mark_non_differentiable(constant); }
    context->set_materialize_grads(false);
    return computed.outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
    const auto capsule = context->saved_data["plan"].toCapsule();
    const auto& plan = static_cast<const Plan&>(*capsule);
    const auto saved = context->get_saved_variables();
    variable_list gradients;
    if (is_plain() && !at::GradMode::is_enabled() && PyList_GET_SIZE(watchers) == 0) {
      if (auto used = usual(plan, cotangents)) { gradients = plan.differentiate(saved, std::move(*used)); }
    }
    if (gradients.empty()) {
      std::vector<bool> needed;
      for (size_t i = 0; i < plan.arity; ++i) { needed.push_back(context->needs_input_grad(i)); }
      gradients = by_general_road(plan, saved, cotangents, needed);
    }
    // Neither the plan nor what was computed is a variable.
    gradients.insert(gradients.begin(), 2, Tensor());
    return gradients;
  }

  // The cotangents that the lane takes; nothing if one of them is not a usual one.
  static std::optional<variable_list> usual(const Plan& plan, const variable_list& cotangents) {
    variable_list used;
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (has(plan.ignored, i)) { continue; }
      const bool is_taken = has(plan.cotangents, i);
      if (!cotangents[i].defined()) {
        if (is_taken) { used.push_back(has(plan.optional, i) ? Tensor() : plan.outputs[i].allocate().zero_()); }
      } else if (is_taken && is_readable(cotangents[i])) {
        used.push_back(cotangents[i]);
      } else {
        return std::nullopt;
      }
    }
    return used;
  }
};

struct HashOfWords {
  size_t operator()(const Words& words) const {
    uint64_t hash = 14695981039346656037u;  // FNV-1a, by words
    for (const auto word : words) { hash = (hash ^ static_cast<uint64_t>(word)) * 1099511628211u; }
    return hash ^ (hash >> 32);
  }
};

// What is known of an operation: `_find` of `strategies.autograd.lane`, by what was chosen and layouts.
struct Lane {
  py::object find, in_force, automatic, parameter;
  size_t arity, most_tolerances;

  struct Ways {
    py::object chosen;  // whose address is part of the key
    std::vector<PlanPointer> plans;
  };

  static constexpr size_t most = 4096;
  std::unordered_map<Words, Ways, HashOfWords> ways;

  // Outputs, or nothing where the general road is to be taken.
  std::optional<variable_list> call(PyObject* choice, PyObject* const* given, size_t count) {
    if (!is_plain() || PyList_GET_SIZE(watchers) != 0) { return std::nullopt; }
    variable_list inputs;
    if (count != arity && count != arity + most_tolerances) { return std::nullopt; }
    for (size_t i = arity; i < count; ++i) {
      if (!PyFloat_CheckExact(given[i])) { return std::nullopt; }
    }
    for (size_t i = 0; i < arity; ++i) {
      auto* kind = reinterpret_cast<PyObject*>(Py_TYPE(given[i]));
      if (kind != THPVariableClass && kind != parameter.ptr()) { return std::nullopt; }
      inputs.push_back(THPVariable_Unpack(given[i]));
      if (!is_readable(inputs.back())) { return std::nullopt; }
    }
    std::vector<double> tolerances;
    for (size_t i = inputs.size(); i < count; ++i) { tolerances.push_back(PyFloat_AS_DOUBLE(given[i])); }
    for (const auto& plan : known(followed(choice), inputs, tolerances)) {
      if (plan->copies) {
        for (auto& input : inputs) { input = input.contiguous(); }
      }
      if (auto computed = plan->compute(inputs)) {
        const bool needs = at::GradMode::is_enabled() &&
                           std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.requires_grad(); });
        return needs ? FastLane::apply(plan, *computed, at::TensorList(inputs)) : std::move(computed->outputs);
      }
    }
    return std::nullopt;
  }

  // The strategy or policy that is meant.
  py::object followed(PyObject* choice) {
    if (!PyUnicode_Check(choice)) { return py::reinterpret_borrow<py::object>(choice); }
    if (choice == automatic.ptr() || PyUnicode_Compare(choice, automatic.ptr()) == 0) {
      return py::object(in_force()[py::int_(0)]);
    }
    Py_INCREF(choice);
    PyUnicode_InternInPlace(&choice);  // equal names have one address
    return py::reinterpret_steal<py::object>(choice);
  }

  std::vector<PlanPointer> known(
      const py::object& chosen, const variable_list& inputs, const std::vector<double>& tolerances = {}) {
    Words key;
    key.reserve(24);
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
    if (const auto at = ways.find(key); at != ways.end()) { return at->second.plans; }
    py::list arguments;
    for (const auto& input : inputs) { arguments.append(py::cast(input)); }
    for (const double tolerance : tolerances) { arguments.append(tolerance); }
    Ways made{chosen, {}};
    for (const auto& found : find(chosen, *py::tuple(arguments))) {
      made.plans.push_back(c10::make_intrusive<Plan>(found));
    }
    if (ways.size() >= most) { ways.clear(); }
    return ways.emplace(std::move(key), std::move(made)).first->second.plans;
  }
};

PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  auto* lane = static_cast<Lane*>(PyCapsule_GetPointer(self, nullptr));
  const auto outputs = lane->call(arguments[0], arguments + 1, count - 1);
  if (!outputs) { Py_RETURN_NONE; }
  PyObject* result = PyTuple_New(outputs->size());
  for (size_t i = 0; i < outputs->size(); ++i) { PyTuple_SET_ITEM(result, i, THPVariable_Wrap((*outputs)[i])); }
  return result;
  END_HANDLE_TH_ERRORS
}

PyMethodDef call_definition = {
    "lane", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
    "The outputs of an operation; None where the general road is to be taken."};

py::object lane(py::object find, py::object in_force, py::object parameter, size_t arity, size_t most_tolerances) {
  // Lanes live as long as the process, as the operations do.
  auto* made = new Lane{
      std::move(find), std::move(in_force), py::str("auto"), std::move(parameter), arity, most_tolerances, {}};
  const py::capsule self(made);
  return py::reinterpret_steal<py::object>(PyCFunction_New(&call_definition, self.ptr()));
}

// The operators of `strategies.autograd.operators` on the CPU: what `Operator.compute` and `_Derivative.compute` do, by
// plans where there are some. What the backward needs besides inputs and outputs is kept in an output of the forward.

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
UsedPlans used_plans;

struct OperatorSpec {
  Lane* lane;
  size_t arity, differentiable;
  bool takes_vectors;
  py::object usual;      // the options for which there are plans
  Positions returned;    // which outputs of the lane are those of the operator
  Positions by_columns;  // which of these lie by columns
  py::object workspace;  // how many bytes the forward returns as kept, by the shapes of the inputs
  // In Python: the kernels, and what records them for autograd.
  py::object forward, backward, recorded, recorded_backward;
};

using Stack = torch::jit::Stack;

void call_python(const py::object& function, const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  const auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  py::gil_scoped_acquire lock;
  try {
    py::tuple given(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) { given[i] = torch::jit::toPyObject(arguments[i]); }
    const py::object found = function(*given);
    const auto& returns = schema.returns();
    if (returns.size() == 1) {
      stack->push_back(torch::jit::toIValue(found, returns[0].type()));
      return;
    }
    size_t i = 0;
    for (const auto& each : found) { stack->push_back(torch::jit::toIValue(each, returns[i++].type())); }
  } catch (py::error_already_set& error) { Plan::raise(error); }
}

bool are_usual(const OperatorSpec& spec, at::ArrayRef<c10::IValue> options) {
  size_t i = 0;
  for (const auto& each : spec.usual) {
    const auto& option = options[i++];
    const bool is_same = each.ptr() == Py_Ellipsis ? true
                         : each.is_none()          ? option.isNone()
                         : py::isinstance<py::str>(each)
                             ? option.isString() && option.toStringRef() == each.cast<std::string>()
                             : option.isBool() && option.toBool() == each.cast<bool>();
    if (!is_same) { return false; }
  }
  return true;
}

Tensor laid_out(const Tensor& tensor, bool by_columns) {
  return by_columns ? tensor.mT().contiguous().mT() : tensor.contiguous();
}

struct OperatorForward : c10::OperatorKernel {
  const OperatorSpec* spec;
  std::unordered_map<Words, int64_t, HashOfWords> sizes;
  explicit OperatorForward(const OperatorSpec* of) : spec(of) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    if (auto results = by_plans(torch::jit::last(*stack, count))) {
      torch::jit::drop(*stack, count);
      for (auto& each : *results) { stack->emplace_back(std::move(each)); }
    } else {
      call_python(spec->forward, op, stack);
    }
  }

 private:
  std::optional<variable_list> by_plans(at::ArrayRef<c10::IValue> arguments) {
    variable_list inputs;
    for (size_t i = 0; i < spec->arity; ++i) {
      inputs.push_back(arguments[i].toTensor());
      if (!is_readable(inputs.back())) { return std::nullopt; }
    }
    if (!spec->takes_vectors && inputs.back().dim() != inputs[0].dim()) { return std::nullopt; }
    const auto options = arguments.slice(spec->arity, arguments.size() - spec->arity - 1);
    py::gil_scoped_acquire lock;
    try {
      if (PyList_GET_SIZE(watchers) != 0 || !are_usual(*spec, options)) { return std::nullopt; }
      const py::str choice(arguments.back().toStringRef());
      const auto chosen = spec->lane->followed(choice.ptr());
      const Tensor workspace = at::detail::empty_cpu({bytes_for(inputs)}, at::kByte);
      for (const auto& plan : spec->lane->known(chosen, inputs)) {
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
    if (sizes.size() >= Lane::most) { sizes.clear(); }
    return sizes[std::move(key)] = spec->workspace(*given).cast<int64_t>();
  }
};

struct OperatorBackward : c10::OperatorKernel {
  const OperatorSpec* spec;
  explicit OperatorBackward(const OperatorSpec* of) : spec(of) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    if (auto gradients = by_plan(torch::jit::last(*stack, count))) {
      torch::jit::drop(*stack, count);
      stack->emplace_back(c10::List<Tensor>(*gradients));
    } else {
      call_python(spec->backward, op, stack);
    }
  }

 private:
  // Operands; the outputs and what was kept; options; what was used; which gradients are needed.
  std::optional<variable_list> by_plan(at::ArrayRef<c10::IValue> arguments) const {
    const auto operands = arguments[0].toTensorVector();
    const size_t outputs = spec->returned.size();
    const auto& kept = arguments[1 + outputs].toTensor();
    const auto& used = arguments[arguments.size() - 2].toTensor();
    if (!used.device().is_cpu() || !is_readable(used) || used.numel() != 1) { return std::nullopt; }
    PlanPointer plan;
    {
      py::gil_scoped_acquire lock;
      if (PyList_GET_SIZE(watchers) != 0) { return std::nullopt; }
      plan = used_plans.find(*used.const_data_ptr<int64_t>());
    }
    if (!plan || kept.numel() < plan->bytes()) { return std::nullopt; }
    variable_list saved(operands.begin(), operands.begin() + spec->arity), cotangents;
    for (const auto i : plan->saved) { saved.push_back(arguments[1 + position_of(i)].toTensor()); }
    if (!plan->keeps.empty()) { saved.push_back(kept); }
    for (const auto i : plan->unread) { saved[i] = Tensor(); }
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i].defined()) { continue; }
      if (!is_readable(saved[i])) { return std::nullopt; }
      const auto& due = plan->saved_strides[i];
      if (i < spec->arity || i >= spec->arity + plan->saved.size() || saved[i].strides() == at::IntArrayRef(due)) {
        continue;
      }
      if (static_cast<size_t>(saved[i].dim()) != due.size()) { return std::nullopt; }
      saved[i] = at::empty_strided(saved[i].sizes(), due, saved[i].options()).copy_(saved[i]);
    }
    for (const auto i : plan->cotangents) {
      const size_t place = position_of(i);
      if (place >= spec->differentiable) {
        cotangents.emplace_back();  // an optional one
      } else if (is_readable(operands[spec->arity + place])) {
        cotangents.push_back(operands[spec->arity + place]);
      } else {
        return std::nullopt;
      }
    }
    const auto gradients = plan->differentiate(saved, cotangents);
    if (gradients.empty()) { return std::nullopt; }
    variable_list results;
    const auto needed = arguments.back().toBoolList();
    for (size_t i = 0; i < spec->arity; ++i) {
      if (needed[i]) { results.push_back(gradients[i].contiguous()); }
    }
    return results;
  }

  size_t position_of(size_t output) const {
    return std::find(spec->returned.begin(), spec->returned.end(), output) - spec->returned.begin();
  }
};

// Where autograd records nothing, what is below it; else what records, in Python.
struct OperatorRecord : c10::OperatorKernel {
  const py::object& recorded;
  explicit OperatorRecord(const py::object& function) : recorded(function) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    if (is_plain() && !needs_record(torch::jit::last(*stack, op.schema().arguments().size()))) {
      const at::AutoDispatchBelowADInplaceOrView below;
      op.callBoxed(stack);
    } else {
      call_python(recorded, op, stack);
    }
  }

 private:
  static bool needs_record(at::ArrayRef<c10::IValue> arguments) {
    const auto needs = [](const Tensor& tensor) {
      return (at::GradMode::is_enabled() && tensor.requires_grad()) || !is_readable(tensor);
    };
    return std::any_of(arguments.begin(), arguments.end(), [&](const auto& argument) {
      if (argument.isTensor()) { return needs(argument.toTensor()); }
      if (!argument.isTensorList()) { return false; }
      const auto tensors = argument.toTensorVector();
      return std::any_of(tensors.begin(), tensors.end(), needs);
    });
  }
};

// Kernels of an operator and of its gradient. They live as long as the process: the dispatcher, which holds them, ends
// after the interpreter.
void add_operator(
    const std::string& name, const py::object& lane, std::array<size_t, 3> counts, py::object usual, Positions returned,
    Positions by_columns, py::object workspace, std::array<py::object, 4> in_python) {
  static auto* library = new torch::Library(
      torch::Library::IMPL, "backward_strategies", std::nullopt, __FILE__, __LINE__);
  auto* of_lane = static_cast<Lane*>(PyCapsule_GetPointer(PyCFunction_GetSelf(lane.ptr()), nullptr));
  const auto* spec = new OperatorSpec{
      of_lane,
      counts[0],
      counts[1],
      counts[2] != 0,
      std::move(usual),
      std::move(returned),
      std::move(by_columns),
      std::move(workspace),
      in_python[0],
      in_python[1],
      in_python[2],
      in_python[3]};
  const auto add = [&](const std::string& of, c10::DispatchKey key, auto kernel) {
    library->impl(of.c_str(), torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
  };
  add(name, c10::DispatchKey::CPU, std::make_unique<OperatorForward>(spec));
  add(name + "_backward", c10::DispatchKey::CPU, std::make_unique<OperatorBackward>(spec));
  add(name, c10::DispatchKey::AutogradCPU, std::make_unique<OperatorRecord>(spec->recorded));
  add(name + "_backward", c10::DispatchKey::AutogradCPU, std::make_unique<OperatorRecord>(spec->recorded_backward));
}

void set_up(std::array<size_t, 4> words, double worth, const py::list& heard) {
  std::tie(header_words, argument_words, status_word, finished_word) = std::tuple_cat(words);
  worth_a_thread = worth;
  watchers = py::object(heard).release().ptr();
}

}  // namespace backward_strategies

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace backward_strategies;
  module.def("set_up", &set_up);
  module.def("set_team", [](intptr_t address) { team = reinterpret_cast<Team>(address); });
  module.def("lane", &lane);
  module.def("add_operator", &add_operator);
  module.def("used", [](int64_t number) {
    const auto plan = used_plans.find(number);
    return plan ? plan->found : py::object(py::none());
  });
}
