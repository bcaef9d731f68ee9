// Values of a parameter wherever they are: in the host's memory, or in that of a device, from which they are read and
// to which they are written in pieces. For checkpoints, transfers between trainers and averages. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class DenseValues {
 public:
  explicit DenseValues(std::span<float> host) : host_(host), size_(host.size()) {}
  // Those of block.Parameters()[index], which is `parameter`. `state_floats`: of the optimizer for each weight.
  DenseValues(BlockCompute& block, size_t index, const DenseParameter& parameter, DensePart part, size_t state_floats);

  size_t size() const { return size_; }
  // Values [first, first + count): where they are, or copied to `buffer`.
  absl::StatusOr<std::span<const float>> Read(size_t first, size_t count, std::vector<float>& buffer) const;
  // All of them.
  absl::StatusOr<std::vector<float>> Copy() const;
  // Where values [first, first + count) may be written to: where they are, or in `buffer`. Store() ends it.
  std::span<float> ForWriting(size_t first, size_t count, std::vector<float>& buffer) const;
  absl::Status Store(size_t first, std::span<const float> values) const;

 private:
  std::span<float> host_;  // empty: elsewhere
  BlockCompute* block_ = nullptr;
  size_t index_ = 0;
  DensePart part_ = DensePart::kWeights;
  size_t size_ = 0;
};

// What BlockCompute documents of ReadValues, WriteValues, SquaredNorm, ScaleGradients and SumCopies, for parameters in
// the host's memory. Their gradients must be complete.
void ReadHost(const DenseParameter& parameter, DensePart part, size_t first, std::span<float> to);
void WriteHost(const DenseParameter& parameter, DensePart part, size_t first, std::span<const float> from);
double SquaredNormOnHost(std::span<const DenseParameter> parameters);
void ScaleGradientsOnHost(std::span<const DenseParameter> parameters, float factor);
absl::Status SumCopiesOnHost(std::span<const DenseParameter> parameters, std::string_view name);

// How many values pass through the host at once.
inline constexpr size_t kDensePiece = size_t{1} << 20;

// Copies in pieces. Both have the same size.
absl::Status CopyValues(const DenseValues& from, const DenseValues& to);

}  // namespace medley::worker
