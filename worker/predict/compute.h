// What computes the outputs of a model for rows: Medley's own code for its own models, a process of its own without
// rights for those from PyTorch. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "worker/data/batch.h"
#include "worker/export/read_export.h"

namespace medley::worker {

class Compute {
 public:
  virtual ~Compute() = default;
  // Appends the logits of each sample, as many as the model has outputs. The features of the batch are the model's.
  virtual absl::Status Logits(const Batch& rows, std::vector<float>& logits) = 0;
};

// `model` must outlive it. Errors: those of ProgramProcess::Start.
absl::StatusOr<std::unique_ptr<Compute>> MakeCompute(const LoadedModel& model);

}  // namespace medley::worker
