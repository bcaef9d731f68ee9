#include "operator/lifecycle/planning.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/figure.h"
#include "common/base/status.h"
#include "common/model/executable.h"
#include "common/model/placement.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/slots.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/infeasible_words.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/profiling.h"
#include "operator/lifecycle/replan_decision.h"
#include "operator/lifecycle/replanning.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/sizes.h"
#include "operator/lifecycle/stored_plan.h"
#include "operator/lifecycle/succession.h"
#include "operator/records/memory_check.h"
#include "operator/records/prediction_spread.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kTurnRetry = base::seconds(1);
// After a plan whose units could not be reserved; doubles each time.
constexpr base::nanoseconds kFirstRefusal = base::milliseconds(100);
constexpr base::nanoseconds kLongestRefusal = base::seconds(30);  // of a job without a plan
constexpr base::nanoseconds kLongestReplanRefusal = std::chrono::minutes(10);
constexpr base::nanoseconds kPodCountRetry = base::milliseconds(200);

std::vector<PlanStatus::Alternative> AlternativesOf(const model::PlanResult& result) {
  std::vector<PlanStatus::Alternative> alternatives;
  for (const model::Alternative& other : result.alternatives) {
    PlanStatus::Alternative out{other.label, 0, 0, 0, ""};
    if (other.plan) {
      out = {other.label, other.plan->throughput, other.plan->cost_per_hour, other.plan->cost_usd, ""};
    } else {
      out.reason = other.reasons.empty() ? "no plan" : other.reasons.front().message;
    }
    alternatives.push_back(std::move(out));
  }
  return alternatives;
}

// For a job that was suspended, only what is left.
JobProgress ProgressOfWaiting(const Pass& pass) {
  const JobStatus& status = pass.report;
  JobProgress progress;
  if (status.observed && status.observed->samples_total > 0) {
    progress.remaining_samples =
        static_cast<double>(std::max<int64_t>(1, status.observed->samples_total - status.observed->samples));
  }
  progress.elapsed_seconds = SecondsSince(status.start_time, pass.world.now);
  progress.spent_usd = status.cost ? status.cost->spent_usd : 0;
  return progress;
}

absl::Status CheckPlan(const model::ExecutionPlan& plan, const model::Profile& profile, const UsablePools& pools) {
  const int layers = static_cast<int>(profile.model.layers.size());
  if (absl::Status valid = model::Validate(plan, layers); !valid.ok()) {
    return base::Annotate(valid, "the scheduling service returned an invalid plan");
  }
  MEDLEY_RETURN_IF_ERROR(base::Annotate(model::CheckExecutable(plan), "the scheduling service returned a plan"));
  for (const auto& [pool, units] : model::TrainersByPool(plan)) {
    if (pools.Find(pool) == nullptr) {
      return base::Internal("the scheduling service returned a plan on pool '{}', which was not offered", pool);
    }
  }
  return absl::OkStatus();
}

void WaitForTurn(Pass& pass, const std::string& ahead) {
  pass.RequeueAfter(kTurnRetry);
  if (pass.report.conditions.Find(kPlannedCondition) != nullptr) return;
  SetCondition(pass, kPlannedCondition, ConditionStatus::kUnknown, Reason::kWaitingForTurn,
               "Job " + ahead + " waits for units with a higher priority or for longer, and is planned first.");
}

absl::Status JudgeFirstPlan(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                            const model::PlanResult& result) {
  const ProfiledPools& offered = *search.offered;
  RememberFirstPlan(pass, offered, result.plan.has_value());
  const bool feasible = result.plan && result.execution_plan;
  if (!feasible && offered.measuring.empty()) {
    ExplainInfeasible(pass, result.reasons, offered.pools);
    MEDLEY_RETURN_IF_ERROR(LookAgainIfChanged(pass, job, search));
    pass.Own(&Memory::planning).together.clear();
    return absl::OkStatus();
  }
  if (!feasible || MustWaitForProfiles(pass, job, offered)) {
    SetUnplanned(pass, WaitingForProfiles(offered, feasible));
    return LookAgainIfChanged(pass, job, search);
  }
  const bool resumed = pass.report.plan.has_value();
  MEDLEY_ASSIGN_OR_RETURN(const bool accepted,
                          Accept(pass, job, search, result, resumed ? Reason::kResumed : Reason::kFirstPlan));
  if (!accepted) return absl::OkStatus();
  ForgetProfiling(pass);
  return RunPlan(pass, job);
}

