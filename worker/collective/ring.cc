#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {
namespace {

// The part of the rank `index`, which may be counted round the ring in either direction.
std::span<float> PartAt(std::span<float> values, int index, int size) {
  const Part part = PartOf(values.size(), ((index % size) + size) % size, size);
  return values.subspan(part.first, part.count);
}

}  // namespace

Part PartOf(size_t count, int rank, int size) {
  const auto index = static_cast<size_t>(rank), parts = static_cast<size_t>(size);
  const size_t whole = count / parts, larger = count % parts;  // the first `larger` parts have one value more
  return {index * whole + std::min(index, larger), whole + (index < larger ? 1 : 0)};
}

// In round k a rank adds to the part that it gives away in round k + 1; in the last round, to its own.
absl::Status ReduceScatter(Messages& messages, std::span<float> values) {
  const int n = messages.size(), rank = messages.rank();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  const std::span<float> received = messages.Scratch(PartOf(values.size(), 0, n).count);
  for (int round = 1; round < n; ++round) {
    const std::span<float> mine = PartAt(values, rank - round - 1, n);
    const std::span<float> other = received.first(mine.size());
    MEDLEY_RETURN_IF_ERROR(messages.ExchangeValues(next, PartAt(values, rank - round, n), previous, other));
    messages.Combine(mine, other);
  }
  return absl::OkStatus();
}

absl::Status AllGather(Messages& messages, std::span<float> values) {
  const int n = messages.size(), rank = messages.rank();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  for (int round = 0; round < n - 1; ++round) {
    MEDLEY_RETURN_IF_ERROR(
        messages.ExchangeValues(next, PartAt(values, rank - round, n), previous, PartAt(values, rank - round - 1, n)));
  }
  return absl::OkStatus();
}

absl::Status SumByRing(Messages& messages, std::span<float> values) {
  MEDLEY_RETURN_IF_ERROR(ReduceScatter(messages, values));
  return AllGather(messages, values);
}

}  // namespace medley::worker
