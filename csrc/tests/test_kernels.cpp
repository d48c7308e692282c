// Every kernel, of every dtype, on matrices of many sizes, layouts and values: what it reads and writes, from how many
// threads, and where there is no memory. Whether results are accurate is not tested here.
//     test_kernels LAPACK [all|batches] [dtypes, such as 02] [first letters of the names]
#include <dlfcn.h>

#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../include/api.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) (void)(data), (void)(bytes)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) (void)(data), (void)(bytes)
#endif

using Int = int64_t;
using Byte = unsigned char;

// The memory of arenas, so many pieces of it. What is not written yet looks like `pattern`.
std::atomic<int> pieces_allowed{INT_MAX}, pieces_refused{0}, pieces_held{0};
Byte pattern = 0;
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto line = std::size_t(alignment);
  void* data = pieces_allowed.fetch_sub(1) > 0 ? std::aligned_alloc(line, (bytes + line - 1) / line * line) : nullptr;
  if (data) ++pieces_held, std::memset(data, pattern, bytes);
  else ++pieces_refused;
  return data;
}
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept { --pieces_held, std::free(data); }

// The arguments of a kernel in the order of its task, each as [> or &][?][~][factor*]name[.type]['] layout [extents].
//   >, &, ?   written, overwritten, of complex kernels only
//   ~         may be missing
//   factor    so many arrays for each matrix
//   type      I and P for integers of 64 and 32 bits, R for the real type, B for bool; else the dtype
//   '         the transpose of what the feeder calls so
//   layout    = row after row, | column after column with any distance, : any strides
//   extents   m and n of the matrix, k right-hand sides, s = min(m, n), d = 2k, q = k n, p parts, or a digit
// What the feeder, another kernel, has an argument of the same name for is taken from there.
enum Shape { Square, Tall, Wide, Any };
struct Kernel {
  const char* name;
  Shape shape;
  const char *feeder, *arguments;
  int least = 1, most = 1000;  // rows
};
const Kernel kernels[] = {
    {"inv", Square, "", "A:nn >X=nn"},
    {"inv_ex", Square, "", "A:nn >X=nn >info.P:"},
    {"inv_ex_across", Square, "", "A:nn >X:nn >info.P:"},
    {"inv_backward", Square, "inv", "X=nn G:nn >gradient=nn"},
    {"inv_across", Square, "", "A:nn >X:nn"},
    {"inv_backward_across", Square, "inv", "X:nn G:nn >gradient:nn"},
    {"pinv_square", Square, "", "A:nn >X=nn"},
    {"pinv_square_across", Square, "", "A:nn >X:nn"},
    {"solve", Square, "", "A:nn B:nk >X:nk >LU=nn >pivots.P=n"},
    {"solve_ex", Square, "", "A:nn B:nk >X:nk >info.P: >LU=nn >pivots.P=n"},
    {"solve_ex_across", Square, "", "A:nn B:nk >X:nk >info.P: >LU=nn >pivots.P=n"},
    {"solve_backward", Square, "solve", "X=nk LU=nn pivots.P=n G:nk >gradient=nn >of_B:nk"},
    {"solve_across", Square, "", "A:nn B:nk >X:nk >LU=nn >pivots.P=n"},
    {"solve_backward_across", Square, "solve", "X:nk LU:nn pivots.P=n G:nk >gradient:nn >of_B:nk"},
    {"lstsq_square", Square, "", "A:nn B:nk >X:nk >rank.I: >LU=nn >pivots.P=n"},
    {"lstsq_square_across", Square, "", "A:nn B:nk >X:nk >rank.I: >LU=nn >pivots.P=n"},
    {"det", Square, "", "A:nn >value:", 1, 3},
    {"det_backward", Square, "", "A:nn G: >gradient:nn", 1, 3},
    {"det", Square, "", "A:nn >value: >LU=nn >pivots.P=n >mantissa: >exponent.I:", 4},
    {"det_backward", Square, "det", "LU=nn pivots.P=n mantissa: exponent.I: G: >gradient=nn", 4},
    {"det_across", Square, "", "A:nn >value: >LU=nn >pivots.P=n >mantissa: >exponent.I:"},
    {"det_backward_across", Square, "det", "LU:nn pivots.P=n mantissa: exponent.I: G: >gradient:nn", 4},
    {"slogdet", Square, "", "A:nn >sign: >logarithm.R: >LU=nn >pivots.P=n"},
    {"slogdet_across", Square, "", "A:nn >sign: >logarithm.R: >LU=nn >pivots.P=n"},
    {"slogdet_backward", Square, "slogdet", "?sign: LU=nn pivots.P=n ?of_sign: G.R: >gradient=nn"},
    {"slogdet_backward_across", Square, "slogdet", "?sign: LU:nn pivots.P=n ?of_sign: G.R: >gradient:nn"},
    {"determinant", Square, "lu_factor", "A:nn LU':nn pivots.P:n >mantissa: >notes.I=3 >order.I=n"},
    {"lu_factor", Any, "", "A:mn >LU=nm >pivots.P=s >order.I=m"},
    {"lu_factor_ex", Any, "", "A:mn >LU=nm >pivots.P=s >info.P: >order.I=m"},
    {"lu_factor_ex_across", Any, "", "A:mn >LU=nm >pivots.P=s >info.P: >order.I=m"},
    {"lu_factor_backward", Any, "lu_factor", "LU=nm order.I=m G:mn >gradient=mn"},
    {"lu_factor_across", Any, "", "A:mn >LU=nm >pivots.P=s >order.I=m"},
    {"lu_factor_backward_across", Any, "lu_factor", "LU:nm order.I=m G:mn >gradient:mn"},
    {"lu", Any, "", "A:mn >P:mm >L:ms >U:sn >LU=nm >order.I=m"},
    {"lu_backward", Any, "lu", "LU=nm order.I=m of_L:ms of_U:sn >gradient=mn"},
    {"reverse_lu", Any, "lu_factor", "LU'|mn order.I=m &bar=mn"},
    {"smallest_of_triangle", Square, "qr", "R=nn >value.R:"},
    {"smallest_of_product", Square, "lu_factor", "LU=nn >value.R:"},
    {"has_grown", Square, "lu_factor", "A:nn LU=nn >found.B:"},
    {"inverse_order", Any, "lu_factor", "pivots.P:s >order.I=m"},
    {"may_be_deficient", Any, "lu_factor", "LU':mn pivots.P:s >found.B: >order.I=m"},
    {"last_may_be_roundoff", Any, "lu_factor", "LU':mn >found.B:"},
    {"derivative_of_inverse", Square, "lu_factor", "LU=nn pivots.P=n C:nn >result:nn >trace: >right.B:"},
    {"derivative_of_adjugate", Square, "lu_factor", "LU=nn pivots.P=n C:nn det: >result:nn >trace: >right.B:"},
    {"cholesky", Square, "", "S:nn >L=nn"},
    {"cholesky_backward", Square, "cholesky", "L=nn G:nn >gradient=nn"},
    {"cholesky_across", Square, "", "S:nn >L:nn"},
    {"cholesky_backward_across", Square, "cholesky", "L:nn G:nn >gradient:nn"},
    {"cholesky_ex", Square, "", "A:nn >L=nn >info.P:"},
    {"cholesky_ex_across", Square, "", "A:nn >L=nn >info.P:"},
    {"reverse_cholesky", Square, "cholesky", "L'|nn G:nn >gradient=nn"},
    {"cholesky_solve", Square, "cholesky", "L':nn B:nk >X=kn >half:nk"},
    {"cholesky_solve_backward", Square, "cholesky_solve", "L:nn X=kn half=nk G:nk >gradient=nn >of_B:nk"},
    {"cholesky_inverse", Square, "cholesky", "L':nn >X=nn"},
    {"cholesky_inverse_backward", Square, "cholesky_inverse", "L:nn X=nn G:nn >gradient=nn"},
    {"qr", Tall, "", "A:nm >Q=nm >R=nn"},
    {"qr_backward", Tall, "qr", "Q=nm R=nn of_Q:nm of_R:nn >gradient=nm"},
    {"qr", Wide, "", "A:nm >Q=mm >R=nm"},
    {"qr_backward", Wide, "qr", "Q=mm R=nm of_Q:mm of_R:mn >gradient=nm"},
    {"qr_across", Tall, "", "A:mn >Q:nm >R:nn"},
    {"qr_backward_across", Tall, "qr", "Q:nm R:nn of_Q:mn of_R:nn >gradient:mn"},
    {"pinv", Tall, "", "A:mn >X=nm >Q=nm >R=nn"},
    {"pinv_backward", Tall, "pinv", "Q=nm R=nn G:nm >gradient=nm"},
    {"pinv_across", Tall, "", "A:mn >X:nm >Q:nm >R:nn"},
    {"pinv_backward_across", Tall, "pinv", "Q:nm R:nn G:nm >gradient:nm"},
    {"lstsq", Tall, "", "A:mn B:mk >X:nk >residuals.R=k >rank.I: >R=nn"},
    {"lstsq_backward", Tall, "lstsq", "A:mn B:mk X:nk R=nn G:nk ~g.R:k >gradient=mn >of_B=mk"},
    {"lstsq_across", Tall, "", "A:mn B:mk >X:nk >residuals.R=k >rank.I: >R=nn"},
    {"lstsq_backward_across", Tall, "lstsq", "A:mn B:mk X:nk R:nn G:nk ~g.R:k >gradient:mn >of_B:mk"},
    {"lstsq_wide", Wide, "", "A:mn B:mk >X:nk >rank.I: >F=mn >scales=m"},
    {"lstsq_wide_backward", Wide, "lstsq_wide", "B:mk X=nk F=mn scales=m G:nk >gradient=mn >of_B:mk"},
    {"gram_by_rows", Tall, "", "m*A=n k*w=n >p*summands=q"},
    {"lstsq_by_rows", Tall, "", "m*A=n m*B=k d*both=n >m*gradient=n >m*Z=k"},
    {"pinv_svd", Any, "", "A:mn >X=nm >U=sm >V=ns >s.R=s >rank.I:"},
    {"pinv_svd_backward", Any, "pinv_svd", "U=sm V=ns s.R=s rank.I: G:nm >gradient=mn"},
    {"lstsq_svd", Tall, "", "A:mn B:mk >X:nk >residuals.R=k >rank.I: >s.R=s >U=sm >V=ns"},
    {"lstsq_svd_without_residuals", Any, "", "A:mn B:mk >X:nk >rank.I: >s.R=s >U=sm >V=ns"},
    {"lstsq_svd_backward", Any, "lstsq_svd_without_residuals",
     "B:mk X=nk rank.I: s.R=s U=sm V=ns G:nk ~g.R:k >gradient=mn >of_B:mk"},
    {"pinv_cod", Tall, "", "A:mn >X=nm >U=nm >V=nn >C=nn >rank.I:"},
    {"pinv_cod_backward", Tall, "pinv_cod", "U=nm V=nn C=nn rank.I: G:nm >gradient=mn"},
    {"lstsq_cod", Tall, "", "A:mn B:mk >X:nk >residuals.R=k >rank.I: >C=nn >U=nm >V=nn"},
    {"lstsq_cod_without_residuals", Any, "", "A:mn B:mk >X:nk >rank.I: >C=ss >U=sm >V=ns"},
    {"lstsq_cod_backward", Any, "lstsq_cod_without_residuals",
     "B:mk X=nk rank.I: C=ss U=sm V=ns G:nk ~g.R:k >gradient=mn >of_B:mk"},
    {"solve_lower", Square, "", "S:nn B:nk >X=nk"},
    {"solve_lower_across", Square, "", "S:nn B:nk >X=nk"},
    {"solve_lower_backward", Square, "solve_lower", "S:nn X:nk G:nk >gradient=nn >of_B=nk"},
    {"solve_upper", Square, "", "S:nn B:nk >X=nk"},
    {"solve_upper_across", Square, "", "S:nn B:nk >X=nk"},
    {"solve_upper_backward", Square, "solve_upper", "S:nn X:nk G:nk >gradient=nn >of_B=nk"},
    {"solve_unit_lower", Square, "", "S:nn B:nk >X=nk"},
    {"solve_unit_lower_across", Square, "", "S:nn B:nk >X=nk"},
    {"solve_unit_lower_backward", Square, "solve_unit_lower", "S:nn X:nk G:nk >gradient=nn >of_B=nk"},
    {"solve_unit_upper", Square, "", "S:nn B:nk >X=nk"},
    {"solve_unit_upper_across", Square, "", "S:nn B:nk >X=nk"},
    {"solve_unit_upper_backward", Square, "solve_unit_upper", "S:nn X:nk G:nk >gradient=nn >of_B=nk"},
    {"lu_solve", Square, "lu_factor", "LU':nn B:nk pivots.P=n >X=nk >half=nk"},
    {"lu_solve_across", Square, "lu_factor", "LU':nn B:nk pivots.P=n >X=nk >half=nk"},
    {"lu_solve_backward", Square, "lu_solve", "LU:nn pivots.P=n X=nk half=nk G:nk >gradient=nn >of_B=nk"},
    {"lu_solve_adjoint", Square, "lu_factor", "LU':nn B:nk pivots.P=n >X=nk >half=nk"},
    {"lu_solve_adjoint_across", Square, "lu_factor", "LU':nn B:nk pivots.P=n >X=nk >half=nk"},
    {"lu_solve_adjoint_backward", Square, "lu_solve_adjoint",
     "LU:nn pivots.P=n X=nk half=nk G:nk >gradient=nn >of_B=nk"},
};

