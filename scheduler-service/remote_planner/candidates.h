// The candidates of one call to a planner that is not trusted: reads, checks and scores each of them, and keeps the
// best: the cheapest by the cost model that meets all constraints, or the one with the fewest seconds of a step by the
// simulator.
//
// Messages are bounded by what rpc::Decode accepts, and their number by Enough(). Not thread-safe; the problem must
// outlive it. Does no I/O.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "common/model/execution_plan.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/provision/exact.h"

namespace medley::planner::v1 {
class SolveResponse;
}

namespace medley::sched {

class CandidateReader {
 public:
  static constexpr int kMost = 10'000;
  static constexpr int kMostRefused = 100;

  virtual ~CandidateReader() = default;
  // Takes the bytes of one SolveResponse. Returns true if it is the planner's last message.
  bool Take(std::string_view bytes);
  // True when no further messages should be read: kMost candidates, or kMostRefused that cannot be used.
  bool Enough() const { return taken_ >= kMost || refused_ >= kMostRefused; }

  virtual bool usable() const = 0;                // a candidate can be used
  int taken() const { return taken_; }            // messages with a candidate, or that cannot be read
  int refused() const { return refused_; }        // of them: malformed ones
  int infeasible() const { return infeasible_; }  // of them: well formed, but violating a constraint
  // Why the first of the refused ones cannot be used; at most 200 printable characters.
  const std::string& first_refusal() const { return first_refusal_; }

 protected:
  void CountInfeasible() { ++infeasible_; }

 private:
  // Errors: InvalidArgument for a candidate that cannot be used.
  virtual absl::Status Score(const planner::v1::SolveResponse& response) = 0;

  int taken_ = 0;
  int refused_ = 0;
  int infeasible_ = 0;
  std::string first_refusal_;
};

class Candidates final : public CandidateReader {
 public:
  explicit Candidates(const Problem& problem) : problem_(problem) {}

  bool usable() const override { return best_.has_value(); }
  // The cheapest candidate that meets all constraints.
  const std::optional<Provisioned>& best() const { return best_; }
  // The greatest lower bound that the planner has claimed, in USD; 0: none.
  double claimed_lower_bound() const { return claimed_lower_bound_; }

 private:
  absl::Status Score(const planner::v1::SolveResponse& response) override;

  const Problem& problem_;
  std::optional<Provisioned> best_;
  double claimed_lower_bound_ = 0;
};

class DeviceCandidates final : public CandidateReader {
 public:
  // The question must outlive it.
  DeviceCandidates(const Question& question, std::stop_token stop)
      : problem_(question.devices()), judge_(MakeSimulator(question, std::move(stop))) {}

  bool usable() const override { return best_.has_value(); }
  // The fastest candidate, on devices as the cluster has them.
  const std::optional<model::ExecutionPlan>& best() const { return best_; }
  double seconds() const { return seconds_; }
  int64_t simulated() const { return judge_->judged(); }

 private:
  absl::Status Score(const planner::v1::SolveResponse& response) override;

  const DeviceProblem& problem_;
  const std::unique_ptr<Judge> judge_;
  std::optional<model::ExecutionPlan> best_;
  double seconds_ = kForever;
};

// Text of another process for an answer or a log: other characters than printable ASCII become '?', and what exceeds
// 200 characters is cut off.
std::string Printable(std::string_view text);

}  // namespace medley::sched
