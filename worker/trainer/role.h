// The interface of a member's role: how it carries out the coordinator's orders. Member receives the orders.
//
// Member's worker thread calls the functions, one order at a time, unless a comment says otherwise.
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

// A generation that has been built and connected but is not in force yet. Each role derives its own class.
class PreparedGeneration {
 public:
  virtual ~PreparedGeneration() = default;
  virtual int64_t generation() const = 0;
  virtual job::v1::Warmed warmed() const = 0;
  // Any thread. Ends all current and later waits of this generation.
  virtual void Abort() = 0;
};

class Role {
 public:
  using Send = std::function<void(job::v1::SessionRequest)>;

  virtual ~Role() = default;
  // Any thread.
  virtual Held held() const = 0;
  // Runs in a thread of its own, concurrently with all other calls; with another Prepare too, because a cancelled one
  // may take a while to end.
  virtual absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const job::v1::Prepare& order,
                                                                      std::stop_token stop) = 0;
  virtual absl::StatusOr<job::v1::Ready> Switch(const job::v1::Switch& order,
                                                std::shared_ptr<PreparedGeneration> next) = 0;
  // `ahead` is the next lease if it has been received, or null. Reports Progress itself, of a step before when the
  // schedule is asynchronous.
  virtual absl::Status Train(int64_t generation, const job::v1::StepLease& lease, const job::v1::StepLease* ahead) = 0;
  // Completes the open steps. Reports Progress itself.
  virtual absl::Status Drain(const job::v1::Drain& order) = 0;
  // Copies the state as soon as it contains the order's step, then calls `done` from any thread when the files are on
  // disk or could not be written; the role trains on meanwhile and in either case. Does not call it when the order was
  // given up.
  virtual absl::Status Checkpoint(const job::v1::Checkpoint& order,
                                  std::function<void(absl::StatusOr<job::v1::Checkpointed>)> done) = 0;
  virtual absl::StatusOr<job::v1::Evaluated> Evaluate(const job::v1::Evaluate& order) = 0;
  // Measures how long the computation of a step takes, without changing the state. Only for a role that stands by: it
  // holds a generation that is no longer in force. Errors: FailedPrecondition (it holds none), those of the
  // computation.
  virtual absl::StatusOr<double> Probe(const job::v1::Probe& order) = 0;
  // Any thread. Running orders end soon with an error, and the running generations start no further step.
  virtual void Abort() = 0;
  // Called after Abort. Returns to `generation` if a newer one has had no lease yet.
  virtual job::v1::Halted Halt(int64_t generation) = 0;
  // Called after an error. Not OK: this process can compute nothing more, and ends so that another one takes its place.
  virtual absl::Status CheckDevice() { return absl::OkStatus(); }
};

}  // namespace medley::worker