// What the entries of an array are like: of all its matrices, or of one. Regular ones are well-conditioned.
enum Values { Regular, Zeros, OneNan, OneInfinity, Huge, Largest, Tiny, RankOne, EmptyColumn, Uneven, VALUES };

std::mt19937 generator;
Int draw(Int below) { return Int(generator() % unsigned(below)); }
double draw_entry() { return double(generator()) / 0x1p31 - 1; }

char context[512];
int failures = 0;
void check(bool holds, const char* what) {
  if (!holds && ++failures <= 20) std::fprintf(stderr, "FAILED %s: %s\n", context, what);
}
extern "C" void __asan_on_error() { std::fprintf(stderr, "in %s\n", context); }

struct Sizes {
  Int m, n, k, count;
  Int extent(char letter) const {
    const char letters[] = "mnksdqp";
    const Int extents[] = {m, n, k, std::min(m, n), 2 * k, k * n, 2};
    const char* found = std::strchr(letters, letter);
    return found ? extents[found - letters] : letter - '0';
  }
};

// An argument in memory of its own: before, between and after the entries are bytes that are not the kernel's.
struct Array {
  static constexpr Int MARGIN = 64;
  bool is_written, is_read, is_of_complex, is_optional, is_missing = false, is_turned, is_separate = true;
  char factor = '1', type = 'T', layout;
  std::string name, extents;
  Int count, m, n, size, step, down, along;
  std::vector<Byte> values, results, memory, image;  // the first two matrix after matrix, row after row

