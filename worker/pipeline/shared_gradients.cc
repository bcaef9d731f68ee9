#include "worker/pipeline/shared_gradients.h"

#include <algorithm>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {

absl::Status SumShared(const std::string& name, std::span<const SharedHolder> holders,
                       absl::FunctionRef<absl::Status(std::span<float>)> sum) {
  std::vector<std::span<float>> gradients;
  std::vector<float> total;
  for (const SharedHolder& holder : holders) {
    holder.block->Gradients();  // completes them
    for (const DenseParameter& parameter : holder.block->Parameters()) {
      if (parameter.spec.name != name) continue;
      gradients.push_back(parameter.gradient);
      total.resize(parameter.gradient.size(), 0);
      if (!holder.counts) continue;
      for (size_t i = 0; i < total.size(); ++i) total[i] += parameter.gradient[i];
    }
  }
  if (gradients.empty()) return base::Internal("no block of this device has the shared parameter '{}'", name);
  MEDLEY_RETURN_IF_ERROR(sum(total));
  for (const std::span<float> gradient : gradients) std::ranges::copy(total, gradient.begin());
  return absl::OkStatus();
}

}  // namespace medley::worker
