// Real and complex numbers, and packs of them: one number of each of several matrices, side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(_MSC_VER) && !defined(__clang__)
#define BS_INLINE __forceinline
#define BS_COLD __declspec(noinline)
#define BS_LAMBDA
#else
#define BS_INLINE inline __attribute__((always_inline))
#define BS_COLD __attribute__((noinline))  // once in the library, and not in every kernel
#define BS_LAMBDA __attribute__((always_inline))
#endif

// Code of SSE, as MKL's is on processors that are not Intel's, takes up to four times as long while registers hold
// something beyond their lower halves. GCC 12 does not always clear that before a call.
#if defined(__AVX__)
#include <immintrin.h>
#define BS_CLEAR_UPPER_HALVES() _mm256_zeroupper()
#else
#define BS_CLEAR_UPPER_HALVES()
#endif

// A sum, or a maximum, in whatever order is fastest, of the loop that follows.
#if defined(_OPENMP) || defined(__GNUC__)
#define BS_STRING(...) #__VA_ARGS__
#define BS_SUM(...) _Pragma(BS_STRING(omp simd reduction(+ : __VA_ARGS__)))
#define BS_MAXIMUM(...) _Pragma(BS_STRING(omp simd reduction(max : __VA_ARGS__)))
#else
#define BS_SUM(...)
#define BS_MAXIMUM(...)
#endif

