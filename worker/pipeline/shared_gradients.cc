#include "worker/pipeline/shared_gradients.h"

#include <algorithm>
#include <vector>

#include "common/base/status.h"
#include "worker/pipeline/dense_values.h"

namespace medley::worker {

absl::Status SumShared(const std::string& name, std::span<const SharedHolder> holders,
                       absl::FunctionRef<absl::Status(std::span<float>)> sum) {
  std::vector<DenseValues> gradients;
  std::vector<float> total, buffer;
  for (const SharedHolder& holder : holders) {
    const std::vector<DenseParameter> parameters = holder.block->Parameters();
    if (!parameters.empty() && !parameters.front().gradient.empty()) holder.block->Gradients();  // completes them
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].spec.name != name) continue;
      const DenseValues& gradient =
          gradients.emplace_back(*holder.block, p, parameters[p], DensePart::kGradient, /*state_floats=*/0);
      total.resize(gradient.size(), 0);
      if (!holder.counts) continue;
      MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> own, gradient.Read(0, gradient.size(), buffer));
      for (size_t i = 0; i < total.size(); ++i) total[i] += own[i];
    }
  }
  if (gradients.empty()) return base::Internal("no block of this device has the shared parameter '{}'", name);
  MEDLEY_RETURN_IF_ERROR(sum(total));
  for (const DenseValues& gradient : gradients) MEDLEY_RETURN_IF_ERROR(gradient.Store(0, total));
  return absl::OkStatus();
}

}  // namespace medley::worker
