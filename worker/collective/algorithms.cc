#include "worker/collective/algorithms.h"

#include <algorithm>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using model::AllreduceAlgorithm;

void Add(std::span<float> to, std::span<const float> values) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += values[i];
}

// In the first n-1 rounds rank r adds chunk after chunk, until it has the whole sum of chunk r+1. Then the sums go
// round.
absl::Status Ring(Messages& messages, std::span<float> values) {
  const int n = messages.size(), rank = messages.rank();
  const auto chunk = [&](int i) {
    const auto index = static_cast<size_t>(((i % n) + n) % n), count = static_cast<size_t>(n);
    const size_t first = values.size() * index / count;
    return values.subspan(first, values.size() * (index + 1) / count - first);
  };
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  std::vector<float> received(values.size() / static_cast<size_t>(n) + 1);
  for (int round = 0; round < n - 1; ++round) {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(next, std::as_bytes(chunk(rank - round))));
    const std::span<float> mine = chunk(rank - round - 1);
    const std::span<float> other = std::span(received).first(mine.size());
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(previous, std::as_writable_bytes(other)));
    Add(mine, other);
  }
  for (int round = 0; round < n - 1; ++round) {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(next, std::as_bytes(chunk(rank + 1 - round))));
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(previous, std::as_writable_bytes(chunk(rank - round))));
  }
  return absl::OkStatus();
}

// Both ranks of a pair add the values of the smaller rank and those of the larger one, so they get the same bits.
absl::Status RecursiveDoubling(Messages& messages, std::span<float> values) {
  const int n = messages.size(), rank = messages.rank();
  int power = 1;
  while (power * 2 <= n) power *= 2;
  std::vector<float> other(values.size());
  if (rank >= power) {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(rank - power, std::as_bytes(values)));
    return messages.ReceiveFrom(rank - power, std::as_writable_bytes(values));
  }
  if (rank + power < n) {
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(rank + power, std::as_writable_bytes(std::span(other))));
    Add(values, other);
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int peer = rank ^ distance;
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(peer, std::as_bytes(values)));
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(peer, std::as_writable_bytes(std::span(other))));
    Add(values, other);  // addition of two numbers commutes
  }
  if (rank + power < n) MEDLEY_RETURN_IF_ERROR(messages.SendTo(rank + power, std::as_bytes(values)));
  return absl::OkStatus();
}

absl::Status Centralized(Messages& messages, std::span<float> values) {
  if (messages.rank() == 0) {
    std::vector<float> other(values.size());
    for (int from = 1; from < messages.size(); ++from) {
      MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(from, std::as_writable_bytes(std::span(other))));
      Add(values, other);
    }
  } else {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(0, std::as_bytes(values)));
  }
  return BroadcastOver(messages, std::as_writable_bytes(values), 0);
}

absl::Status Linear(Messages& messages, std::span<float> values) {
  const int rank = messages.rank(), last = messages.size() - 1;
  if (rank > 0) {
    std::vector<float> sum(values.size());
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(rank - 1, std::as_writable_bytes(std::span(sum))));
    Add(values, sum);
  }
  if (rank < last) {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo(rank + 1, std::as_bytes(values)));
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom(rank + 1, std::as_writable_bytes(values)));
  }
  return rank > 0 ? messages.SendTo(rank - 1, std::as_bytes(values)) : absl::OkStatus();
}

}  // namespace

absl::Status SumOver(Messages& messages, std::span<float> values, AllreduceAlgorithm algorithm) {
  if (messages.size() == 1 || values.empty()) return absl::OkStatus();
  switch (algorithm) {
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing:
      return Ring(messages, values);
    case AllreduceAlgorithm::kRecursiveDoubling:
      return RecursiveDoubling(messages, values);
    case AllreduceAlgorithm::kCentralized:
      return Centralized(messages, values);
    case AllreduceAlgorithm::kLinear:
      return Linear(messages, values);
  }
  return absl::OkStatus();
}

// A binomial tree: in each round, every rank that has the bytes sends them to one that has not.
absl::Status BroadcastOver(Messages& messages, std::span<std::byte> bytes, int root) {
  const int n = messages.size(), own = (messages.rank() - root + n) % n;  // the root is 0
  if (n == 1 || bytes.empty()) return absl::OkStatus();
  int distance = 1;
  while (distance <= own) distance *= 2;  // received from the rank without its highest bit
  if (own > 0) MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom((own - distance / 2 + root) % n, bytes));
  for (; own + distance < n; distance *= 2) {
    MEDLEY_RETURN_IF_ERROR(messages.SendTo((own + distance + root) % n, bytes));
  }
  return absl::OkStatus();
}

// Dissemination (Hensgen, Finkel, Manber 1988): after round k every rank has heard of 2^(k+1) others.
absl::Status BarrierOver(Messages& messages) {
  const int n = messages.size(), rank = messages.rank();
  for (int distance = 1; distance < n; distance *= 2) {
    std::byte token{1};
    MEDLEY_RETURN_IF_ERROR(messages.SendTo((rank + distance) % n, {&token, 1}));
    MEDLEY_RETURN_IF_ERROR(messages.ReceiveFrom((rank + n - distance) % n, {&token, 1}));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
