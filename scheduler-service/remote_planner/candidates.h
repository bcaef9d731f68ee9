// The candidates of one call to a planner that is not trusted: reads, checks and scores each of them with the cost
// model, and keeps the cheapest that meets all constraints.
//
// Messages are bounded by what rpc::Decode accepts, and their number by Enough(). Not thread-safe; the problem must
// outlive it. Does no I/O.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "scheduler-service/provision/exact.h"

namespace medley::planner::v1 {
class SolveResponse;
}

namespace medley::sched {

class Candidates {
 public:
  static constexpr int kMost = 10'000;
  static constexpr int kMostRefused = 100;

  explicit Candidates(const Problem& problem) : problem_(problem) {}

  // Takes the bytes of one SolveResponse. Returns true if it is the planner's last message.
  bool Take(std::string_view bytes);
  // True when no further messages should be read: kMost candidates, or kMostRefused that cannot be used.
  bool Enough() const { return taken_ >= kMost || refused_ >= kMostRefused; }

  // The cheapest candidate that meets all constraints.
  const std::optional<Provisioned>& best() const { return best_; }
  int taken() const { return taken_; }            // messages with a candidate, or that cannot be read
  int refused() const { return refused_; }        // of them: malformed ones
  int infeasible() const { return infeasible_; }  // of them: well formed, but violating a constraint
  // Why the first of the refused ones cannot be used; at most 200 printable characters.
  const std::string& first_refusal() const { return first_refusal_; }
  // The greatest lower bound that the planner has claimed, in USD; 0: none.
  double claimed_lower_bound() const { return claimed_lower_bound_; }

 private:
  // Errors: InvalidArgument for a candidate that cannot be used.
  absl::Status Score(const planner::v1::SolveResponse& response);

  const Problem& problem_;
  std::optional<Provisioned> best_;
  int taken_ = 0;
  int refused_ = 0;
  int infeasible_ = 0;
  std::string first_refusal_;
  double claimed_lower_bound_ = 0;
};

// Text of another process for an answer or a log: other characters than printable ASCII become '?', and what exceeds
// 200 characters is cut off.
std::string Printable(std::string_view text);

}  // namespace medley::sched
