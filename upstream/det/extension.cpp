#include "../override.h"
#include "derivative.h"

TORCH_LIBRARY(upstream_det, library)
{
  using torch::autograd::generated::details::linalg_det_adjugate_backward;
  using upstream::Call, upstream::variable_list;
  const auto gradient = [](const at::Tensor& grad, const Call& call) {
    return linalg_det_adjugate_backward(
        grad,
        call.results[0].toTensor(),
        call.arguments[0].toTensor(),
        call.results[1].toTensor(),
        call.results[2].toTensor());
  };
  upstream::define(
      library,
      {{"aten::_linalg_det",
        "",
        [=](const variable_list& gradients, const Call& call) {
          return variable_list{gradient(gradients[0], call)};
        },
        [=](const variable_list& tangents, const Call& call) {
          const auto adjugate =
              gradient(at::ones_like(call.results[0].toTensor()), call);
          return variable_list{(adjugate.conj() * tangents[0]).sum({-2, -1})};
        }}});
}
