// What calls of one layout have in common: `Plan` of `strategies.kernels.cpu.plans`, whose fields have the same names.

#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <mutex>
#include <optional>

#include "launch.hpp"

namespace backward_strategies {

using torch::autograd::variable_list;
using Positions = std::vector<size_t>;

inline PyObject* watchers;  // a list, which is empty where nobody is to hear of calls

struct Computed {
  variable_list outputs, kept;
};

inline bool is_plain() {
  const auto& included = c10::impl::tls_local_dispatch_key_set().included_;
  return !included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) &&
         !included.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode) &&
         c10::impl::TorchDispatchModeTLS::stack_len() == 0 && at::impl::PythonTorchFunctionTLS::stack_len() == 0;
}

using Key = c10::DispatchKey;
constexpr c10::DispatchKeySet OF_CPU({Key::CPU, Key::AutogradCPU, Key::AutocastCPU, Key::ADInplaceOrView});
constexpr c10::DispatchKeySet OF_CUDA({Key::CUDA, Key::AutogradCUDA, Key::AutocastCUDA});
constexpr c10::DispatchKeySet PENDING({Key::Conjugate, Key::Negative});

// Whether a tensor has dispatch keys of these alone.
inline bool has_only(const Tensor& tensor, c10::DispatchKeySet keys) {
  return (tensor.key_set().raw_repr() & ~keys.raw_repr()) == 0;
}

// Whether the fast path may read it: its numbers are at its address on the CPU, and it has no tangent.
inline bool is_readable(const Tensor& tensor) { return has_only(tensor, OF_CPU) && !tensor._fw_grad(0).defined(); }

// The tensor, or on the CPU a copy to which a conjugate or a sign that is pending is applied.
inline Tensor resolved(const Tensor& tensor) {
  const bool is_pending = tensor.is_cpu() && (tensor.is_conj() || tensor.is_neg());
  return is_pending ? tensor.resolve_conj().resolve_neg() : tensor;
}

// The tensors for Python; None for one that is undefined.
inline py::tuple as_tuple(const variable_list& tensors) {
  py::tuple result(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) { PyTuple_SET_ITEM(result.ptr(), i, THPVariable_Wrap(tensors[i])); }
  return result;
}

inline bool has(const Positions& some, size_t i) { return std::find(some.begin(), some.end(), i) != some.end(); }

struct Plan : torch::CustomClassHolder {
  py::object found, plan;
  bool copies, has_second_backward;
  size_t arity;
  std::vector<TensorSpec> outputs, gradients, keeps;
  Positions written, cotangents, optional, ignored, constant, saved, reads, unread;
  Words batch, offsets, reads_kept;
  std::optional<std::pair<size_t, size_t>> rank;
  int64_t columns;
  Launch forward;
  std::vector<Words> saved_strides;
  int64_t number = 0;  // as in `UsedPlans`; guarded by the lock of the interpreter

  explicit Plan(const py::handle& of)
      : found(py::reinterpret_borrow<py::object>(of)),
        plan(of.attr("plan")),
        copies(field<bool>(of, "copies")),
        has_second_backward(field<bool>(of, "has_second_backward")),
        arity(field<size_t>(plan, "arity")),
        outputs(specs("outputs")),
        gradients(specs("gradients")),
        keeps(specs("keeps")),
        written(field<Positions>(plan, "written")),
        cotangents(field<Positions>(plan, "cotangents")),
        optional(field<Positions>(plan, "optional")),
        ignored(field<Positions>(plan, "ignored")),
        constant(field<Positions>(plan, "constant")),
        saved(field<Positions>(plan, "saved")),
        reads(field<Positions>(plan, "reads")),
        unread(field<Positions>(of.attr("fast_path"), "unread")),
        batch(field<Words>(plan, "batch")),
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

  // Zeros between what is kept and after it, so that small calls that are equal keep equal bytes. Nobody reads the
  // rest, which would take long to touch.
  void clear_gaps(const Tensor& workspace) const {
    constexpr int64_t line = 64;  // parts begin there
    auto* base = static_cast<char*>(workspace.mutable_data_ptr());
    for (const auto offset : offsets) {
      if (offset > 0) { std::memset(base + offset - line, 0, line); }
    }
    const int64_t end = std::max<int64_t>(bytes() - line, 0);
    std::memset(base + end, 0, std::min<int64_t>(workspace.numel() - end, 1 << 16));
  }