// Asks until an answer is missing, or a plan is found or none is left to ask for: the zones of the pools are tried one
// after the other.
absl::Status PursueFirstPlan(Pass& pass, const TrainingJob& job, PlanSearch search) {
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const SearchAnswer answer, AskPlanner(pass, job, search));
    pass.turn = search.turn;
    if (!answer.found) return absl::OkStatus();
    std::optional<UsablePools> others;
    if (!answer.found->plan) {
      MEDLEY_ASSIGN_OR_RETURN(others, PoolsInOtherZones(pass, job, search.offered->pools));
    }
    if (!others) return JudgeFirstPlan(pass, job, search, *answer.found);
    search = WithPools(search, job, *std::move(others));
  }
}

absl::Status BeginFirstPlan(Pass& pass, const TrainingJob& job, int64_t turn) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) {
    SetUnplanned(pass, *choice.refusal);
    pass.RequeueAfter(pass.options.scheduler_retry);
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(ProfiledPools profiled, FindProfiledPools(pass, job, choice.pools));
  if (!profiled.hopeless.empty()) return Finish(pass, job, false, Reason::kProfileFailed, profiled.hopeless);
  if (profiled.why) SetUnplanned(pass, *profiled.why);
  if (!profiled.profile || !MustLookForPlan(pass, job, profiled)) return absl::OkStatus();
  PlanSearch search = NewSearch(pass, job, std::move(profiled), ProgressOfWaiting(pass));
  search.turn = turn;
  return PursueFirstPlan(pass, job, std::move(search));
}

}  // namespace

void PauseAfterRefusal(Pass& pass) {
  PlanningState& state = pass.Own(&Memory::planning);
  const base::nanoseconds longest = pass.memory.stored_plan.record ? kLongestReplanRefusal : kLongestRefusal;
  state.after_refusal = pass.PauseFor(std::min(kFirstRefusal * (int64_t{1} << std::min(state.refusals, 20)), longest));
  ++state.refusals;
}

void EndPauseAfterRefusal(Pass& pass) { pass.Own(&Memory::planning).after_refusal = {}; }

absl::StatusOr<bool> ReserveUnitsFor(Pass& pass, const PlanRecord& record) {
  PlanningState& state = pass.Own(&Memory::planning);
  const std::optional<PlanRecord>& stored = pass.memory.stored_plan.record;
  const std::string coordinator = (stored ? *stored : record).coordinator_pod;
  MEDLEY_ASSIGN_OR_RETURN(
      const absl::Status reserved,
      pass.Ask(ReserveUnits{record.slots, record.FallbackSlots(), coordinator, false, pass.turn.value_or(0)}));
  if (reserved.ok()) {
    state.reserved = {-1, false, coordinator};  // until the plan is stored
    state.refusals = 0;
    state.together.clear();
    return true;
  }
  PauseAfterRefusal(pass);
  pass.Publish(CountPlan{"refused"});
  const std::string why = base::Message(reserved);
  state.leaving.clear();
  if (stored) {
    if (absl::IsFailedPrecondition(reserved)) {
      state.leaving = LeavingUnits(record.fallback == nullptr ? stored->slots : record.fallback->slots, record.slots);
    }
    PublishReplan(pass, "ReplanRefused", "The job keeps its plan: " + why);
    return false;
  }
  // Pods of a plan that was not believed have the units: without a plan they are of no use.
  if (absl::IsFailedPrecondition(reserved)) MEDLEY_RETURN_IF_ERROR(DeletePodsOf(pass, WhichPods::kAll));
  const bool taken = absl::IsResourceExhausted(reserved);  // by other jobs, since the units were counted
  SetCondition(pass, kPlannedCondition, ConditionStatus::kFalse, taken ? Reason::kQueued : Reason::kInfeasible, why);
  if (state.refusals < 2) return false;  // others have got units, and the next plan is made from new numbers
  std::map<std::string, int> units;
  for (const MemberSlot& slot : record.slots) ++units[slot.pool];
  const auto most =
      std::max_element(units.begin(), units.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != units.end()) state.together[most->first] = most->second - 1;
  return false;
}

