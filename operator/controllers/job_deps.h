// What reconcilers need from the program around them. References are borrowed.
#pragma once

#include <functional>
#include <string>

#include "common/base/clock.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "operator/capacity/capacity_view.h"
#include "operator/capacity/pool_outages.h"
#include "operator/capacity/signed_pods.h"
#include "operator/capacity/waiting_line.h"
#include "operator/controllers/slow_calls.h"
#include "operator/lifecycle/options.h"
#include "operator/planning/coordinator_link.h"
#include "operator/planning/observation_sender.h"
#include "operator/planning/scheduler_client.h"
#include "operator/profiling/board.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/expectations.h"
#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {

struct JobStores {
  const kube::Store& jobs;
  const kube::Store& pools;
  const kube::Store& pods;
  // Those that this operator has created.
  const kube::Store& config_maps;
  const kube::Store& services;
  const kube::Store& network_policies;
  const kube::Store& budgets;
  const kube::Store& priority_classes;
};

struct JobDeps {
  kube::Client& client;
  base::Clock& clock;
  JobStores stores;
  CapacityView& capacity;
  SignedPods& signed_pods;
  WaitingLine& line;
  PoolOutages& outages;
  SchedulerClient& scheduler;
  CoordinatorLinks& links;
  SlowCalls& calls;
  ObservationSender& observations;
  profiling::Board& profiles;
  EventRecorder& events;
  Expectations& expectations;  // of pods
  OperatorMetrics& metrics;
  JobOptions options;
  // The leader term of this process; 0 without leader election.
  std::function<int64_t()> leader_term = [] { return int64_t{0}; };
  // Called when the status of the pool must be written again.
  std::function<void(const std::string&)> pool_changed = [](const std::string&) {};
  // Called when a coordinator has served a leader with this newer term: this process may no longer lead.
  std::function<void(int64_t)> heard_of_term = [](int64_t) {};
  std::string ns;  // whose jobs this operator runs; empty: all
};

}  // namespace medley::ops