  // `Plan.forward`; called with the interpreter's lock. What is kept may be in memory that is given.
  std::optional<Computed> compute(const variable_list& inputs, const Tensor& workspace = {}) const {
    Computed computed;
    Addresses addresses;
    for (const auto& input : inputs) { addresses.push_back(input.const_data_ptr()); }
    for (const auto& output : outputs) { computed.outputs.push_back(output.allocate()); }
    for (const auto i : written) { addresses.push_back(computed.outputs[i].mutable_data_ptr()); }
    for (const auto& spec : keeps) {
      computed.kept.push_back(workspace.defined() ? workspace : spec.allocate());
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

  // Whether there is one matrix.
  bool is_of_one() const {
    return std::all_of(batch.begin(), batch.end(), [](auto size) { return size == 1; });
  }

  // `Plan.backward` of the cotangents that it takes, or all undefined; called without the lock. Of one matrix there may
  // be many of each, along a first dimension, and so are the gradients then.
  variable_list differentiate(
      const variable_list& kept, variable_list given, std::optional<int64_t> many = std::nullopt) const {
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].defined() && kept[i].strides() != at::IntArrayRef(saved_strides[i])) { return {}; }
    }
    auto launch = backward_launch(given, many);
    if (launch == nullptr) {
      for (auto& each : given) {
        if (each.defined()) { each = each.contiguous(); }
      }
      launch = backward_launch(given, many);
    }
    Addresses addresses;
    for (const auto i : reads) { addresses.push_back(kept[i].const_data_ptr()); }
    if (!reads_kept.empty()) { append_kept(addresses, kept.back(), reads_kept); }
    for (const auto& each : given) { addresses.push_back(each.defined() ? each.const_data_ptr() : nullptr); }
    variable_list result;
    for (const auto& gradient : gradients) {
      result.push_back(many ? gradient.allocate_many(*many) : gradient.allocate());
      addresses.push_back(result.back().mutable_data_ptr());
    }
    return launch->run(addresses) ? result : variable_list();
  }

 private:
  static constexpr size_t MOST_LAUNCHES = 64;  // that are kept

  struct OfStrides {
    std::vector<std::optional<Words>> strides;
    std::optional<int64_t> many;
    std::shared_ptr<const Launch> launch;
  };

  mutable std::mutex mutex;
  mutable std::vector<OfStrides> backwards;

  std::vector<TensorSpec> specs(const char* name) const {
    std::vector<TensorSpec> result;
    for (const auto& spec : plan.attr(name)) { result.emplace_back(spec); }
    return result;
  }

  static void append_kept(Addresses& addresses, const Tensor& kept, const Words& offsets) {
    const auto* base = static_cast<const char*>(kept.const_data_ptr());
    for (const auto offset : offsets) { addresses.push_back(base + offset); }
  }

  // None where cotangents of such strides are no sequence of matrices.
  std::shared_ptr<const Launch> backward_launch(const variable_list& given, std::optional<int64_t> many) const {
    {
      std::lock_guard<std::mutex> guard(mutex);
      for (const auto& [strides, how_many, launch] : backwards) {
        bool is_same = how_many == many;
        for (size_t i = 0; i < given.size(); ++i) {
          is_same = is_same && given[i].defined() == strides[i].has_value() &&
                    (!strides[i] || given[i].strides() == at::IntArrayRef(*strides[i]));
        }
        if (is_same) { return launch; }
      }
    }
    // The two locks are never held together.
    OfStrides made{{}, many, nullptr};
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
        const py::object found = plan.attr("backward_launch")(strides, many);
        made.launch = found.is_none() ? nullptr : std::make_shared<const Launch>(found);
      } catch (py::error_already_set& error) { raise(error); }
    }
    std::lock_guard<std::mutex> guard(mutex);
    if (backwards.size() >= MOST_LAUNCHES) { backwards.clear(); }
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

}  // namespace backward_strategies
