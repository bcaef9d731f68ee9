// The roles of medley-worker as functions. Each builds its parts, runs until the end and returns the exit code.
//
// 0: done. 1: failed, a restart may help. 2: failed for good (configuration, data). main() turns an error status into
// one of these codes and prints one sentence.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>

#include "common/base/clock.h"
#include "worker/app/environment.h"
#include "worker/model/make_block.h"

namespace medley::worker {

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

absl::StatusOr<int> RunCoordinatorRole(const Environment& env, base::Clock& clock, const Signals& signals);
// `make_block`: computes the operations of the model.
absl::StatusOr<int> RunTrainerRole(const Environment& env, BlockMaker make_block, base::Clock& clock,
                                   const Signals& signals);
absl::StatusOr<int> RunServerRole(const Environment& env, base::Clock& clock, const Signals& signals);
absl::StatusOr<int> RunProfilerRole(const Environment& env, BlockMaker make_block, base::Clock& clock,
                                    const Signals& signals);
// Serves the finished model of MEDLEY_CHECKPOINT_DIR until nobody has asked for 10 minutes. Needs no job's spec.
absl::StatusOr<int> RunFilesRole(const GetVariable& get, base::Clock& clock, const Signals& signals);

}  // namespace medley::worker
