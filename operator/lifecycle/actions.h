// Everything that the life of a job can do to the world, as values.
//
// An Action has an answer, on which later decisions of the same pass depend: the shell carries it out at once. Where
// that may take long, it only begins, and the answer is nullopt; the job gets a pass when the answer has come, and the
// same action is answered in that pass. An Effect has none: the shell carries out all effects, in order, when the pass
// has ended.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "common/model/plan_result.h"
#include "kube/object.h"
#include "operator/lifecycle/world.h"
#include "operator/records/member_slot.h"
#include "operator/records/plan_record.h"
#include "operator/records/zone_choice.h"

namespace medley::ops::lifecycle {

// --- Reads that only some passes need.

// Reads all pools. Those in `names`, or all when it is empty, have prices and units as this job sees them. Counting
// units takes the longest, so units are counted only in the zones that the choice of a price considers.
struct ReadPools {
  using Answer = PoolsView;
  std::vector<std::string> names;
  bool with_prices_and_units = true;
  std::map<std::string, ZoneChoice> zones;  // by pool
};

// Reads ConfigMap JOB-plan; null if it does not exist. The first pass of a new leader reads it from the API server.
struct ReadPlan {
  using Answer = kube::ObjectPtr;
};

// Reads the profiles with this hash (model::ProfileHash) on these pools.
struct ReadProfiles {
  using Answer = ProfilesView;
  std::string hash;
  std::vector<std::string> pools;
};

// Reads from the API server, not from a cache.
struct GetObject {
  using Answer = absl::StatusOr<kube::Object>;
  kube::Resource resource;
  kube::Key key;
};

struct ReadLog {
  using Answer = std::optional<absl::StatusOr<std::string>>;
  kube::Key pod;
  std::string uid;
  int tail_lines = 0;  // 0: the whole log
};

// --- Units.

// For a job among those that wait for units (WaitingLine).
enum class LinePlace {
  kNone,    // the job has a plan, or does not want one
  kAsking,  // the planner has not answered yet
  kWaits,   // the job was planned in vain, or it is not its turn
};

// Asks whether it is the job's turn to be planned among the jobs that wait for units (WaitingLine::Take).
struct TakeTurn {
  struct Taken {
    std::string ahead;  // the job that is planned first, as NAMESPACE/NAME; empty: none
    int64_t turn = 0;   // the units that are counted from now on are those of this turn
  };
  using Answer = Taken;
};

// Reserves the units of a plan instead of those that the job has reserved before (CapacityView::Reserve). Errors:
// ResourceExhausted, FailedPrecondition.
struct ReserveUnits {
  using Answer = absl::Status;
  std::vector<MemberSlot> slots;         // none: what is reserved is released
  std::vector<MemberSlot> until_switch;  // of the plan in force
  std::string coordinator;               // its pod; empty: the job has had none
  bool is_stored = false;                // the plan was accepted before: its units are reserved in any case
  int64_t turn = 0;                      // in which the units were counted; of a job without a plan
};

// --- Objects.

// Creates the object unless one of its name exists.
struct EnsureObject {
  struct Outcome {
    absl::StatusOr<kube::Object> object;  // that exists now; it may have another owner
    bool created = false;
  };
  using Answer = Outcome;
  kube::Resource resource;
  kube::Object object;
  bool probably_exists = false;  // true: read it first, which saves the attempt to create it
};

// Creates the object, and reads nothing. Errors: AlreadyExists: one of its name exists, whoever owns it.
struct CreateObject {
  using Answer = absl::StatusOr<kube::Object>;
  kube::Resource resource;
  kube::Object object;
};

// Server-side apply. Answer: the object that results.
struct ApplyObject {
  using Answer = absl::StatusOr<kube::Object>;
  kube::Resource resource;
  kube::Object object;
};

struct DeleteObject {
  using Answer = absl::Status;
  kube::Resource resource;
  kube::Key key;
  std::optional<std::string> uid;  // precondition
  std::string propagation_policy;
};

// A merge patch of the TrainingJob.
struct PatchJob {
  using Answer = absl::Status;
  kube::Json patch;
  std::string subresource;  // "" or "status"
};

// Creates pods in growing batches and stops after the first batch with a failure. A name that is taken is not a
// failure.
struct CreatePods {
  struct Outcomes {
    std::vector<absl::Status> tried;  // of the first pods; the others were not tried
  };
  using Answer = Outcomes;
  std::vector<kube::Object> pods;
  // Keeps members off nodes with a notice: a pod that tolerates every taint could be bound to them.
  bool avoid_noticed_nodes = false;
};

// Deletes in order and stops at the first failure. A pod that has been deleted already, or whose name belongs to a
// newer pod, is a success.
struct DeletePods {
  struct Outcome {
    std::set<std::string> deleted;  // UIDs
    absl::Status status;
  };
  using Answer = Outcome;
  struct Target {
    kube::Key key;
    std::string uid;
  };
  std::vector<Target> pods;
};

// Writes ConfigMap JOB-plan if it still has the version that this operator has read or written.
struct SavePlan {
  struct Outcome {
    absl::Status status;
    std::string version;  // resourceVersion of the ConfigMap that exists now; empty: not known
    // True: another operator has written it, and `status` is an error. `plan_of_other` is then that operator's plan, or
    // null when it is unreadable.
    bool overtaken = false;
    std::shared_ptr<const PlanRecord> plan_of_other;
    // Why what another client had written there was not believed, and was replaced; a clause. Empty: nothing was.
    std::string refused = {};
  };
  using Answer = Outcome;
  kube::Object map;
  std::string version;  // empty: none exists as far as this operator knows
};

// --- The coordinator.

// Connects, or reconnects when the address or the credentials have changed. Answer: the latest observation, or null.
struct Connect {
  using Answer = std::shared_ptr<const Observation>;
  Connection connection;
};

// Answer: the number of the generation that the coordinator has accepted.
struct SendPlan {
  using Answer = std::optional<absl::StatusOr<int64_t>>;
  PlanRecord plan;
};

// Takes a checkpoint and stops training, for a job that is being suspended.
struct SuspendTraining {
  struct Outcome {
    absl::StatusOr<int64_t> step;  // of the checkpoint
    std::shared_ptr<const Observation> observed;
  };
  using Answer = std::optional<Outcome>;
  std::string reason;
  base::nanoseconds timeout{};
};

// Notifies the coordinator of members that leave within `notice`.
struct DrainMembers {
  using Answer = std::optional<absl::Status>;
  std::vector<std::string> members;
  base::nanoseconds notice{};
};

// --- The scheduling service.

enum class Urgency {
  kReplan,      // the job has a plan
  kFirstPlan,   // it waits
  kEvacuation,  // its nodes will be lost
};

struct AskForPlan {
  struct Outcome {
    absl::StatusOr<model::PlanResult> result;
    bool unavailable = false;  // the service did not answer, as opposed to refusing
  };
  using Answer = std::optional<Outcome>;
  std::shared_ptr<const model::PlanRequest> request;  // two questions are the same if they share the request
  Urgency urgency = Urgency::kReplan;
};

// One of them. A class, so that its copies, moves and destructor are compiled in one source (actions.cc), not in each.
class Action : public std::variant<ReadPools, ReadPlan, ReadProfiles, GetObject, ReadLog, TakeTurn, ReserveUnits,
                                   EnsureObject, CreateObject, ApplyObject, DeleteObject, PatchJob, CreatePods,
                                   DeletePods, SavePlan, Connect, SendPlan, SuspendTraining, DrainMembers, AskForPlan> {
 public:
  using variant::variant;
  Action(const Action& other);
  Action(Action&& other) noexcept;
  Action& operator=(const Action& other);
  Action& operator=(Action&& other) noexcept;
  ~Action();
};

// The Answer types above, each once.
class Answer
    : public std::variant<PoolsView, kube::ObjectPtr, ProfilesView, absl::StatusOr<kube::Object>, ReadLog::Answer,
                          TakeTurn::Taken, EnsureObject::Outcome, absl::Status, CreatePods::Outcomes,
                          DeletePods::Outcome, SavePlan::Outcome, std::shared_ptr<const Observation>, SendPlan::Answer,
                          SuspendTraining::Answer, DrainMembers::Answer, AskForPlan::Answer> {
 public:
  using variant::variant;
  Answer(const Answer& other);
  Answer(Answer&& other) noexcept;
  Answer& operator=(const Answer& other);
  Answer& operator=(Answer&& other) noexcept;
  ~Answer();
};

// One line for logs and tests: "create pods adult-0-cpu-0, adult-0-cpu-1".
std::string Describe(const Action& action);
// True when carrying it out changes nothing in the cluster, in the coordinator or in the scheduling service.
bool IsRead(const Action& action);

// --- Effects.

struct PublishEvent {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct CountRestarts {
  int count = 0;
};

struct CountPlan {
  std::string result;  // accepted, infeasible, refused, unavailable
};

struct CountReplan {
  std::string decision;
};

struct AddSpent {
  double usd = 0;
};

struct RecordSwitch {
  bool recovery = false;
  double pause_seconds = 0;
  int64_t lost_steps = 0;
};

struct Disconnect {};  // from the coordinator

struct OfferObservation {
  std::shared_ptr<const model::JobObservation> observation;  // never null
};

// A coordinator has served a leader with this newer term: this operator may no longer lead.
struct ReportNewerTerm {
  int64_t term = 0;
};

// Pods of a pool have found no node for longer than spec.provisionTimeout. Only pods that ask for nothing beyond the
// pool's unit say something of an autoscaled pool.
struct ReportNoNode {
  std::string pool;
  std::string zone;                   // that they are pinned to; empty: none
  std::vector<kube::ObjectPtr> pods;  // as cached; they may be deleted in the same pass
};

struct WriteLog {
  bool warning = false;
  std::string message;
  std::string error;
};

// A class, as Action is.
class Effect : public std::variant<PublishEvent, CountRestarts, CountPlan, CountReplan, AddSpent, RecordSwitch,
                                   Disconnect, OfferObservation, ReportNewerTerm, ReportNoNode, WriteLog> {
 public:
  using variant::variant;
  Effect(const Effect& other);
  Effect(Effect&& other) noexcept;
  Effect& operator=(const Effect& other);
  Effect& operator=(Effect&& other) noexcept;
  ~Effect();
};

}  // namespace medley::ops::lifecycle
