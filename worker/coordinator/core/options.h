// The coordinator's configuration: facts about its job, and timeouts. An immutable value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "worker/coordinator/core/best_model.h"
#include "worker/coordinator/core/learning_curve.h"
#include "worker/coordinator/core/standbys.h"

namespace medley::worker {

// The options of the state machine. After a timeout the job recovers or fails (retryable); it never hangs.
// evaluate_timeout begins again with every progress of a member.
struct CoreOptions {
  std::string job_uid;
  int64_t term = 0;  // of this coordinator (docs/adr/0015-the-coordinator-moves.md)
  // A digest of what the job trains: its model, schema, data and training parameters. Empty: unknown. A coordinator
  // continues only a journal with its own digest.
  std::string job_digest;
  // Plans are compiled for it before they are accepted. Null: unknown, plans are checked without it.
  std::shared_ptr<const model::Model> model;
  std::string train_data;  // where the data, and a model's file, are, for messages
  std::string test_data;
  std::string validation_data;
  int32_t epochs = 1;      // passes over the data
  int32_t batch_size = 1;  // samples per step
  CurveOptions evaluation;
  SelectionOptions selection;
  bool is_program = false;       // the members are agents: a switch lasts until the program's first step
  std::vector<int> legal_units;  // numbers of trainers that can run a plan; empty: any
  bool weighs_classes = false;   // spec.training.classWeights shift the probabilities of a binary model
  int lease_ahead = 8;           // steps leased beyond the committed one, >= 1
  bool checkpoints = false;      // whether there is a folder for checkpoints
  base::nanoseconds checkpoint_interval = base::seconds(60);
  bool exports = false;  // whether the shell writes the finished model; needs checkpoints

  base::nanoseconds member_wait = base::seconds(600);    // for members that a stage, a shard or the first start needs
  base::nanoseconds reconnect_wait = base::seconds(15);  // for survivors, after the coordinator itself restarted
  base::nanoseconds adopt_wait = base::seconds(5);       // for all members, after another coordinator handed over
  base::nanoseconds fold_in_wait = base::seconds(3);     // for more members to return before those connected are used
  base::nanoseconds prepare_timeout = base::seconds(300);
  base::nanoseconds switch_timeout = base::seconds(120);
  base::nanoseconds halt_timeout = base::seconds(15);
  base::nanoseconds checkpoint_timeout = base::seconds(300);
  // For the shell to find or complete a checkpoint, or to write the finished model. All of them read whole checkpoints,
  // so this is no measure of a slow call.
  base::nanoseconds volume_timeout = base::seconds(900);
  base::nanoseconds evaluate_timeout = base::seconds(600);
  base::nanoseconds stall_timeout = base::seconds(120);  // without a commit while steps are leased
  base::nanoseconds slow_for = base::seconds(5);         // a member is slow without a break, before it is left out
  StandbyOptions standby;
  base::nanoseconds retry_wait = base::seconds(1);  // before another preparation after a failure; doubles to 30 s
  // The end of the job is saved again after waits of retry_wait, doubled to 30 s, for this long and more than
  // max_fruitless times.
  base::nanoseconds final_save_wait = base::seconds(600);
  int max_fruitless = 5;  // most faults in a row without a newly committed step (RecoveryBudget)
  int max_searches = 5;   // most failed searches for a checkpoint in a row
};

}  // namespace medley::worker