  explicit Array(std::string word) {
    const auto skip = [&](char c) { return word[0] == c ? word.erase(0, 1), true : false; };
    const bool is_output = skip('>');
    is_written = skip('&') || is_output, is_read = !is_output, is_of_complex = skip('?'), is_optional = skip('~');
    if (word[1] == '*') factor = word[0], is_separate = false, word.erase(0, 2);
    const auto end = word.find_first_of(":=|");
    layout = word[end], extents = word.substr(end + 1), name = word.substr(0, end);
    is_turned = name.back() == '\'';
    if (is_turned) name.pop_back();
    if (name.size() > 2 && name[name.size() - 2] == '.') type = name.back(), name.erase(name.size() - 2);
  }
  bool is_integer() const { return type == 'I' || type == 'P' || type == 'B'; }

  void resize(const Sizes& sizes, int dtype) {
    const Int real = dtype % 2 ? 8 : 4;
    size = type == 'B' ? 1 : type == 'P' ? 4 : type == 'I' ? 8 : type == 'R' || dtype < 2 ? real : 2 * real;
    count = sizes.count * sizes.extent(factor);
    m = extents.empty() ? 1 : sizes.extent(extents[0]), n = extents.size() < 2 ? 1 : sizes.extent(extents[1]);
    values.resize(count * m * n * size), results.resize(values.size());
  }

