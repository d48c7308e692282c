// The interface of the library: look-up by name, dtype and rows.
#include <array>
#include <cstring>

#include "include/lu.hpp"
#include "include/triangular.hpp"
#include "ops/table.hpp"

#define BS_FAMILIES(dtype)                                                                                   \
  BS_OF(square, dtype), BS_OF(determinant, dtype), BS_OF(inverse_derivatives, dtype), BS_OF(lu, dtype),      \
      BS_OF(lu_rank, dtype), BS_OF(cholesky, dtype), BS_OF(cholesky_solve, dtype), BS_OF(orthogonal, dtype), \
      BS_OF(least_squares, dtype), BS_OF(any_rank, dtype), BS_OF(triangular, dtype)

namespace bs {

#define BS_OF(family, dtype) family##_##dtype()
KernelTable BS_FAMILIES(f32), BS_FAMILIES(f64), BS_FAMILIES(c64), BS_FAMILIES(c128);
#undef BS_OF

namespace {

#define BS_OF(family, dtype) family##_##dtype
constexpr std::array families{
    std::array{BS_FAMILIES(f32)}, std::array{BS_FAMILIES(f64)}, std::array{BS_FAMILIES(c64)},
    std::array{BS_FAMILIES(c128)}};
static_assert(families.size() == BS_DTYPES);

}  // namespace
}  // namespace bs

extern "C" {

int bs_abi_version(void) { return 3; }

void bs_set_routines(void* const* addresses) { std::memcpy(bs::routines, addresses, sizeof bs::routines); }

void bs_set_thread_control(int (*set_threads)(int)) { bs::set_blas_threads = set_threads; }

void bs_set_team(bs_team team) { bs::team = team; }

bs_kernel bs_lookup(const char* name, int dtype, int64_t rows) {
  bs_kernel of_any = nullptr;
  for (const auto family : bs::families[dtype]) {
    const bs::KernelTable table = family();
    for (int i = 0; i < table.count; ++i) {
      const bs::KernelEntry& entry = table.entries[i];
      if (std::strcmp(entry.name, name) != 0) continue;
      if (entry.rows == rows) return entry.run;
      if (entry.rows == 0) of_any = entry.run;
    }
  }
  return of_any;
}

const char* bs_name(int i) {
  for (const auto family : bs::families[BS_FLOAT64]) {
    const bs::KernelTable table = family();
    if (i < table.count) return table.entries[i].name;
    i -= table.count;
  }
  return nullptr;
}
}
