#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_lu_factor, library)
{
  using upstream::Call, upstream::variable_list;
  namespace details = torch::autograd::generated::details;
  upstream::define(
      library,
      {{"aten::linalg_lu_factor_ex",
        "",
        [](const variable_list& gradients, const Call& call) {
          return variable_list{details::linalg_lu_factor_ex_backward(
              gradients[0],
              call.results[0].toTensor(),
              call.results[1].toTensor(),
              call.arguments[1].toBool())};
        }},
       {"aten::linalg_lu",
        "",
        [](const variable_list& gradients, const Call& call) {
          return variable_list{details::linalg_lu_halves_backward(
              gradients[0],
              gradients[1],
              call.results[0].toTensor(),
              call.results[1].toTensor(),
              call.results[2].toTensor(),
              call.arguments[1].toBool())};
        }}});
}
