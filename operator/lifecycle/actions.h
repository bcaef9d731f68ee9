// What the life of a job asks of the world, as values.
//
// An Action has an answer, on which later decisions of the same pass depend: the shell carries it out at once. Where
// that may take long, it only begins, and the answer is nullopt; the job gets a pass when the answer has come, and the
// same action is answered in that pass. What has no answer is an Effect (effects.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "common/model/plan_result.h"
#include "kube/object.h"
#include "operator/lifecycle/object_actions.h"
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

}  // namespace medley::ops::lifecycle
