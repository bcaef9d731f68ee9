// The part of BlockCompute that a ParameterStore does: parameters, their gradients, updates and versions. What LibTorch
// throws becomes a status. The blocks of this folder add their passes to it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "worker/pipeline/block_compute.h"

namespace medley::worker::aten {

class ParameterStore;

class StoredBlock : public worker::BlockCompute {
 public:
  std::span<float> Gradients() override;
  std::vector<worker::DenseParameter> Parameters() override;
  absl::Status ReadValues(size_t parameter, worker::DensePart part, size_t first, std::span<float> to) override;
  absl::Status WriteValues(size_t parameter, worker::DensePart part, size_t first,
                           std::span<const float> from) override;
  absl::StatusOr<double> SquaredNorm() override;
  absl::Status ScaleGradients(float factor) override;
  absl::Status SumCopies(std::string_view name) override;

  absl::Status ApplyUpdate(const worker::Optimizer& optimizer) override;
  absl::Status KeepAgreed() override;
  void ForgetAgreed() override;
  int64_t AppliedStep() const override;
  int64_t AgreedStep() const override;
  int64_t UndoLimit() const override;
  absl::Status UndoTo(int64_t step) override;
  void SetAppliedStep(int64_t step) override;

 protected:
  virtual ParameterStore& store() const = 0;

  // An error of a function that returns no status, as Gradients() and LossSum(): their values are no numbers then, and
  // ApplyUpdate returns it.
  mutable absl::Status failure_;
};

}  // namespace medley::worker::aten
