// A kernel with all that calls of one layout have in common, and the tensors that it fills: `Launch` and `TensorSpec`
// of `strategies.kernels.cpu`.

#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/pybind.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

namespace backward_strategies {

using at::Tensor;
using Words = std::vector<int64_t>;
using Entry = void (*)(void*);
using Team = void (*)(Entry, void*, unsigned, unsigned);

// As in `strategies.kernels.cpu.task` and `threads`, whose values come with the first fast path.
inline size_t header_words, argument_words, status_word, finished_word;
inline double worth_a_thread;
inline std::atomic<Team> team;

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

// As in `strategies.kernels.large_pages`.
inline void ask_for_large_pages([[maybe_unused]] const Tensor& tensor) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const auto first = (start + page - 1) / page * page;
  madvise(reinterpret_cast<void*>(first), start + tensor.nbytes() - first, MADV_HUGEPAGE);
#endif
}

struct TensorSpec {
  Words size, stride;
  at::ScalarType dtype;
  bool is_large, is_zero;

  explicit TensorSpec(const py::handle& spec)
      : size(field<Words>(spec, "size")),
        stride(field<Words>(spec, "stride")),
        dtype(reinterpret_cast<THPDtype*>(spec.attr("dtype").ptr())->scalar_type),
        is_large(field<bool>(spec, "is_large")),
        is_zero(field<bool>(spec, "is_zero")) {}

  Tensor allocate() const { return allocate(size, stride); }

  // As many of it, along a first dimension.
  Tensor allocate_many(int64_t many) const {
    Words sizes(size), strides(stride);
    sizes.insert(sizes.begin(), many);
    strides.insert(strides.begin(), c10::multiply_integers(size));
    return allocate(sizes, strides);
  }

 private:
  Tensor allocate(const Words& sizes, const Words& strides) const {
    Tensor tensor = at::detail::empty_strided_cpu(sizes, strides, dtype);
    if (is_large) { ask_for_large_pages(tensor); }
    if (is_zero) { std::memset(tensor.mutable_data_ptr(), 0, tensor.nbytes()); }
    return tensor;
  }
};

using Addresses = c10::SmallVector<const void*, 16>;

}  // namespace backward_strategies
