// An operator over the samples of a `vmap`: `Registered.over_batch` of `strategies.autograd.registered`, without
// Python.

#pragma once

#include "levels.hpp"
#include "record.hpp"

namespace backward_strategies {

struct OperatorBatched : c10::OperatorKernel {
  const RecordSpec* spec;
  explicit OperatorBatched(const RecordSpec* of) : spec(of) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
    const auto& levels = at::functorch::getDynamicLayerStack();
    TORCH_CHECK(!levels.empty(), op.schema().name(), " of a tensor that has left the vmap it belongs to");
    const c10::impl::ExcludeDispatchKeyGuard below(Key::FuncTorchBatched);
    Mapped mapped{*spec, arguments, levels.back()};
    if (!mapped.is_usual()) {
      call_python(spec->mapped, op, stack);
      return;
    }
    torch::jit::drop(*stack, arguments.size());
    const auto place = mapped.push(stack);
    op.callBoxed(stack);
    if (!mapped.size) { return; }
    const auto wrapped = [&](const Tensor& output) { return at::functorch::makeBatched(output, place, mapped.level); };
    if (spec->saves) {
      variable_list outputs = torch::jit::pop(*stack).toTensorVector();
      for (auto& each : outputs) { each = wrapped(each); }
      stack->emplace_back(std::move(outputs));
      return;
    }
    // What is kept is of all matrices together, and so is the strategy, which are the last two.
    const size_t count = op.schema().returns().size();
    for (size_t i = stack->size() - count; i < stack->size() - 2; ++i) {
      (*stack)[i] = wrapped((*stack)[i].toTensor());
    }
  }

 private:
  // The arguments of a call, in which samples are dimensions.
  struct Mapped {
    const RecordSpec& spec;
    std::vector<Samples> operands, saved, others;
    Stack rest;
    int64_t level;
    std::optional<int64_t> size;  // none where nothing has samples

    Mapped(const RecordSpec& of, const Stack& arguments, const at::functorch::DynamicLayer& innermost)
        : spec(of), rest(of.rest(arguments)), level(innermost.layerId()) {
      const auto read = [&](std::vector<Samples>& some, const Tensor& tensor) {
        const auto& [value, dim] = some.emplace_back(tensor, level);
        if (dim) { size = value.size(*dim); }
      };
      for (const auto& each : of.operands(arguments)) { read(operands, each); }
      for (size_t i = 0; i < rest.size(); ++i) {
        if (rest[i].isTensor()) { read(i < of.saves ? saved : others, rest[i].toTensor()); }
      }
    }

    // Whether neither numbers of a batch, as tolerances, nor batches of unlike dimensions would be broadcast.
    bool is_usual() const {
      if (c10::impl::TorchDispatchModeTLS::stack_len() != 0 || torch::jit::tracer::isTracing()) { return false; }
      const auto is_number = [](const Samples& each) { return each.value.dim() == 0; };
      return std::all_of(others.begin(), others.end(), is_number) && are_alike();
    }

    // Where the samples of what is computed are.
    int64_t push(Stack* stack) const {
      const auto depths = this->depths();
      const int64_t deepest = size ? *std::max_element(depths.begin(), depths.end()) : 0;
      const bool are_many = !are_mapped() && takes_many();
      variable_list moved;
      for (size_t i = 0; i < operands.size(); ++i) {
        const auto& each = operands[i];
        const bool is_expanded = size && !are_many;
        moved.push_back(is_expanded ? each.at(depths[i], *size) : leading(each, deepest - depths[i]));
      }
      if (spec.saves) {
        stack->emplace_back(std::move(moved));
      } else {
        stack->insert(stack->end(), moved.begin(), moved.end());
      }
      size_t next = 0;
      for (size_t i = 0; i < rest.size(); ++i) {
        if (!rest[i].isTensor()) {
          stack->push_back(rest[i]);
        } else if (i < spec.saves) {
          const bool is_output = i + 1 < spec.saves;
          stack->emplace_back(is_output && size && !are_many ? saved[i].at(0, *size) : leading(saved[i], 0));
        } else {
          stack->emplace_back(leading(others[next++], 0));
        }
      }
      return are_many ? 0 : deepest;
    }

   private:
    static bool has_samples(const Samples& each) { return each.dim.has_value(); }

    // The samples, if there are any, as the first dimension, before so many of one entry.
    static Tensor leading(const Samples& each, int64_t more) {
      if (!each.dim) { return each.value; }
      Tensor result = *each.dim == 0 ? each.value : each.value.movedim(*each.dim, 0);
      for (int64_t i = 0; i < more; ++i) { result = result.unsqueeze(1); }
      return result;
    }

    bool are_mapped() const {
      return std::any_of(operands.begin(), operands.begin() + spec.arity, has_samples) ||
             std::any_of(saved.begin(), saved.end(), has_samples);
    }

    // Whether a matrix and a right-hand side are in batches alike, and so with a dimension more.
    bool are_alike() const {
      const auto& first = operands[0];
      return std::all_of(operands.begin(), operands.begin() + spec.arity, [&](const Samples& each) {
        if (each.ndim() == first.ndim()) { return true; }
        if (!spec.takes_vectors || each.ndim() + 1 != first.ndim()) { return false; }
        const auto rows = shape(first);
        return shape(each) == Words(rows.begin(), rows.end() - 1);
      });
    }

    static Words shape(const Samples& samples) {
      Words sizes(samples.value.sizes().begin(), samples.value.sizes().end());
      if (samples.dim) { sizes.erase(sizes.begin() + *samples.dim); }
      return sizes;
    }

    bool takes_many() const {
      const auto is_recorded = [](const Samples& each) { return without_levels(each.value).requires_grad(); };
      return spec.is_of_many() && !has_level(TransformType::Grad) && !has_level(TransformType::Functionalize) &&
             !(at::GradMode::is_enabled() && (std::any_of(operands.begin(), operands.end(), is_recorded) ||
                                              std::any_of(saved.begin(), saved.end(), is_recorded)));
    }

    // How many dimensions of each operand are before those of the inputs' batch: `Derivative.depths`.
    std::vector<int64_t> depths() const {
      std::vector<int64_t> found(operands.size());
      if (!spec.is_of_many()) { return found; }
      const auto like = spec.like(rest);
      for (size_t i = 0; i < operands.size(); ++i) {
        const auto& of = like[i] < spec.arity ? operands[like[i]] : saved[like[i] - spec.arity];
        found[i] = operands[i].ndim() - of.ndim();
      }
      return found;
    }
  };
};

}  // namespace backward_strategies
