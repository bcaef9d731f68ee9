// Intervals and limits of the life of a job. Values; the operator's command line and tests set them.
#pragma once

#include <chrono>

#include "common/base/clock.h"
#include "operator/builders/worker_env.h"
#include "operator/records/record_keys.h"

namespace medley::ops {

struct JobOptions {
  WorkerSettings worker;
  RecordKeys record_keys;
  // Two status writes are at least this far apart, unless a condition or the plan has changed.
  base::nanoseconds status_interval = base::seconds(10);
  // Interval between two looks at a training job whose observations report expected progress.
  base::nanoseconds progress_interval = base::seconds(5);
  // Interval between two passes without any event: for a job that is starting, switching or below its goal, ...
  base::nanoseconds recheck = base::seconds(30);
  // ... and for a job that trains as planned and reaches its goal.
  base::nanoseconds settled_recheck = std::chrono::minutes(5);
  base::nanoseconds goal_window = base::seconds(60);      // a job below its goal for this long is replanned
  base::nanoseconds schedule_window = base::seconds(60);  // a pod unschedulable, or a node not ready, for this long
  // A pod of a job that does not train yet may be refused by the kubelet (an image that cannot be pulled, a Secret that
  // does not exist) for this long, and its containers may be created for this long, before the job fails.
  base::nanoseconds start_deadline = std::chrono::minutes(10);
  base::nanoseconds slow_start_deadline = std::chrono::minutes(60);
  base::nanoseconds capacity_debounce = base::seconds(1);
  base::nanoseconds capacity_interval = base::seconds(30);  // between two replans for added capacity
  // A plan that holds more units than the job may have is replaced after this time.
  base::nanoseconds over_window = base::seconds(10);
  // A member on a node that will certainly be lost is drained by the coordinator after this time.
  base::nanoseconds notice_patience = base::seconds(10);
  // A trainer that has stood by for this long, because it is slow, is replaced by another on another node.
  base::nanoseconds slow_patience = std::chrono::minutes(5);
  base::nanoseconds suspend_timeout = base::seconds(60);  // for the checkpoint of a job that is being suspended
  base::nanoseconds scheduler_retry = base::seconds(5);
  base::nanoseconds observe_interval = base::seconds(10);  // between two observations sent to the scheduling service
  // A generation that has trained undisturbed for this long has filled the coordinator's window of measurement.
  base::nanoseconds observe_window = base::seconds(6);
  double default_pause_seconds = 1;     // expected pause of a generation switch, until one was measured
  double default_warm_up_seconds = 10;  // expected time from creating a pod to its first step
};

}  // namespace medley::ops
