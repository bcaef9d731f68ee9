// Decides which member sends which operation's state to which other at a switch of generation. Pure.
//
// Every member of the transfer (sources and peers) publishes which operations it holds of the source generation and
// which it needs, reads those of all others, and computes the same moves.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

struct Holding {
  std::vector<int> holds;  // operations, ascending
  std::vector<int> needs;  // operations of its new place that it does not hold
  bool operator==(const Holding&) const = default;
};

// Returns for example "0,1;2,3": `holds`, then `needs`.
std::string FormatHolding(const Holding& holding);
absl::StatusOr<Holding> ParseHolding(std::string_view text);

struct Move {
  int operation = 0;
  int from = 0;  // `from` and `to` are indices of the members given to PlanMoves
  int to = 0;
  bool operator==(const Move&) const = default;
};

// The first holder of an operation sends it. The moves are ordered by operation, then by receiver.
// Errors: FailedPrecondition when no member holds an operation that another one needs.
absl::StatusOr<std::vector<Move>> PlanMoves(std::span<const Holding> members);

}  // namespace medley::worker