absl::Status KeepUnitsReserved(Pass& pass) {
  PlanningState& state = pass.Own(&Memory::planning);
  if (!pass.memory.stored_plan.record) return ReleaseUnits(pass);
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const bool with_fallback = record.fallback != nullptr && !IsInForce(pass);
  const PlanningState::Reserved wanted{record.plan.generation, with_fallback, record.coordinator_pod};
  if (state.reserved == wanted) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(
      const absl::Status done,
      pass.Ask(ReserveUnits{record.slots, with_fallback ? record.FallbackSlots() : std::vector<MemberSlot>(),
                            record.coordinator_pod, true}));
  if (done.ok()) state.reserved = wanted;
  return done;
}

void NoteReserved(Pass& pass, const PlanRecord& record) {
  PlanningState::Reserved& units = pass.Own(&Memory::planning).reserved;
  units = {record.plan.generation, record.fallback != nullptr, std::move(units.coordinator)};
}

absl::Status ReleaseUnits(Pass& pass) {
  PlanningState& state = pass.Own(&Memory::planning);
  if (state.reserved == PlanningState::Reserved()) return absl::OkStatus();
  if (!pass.world.pods_are_current) {  // pods that were created just now do not count yet
    pass.RequeueAfter(kPodCountRetry);
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status done, pass.Ask(ReserveUnits{{}, {}, "", true}));
  if (done.ok()) state.reserved = {};
  return done;
}

void ExplainInfeasible(Pass& pass, const std::vector<model::Reason>& reasons, const UsablePools& pools) {
  pass.Publish(CountPlan{"infeasible"});
  const std::string why = InWords(reasons, pools);
  if (pass.memory.stored_plan.record) {
    KeepUnmetPlan(pass, "No plan meets the goal now, so the job keeps its plan: " + why);
    return;
  }
  if (const std::string waits = WaitsFor(reasons, pools); !waits.empty()) {
    SetCondition(pass, kPlannedCondition, ConditionStatus::kFalse, Reason::kQueued,
                 fmt::format("Waiting for {}. {}.", waits, why));
    return;
  }
  const bool only_prices =
      !reasons.empty() && std::ranges::all_of(reasons, [](const model::Reason& r) { return r.constraint == "price"; });
  SetCondition(pass, kPlannedCondition, ConditionStatus::kFalse,
               only_prices ? Reason::kPoolUnpriced : Reason::kInfeasible, why);
}

absl::Status MakeFirstPlan(Pass& pass, const TrainingJob& job) {
  DropStaleSearch(pass);
  if (PausesAfterRelease(pass)) return absl::OkStatus();
  pass.line = LinePlace::kWaits;
  if (const auto search = pass.memory.search.pending) {
    MEDLEY_RETURN_IF_ERROR(PursueFirstPlan(pass, job, *search));
  } else {
    if (pass.Lasts(pass.memory.planning.after_refusal)) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(const TakeTurn::Taken taken, pass.Ask(TakeTurn{}));
    if (!taken.ahead.empty()) {
      WaitForTurn(pass, taken.ahead);
      return absl::OkStatus();
    }
    MEDLEY_RETURN_IF_ERROR(BeginFirstPlan(pass, job, taken.turn));
  }
  if (pass.memory.stored_plan.record || pass.report.finished()) {
    pass.line = LinePlace::kNone;
  } else if (pass.memory.search.pending) {
    pass.line = LinePlace::kAsking;
  }
  return absl::OkStatus();
}

