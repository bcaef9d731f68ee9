// Who sends which operation's state to whom when a generation follows another. Pure.
//
// Every member of the transfer (sources and peers) publishes what it holds of the source generation and what it needs, reads
// all the others', and computes the same moves.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

struct Holding {
  std::vector<int> holds;  // operations, ascending
  std::vector<int> needs;  // operations of the new place that it does not hold
  bool operator==(const Holding&) const = default;
};

// "0,1;2,3": holds, then needs.
std::string FormatHolding(const Holding& holding);
absl::StatusOr<Holding> ParseHolding(std::string_view text);

struct Move {
  int operation = 0;
  int from = 0;  // indices of the span given to PlanMoves
  int to = 0;
  bool operator==(const Move&) const = default;
};

// The source of an operation is its first holder. Ordered by operation, then by receiver.
// Errors: FailedPrecondition when nobody holds what somebody needs.
absl::StatusOr<std::vector<Move>> PlanMoves(std::span<const Holding> members);

}  // namespace medley::worker