  // Strides of the layout, of what is only read perhaps with several entries at one place; whether there are none.
  bool choose_strides() {
    const Int gap = 3 * draw(2);
    is_missing = is_optional && draw(2) == 0;
    const Int kind = layout == '=' ? 0 : layout == '|' ? 1 : draw(is_written ? 5 : 9);
    down = n, along = 1;
    if (kind == 0 && layout == ':') down = n + gap;
    if (kind == 1) down = 1, along = m + gap;
    if (kind == 2) down = 2 * n + gap, along = 2;
    if (kind == 3) down = 3, along = 3 * m + gap;
    if (kind == 4) down = n * count, along = count;
    if (kind == 5) down = 0;
    if (kind == 6) down = 1, along = 0;
    if (kind == 7) down = along = 0;
    if (kind == 8) down = along = 1;
    step = kind == 4 ? 1 : (m - 1) * down + (n - 1) * along + 1 + (is_separate ? gap : 0);
    if (is_separate && !is_written && draw(4) == 0) step = 0;
    memory.assign(2 * MARGIN + ((count - 1) * step + (m - 1) * down + (n - 1) * along + 1) * size, 0);
    return kind < 5;
  }
  template <class F>
  void each_entry(F&& body) {
    Byte* value = values.data();
    for (Int b = 0; b < count; ++b) {
      for (Int i = 0; i < m; ++i) {
        for (Int j = 0; j < n; ++j, value += size) {
          body(MARGIN + (b * step + i * down + j * along) * size, value - values.data());
        }
      }
    }
  }
  bs_array prepare() {
    ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size());
    std::fill(memory.begin(), memory.end(), pattern);
    if (is_read) each_entry([&](Int at, Int from) { std::memcpy(&memory[at], &values[from], size); });
    image = memory;
    ASAN_POISON_MEMORY_REGION(memory.data(), memory.size());
    each_entry([&](Int at, Int) { ASAN_UNPOISON_MEMORY_REGION(memory.data() + at, size); });
    return {is_missing ? nullptr : memory.data() + MARGIN, {count, m, n}, {step, down, along}};
  }
  // Read the results; whether nothing else has changed.
  bool finish() {
    ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size());
    if (is_written) {
      each_entry([&](Int at, Int to) {
        std::memcpy(&results[to], &memory[at], size);
        std::memcpy(&memory[at], &image[at], size);
      });
    }
    return memory == image;
  }

  template <class R>
  void write(Values how, Int only) {
    const Int parts = size / Int(sizeof(R)), least = std::min(m, n);
    using limits = std::numeric_limits<R>;
    double scale = 1;
    if (how == Huge) scale = sizeof(R) == 8 ? 1e200 : 1e30;
    if (how == Largest) scale = double(limits::max()) / double(4 * least + 4);
    if (how == Tiny) scale = 99 * double(limits::denorm_min());
    R* entry = reinterpret_cast<R*>(values.data());
    for (Int b = 0; b < count; ++b) {
      for (Int i = 0; i < m; ++i) {
        for (Int j = 0; j < n; ++j) {
          for (Int part = 0; part < parts; ++part, ++entry) {
            double x = draw_entry();
            const bool is_large = (name == "A" && j == (i + 1) % least) || (name == "S" && j == i);
            if (is_large && part == 0 && i < least) x += 2 * double(least);
            if (only < 0 || b == only) {
              const bool is_middle = i == m / 2 && j == n / 2;
              x *= scale;
              if (how == Zeros || (how == EmptyColumn && j == n / 2)) x = 0;
              if (how == OneNan && is_middle) x = NAN;
              if (how == OneInfinity && is_middle) x = -INFINITY;
              if (how == RankOne) x = double(1 + j);
              if (how == Uneven) x = std::ldexp(x, int(5 * i + 3 * j) % 41 - 20);
            }
            *entry = R(x);
          }
        }
      }
    }
  }
  void fill(int dtype, Values how, Int only) { dtype % 2 ? write<double>(how, only) : write<float>(how, only); }

  void take(const Array& other) {
    const auto& from = other.is_written ? other.results : other.values;
    const Int to_row = is_turned ? 1 : n, to_column = is_turned ? m : 1;
    Byte* value = values.data();
    for (Int b = 0; b < count; ++b) {
      for (Int i = 0; i < m; ++i) {
        for (Int j = 0; j < n; ++j, value += size) {
          std::memcpy(value, &from[(b * m * n + i * to_row + j * to_column) * size], size);
        }
      }
    }
  }
};
using Arrays = std::vector<Array>;

