#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_lu_solve, library)
{
  using upstream::Call, upstream::variable_list;
  upstream::define(
      library,
      {{"aten::linalg_lu_solve",
        "",
        [](const variable_list& gradients, const Call& call) {
          const auto& gX = gradients[0];
          const auto LU = call.arguments[0].toTensor();
          const auto pivots = call.arguments[1].toTensor();
          const bool left = call.arguments[3].toBool();
          const bool adjoint = call.arguments[4].toBool();
          variable_list found(2);
          if (call.needed[0]) {
            using torch::autograd::generated::details::
                linalg_lu_solve_factors_backward;
            found[0] = linalg_lu_solve_factors_backward(
                gX,
                LU,
                pivots,
                call.results[0].toTensor(),
                left,
                adjoint);
          }
          if (call.needed[1]) {
            found[1] = at::linalg_lu_solve(LU, pivots, gX, left, !adjoint);
          }
          return found;
        }}});
}
