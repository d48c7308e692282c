// The BLAS and LAPACK that PyTorch calls, by the addresses that the caller gives. Matrices that are written to
// overlap no other operand.
#pragma once

#include "api.h"
#include "matrix.hpp"

namespace bs {

inline void* routines[BS_ROUTINES][BS_DTYPES];

// Floating-point operations from which on BLAS may use all threads. Threads that finish together wait for one
// whose core does something else, as long as the scheduler lets that have it: some milliseconds.
// Factorizations and their reverses wait many times, and a second thread gains the least in Cholesky's.
constexpr double PRODUCT_WORTH_THREADS = 4e5, LU_WORTH_THREADS = 2.5e6, REVERSE_WORTH_THREADS = 2e7,
                 CHOLESKY_WORTH_THREADS = 4e6;

namespace lapack {

template <class T>
bool is_for_one_thread(double flops, double worth) {
  return flops * (is_complex<T> ? 4 : 1) < worth;
}

// Keeps to one thread where so few operations are not worth more.
template <class T>
struct ThreadLimit : OneThread {
  ThreadLimit(double flops, double worth) : OneThread(is_for_one_thread<T>(flops, worth)) {}
};

template <class T>
constexpr int dtype = is_complex<T> * 2 + is_double<T>;

// Each argument goes by its address. Integers are passed as 64 bits, of which a BLAS of 32-bit integers reads
// the first half: on little-endian machines, the only ones that are supported, their value.
template <class T, class... A>
BS_INLINE void call(bs_routine routine, A... arguments) {
  BS_CLEAR_UPPER_HALVES();
  reinterpret_cast<void (*)(A...)>(routines[routine][dtype<T>])(arguments...);
}

// BLAS asks for this of a single column, too, whose stride may be anything.
template <class T>
Int leading(const Columns<T>& a) {
  return std::max<Int>({a.ld, a.m, 1});
}

inline bool is_zero(Int info) { return static_cast<std::int32_t>(info) == 0; }

// C ← keeps C + factor op(A) op(B). The letters are those of BLAS: C, T and N for adjoint, transpose and neither.
template <class T>
void multiply(const char* ops, int factor, double keeps, Columns<T> C, Columns<T> A, Columns<T> B) {
  const Int inner = ops[0] == 'N' ? A.n : A.m, a = leading(A), b = leading(B), c = leading(C);
  const T alpha(factor), beta(static_cast<Real<T>>(keeps));
  const ThreadLimit<T> limit(2.0 * double(C.m) * double(C.n) * double(inner), PRODUCT_WORTH_THREADS);
  call<T>(BS_GEMM, ops, ops + 1, &C.m, &C.n, &inner, &alpha, A.data, &a, B.data, &b, &beta, C.data, &c);
}

// B ← A⁻¹B or B A⁻¹, by side, triangle, transpose and diagonal as BLAS is told: "LLNN" of a lower triangle.
template <class T>
void solve_triangle(const char* how, Columns<T> A, Columns<T> B) {
  const Int a = leading(A), b = leading(B);
  const T one(1);
  const ThreadLimit<T> limit(double(A.n) * double(B.m) * double(B.n), PRODUCT_WORTH_THREADS);
  call<T>(BS_TRSM, how, how + 1, how + 2, how + 3, &B.m, &B.n, &one, A.data, &a, B.data, &b);
}

template <class T>
double work_of_lu(Columns<T> A) {
  return double(A.m) * double(A.n) * double(std::min(A.m, A.n));
}

// A = P L U in place with LAPACK's pivots; whether no pivot is zero.
template <class T>
bool eliminate(Columns<T> A, std::int32_t* pivots) {
  const Int a = leading(A);
  Int info = 0;
  const ThreadLimit<T> limit(work_of_lu(A), LU_WORTH_THREADS);
  call<T>(BS_GETRF, &A.m, &A.n, A.data, &a, pivots, &info);
  return is_zero(info);
}

// B ← op(A)⁻¹B of what `eliminate` has left.
template <class T>
void solve_eliminated(const char* op, Columns<T> LU, const std::int32_t* pivots, Columns<T> B) {
  const Int a = leading(LU), b = leading(B);
  Int info = 0;
  const ThreadLimit<T> limit(2.0 * double(LU.m) * double(B.m) * double(B.n), PRODUCT_WORTH_THREADS);
  call<T>(BS_GETRS, op, &B.m, &B.n, LU.data, &a, pivots, B.data, &b, &info);
}

// A = L Lᴴ in place, of the lower triangle, or A = Uᴴ U, of the upper one; the order of the first minor that is not
// positive definite, or zero.
template <class T>
Int factor_positive_definite(Columns<T> A, const char* triangle) {
  const Int a = leading(A);
  Int info = 0;
  const ThreadLimit<T> limit(double(A.m) * double(A.m) * double(A.m) / 2, CHOLESKY_WORTH_THREADS);
  call<T>(BS_POTRF, triangle, &A.m, A.data, &a, &info);
  return static_cast<std::int32_t>(info);
}

// (L Lᴴ)⁻¹ in place of L, the lower triangle.
template <class T>
void invert_positive_definite(Columns<T> L) {
  const Int a = leading(L);
  Int info = 0;
  call<T>(BS_POTRI, "L", &L.m, L.data, &a, &info);
}

// A = Q R in place as reflectors, and their scales, of a tall matrix.
template <class T>
void reflect(Columns<T> A, T* scales, T* work, Int length) {
  const Int a = leading(A);
  Int info = 0;
  call<T>(BS_GEQRF, &A.m, &A.n, A.data, &a, scales, work, &length, &info);
}

// The reflectors overwritten by the columns of Q that span the range.
template <class T>
void form_basis(Columns<T> A, const T* scales, T* work, Int length) {
  const Int a = leading(A);
  Int info = 0;
  call<T>(BS_UNGQR, &A.m, &A.n, &A.n, A.data, &a, scales, work, &length, &info);
}

// B ← Q B or QᴴB of what `reflect` has left: N or C.
template <class T>
void apply_basis(const char* op, Columns<T> A, const T* scales, Columns<T> B, T* work, Int length) {
  const Int a = leading(A), b = leading(B);
  Int info = 0;
  if (!is_complex<T> && *op == 'C') op = "T";
  call<T>(BS_UNMQR, "L", op, &B.m, &B.n, &A.n, A.data, &a, scales, B.data, &b, work, &length, &info);
}

// A = U diag(s) Vᴴ, of which A is scratch; whether it has converged.
template <class T>
bool decompose(
    Columns<T> A, Real<T>* s, Columns<T> U, Columns<T> Vh, T* work, Int length, [[maybe_unused]] Real<T>* real_work,
    std::int32_t* integer_work) {
  const Int a = leading(A), u = leading(U), v = leading(Vh);
  Int info = 0;
  if constexpr (is_complex<T>) {
    call<T>(
        BS_GESDD, "S", &A.m, &A.n, A.data, &a, s, U.data, &u, Vh.data, &v, work, &length, real_work, integer_work,
        &info);
  } else {
    call<T>(BS_GESDD, "S", &A.m, &A.n, A.data, &a, s, U.data, &u, Vh.data, &v, work, &length, integer_work, &info);
  }
  return is_zero(info);
}

}  // namespace lapack
}  // namespace bs
