// What a member does with the coordinator's orders; how they arrive is Member's business.
//
// Called by Member's worker thread, one order at a time, unless said otherwise.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/trainer/session.h"

namespace medley::worker {

// The next generation, built and connected; a role derives from it.
class PreparedGeneration {
 public:
  virtual ~PreparedGeneration() = default;
  virtual int64_t generation() const = 0;
  virtual job::v1::Warmed warmed() const = 0;
  // Any thread: wakes whatever waits in it, for good.
  virtual void Abort() = 0;
};

class Role {
 public:
  using Send = std::function<void(job::v1::SessionRequest)>;

  virtual ~Role() = default;
  // Any thread.
  virtual Held held() const = 0;
  // Own thread, beside everything else; also several at once (a cancelled one may take a while to end).
  virtual absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const job::v1::Prepare& order,
                                                                      std::stop_token stop) = 0;
  virtual absl::StatusOr<job::v1::Ready> Switch(const job::v1::Switch& order,
                                                std::shared_ptr<PreparedGeneration> next) = 0;
  // `ahead`: the lease after it, if it has come already. Reports Progress itself.
  virtual absl::Status Train(int64_t generation, const job::v1::StepLease& lease, const job::v1::StepLease* ahead) = 0;
  // Copies the state, then calls `done` from any thread when the files are on disk.
  virtual absl::Status Checkpoint(const job::v1::Checkpoint& order,
                                  std::function<void(absl::StatusOr<job::v1::Checkpointed>)> done) = 0;
  virtual absl::StatusOr<job::v1::Evaluated> Evaluate(const job::v1::Evaluate& order) = 0;
  // Any thread: running orders end soon with an error, and no step of the running generations starts any more.
  virtual void Abort() = 0;
  // After Abort: stands in `generation` again when a newer one has had no lease.
  virtual job::v1::Halted Halt(int64_t generation) = 0;
};

}  // namespace medley::worker
