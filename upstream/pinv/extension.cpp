#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_pinv, library)
{
  using upstream::Call, upstream::variable_list;
  upstream::define(
      library,
      {{"aten::linalg_pinv",
        "atol_rtol_tensor",
        [](const variable_list& gradients, const Call& call) {
          using torch::autograd::generated::details::linalg_pinv_backward;
          return variable_list{linalg_pinv_backward(
              gradients[0],
              call.results[0].toTensor(),
              call.arguments[0].toTensor())};
        }}});
}
