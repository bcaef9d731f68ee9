// Policies of rl-lstm and rl-rnn that go on learning from running jobs: rewards from reality (HeterPS, section 5.2:
// "within the distributed training process ... with the real throughput").
//
//   learner.Observe(observation);            // after every window that a job measured
//   learner.Resolve(request);                // planner.recurrent.policyName -> its bytes, before planning
//
// One policy a planner and model (its layers, not its prices). An observation is a schedule with its measured USD a
// sample; it is kept, and the policy takes some gradient steps: (1) replay of all kept schedules, each weighted by how
// much cheaper than their mean it is, times p now / p then, clipped; (2) REINFORCE on schedules drawn from the policy,
// with the measured cost where there is one and else the cost model's, corrected by what measurements say of its types
// (measured.h). Pure but for memory, which is bounded: the model observed longest ago is dropped.
//
// Thread-safe; Observe takes tens of milliseconds and only one runs at a time, reads do not wait for it.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/model/observation.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

class PolicyTrainer;

class OnlineLearner {
 public:
  struct Options {
    uint64_t seed = 1;
    size_t most_models = 32;
    size_t most_schedules = 256;  // of a model
    int first_rounds = 150;       // on the cost model, when a model is seen first
    int rounds = 15;              // an observation
    int hidden_units = 32;
  };
  explicit OnlineLearner(const Options& options);
  ~OnlineLearner();

  // Learns. The request's prices must be filled in; its planner names the kind of policy (rl-rnn, else rl-lstm); a
  // policy in it that fits is where a new one begins. Errors: InvalidArgument (malformed, without money or price);
  // ResourceExhausted for a model of more layers than are learnt (1024).
  absl::Status Observe(const model::JobObservation& observation);

  // The name of the policy for the request's planner and model: "rl-lstm/NAME/0123456789abcdef".
  static std::string NameOf(const model::PlanRequest& request);
  // Replaces planner.recurrent.policyName by the policy's bytes; "online" names NameOf(request). Does nothing without
  // a name or with bytes. NotFound when there is none: it lists those there are.
  absl::Status Resolve(model::PlanRequest& request) const;
  absl::StatusOr<std::string> Policy(std::string_view name) const;
  std::vector<std::string> Names() const;

  // Everything learnt, as bytes; Load replaces what is there, or changes nothing: InvalidArgument saying what is wrong.
  std::string Save() const;
  absl::Status Load(std::string_view bytes);

 private:
  struct Snapshot {  // what readers see of a trainer
    std::string policy;
    std::string bytes;  // the whole trainer
  };
  std::unique_ptr<PolicyTrainer> NewTrainer(const Problem& problem) const;
  void Publish(const std::string& name, const PolicyTrainer& trainer);

  const Options options_;
  base::Mutex learning_;  // held first
  std::map<std::string, std::unique_ptr<PolicyTrainer>> trainers_ ABSL_GUARDED_BY(learning_);
  int64_t observations_ ABSL_GUARDED_BY(learning_) = 0;
  mutable base::Mutex reading_;
  std::map<std::string, Snapshot, std::less<>> published_ ABSL_GUARDED_BY(reading_);
};

}  // namespace medley::sched
