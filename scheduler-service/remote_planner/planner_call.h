// One call of a planner process: its candidates go to a reader, and whatever goes wrong becomes a sentence.
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>

#include "common/model/forward.h"
#include "scheduler-service/remote_planner/candidates.h"
#include "scheduler-service/remote_planner/config.h"

namespace medley::sched {

class CandidateReader;

// Calls of one planner at the same time; further requests get the own plan.
inline constexpr int kMaxCallsOfRemotePlanner = 8;

class PlannerCall {
 public:
  // Reads the CA's certificates. The process need not run yet. Errors: those of base::ReadFile.
  static absl::StatusOr<std::unique_ptr<PlannerCall>> Make(RemotePlannerConfig config);
  ~PlannerCall();

  const RemotePlannerConfig& config() const { return config_; }
  // Asks for plans of a complete request, and ends after `seconds` or when `stop` is requested. Returns a sentence
  // without its end if the call did not end in order or brought nothing that can be used; else nothing.
  std::string Ask(const model::PlanRequest& request, uint64_t seed, double seconds, const std::stop_token& stop,
                  CandidateReader& candidates);

 private:
  class Channel;
  PlannerCall(RemotePlannerConfig config, std::unique_ptr<Channel> channel);
  std::string Named() const;
  absl::StatusOr<std::string> Token() const;

  const RemotePlannerConfig config_;
  const std::unique_ptr<Channel> channel_;
  std::atomic<int> calls_{0};
};

}  // namespace medley::sched
