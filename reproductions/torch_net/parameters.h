// Parameters of the planners' networks: their initial values, Adam, and their bytes in a file. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/rng.h"
#include "reproductions/torch_net/torch.h"

namespace medley::reproductions::torch_net {

// A dense layer. Rows are inputs.
struct Dense {
  at::Tensor weight, bias;
  at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
};

class Parameters {
 public:
  explicit Parameters(uint64_t seed) : rng_(seed) {}

  // Even between the bounds of Glorot and Bengio (2010).
  at::Tensor Matrix(int64_t rows, int64_t columns);
  at::Tensor Zeros(int64_t count) { return Add(at::zeros({count}, at::kFloat)); }
  at::Tensor Ones(int64_t count) { return Add(at::ones({count}, at::kFloat)); }
  Dense MakeDense(int64_t inputs, int64_t outputs) { return {Matrix(outputs, inputs), Zeros(outputs)}; }

  // Adds the gradient of `loss` to that of the next step.
  void AddGradient(const at::Tensor& loss);
  // Adam (Kingma and Ba 2015), after the gradient was clipped to a norm of `clip`. A gradient that is not finite is
  // dropped.
  void Step(double rate, double clip);

  // The values, without the moments of Adam. PyTorch reads the bytes: torch.load. `version`: of the network, whose
  // values Load accepts.
  std::string Save(std::string_view version) const;
  // Errors: InvalidArgument where the bytes are no weights, of another version, or of networks of other sizes; nothing
  // is changed then. The bytes must be trusted: they are a pickle.
  absl::Status Load(std::string_view bytes, std::string_view version);

 private:
  at::Tensor Add(at::Tensor values);

  base::Rng rng_;
  std::vector<at::Tensor> values_, first_, second_;
  int steps_ = 0;
};

// Values by row.
at::Tensor ToTensor(const std::vector<float>& values, at::IntArrayRef shape);
at::Tensor ToIndex(const std::vector<int64_t>& values, at::IntArrayRef shape);

}  // namespace medley::reproductions::torch_net
