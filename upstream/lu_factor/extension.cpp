#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_lu_factor, library)
{
  using upstream::Call, upstream::variable_list;
  upstream::define(
      library,
      "aten::linalg_lu_factor_ex",
      "",
      [](const variable_list& gradients, const Call& call) {
        using torch::autograd::generated::details::linalg_lu_factor_ex_backward;
        return variable_list{linalg_lu_factor_ex_backward(
            gradients[0],
            call.results[0].toTensor(),
            call.results[1].toTensor(),
            call.arguments[1].toBool())};
      });
}
