// The dense parameters of a block with their optimizer state, versions and gradient, by who owns them: the host
// (DenseStore), or a device, in whose memory they stay from the first step to the last (resident_parameters.h).
//
// The functions are those that BlockCompute documents, for tensors. Not thread-safe. Functions that return no status
// throw what LibTorch throws; those that do may throw it too, and AtenBlock makes a status of it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "worker/aten/place.h"
#include "worker/pipeline/block_compute.h"
#include "worker/pipeline/recorded_work.h"

namespace medley::worker::aten {

class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  // A parameter's values after step `version`; valid until that version is overwritten. Nobody may write to them, but
  // for rows that are the same in all versions.
  virtual at::Tensor Values(int64_t version, size_t parameter, at::IntArrayRef sizes) = 0;

  // Adds to the gradient of a step; a step other than the one before begins with zeros.
  virtual void BeginGradients(int64_t step) = 0;
  virtual void AddGradient(size_t parameter, const at::Tensor& gradient, float factor) = 0;
  // The step is repeated after a rollback, from `step` on.
  virtual void ForgetGradients(int64_t step) = 0;
  // BlockCompute::Gradients.
  virtual absl::StatusOr<std::span<float>> GradientsOnHost() = 0;

  virtual std::vector<DenseParameter> Parameters() = 0;
  virtual absl::Status Read(size_t parameter, DensePart part, size_t first, std::span<float> to) = 0;
  virtual absl::Status Write(size_t parameter, DensePart part, size_t first, std::span<const float> from) = 0;
  virtual absl::StatusOr<double> SquaredNorm() = 0;
  virtual absl::Status ScaleGradients(float factor) = 0;
  virtual absl::Status SumCopies(std::string_view name) = 0;

  virtual absl::Status ApplyUpdate(const Optimizer& optimizer) = 0;
  // Updates that a device recorded.
  virtual RecordingCounts Recordings() const { return {}; }
  // Where a pass of a device reads parameters after step `version`, and where it adds gradients.
  virtual std::vector<uint64_t> Addresses(int64_t) const { return {}; }
  virtual int64_t applied_step() const = 0;
  virtual int64_t undo_limit() const = 0;
  virtual int64_t agreed_step() const = 0;
  virtual absl::Status KeepAgreed() = 0;
  virtual void ForgetAgreed() = 0;
  virtual absl::Status UndoTo(int64_t step) = 0;
  virtual void SetAppliedStep(int64_t step) = 0;
};

// `place`: apart from the host, the parameters are resident there. Other arguments: those of DenseStore.
std::unique_ptr<ParameterStore> MakeParameterStore(const std::vector<ParameterSpec>& specs, const Optimizer& optimizer,
                                                   uint64_t seed, int kept_updates, const Place& place);

}  // namespace medley::worker::aten
