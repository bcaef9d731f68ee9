#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {

// In round k the ranks whose numbers differ in bit k exchange their sums. Both add the same two numbers, so they get
// the same bits. Where n is no power of two, the ranks beyond it give their values to another before, and get the sum
// after.
absl::Status SumByRecursiveDoubling(Messages& messages, std::span<float> values) {
  const int n = messages.size(), rank = messages.rank();
  int power = 1;
  while (power * 2 <= n) power *= 2;
  if (rank >= power) {
    MEDLEY_RETURN_IF_ERROR(messages.SendValues(rank - power, values));
    return messages.ReceiveValues(rank - power, values);
  }
  const std::span<float> other = messages.Scratch(values.size());
  if (rank + power < n) {
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveValues(rank + power, other));
    messages.Combine(values, other);
  }
  for (int distance = 1; distance < power; distance *= 2) {
    MEDLEY_RETURN_IF_ERROR(messages.ExchangeValues(rank ^ distance, values, rank ^ distance, other));
    messages.Combine(values, other);
  }
  return rank + power < n ? messages.SendValues(rank + power, values) : absl::OkStatus();
}

}  // namespace medley::worker
