#!/usr/bin/env bash
# Build the kernels and their tests with sanitizers, and run them: run.sh LAPACK, the path of a shared library.
set -euo pipefail
lapack=$(realpath "$1")
cd "$(dirname "$0")/.."
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
jobs=$(nproc)  # which heeds the next line
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# Pointers that are null are found when they are used; checks of each take most of the time to compile.
flags="-std=c++17 -O1 -g1 -fno-sanitize-recover=all -fno-sanitize=null,object-size -fno-exceptions -fno-rtti"
flags+=" -fno-math-errno -fno-trapping-math -fopenmp-simd -Wall -Wextra -Wno-psabi"

# check NAME SANITIZERS MODE
check() {
  echo "$1: compile"
  {
    for family in ops/*.cpp; do
      for of in "c128 Complex<double>" "c64 Complex<float>" "f64 double" "f32 float"; do
        local dtype=${of%% *} number=${of#* }
        echo "${CXX:-c++} $flags -fsanitize=$2 -DBS_DTYPE=$dtype '-DBS_NUMBER=$number'" \
          "-c $family -o $build/$(basename "$family" .cpp)-$dtype.o"
      done
    done
    echo "${CXX:-c++} $flags -fsanitize=$2 -c library.cpp -o $build/library.o"
    echo "${CXX:-c++} $flags -fsanitize=$2 -fexceptions -c tests/test_kernels.cpp -o $build/test.o"
  } | xargs -P "$jobs" -d '\n' -I{} bash -c '{}'
  "${CXX:-c++}" -fsanitize="$2" "$build"/*.o -o "$build/test" -ldl -pthread
  echo "$1: run"
  printf '%s\n' 3 2 1 0 | xargs -P "$jobs" -I{} "$build/test" "$lapack" "$3" {}
}

check "addresses and undefined behaviour" address,undefined all
check "races" thread batches