std::shared_ptr<const PlanRecord> FallbackOf(const Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const int64_t in_force = pass.observed == nullptr ? 0 : pass.observed->plan_generation;
  if (in_force != record.plan.generation) {
    const bool runs = record.fallback != nullptr && record.fallback->plan.generation == in_force;
    return runs ? record.fallback : nullptr;
  }
  auto fallback = std::make_shared<PlanRecord>(record);
  fallback->fallback.reset();
  return fallback;
}

int64_t NextGeneration(const Pass& pass) {
  const std::optional<PlanRecord>& record = pass.memory.stored_plan.record;
  const auto& status = pass.report.plan;
  int64_t generation = record ? record->plan.generation : status ? status->generation : 0;
  if (pass.observed != nullptr) {
    generation = std::max({generation, pass.observed->generation, pass.observed->next_generation});
  }
  return generation + 1;
}

std::vector<std::string> PodNames(const Pass& pass) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pass.world.pods) names.push_back(name);
  for (const auto& [name, is_lost] : pass.memory.pods.occupied) {
    if (is_lost) names.push_back(name);
  }
  return names;
}

absl::StatusOr<bool> Accept(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                            const model::PlanResult& result, Reason reason) {
  const UsablePools& pools = search.offered->pools;
  const model::Profile& profile = *search.offered->profile;
  const std::optional<PlanRecord>& before = pass.memory.stored_plan.record;
  PlanRecord record;
  record.plan = *result.execution_plan;
  MEDLEY_RETURN_IF_ERROR(CheckPlan(record.plan, profile, pools));
  record.usd_per_unit_hour = pools.prices;
  for (const model::Resource& resource : result.resources) {
    if (resource.price_per_unit_hour > 0) record.usd_per_unit_hour[resource.name] = resource.price_per_unit_hour;
  }
  record.plan.generation = NextGeneration(pass);
  record.plan.job_uid = pass.object.uid();
  record.slots = AssignSlots(job.name(), record.plan, before ? StayingSlots(pass) : MembersWithoutPlan(pass),
                             PodNames(pass), pools.zones);
  record.uncorrected_throughput = WithoutCorrections(record.plan.estimate.throughput, result.prediction);
  model::Model predicted = profile.model;
  if (job.program) SetScaling(predicted, SizesOf(pass));
  record.throughput_spread = PredictionSpread(predicted, record.plan);
  record.layer_names = LayerNames(profile.model);
  for (const model::ProvisionedStage& stage : result.plan->stages) record.stage_throughput.push_back(stage.throughput);
  record.alternatives = AlternativesOf(result);
  record.reason = reason;
  record.accepted_at = base::FormatTime(pass.world.now);
  record.policy = InputsOf(job, pools).PolicyHash();
  if (before) {
    record.KeepCoordinatorOf(*before);
    record.fallback = FallbackOf(pass);
  }
  MEDLEY_ASSIGN_OR_RETURN(const bool reserved, ReserveUnitsFor(pass, record));
  if (!reserved) return false;
  if (!before) RenewCoordinator(pass, job, record);
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  NoteReserved(pass, record);
  NoteConsidered(pass, InputsOf(job, pools));
  pass.Publish(CountPlan{"accepted"});
  FillPlanStatus(pass);
  pass.Event("PlanAccepted",
             fmt::format("generation {} ({}): {}; {} samples/s for {} USD/h, by planner {}", record.plan.generation,
                         ToString(reason), model::Summary(record.plan, record.layer_names),
                         base::Figure(record.plan.estimate.throughput, 5),
                         base::Figure(record.plan.estimate.usd_per_hour), record.plan.provenance.planner));
  SetPlanned(pass);
  return true;
}

}  // namespace medley::ops::lifecycle
