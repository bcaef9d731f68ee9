#include "worker/collective/algorithms.h"

#include "common/base/status.h"

namespace medley::worker {

void AddTo(std::span<float> to, std::span<const float> values) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += values[i];
}

absl::Status SumOver(Messages& messages, std::span<float> values, model::AllreduceAlgorithm algorithm, int root) {
  using model::AllreduceAlgorithm;
  if (messages.size() == 1 || values.empty()) return absl::OkStatus();
  switch (algorithm) {
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing:
      return SumByRing(messages, values);
    case AllreduceAlgorithm::kRecursiveDoubling:
      return SumByRecursiveDoubling(messages, values);
    case AllreduceAlgorithm::kCentralized:
      return SumCentralized(messages, values, root);
    case AllreduceAlgorithm::kLinear:
      return SumLinearly(messages, values);
  }
  return absl::OkStatus();
}

// In each round, every rank that has the bytes sends them to one that has not.
absl::Status BroadcastOver(Messages& messages, std::span<std::byte> bytes, int root) {
  const int n = messages.size(), own = (messages.rank() - root + n) % n;  // the root is 0
  if (n == 1 || bytes.empty()) return absl::OkStatus();
  int distance = 1;
  while (distance <= own) distance *= 2;  // received from the rank without its highest bit
  if (own > 0) MEDLEY_RETURN_IF_ERROR(messages.Receive((own - distance / 2 + root) % n, bytes));
  for (; own + distance < n; distance *= 2) {
    MEDLEY_RETURN_IF_ERROR(messages.Send((own + distance + root) % n, bytes));
  }
  return absl::OkStatus();
}

// Dissemination (Hensgen, Finkel, Manber 1988): after round k every rank has heard of 2^(k+1) others.
absl::Status BarrierOver(Messages& messages) {
  const int n = messages.size(), rank = messages.rank();
  for (int distance = 1; distance < n; distance *= 2) {
    const std::byte out{1};
    std::byte in{};
    MEDLEY_RETURN_IF_ERROR(messages.Exchange((rank + distance) % n, {&out, 1}, (rank + n - distance) % n, {&in, 1}));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
