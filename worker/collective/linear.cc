#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {

absl::Status SumLinearly(Messages& messages, std::span<float> values) {
  const int rank = messages.rank(), last = messages.size() - 1;
  if (rank > 0) {
    const std::span<float> sum = messages.Scratch(values.size());
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveValues(rank - 1, sum));
    messages.Combine(values, sum);
  }
  if (rank < last) {
    MEDLEY_RETURN_IF_ERROR(messages.SendValues(rank + 1, values));
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveValues(rank + 1, values));
  }
  return rank > 0 ? messages.SendValues(rank - 1, values) : absl::OkStatus();
}

}  // namespace medley::worker
