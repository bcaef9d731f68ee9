#include "worker/pipeline/average.h"

#include "common/base/status.h"
#include "worker/pipeline/dense_values.h"

namespace medley::worker {

absl::Status AverageReplicas(BlockCompute& block, int replicas, OptimizerKind kind, std::vector<float>& buffer,
                             absl::FunctionRef<absl::Status(std::span<float>)> sum) {
  std::vector<DenseValues> newest;
  const std::vector<DenseParameter> parameters = block.Parameters();
  for (const DensePart part : {DensePart::kWeights, DensePart::kState}) {
    for (size_t p = 0; p < parameters.size(); ++p)
      newest.emplace_back(block, p, parameters[p], part, StateFloats(kind));
  }
  buffer.clear();
  std::vector<float> read;  // of a parameter that is not in the host's memory
  for (const DenseValues& values : newest) {
    MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> all, values.Read(0, values.size(), read));
    buffer.insert(buffer.end(), all.begin(), all.end());
  }
  MEDLEY_RETURN_IF_ERROR(sum(buffer));
  for (float& value : buffer) value /= static_cast<float>(replicas);
  std::span<const float> left = buffer;
  for (const DenseValues& values : newest) {
    MEDLEY_RETURN_IF_ERROR(values.Store(0, left.first(values.size())));
    left = left.subspan(values.size());
  }
  return block.KeepAgreed();
}

}  // namespace medley::worker
