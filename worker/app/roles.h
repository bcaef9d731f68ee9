// The roles of medley-worker as functions: they build their parts, run until the end, and answer
// the exit code.
//
// 0: done. 1: failed, a restart may help. 2: failed for good (configuration, data). A status is
// turned into one of these and one sentence by main.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>

#include "common/base/clock.h"
#include "worker/app/environment.h"

namespace medley::worker {

// SIGTERM and SIGINT as a stop token; blocks them in every thread that starts later. One a process,
// first thing in main.
class Signals {
 public:
  Signals();
  ~Signals();
  std::stop_token stop() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

absl::StatusOr<int> RunCoordinatorRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunTrainerRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunServerRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunProfilerRole(const Environment& env, base::Clock& clock, const Signals& signals);

}  // namespace medley::worker
