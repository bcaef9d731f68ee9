#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {

// The root adds in rank order to its own values. Every other rank gets the sum from the root itself.
absl::Status SumCentralized(Messages& messages, std::span<float> values, int root) {
  if (messages.rank() != root) {
    MEDLEY_RETURN_IF_ERROR(messages.SendValues(root, values));
    return messages.ReceiveValues(root, values);
  }
  const std::span<float> other = messages.Scratch(values.size());
  for (int from = 0; from < messages.size(); ++from) {
    if (from == root) continue;
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveValues(from, other));
    messages.Combine(values, other);
  }
  for (int to = 0; to < messages.size(); ++to) {
    if (to != root) MEDLEY_RETURN_IF_ERROR(messages.SendValues(to, values));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