Arrays arguments_of(const Kernel& kernel, const Sizes& sizes, int dtype) {
  Arrays arrays;
  std::string words = std::string(kernel.arguments) + " ";
  for (std::size_t at = 0, end; (end = words.find(' ', at)) != std::string::npos; at = end + 1) {
    Array array(words.substr(at, end - at));
    array.resize(sizes, dtype);
    if (!array.is_of_complex || dtype >= 2) arrays.push_back(array);
  }
  return arrays;
}

// Stands for `GOMP_parallel`, with three threads.
void team_of_three(void (*entry)(void*), void* shared, unsigned, unsigned) {
  std::thread others[] = {std::thread(entry, shared), std::thread(entry, shared)};
  entry(shared);
  for (auto& each : others) each.join();
}

// Run a kernel in so many threads; its status, and whether all groups are finished.
std::pair<Int, bool> run(bs_kernel kernel, Arrays& arrays, Int group, Int threads, Byte as_pattern) {
  pattern = as_pattern;
  auto* task = static_cast<bs_task*>(std::calloc(1, sizeof(bs_task) + arrays.size() * sizeof(bs_array)));
  task->count = arrays.back().count, task->group = group, task->rtol = 1e-6;
  for (std::size_t i = 0; i < arrays.size(); ++i) task->array[i] = arrays[i].prepare();
  if (threads == 1) {
    kernel(task);
  } else {
    std::vector<std::thread> running;
    for (Int i = 0; i < threads; ++i) running.emplace_back(kernel, task);
    for (auto& thread : running) thread.join();
  }
  for (auto& array : arrays) check(array.finish(), ("other memory is written, beside " + array.name).c_str());
  check(pieces_held == 0, "memory is not returned");
  const std::pair<Int, bool> result{task->status, task->finished == (task->count + group - 1) / group};
  std::free(task);
  check(result.first == BS_OK || result.first == BS_DECLINED || result.first == BS_NO_MEMORY, "unknown status");
  return result;
}

