// What the dispatcher is told of operators.

#pragma once

#include <array>
#include <tuple>

#include "batched.hpp"
#include "derivatives.hpp"

namespace backward_strategies {

// An operator or one that is its derivative: the kinds of that, the names of its gradient and tangents, and
// `Registered`.
using Registered = std::tuple<std::vector<std::string>, std::string, std::string, py::object>;

// Kernels of an operator and of its derivatives, and what autograd and `vmap` make of these. They live as long as the
// process: the dispatcher, which holds them, ends after the interpreter.
inline void add_operator(
    const std::string& name, const std::vector<std::pair<py::object, py::object>>& paths, std::array<size_t, 4> counts,
    Positions returned, Positions by_columns, py::object workspace, const std::vector<Registered>& operators) {
  static auto* library = new torch::Library(
      torch::Library::IMPL, "backward_strategies", std::nullopt, __FILE__, __LINE__);
  const auto [arity, differentiable, takes_vectors, constants] = counts;
  auto* made = new OperatorSpec{
      {},
      arity,
      differentiable,
      takes_vectors != 0,
      constants,
      std::move(returned),
      std::move(by_columns),
      std::move(workspace)};
  for (const auto& [fast_path, usual] : paths) {
    made->paths.push_back({PlanCache::of(fast_path), UsualOptions(usual)});
  }
  const OperatorSpec* spec = made;
  const auto add = [&](const std::string& of, c10::DispatchKey key, auto kernel) {
    library->impl(of.c_str(), torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
  };
  for (const auto& [kinds, gradient, tangents, registered] : operators) {
    std::string of = name, letters;
    for (const auto& kind : kinds) {
      of += "_" + kind;
      letters += kind[0];
    }
    const auto* record = new RecordSpec{
        gradient,
        tangents,
        arity,
        kinds.empty() ? 0 : spec->returned.size() + 1,
        differentiable,
        spec->takes_vectors,
        letters,
        registered.attr("recorded"),
        registered.attr("mapped")};
    add(of, Key::AutogradCPU, std::make_unique<OperatorRecord>(record));
    add(of, Key::FuncTorchBatched, std::make_unique<OperatorBatched>(record));
    const auto compute = registered.attr("compute");
    if (letters.empty()) {
      add(of, Key::CPU, std::make_unique<OperatorForward>(spec, compute));
    } else if (letters == "b") {
      add(of, Key::CPU, std::make_unique<OperatorBackward>(spec, compute));
    } else {
      add(of, Key::CPU, std::make_unique<OperatorDerivative>(spec, record, compute, registered.attr("of_computed")));
    }
  }
}

}  // namespace backward_strategies
