// What the passes over jobs need from the program around them. References are borrowed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/packed.h"
#include "operator/api/job_status.h"
#include "operator/builders/pod_group.h"
#include "operator/builders/worker_env.h"
#include "operator/capacity/capacity_view.h"
#include "operator/planning/coordinator_link.h"
#include "operator/planning/observation_sender.h"
#include "operator/planning/scheduler_client.h"
#include "operator/records/plan_record.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/expectations.h"
#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {

struct JobOptions {
  WorkerSettings worker;
  base::nanoseconds status_interval = base::seconds(10);  // between two writes without a change of condition
  // Progress as expected is looked at so often.
  base::nanoseconds progress_interval = base::seconds(5);
  // A look at a living job without any event; one that runs and has what it asked for can wait.
  base::nanoseconds recheck = base::seconds(30);
  base::nanoseconds settled_recheck = std::chrono::minutes(5);
  base::nanoseconds goal_window = base::seconds(60);        // throughput below the goal for so long: plan again
  base::nanoseconds schedule_window = base::seconds(60);    // a member that cannot be scheduled for so long
  base::nanoseconds capacity_debounce = base::seconds(1);   // of a burst of changes
  base::nanoseconds capacity_interval = base::seconds(30);  // between two plans for units that came
  // A plan that needs more units than the job may have is left after so long.
  base::nanoseconds over_window = base::seconds(10);
  // A member on a node that goes: after so long the coordinator is told to do without it.
  base::nanoseconds notice_patience = base::seconds(10);
  base::nanoseconds suspend_timeout = base::seconds(60);  // for the checkpoint of a job that is suspended
  base::nanoseconds scheduler_retry = base::seconds(5);
  base::nanoseconds observe_interval = base::seconds(10);  // between two observations of a job
  // A generation that trained undisturbed for so long has filled the coordinator's window of measurement.
  base::nanoseconds observe_window = base::seconds(6);
  double default_pause_seconds = 1;     // of a generation switch, until one was measured
  double default_warm_up_seconds = 10;  // from making a pod to its first step
  int parallel_profilers = 1;           // of one job; more disturb each other on shared machines
};

struct JobStores {
  const kube::Store& jobs;
  const kube::Store& pools;
  const kube::Store& pods;
  const kube::Store& config_maps;  // those made by this operator
};

struct JobDeps {
  kube::Client& client;
  base::Clock& clock;
  JobStores stores;
  const CapacityView& capacity;
  SchedulerClient& scheduler;
  CoordinatorLinks& links;
  ObservationSender& observations;
  EventRecorder& events;
  Expectations& expectations;  // of pods
  OperatorMetrics& metrics;
  std::function<uint64_t()> entropy;  // for tokens
  JobOptions options;
  // Of this process's lead; 0 without leader election.
  std::function<int64_t()> leader_term = [] { return int64_t{0}; };
  // Somebody has served a leader of this newer term.
  std::function<void(int64_t)> heard_of_term = [](int64_t) {};
};

// What a plan was last considered with; a change of any part asks for another look.
struct PlanningInputs {
  std::map<std::string, double> prices;
  std::map<std::string, double> cheaper;  // of another zone than the one that the job keeps, by pool
  std::map<std::string, int> units;
  std::string policy;  // objective, elasticity, planner and resources of the spec
  bool operator==(const PlanningInputs&) const = default;
};

// What the operator remembers of a job between passes, beyond what it writes. Lost with the
// process: everything here is rebuilt from the cluster, or only saves calls. Used by one pass at a
// time.
struct JobMemory {
  std::string uid;
  // The newest state written, because caches lag behind: this operator is the only writer of both.
  std::optional<JobStatus> status;
  std::optional<kube::Packed> written_status;
  std::optional<PlanRecord> record;
  std::string record_version;  // resourceVersion of the ConfigMap that holds `record`; empty: none
  base::SteadyTime status_written_at{};
  bool base_objects_made = false;
  std::string token;
  // What the objects that follow the plan were made for, and the kind of group that pods join.
  struct Budget {
    bool wanted = true;
    int members = 0;
    int max_unavailable = 1;
    bool operator==(const Budget&) const = default;
  };
  struct Group {
    std::optional<PodGroupKind> kind;
    int members = 0;
    bool operator==(const Group&) const = default;
  };
  std::optional<Budget> budget;
  std::optional<Group> group;
  std::optional<PodGroupKind> pod_group;
  std::optional<PlanningInputs> considered;
  std::optional<base::SteadyTime> below_goal_since;
  std::map<std::string, base::SteadyTime> unschedulable_since;  // by pod
  // Zones by pool in which, since a plan was last in force, pods found no node or no plan was found.
  std::map<std::string, std::set<std::string>> avoided_zones;
  std::set<std::string> refused;                                // pods that a quota did not admit
  std::set<std::string> profilers;                              // pods that measure what is asked about now
  // Units: when they grew, when that was last asked about, and for which no plan was found.
  std::optional<base::SteadyTime> grown_since;
  std::optional<base::SteadyTime> growth_asked_at;
  std::optional<base::SteadyTime> over_since;
  std::map<std::string, int> over_refused;
  // Members on nodes that go, by pod UID; nodes that are not ready; what was told of them.
  std::map<std::string, base::SteadyTime> notice_since;
  std::map<std::string, base::SteadyTime> down_since;
  std::set<std::string> told_notices;
  std::optional<base::SteadyTime> leave_asked_at;
  struct Failures {
    int count = 0;
    std::string last_uid;
    base::SteadyTime retry_at{};
  };
  std::map<std::string, Failures> failures;  // by pod name
  int64_t samples_at_failure = 0;
  std::string applied_to;  // address
  int64_t applied_generation = 0;
  base::SteadyTime applied_at{};
  std::set<std::string> drained;  // pod UIDs
  std::set<std::string> deleted;  // pod UIDs: the cache may still show them as they were
  int64_t last_switch_generation = 0;
  int64_t comparable_generation = 0;  // the generation that has trained undisturbed since ...
  base::SteadyTime comparable_since{};
  std::optional<base::SteadyTime> observation_sent_at;
  double spent_counted = 0;
  std::string last_event;  // sentence of the last re-plan Event, not to repeat it
};

}  // namespace medley::ops