const Kernel* find(const char* name, const Sizes& sizes) {
  for (const Kernel& kernel : kernels) {
    const bool fits = kernel.shape != (sizes.m < sizes.n ? Tall : Wide);
    if (std::strcmp(kernel.name, name) == 0 && fits && kernel.least <= sizes.m && sizes.m <= kernel.most) {
      return &kernel;
    }
  }
  return nullptr;
}

// The arguments of a kernel with regular values, and what its feeder has found.
Arrays feed(const Kernel& kernel, const Sizes& sizes, int dtype) {
  Arrays arrays = arguments_of(kernel, sizes, dtype), found;
  if (const Kernel* feeder = find(kernel.feeder, sizes)) {
    found = feed(*feeder, sizes, dtype);
    for (auto& array : found) {
      while (!array.choose_strides()) {}
    }
    const auto status = run(bs_lookup(feeder->name, dtype, sizes.m), found, 1, 1, 0);
    check(status.first == BS_OK && status.second, "the feeder has failed");
  }
  for (auto& array : arrays) {
    const Array* same = nullptr;
    for (const auto& other : found) {
      if (other.name == array.name) same = &other;
    }
    if (same) array.take(*same);
    else if (!array.is_integer()) array.fill(dtype, Regular, -1);
    else check(array.is_written && !array.is_read, "an integer is to be read that nothing has found");
  }
  return arrays;
}

