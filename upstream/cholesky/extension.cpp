#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_cholesky, library)
{
  using upstream::Call, upstream::variable_list;
  upstream::define(
      library,
      {{"aten::linalg_cholesky_ex",
        "",
        [](const variable_list& gradients, const Call& call) {
          using torch::autograd::generated::details::
              linalg_cholesky_ex_backward;
          return variable_list{linalg_cholesky_ex_backward(
              gradients[0],
              call.arguments[1].toBool(),
              call.results[0].toTensor())};
        }}});
}
