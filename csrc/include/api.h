/* The interface of the kernel library: plain C, without the headers of Python or PyTorch.
 *
 * A kernel runs on a task: matrices of a batch, by address, extents and strides. Any number of threads may
 * run it on the same task; each takes one group of matrices after the other. The call succeeded if all groups
 * are finished and the status is BS_OK, and nothing is to be read of what it has written otherwise.
 */
#ifndef BS_API_H
#define BS_API_H

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
#define BS_SHARED std::atomic<int64_t>
extern "C" {
#else
#define BS_SHARED _Atomic int64_t
#endif

#if defined(_WIN32)
#define BS_EXPORT __declspec(dllexport)
#else
#define BS_EXPORT __attribute__((visibility("default")))
#endif

enum bs_status {
  BS_OK = 0,
  BS_DECLINED = 1, /* a matrix is beyond what the kernel computes stably: another way has to be taken */
  BS_NO_MEMORY = 2,
};

enum bs_dtype { BS_FLOAT32, BS_FLOAT64, BS_COMPLEX64, BS_COMPLEX128, BS_DTYPES };

/* BLAS and LAPACK routines that kernels call; the last two are named or* for real matrices. */
enum bs_routine {
  BS_GEMM,
  BS_TRSM,
  BS_GETRF,
  BS_GETRS,
  BS_POTRF,
  BS_POTRI,
  BS_GEQRF,
  BS_GESDD,
  BS_UNGQR,
  BS_UNMQR,
  BS_ROUTINES
};

typedef struct {
  void* data;
  int64_t extent[3]; /* matrices, rows, columns */
  int64_t stride[3]; /* in entries */
} bs_array;

typedef struct {
  BS_SHARED next; /* the next group that no thread has taken */
  int64_t count;  /* of matrices */
  int64_t group;  /* matrices that a thread takes at once */
  BS_SHARED status;
  BS_SHARED finished; /* groups */
  double atol, rtol; /* singular values up to atol, or rtol times the largest, count as zero, where a rank is decided */
  bs_array array[];
} bs_task;

typedef void (*bs_kernel)(bs_task*);

/* The version of this interface: a library of another one is not to be used. */
BS_EXPORT int bs_abi_version(void);

/* Give the library the addresses of the routines for each dtype: BS_ROUTINES times BS_DTYPES of them. */
BS_EXPORT void bs_set_routines(void* const* addresses);

/* Give the library a function that sets how many threads BLAS uses in calls of this thread, and returns how many
 * it used; zero stands for what is set for all. */
BS_EXPORT void bs_set_thread_control(int (*set_threads)(int));

/* As `GOMP_parallel`: calls the function in so many threads, or, of zero, in as many as the caller may use, and returns
 * when all have. The flags are zero. */
typedef void (*bs_team)(void (*function)(void*), void* argument, unsigned threads, unsigned flags);

/* Give the library such a function; with null, which is the default, kernels share nothing. */
BS_EXPORT void bs_set_team(bs_team team);

/* The kernel of a name for a dtype and matrices of so many rows; null if there is none. Where there is none for
 * that number of rows in particular, it is the one for any. */
BS_EXPORT bs_kernel bs_lookup(const char* name, int dtype, int64_t rows);

/* The i-th name, for i from zero on; null beyond the last. Names may repeat. */
BS_EXPORT const char* bs_name(int i);

#ifdef __cplusplus
}
#endif
#endif