// One kernel of one dtype on matrices of one size.
void test(const Kernel& kernel, const Sizes& sizes, int dtype, bool only_batches) {
  std::snprintf(
      context, sizeof context, "%s of dtype %d, %dx%d, %d right-hand sides, %d matrices", kernel.name, dtype,
      int(sizes.m), int(sizes.n), int(sizes.k), int(sizes.count));
  const bs_kernel function = bs_lookup(kernel.name, dtype, sizes.m);
  check(function, "no such kernel");
  if (!function) return;
  const Arrays fed = feed(kernel, sizes, dtype);
  const std::size_t length = std::strlen(context);
  const bool is_large = sizes.m * sizes.n * sizes.count > 1000;
  for (int how = 0; how < VALUES; how += 1 + int(draw(only_batches || is_large ? VALUES : 3))) {
    Arrays arrays = fed;
    std::vector<Array*> readable;
    for (auto& array : arrays) {
      if (array.is_read && !array.is_integer()) readable.push_back(&array);
    }
    Int which = -1;
    if (how != Regular && !readable.empty()) {
      which = draw(Int(readable.size()));
      readable[which]->fill(dtype, Values(how), draw(2) ? -1 : draw(readable[which]->count));
    }
    bool is_separate = true;
    std::string layouts = ", values " + std::to_string(how) + " of input " + std::to_string(which) + ", strides";
    for (auto& array : arrays) {
      is_separate &= array.choose_strides();
      layouts += " " + array.name + " " + std::to_string(array.down) + "," + std::to_string(array.along);
    }
    std::snprintf(context + length, sizeof context - length, "%s", layouts.c_str());
    const Int group = 1 + draw(std::min<Int>(arrays.back().count, 9)), threads = sizes.count > 1 ? 3 : 1;

    bs_set_team(team_of_three);
    const auto first = run(function, arrays, group, 1, 0xA5);
    bs_set_team(nullptr);
    check(first.second && first.first != BS_NO_MEMORY, "not finished");
    check(first.first == BS_OK || how != Regular || !is_separate, "regular matrices are declined");
    std::vector<std::vector<Byte>> results;
    for (const auto& array : arrays) results.push_back(array.results);
    check(run(function, arrays, group, threads, 0x5A) == first, "the status is another one in threads");
    for (std::size_t i = 0; i < arrays.size() && first.first == BS_OK; ++i) {
      check(results[i] == arrays[i].results, ("other bits in " + arrays[i].name).c_str());
    }

    // Some of the memory that is asked for, or none.
    if (how != Regular) continue;
    pieces_refused = 0, pieces_allowed = int(draw(2) * draw(8));
    const auto last = run(function, arrays, group, threads, 0xA5);
    pieces_allowed = INT_MAX;
    if (pieces_refused == 0) check(last == first, "the status is another one");
    else if (threads == 1) check(last.first == BS_NO_MEMORY && !last.second, "lack of memory is not told");
    else check(last.first == BS_NO_MEMORY || last == first, "the status is neither that nor a lack of memory");
    check(pieces_refused == 0 || last.first != BS_OK, "a call without memory has succeeded");
  }
}

