// The role of an agent: a member like a trainer, which runs a program instead of computing. Role documents the
// functions.
//
//   Prepare   the agents of a generation learn where rank 0 will be; the program of the one before trains on. On a unit
//             on which none runs the program is started, and held after its imports (ahead_run.h)
//   Switch    the program saves its state (ProgramRun::Save) and is ended: all have answered before the first lease
//   Train     the first lease starts the program, or lets it go on; a step is applied when the program has reported it
//   Halt      the program is ended; this member then holds nothing, because what was saved is the program's own
//
// Only the agent of unit 0 counts steps, where programs report them (rank 0 does); the others say of each leased step
// that it is applied, as long as their processes run. So the job's progress is that of unit 0, and a step is committed
// only once. The last step is applied when all processes of every unit have ended with 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/trainer/role.h"

namespace medley::worker {

struct AgentContext {
  const model::ProgramSpec* program = nullptr;
  int processes = 1;                     // of this unit
  std::string run_id;                    // of the job
  std::string ip;                        // of this unit
  std::vector<std::string> environment;  // of this process: "NAME=value"
  SessionOptions session;                // for the rendezvous store
  base::Clock* clock = nullptr;
};

class AgentRole final : public Role {
 public:
  // The objects that `context` points to must outlive it.
  AgentRole(AgentContext context, Send send);
  ~AgentRole() override;  // ends the program

  Held held() const override;
  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const job::v1::Prepare& order,
                                                              std::stop_token stop) override;
  absl::StatusOr<job::v1::Ready> Switch(const job::v1::Switch& order,
                                        std::shared_ptr<PreparedGeneration> next) override;
  absl::Status Train(int64_t generation, const job::v1::StepLease& lease, const job::v1::StepLease* ahead) override;
  absl::Status Drain(const job::v1::Drain& order) override;
  absl::Status Checkpoint(const job::v1::Checkpoint& order,
                          std::function<void(absl::StatusOr<job::v1::Checkpointed>)> done) override;
  absl::StatusOr<job::v1::Evaluated> Evaluate(const job::v1::Evaluate& order) override;
  absl::StatusOr<double> Probe(const job::v1::Probe& order) override;
  void Abort() override;
  job::v1::Halted Halt(int64_t generation) override;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