namespace bs {

using Int = std::int64_t;

// W real numbers. Compilers with vector types are told so; others get loops of constant length.
template <class R, int W>
struct Pack {
  static constexpr int width = W;
#if defined(__GNUC__)
  typedef R Vector __attribute__((vector_size(W * sizeof(R))));
  Vector v;
#else
  struct alignas(W * sizeof(R)) Vector {
    R entries[W];
    R& operator[](int i) { return entries[i]; }
    R operator[](int i) const { return entries[i]; }
  } v;
#endif
  Pack() = default;
  BS_INLINE Pack(R x) {
    for (int i = 0; i < W; ++i) v[i] = x;
  }
  BS_INLINE R operator[](int i) const { return v[i]; }
  BS_INLINE void set(int i, R x) { v[i] = x; }

#if defined(__GNUC__)
#define BS_PACK_OPERATOR(op)                          \
  friend BS_INLINE Pack operator op(Pack a, Pack b) { \
    a.v = a.v op b.v;                                 \
    return a;                                         \
  }
  BS_INLINE Pack operator-() const {
    Pack result;
    result.v = -v;
    return result;
  }
  // a where x > y, else b.
  static BS_INLINE Pack where_greater(Pack x, Pack y, Pack a, Pack b) {
    a.v = x.v > y.v ? a.v : b.v;
    return a;
  }
#else
#define BS_PACK_OPERATOR(op)                               \
  friend BS_INLINE Pack operator op(Pack a, Pack b) {      \
    for (int i = 0; i < W; ++i) a.v[i] = a.v[i] op b.v[i]; \
    return a;                                              \
  }
  BS_INLINE Pack operator-() const {
    Pack result;
    for (int i = 0; i < W; ++i) result.v[i] = -v[i];
    return result;
  }
  static BS_INLINE Pack where_greater(Pack x, Pack y, Pack a, Pack b) {
    for (int i = 0; i < W; ++i) a.v[i] = x.v[i] > y.v[i] ? a.v[i] : b.v[i];
    return a;
  }
#endif
  BS_PACK_OPERATOR(+)
  BS_PACK_OPERATOR(-)
  BS_PACK_OPERATOR(*)
  BS_PACK_OPERATOR(/)
#undef BS_PACK_OPERATOR
  BS_INLINE Pack& operator+=(Pack x) { return *this = *this + x; }
  BS_INLINE Pack& operator-=(Pack x) { return *this = *this - x; }
  BS_INLINE Pack& operator*=(Pack x) { return *this = *this * x; }
  BS_INLINE Pack& operator/=(Pack x) { return *this = *this / x; }
};

template <class R>
BS_INLINE R where_greater(R x, R y, R a, R b) {
  if constexpr (std::is_floating_point_v<R>) return x > y ? a : b;
  else return R::where_greater(x, y, a, b);
}
template <class R>
BS_INLINE R larger(R x, R y) {
  return where_greater(x, y, x, y);
}
template <class R>
BS_INLINE R absolute(R x) {
  if constexpr (std::is_floating_point_v<R>) return std::abs(x);
  else return where_greater(R(0), x, -x, x);
}

// Products are those of the entries, without the recovery of infinities in C99; quotients scale as Smith's.
// R. L. Smith, "Algorithm 116: complex division", Communications of the ACM 5 (1962).
template <class R>
struct Complex {
  R re, im;
  Complex() = default;
  BS_INLINE Complex(R real, R imag = R(0)) : re(real), im(imag) {}
  template <class Q, class = std::enable_if_t<std::is_arithmetic_v<Q> && !std::is_same_v<Q, R>>>
  BS_INLINE Complex(Q real) : re(R(real)), im(R(0)) {}
  BS_INLINE Complex operator-() const { return {-re, -im}; }
  BS_INLINE Complex& operator+=(Complex x) { return *this = *this + x; }
  BS_INLINE Complex& operator-=(Complex x) { return *this = *this - x; }
  BS_INLINE Complex& operator*=(Complex x) { return *this = *this * x; }
  BS_INLINE Complex& operator/=(Complex x) { return *this = *this / x; }
  friend BS_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend BS_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend BS_INLINE Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend BS_INLINE Complex operator/(Complex a, Complex b) {
    const R re = absolute(b.re), im = absolute(b.im);
    const R large = where_greater(im, re, b.im, b.re), small = where_greater(im, re, b.re, b.im);
    const R ratio = small / large, divisor = large + small * ratio;
    const R c = where_greater(im, re, ratio, R(1)), d = where_greater(im, re, R(1), ratio);
    return {(a.re * c + a.im * d) / divisor, (a.im * c - a.re * d) / divisor};
  }
  friend BS_INLINE bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend BS_INLINE bool operator!=(Complex a, Complex b) { return !(a == b); }
};

template <class T>
struct Traits {
  using Real = T;
  using Scalar = T;
  static constexpr int width = 1;
};
template <class R>
struct Traits<Complex<R>> {
  using Real = R;
  using Scalar = Complex<typename Traits<R>::Scalar>;
  static constexpr int width = Traits<R>::width;
};
template <class R, int W>
struct Traits<Pack<R, W>> {
  using Real = Pack<R, W>;
  using Scalar = R;
  static constexpr int width = W;
};

template <class T>
using Real = typename Traits<T>::Real;  // of the parts of a number
template <class T>
using Scalar = typename Traits<T>::Scalar;  // what a pack holds
template <class T>
constexpr int width_of = Traits<T>::width;
template <class T>
constexpr bool is_pack = width_of<T> > 1;
template <class T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;
template <class T>
constexpr Real<Scalar<T>> epsilon = std::numeric_limits<Real<Scalar<T>>>::epsilon();
template <class T>
constexpr bool is_double = sizeof(Real<Scalar<T>>) == 8;

// As many as a register of 256 bits holds of their parts: of wider vectors compilers keep pieces in memory.
template <class T>
constexpr int pack_width = (is_complex<T> ? 64 : 32) / int(sizeof(T));
template <class T>
struct PackOf {
  using type = Pack<T, pack_width<T>>;
};
template <class R>
struct PackOf<Complex<R>> {
  using type = Complex<Pack<R, pack_width<Complex<R>>>>;
};
template <class T>
using Packed = typename PackOf<T>::type;

template <class T>
BS_INLINE Real<T> real(T x) {
  if constexpr (is_complex<T>) return x.re;
  else return x;
}
template <class T>
BS_INLINE Real<T> imag(T x) {
  if constexpr (is_complex<T>) return x.im;
  else return Real<T>(0);
}
template <class T>
BS_INLINE T conj(T x) {
  if constexpr (is_complex<T>) return {x.re, -x.im};
  else return x;
}
template <bool CONJUGATED, class T>
BS_INLINE T conj_if(T x) {
  if constexpr (CONJUGATED) return conj(x);
  else return x;
}

template <class T>
BS_INLINE T times_real(T x, Real<T> factor) {
  if constexpr (is_complex<T>) return {x.re * factor, x.im * factor};
  else return x * factor;
}
template <class T>
BS_INLINE Real<T> magnitude(T x) {
  if constexpr (is_complex<T>) return std::hypot(x.re, x.im);
  else return std::abs(x);
}
// What LAPACK compares to find a pivot: without a square root, and thus up to √2 times the modulus.
template <class T>
BS_INLINE Real<T> modulus(T x) {
  if constexpr (is_complex<T>) return absolute(x.re) + absolute(x.im);
  else return absolute(x);
}
template <class T>
BS_INLINE Real<T> squared_modulus(T x) {
  if constexpr (is_complex<T>) return x.re * x.re + x.im * x.im;
  else return x * x;
}
// The same in double precision, in which squares of single precision neither overflow nor underflow.
template <class T>
BS_INLINE double square(T x) {
  const double re = real(x), im = imag(x);
  return re * re + im * im;
}

// One lane of a pack; of a number, that.
template <class T>
BS_INLINE Scalar<T> lane(const T& x, [[maybe_unused]] int i) {
  if constexpr (!is_pack<T>) return x;
  else if constexpr (is_complex<T>) return {x.re[i], x.im[i]};
  else return x[i];
}
template <class T>
BS_INLINE void set_lane(T& x, [[maybe_unused]] int i, Scalar<T> value) {
  if constexpr (!is_pack<T>) x = value;
  else if constexpr (is_complex<T>) x.re.set(i, value.re), x.im.set(i, value.im);
  else x.set(i, value);
}

}  // namespace bs