constexpr int SHARED = 260;  // rows from which on threads share every pass that they may

void test_all_sizes(const Kernel& kernel, int dtype, bool only_batches) {
  const std::string arguments = kernel.arguments;
  const bool has_rhs = arguments.find_first_of("kqd", arguments.find_first_of(":=")) != std::string::npos;
  for (const Int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 100, SHARED}) {
    for (const Int more : {0, 1, 6, 30}) {
      for (const bool is_wide : {false, true}) {
        const bool fits = kernel.shape == Any || kernel.shape == (is_wide ? Wide : Tall) || more == 0;
        if (!fits || (is_wide && more == 0) || n < kernel.least || n > kernel.most) continue;
        if (n == 100 ? more == 6 : more == 30) continue;
        for (const Int k : {1, 3, 6, 200}) {
          for (const Int count : {1, 3, 13}) {
            if (k == 200 && (n != 33 || more > 0)) continue;  // where BLAS solves with rows
            if (n == SHARED && (more > 0 || k > 1 || count > 1)) continue;
            if ((k > 1 && !has_rhs) || (count == 13 && n == 100)) continue;
            if (count == 1 && only_batches && n != SHARED) continue;
            if ((more > 0 || n == 100) && draw(3) > 0) continue;  // of so many, some
            test(kernel, {is_wide ? n : n + more, is_wide ? n + more : n, k, count}, dtype, only_batches);
          }
        }
      }
    }
  }
}

// The addresses of LAPACK's routines, if they are all there.
bool load(const char* path) {
  static void* addresses[BS_ROUTINES][BS_DTYPES];
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  const char* names[] = {"gemm", "trsm", "getrf", "getrs", "potrf", "potri", "geqrf", "gesdd", "ungqr", "unmqr"};
  for (int i = 0; library && i < BS_ROUTINES; ++i) {
    for (int dtype = 0; dtype < BS_DTYPES; ++dtype) {
      std::string name = names[i];
      if (dtype < 2 && name.compare(0, 2, "un") == 0) name.replace(0, 2, "or");
      addresses[i][dtype] = dlsym(library, ("sdcz"[dtype] + name + "_").c_str());
      if (!addresses[i][dtype]) return false;
    }
  }
  bs_set_routines(&addresses[0][0]);
  return library;
}

int main(int count, char** words) {
  if (!load(count > 1 ? words[1] : "liblapack.so.3")) {
    std::fprintf(stderr, "no LAPACK: %s\n", dlerror());
    return 2;
  }
  const bool only_batches = count > 2 && std::strcmp(words[2], "batches") == 0;
  const std::string dtypes = count > 3 ? words[3] : "0123", start = count > 4 ? words[4] : "";
  for (int i = 0; const char* name = bs_name(i); ++i) {
    const bool is_listed = find(name, {1, 1, 1, 1}) || find(name, {4, 4, 1, 1}) || find(name, {1, 2, 1, 1});
    check(is_listed, name);
  }
  int tested = 0;
  for (const Kernel& kernel : kernels) {
    if (std::string(kernel.name).compare(0, start.size(), start) != 0) continue;
    for (const char dtype : dtypes) {
      ++tested;
      generator.seed(1);
      test_all_sizes(kernel, dtype - '0', only_batches);
    }
  }
  std::printf("dtypes %s: %d kernels, %d failures\n", dtypes.c_str(), tested, failures);
  return failures != 0;
}
