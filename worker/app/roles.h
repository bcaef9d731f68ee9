// The roles of medley-worker as functions. Each builds its parts, runs until the end and returns the exit code.
//
// 0: done. 1: failed, a restart may help. 2: failed for good (configuration, data). main() turns an error status into
// one of these codes and prints one sentence.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "worker/app/environment.h"
#include "worker/model/make_block.h"

namespace medley::worker {

class Member;
class Places;
class Role;

// How long a process goes on after SIGTERM, unless it is released or replaced before. Less than a pod's default
// termination grace period of 30 s.
inline constexpr base::seconds kStopNotice{25};

// Turns SIGTERM and SIGINT into a stop token. Blocks both signals in every thread that starts later, so main() creates
// it first; one per process.
class Signals {
 public:
  Signals();
  ~Signals();
  std::stop_token stop() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Lets the member carry out orders until the coordinator releases it, and returns its exit code. After SIGTERM the
// member asks to be released. It exits without a release only when kStopNotice is over, or when `stop` is requested.
absl::StatusOr<int> RunUntilReleased(Member& member, Role& role, const Signals& signals, std::stop_token stop);
absl::StatusOr<int> RunCoordinatorRole(const Environment& env, base::Clock& clock, const Signals& signals);
// `make_block`: computes the operations of the model.
// `places`: null when the job names nothing in an object store.
absl::StatusOr<int> RunTrainerRole(const Environment& env, Places* places, BlockMaker make_block, base::Clock& clock,
                                   const Signals& signals);
// A trainer and a profiler of a job with spec.program: they run it. `scratch`: an empty folder.
absl::StatusOr<int> RunAgentRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunProgramProfilerRole(const Environment& env, const std::string& scratch, base::Clock& clock,
                                           const Signals& signals);
absl::StatusOr<int> RunServerRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunProfilerRole(const Environment& env, BlockMaker make_block, base::Clock& clock,
                                    const Signals& signals);
// Serves the finished model of MEDLEY_CHECKPOINT_DIR until nobody has asked for 10 minutes. Needs no job's spec.
absl::StatusOr<int> RunFilesRole(const GetVariable& get, base::Clock& clock, const Signals& signals);

}  // namespace medley::worker
