#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_cholesky_inverse, library)
{
  using upstream::Call, upstream::variable_list;
  namespace details = torch::autograd::generated::details;
  upstream::define(
      library,
      {{"aten::cholesky_inverse",
        "",
        [](const variable_list& gradients, const Call& call) {
          return variable_list{details::cholesky_inverse_factor_backward(
              gradients[0],
              call.arguments[0].toTensor(),
              call.arguments[1].toBool())};
        },
        [](const variable_list& tangents, const Call& call) {
          return variable_list{details::cholesky_inverse_factor_jvp(
              call.arguments[0].toTensor(),
              tangents[0],
              call.arguments[1].toBool(),
              call.results[0].toTensor())};
        }}});
}
