// Norms of small matrices, for which a call of PyTorch takes longer than the sum.

#pragma once

#include <cmath>
#include <limits>

#include "plan.hpp"

namespace backward_strategies {

// The sum of squares, in eight parts, which a compiler adds side by side.
template <typename T>
double sum_of_squares(const T* entries, int64_t count) {
  constexpr int64_t width = 8;
  double parts[width] = {};
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    for (int64_t k = 0; k < width; ++k) { parts[k] += double(entries[i + k]) * double(entries[i + k]); }
  }
  for (; i < count; ++i) { parts[i % width] += double(entries[i]) * double(entries[i]); }
  double sum = 0;
  for (const double part : parts) { sum += part; }
  return sum;
}

// The least and the largest Frobenius norm of the matrices of a batch, or NaN; nothing where there are many entries,
// of which PyTorch's sum is faster, or where matrices are not one after the other in memory on the CPU.
inline std::optional<std::pair<double, double>> extreme_norms(const Tensor& matrices) {
  constexpr int64_t many = 1 << 13;
  if (matrices.dim() < 2 || matrices.numel() == 0 || matrices.numel() > many || !is_readable(matrices) ||
      !(matrices.is_contiguous() || matrices.mT().is_contiguous())) {
    return std::nullopt;
  }
  const int64_t parts = matrices.is_complex() ? 2 : 1, size = matrices.size(-2) * matrices.size(-1) * parts;
  double least = std::numeric_limits<double>::infinity(), largest = 0;
  const auto of_real = [&](const auto* entries) {
    for (int64_t i = 0; i < matrices.numel() * parts; i += size) {
      const double norm = std::sqrt(sum_of_squares(entries + i, size));
      least = norm < least || norm != norm ? norm : least;
      largest = norm > largest || norm != norm ? norm : largest;
    }
  };
  switch (c10::toRealValueType(matrices.scalar_type())) {
    case at::kFloat:
      of_real(static_cast<const float*>(matrices.const_data_ptr()));
      break;
    case at::kDouble:
      of_real(static_cast<const double*>(matrices.const_data_ptr()));
      break;
    default:
      return std::nullopt;
  }
  return std::make_pair(least, largest);
}

}  // namespace backward_strategies
