// What the coordinator is told about its job, and its patience. An immutable value.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace medley::worker {

// The state machine's part. Times are bounds of waits; a job that hits one fails (retryable) or recovers, never hangs.
struct CoreOptions {
  std::string job_uid;
  int32_t epochs = 1;        // of the data
  int32_t batch_size = 1;    // samples a step
  int lease_ahead = 8;       // steps leased beyond the committed one, >= 1
  bool checkpoints = false;  // a checkpoint root exists
  base::nanoseconds checkpoint_interval = base::seconds(60);
  std::string export_folder = "export";  // below the checkpoint root; unused without checkpoints

  base::nanoseconds member_wait = base::seconds(600);    // for members that a stage, a shard or a first start needs
  base::nanoseconds reconnect_wait = base::seconds(15);  // for survivors, after the coordinator's own restart
  base::nanoseconds fold_in_wait = base::seconds(3);     // for further returned members before those there are used
  base::nanoseconds prepare_timeout = base::seconds(300);
  base::nanoseconds switch_timeout = base::seconds(120);
  base::nanoseconds halt_timeout = base::seconds(15);
  base::nanoseconds checkpoint_timeout = base::seconds(300);
  base::nanoseconds evaluate_timeout = base::seconds(600);
  base::nanoseconds stall_timeout = base::seconds(120);  // leased steps, none committed
  base::nanoseconds retry_wait = base::seconds(1);       // before preparing again after a Fault; doubles to 30 s
  int max_fruitless = 5;  // recoveries or preparations in a row without a newly committed step
};

}  // namespace medley::worker
