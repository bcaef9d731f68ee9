#include "operator/lifecycle/search.h"

#include "common/base/status.h"
#include "common/model/planning.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/replanning.h"
#include "operator/lifecycle/sizes.h"
#include "operator/records/interruptions.h"
#include "operator/records/memory_check.h"
#include "operator/records/program_plan.h"

namespace medley::ops::lifecycle {
namespace {

// Questions after a plan that does not fit into the memory of units, each with a smaller bound.
constexpr int kMostTightened = 4;

void ExplainRefusal(Pass& pass, const TrainingJob& job, const AskForPlan::Outcome& outcome) {
  const absl::Status& status = outcome.result.status();
  const std::string why = base::Message(status);
  const bool has_plan = pass.memory.stored_plan.record.has_value();
  if (outcome.unavailable) {
    pass.Publish(CountPlan{"unavailable"});
    pass.RequeueAfter(pass.options.scheduler_retry);
    if (has_plan) return;  // a running job goes on with its plan
    SetCondition(pass, kPlannedCondition, ConditionStatus::kUnknown, Reason::kSchedulerUnavailable, why);
    return;
  }
  pass.Publish(CountPlan{"refused"});
  const bool planner = status.code() == absl::StatusCode::kNotFound || why.find("planner") != std::string::npos;
  const std::string message =
      planner ? fmt::format("spec.planner.name: '{}': {}", job.planner.name, why) : "spec.model: " + why;
  if (has_plan) {
    PublishReplan(pass, "ReplanRefused", message);
    return;
  }
  SetCondition(pass, kPlannedCondition, ConditionStatus::kFalse,
               planner ? Reason::kUnknownPlanner : Reason::kInvalidModel, message);
}

int64_t PlanGeneration(const Pass& pass) {
  const auto& record = pass.memory.stored_plan.record;
  return record ? record->plan.generation : 0;
}

Urgency UrgencyOf(const PlanSearch& search) {
  if (search.evacuates) return Urgency::kEvacuation;
  return search.plan_generation == 0 ? Urgency::kFirstPlan : Urgency::kReplan;
}

std::shared_ptr<const model::PlanRequest> RequestFor(const TrainingJob& job, const model::Profile& profile,
                                                     const UsablePools& pools, const JobProgress& progress) {
  const std::vector<PoolOffer> offers = pools.Offers();
  model::PlanRequest request = BuildPlanRequest(job, profile, offers, progress);
  LimitByUnitMemory(job, profile, offers, request);
  return std::make_shared<const model::PlanRequest>(std::move(request));
}

// The answer when no unit exists that a plan could use. The goal cost finds it as any other contradiction.
model::PlanResult WithoutUnits(const model::PlanRequest& request) {
  model::PlanResult result;
  result.resources = request.resources;
  for (const model::Resource& resource : request.resources) {
    result.reasons.push_back({"limit", resource.name, 1, static_cast<double>(resource.limit), ""});
  }
  return result;
}

absl::StatusOr<SearchAnswer> AskOnce(Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  if (search.request->on_devices() && search.request->cluster.devices.empty()) {
    DropSearch(pass);
    return SearchAnswer{false, WithoutUnits(*search.request)};
  }
  const std::vector<PoolOffer> offers = search.offered->pools.Offers();
  if (job.program) {
    DropSearch(pass);
    model::PlanRequest request = *search.request;
    SetScaling(request.model, SizesOf(pass));
    return SearchAnswer{false, PlanProgram(request, job.program->legal_units, LostSharesOf(job, offers))};
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<AskForPlan::Outcome> outcome,
                          pass.Ask(AskForPlan{search.request, UrgencyOf(search)}));
  if (!outcome) {
    pass.Own(&Memory::search).pending = search;
    return SearchAnswer{true, std::nullopt};
  }
  DropSearch(pass);
  if (outcome->result.ok()) {
    return SearchAnswer{false,
                        WithPaidPrices(job, offers, *search.request, WithPrice(*outcome->result, *search.request))};
  }
  ExplainRefusal(pass, job, *outcome);
  return SearchAnswer();
}

model::PlanResult WithoutPlan(model::PlanResult result, const model::Reason& reason) {
  result.plan.reset();
  result.execution_plan.reset();
  result.reasons = {reason};
  return result;
}

// The question whose answer is another plan than the one that does not fit.
std::shared_ptr<const model::PlanRequest> Tightened(model::PlanRequest request, const MemoryShortage& shortage) {
  if (shortage.server) request.server_memory_bytes = shortage.bound;
  for (model::Resource& resource : request.resources) {
    if (!shortage.server && resource.name == shortage.reason.resource_type) resource.memory_bytes = shortage.bound;
  }
  return std::make_shared<const model::PlanRequest>(std::move(request));
}

}  // namespace

PlanSearch NewSearch(const Pass& pass, const TrainingJob& job, ProfiledPools offered, const JobProgress& progress) {
  PlanSearch search;
  search.request = RequestFor(job, *offered.profile, offered.pools, progress);
  search.offered = std::make_shared<const ProfiledPools>(std::move(offered));
  search.progress = progress;
  search.spec_generation = pass.object.generation();
  search.plan_generation = PlanGeneration(pass);
  search.seen = InputsOf(job, search.offered->pools);
  return search;
}

PlanSearch WithPools(const PlanSearch& search, const TrainingJob& job, UsablePools pools) {
  PlanSearch other = search;
  auto offered = std::make_shared<ProfiledPools>(*search.offered);
  offered->pools = std::move(pools);
  other.request = RequestFor(job, *offered->profile, offered->pools, search.progress);
  other.offered = std::move(offered);
  other.corrected = nullptr;
  other.shortage.reset();
  other.tightened = 0;
  return other;
}

PlanSearch WithProfile(const PlanSearch& search, const TrainingJob& job, const model::Profile& profile) {
  PlanSearch other = search;
  other.request = RequestFor(job, profile, search.offered->pools, search.progress);
  return other;
}

absl::StatusOr<SearchAnswer> AskPlanner(Pass& pass, const TrainingJob& job, PlanSearch search) {
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(SearchAnswer answer, AskOnce(pass, job, search));
    if (!answer.found) return answer;
    const bool feasible = answer.found->plan && answer.found->execution_plan;
    if (!feasible) {
      // The planner knows of the bound, but not why it is what it is.
      if (search.shortage) answer.found->reasons = {*search.shortage};
      return answer;
    }
    const std::optional<MemoryShortage> shortage =
        FindShortage(job, *search.offered->profile, search.offered->pools.Offers(), *answer.found->execution_plan);
    if (!shortage) return answer;
    search.shortage = shortage->reason;
    const bool again = shortage->bound > 0 && ++search.tightened <= kMostTightened;
    if (!again) {
      answer.found = WithoutPlan(*std::move(answer.found), shortage->reason);
      return answer;
    }
    search.request = Tightened(*search.request, *shortage);
  }
}

absl::Status LookAgainIfChanged(Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  MEDLEY_ASSIGN_OR_RETURN(const ProfiledPools now, FindProfiledPools(pass, job, choice.pools));
  // A pool for servers is offered before it is measured.
  const bool measured = now.measuring != search.offered->measuring;
  if (measured || InputsOf(job, now.pools) != search.seen) pass.RequeueAfter(base::nanoseconds(1));
  return absl::OkStatus();
}

void DropSearch(Pass& pass) { pass.Own(&Memory::search).pending.reset(); }

void DropSearch(Pass& pass, bool evacuates) {
  const std::optional<PlanSearch>& search = pass.memory.search.pending;
  if (search && search->evacuates == evacuates) DropSearch(pass);
}

void DropStaleSearch(Pass& pass) {
  std::optional<PlanSearch>& search = pass.Own(&Memory::search).pending;
  if (!search) return;
  const bool current =
      search->spec_generation == pass.object.generation() && search->plan_generation == PlanGeneration(pass);
  if (!current) search.reset();
}

}  // namespace medley::ops::lifecycle
