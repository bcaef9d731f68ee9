// Computes the logits of a model on this machine's CPU, without LibTorch, in one thread.
//
// The first fully connected layer behind an embedding is not multiplied row by row: the product of an embedding's row
// with its part of the weights is the same for every sample, so it is computed once and kept, in bounded memory.
// Not thread-safe: each thread has its own network.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <vector>

#include "worker/data/batch.h"
#include "worker/export/read_export.h"

namespace medley::worker {

class Network {
 public:
  // `model` must outlive this object, which reads the tables there.
  explicit Network(const LoadedModel& model);
  ~Network();
  Network(Network&&) noexcept;

  // Appends the logits of each sample, as many as the model has outputs. The features of the batch are the model's.
  void Logits(const Batch& batch, std::vector<float>& logits);

 private:
  class Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
