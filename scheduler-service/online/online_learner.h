// Trains the policies of rl-lstm on measurements of running jobs (HeterPS, section 5.2: "within the
// distributed training process ... with the real throughput").
//
//   learner.Observe(observation);            // after every window that a job measured
//   learner.Resolve(request);                // planner.policy.name -> its bytes, before planning
//
// There is one policy per tenant and model; a model is identified by its layers, not by prices. So what one
// tenant reports trains no policy of another, and no tenant reads or displaces the policies of others. An observation
// is a schedule with its measured cost in USD per sample. It enters the replay buffer (replay_buffer.h), and the policy
// takes some gradient steps on two objectives:
// 1. Replay of all schedules in the buffer. The weight of a schedule is its advantage (how much cheaper it is than the
//    mean of the buffer) times the clipped importance ratio (its probability now / when it was measured).
// 2. REINFORCE on schedules drawn from the policy. Their cost is the measured one if the schedule is in the
//    buffer, else the cost model's, corrected with the measurements of its types.
// Does no I/O. Memory is bounded: of the tenant with the most models, the model whose last observation is the oldest is
// dropped.
//
// Thread-safe. Observe takes tens of milliseconds; calls run one at a time, and the other methods do not wait for them.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/model/forward.h"

namespace medley::sched {

class PolicyTrainer;
class Problem;

class OnlineLearner {
 public:
  struct Options {
    uint64_t seed = 1;
    size_t most_models = 32;
    size_t most_schedules = 256;  // replay buffer size per model
    int first_rounds = 150;       // training rounds for the first observation of a model
    int rounds = 15;              // training rounds for every further observation
    int hidden_units = 32;
  };
  explicit OnlineLearner(const Options& options);
  ~OnlineLearner();

  // Why an observation trains no policy.
  struct Refusal {
    std::string reason;  // one of kRefusals
    absl::Status status;
  };
  static constexpr std::array<std::string_view, 5> kRefusals = {"invalid", "no_resources", "no_price", "unknown_type",
                                                                "too_many_layers"};
  // Nullopt: Observe takes it. Takes microseconds.
  static std::optional<Refusal> FindRefusal(const model::JobObservation& observation);

  // Trains on an observation. The request's prices must be filled in. If the request contains a policy of the same
  // shape, a new policy starts from it. Errors: those of FindRefusal: InvalidArgument; ResourceExhausted for a model
  // with more than 1024 layers.
  // `tenant`: who reports it, as authenticated; empty: all callers are one.
  absl::Status Observe(const model::JobObservation& observation, std::string_view tenant = "");

  // The name of the policy for the request's model: "rl-lstm/NAME/0123456789abcdef".
  static std::string NameOf(const model::PlanRequest& request);
  // Replaces planner.policy.name by the bytes of the tenant's policy; "online" means NameOf(request). Does
  // nothing if the request has no name, or already has a policy. Errors: NotFound listing the tenant's names.
  absl::Status Resolve(model::PlanRequest& request, std::string_view tenant = "") const;
  // Sets the bytes of the tenant's policy for the request's model, if there is one that knows all types of the request.
  void WarmStart(model::PlanRequest& request, std::string_view tenant = "") const;
  absl::StatusOr<std::string> Policy(std::string_view name, std::string_view tenant = "") const;
  std::vector<std::string> Names(std::string_view tenant = "") const;

  // All policies with their replay buffers, as bytes. Load replaces the current state; on an error (InvalidArgument) it
  // changes nothing.
  std::string Save() const;
  absl::Status Load(std::string_view bytes);

 private:
  struct Snapshot {  // the published state of a trainer, for readers
    std::string policy;
    std::string bytes;  // PolicyTrainer::ToBytes
  };
  std::unique_ptr<PolicyTrainer> NewTrainer(const Problem& problem) const;
  void Publish(const std::string& key, const PolicyTrainer& trainer);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(learning_);

  const Options options_;
  base::Mutex learning_;  // lock order: learning_ before reading_
  // Keys here and below: a hash of the tenant (empty: none), '@', and the name. Files of versions that knew no tenants
  // have names only.
  std::map<std::string, std::unique_ptr<PolicyTrainer>> trainers_ ABSL_GUARDED_BY(learning_);
  int64_t observations_ ABSL_GUARDED_BY(learning_) = 0;
  mutable base::Mutex reading_;
  std::map<std::string, Snapshot, std::less<>> published_ ABSL_GUARDED_BY(reading_);
};

}  // namespace medley::sched
