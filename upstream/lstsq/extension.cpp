#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_lstsq, library)
{
  using upstream::Call, upstream::variable_list;
  upstream::define(
      library,
      {{"aten::linalg_lstsq",
        "",
        [](const variable_list& gradients, const Call& call) {
          using torch::autograd::generated::details::
              linalg_lstsq_factors_backward;
          const auto [gA, gB] = linalg_lstsq_factors_backward(
              gradients[0],
              gradients[1],
              call.arguments[0].toTensor(),
              call.arguments[1].toTensor(),
              call.results[0].toTensor(),
              call.results[2].toTensor(),
              {call.needed[0], call.needed[1]});
          return variable_list{gA, gB};
        }}});
}
