#include "operator/lifecycle/starting.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "operator/api/conditions.h"
#include "operator/api/resources.h"
#include "operator/api/start_failure.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/running.h"

namespace medley::ops::lifecycle {
namespace {

struct Stuck {
  kube::ObjectPtr pod;
  Role role = Role::kCoordinator;
  std::string pool;  // empty: the coordinator
  StartFailure failure;
};

// Also requests a pass for the time when a pod would take longer than usual.
std::vector<Stuck> FindStuck(Pass& pass, const TrainingJob& job) {
  std::vector<Stuck> all;
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const auto look = [&](const std::string& name, Role role, const std::string& pool) {
    const kube::ObjectPtr pod = pass.Pod(name);
    if (pod == nullptr || pass.IsTerminating(*pod) || HasStarted(*pod)) return;
    if (auto failure = StartFailureOf(*pod, pass.world.now)) {
      all.push_back({pod, role, pool, *std::move(failure)});
    } else if (pod->String("/status/phase") != "Running") {
      pass.RequeueAfter(kUsualStart);
    }
  };
  look(record.CoordinatorPodName(job.name()), Role::kCoordinator, "");
  for (const MemberSlot& slot : record.slots) look(slot.member, slot.role, slot.pool);
  return all;
}

// The pods whose templates have changed since they were created. A job whose edit was refused runs with the spec that
// was admitted, which is stored without templates: its pods stay.
absl::StatusOr<std::vector<kube::ObjectPtr>> FindOutdated(Pass& pass, const TrainingJob& job,
                                                          const std::vector<Stuck>& stuck) {
  if (!pass.spec_is_valid) return std::vector<kube::ObjectPtr>();
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{{}, false, {}}));
  std::vector<kube::ObjectPtr> outdated;
  for (const Stuck& each : stuck) {
    const std::string made_from = each.pod->annotation(kTemplateAnnotation);
    if (made_from.empty()) continue;  // by an older operator
    const ResourcePool* pool = nullptr;
    for (const PoolView& view : all.pools) {
      if (view.pool.name == each.pool) pool = &view.pool;
    }
    if (!each.pool.empty() && pool == nullptr) continue;
    if (TemplateDigest(job, each.role, pool, pass.options.worker) != made_from) outdated.push_back(each.pod);
  }
  return outdated;
}

std::string Sentence(const Stuck& stuck) {
  return fmt::format("Pod {} cannot start: {}.", stuck.pod->key().name, stuck.failure.message);
}

base::nanoseconds DeadlineOf(const Pass& pass, const Stuck& stuck) {
  return stuck.failure.kind == StartFailure::Kind::kSlow ? pass.options.slow_start_deadline
                                                         : pass.options.start_deadline;
}

// How long the job still waits for the pod. An image that was pulled for long and failed once has the whole deadline of
// a refused pod. nullopt: lifecycle/placement.h decides.
std::optional<base::nanoseconds> LeftOf(const Pass& pass, const Stuck& stuck) {
  switch (stuck.failure.kind) {
    case StartFailure::Kind::kNoNode:
      return std::nullopt;
    case StartFailure::Kind::kSlow:
      return std::chrono::duration_cast<base::nanoseconds>(stuck.failure.since - pass.world.now) +
             DeadlineOf(pass, stuck);
    case StartFailure::Kind::kRefused:
      break;
  }
  return pass.memory.starting.refused_since.at(stuck.pod->uid()) + DeadlineOf(pass, stuck) - pass.world.steady;
}

// Remembers since when pods are refused, and forgets pods that are not stuck any more.
void Remember(Pass& pass, const std::vector<Stuck>& stuck) {
  StartingState& state = pass.Own(&Memory::starting);
  std::set<std::string> uids;
  for (const Stuck& each : stuck) {
    uids.insert(each.pod->uid());
    if (each.failure.kind == StartFailure::Kind::kRefused) {
      state.refused_since.try_emplace(each.pod->uid(), pass.world.steady);
    }
  }
  std::erase_if(state.refused_since, [&](const auto& at) { return !uids.contains(at.first); });
  std::erase_if(state.reported, [&](const auto& at) { return !uids.contains(at.first); });
}

// The first pod for which the job has waited for too long.
std::optional<Stuck> FindOverdue(Pass& pass, const std::vector<Stuck>& stuck) {
  for (const Stuck& each : stuck) {
    const std::optional<base::nanoseconds> left = LeftOf(pass, each);
    if (left && *left <= base::nanoseconds(0)) return each;
    if (left) pass.RequeueAfter(*left);
  }
  return std::nullopt;
}

// The job trains, as far as this operator knows, which may have just started: it goes on without the pod.
bool Trains(const Pass& pass) {
  if (pass.observed != nullptr) return IsInForce(pass);
  return pass.report.conditions.IsTrue(kRunningCondition);
}

void ReportStuck(Pass& pass, const std::vector<Stuck>& stuck) {
  StartingState& state = pass.Own(&Memory::starting);
  for (const Stuck& each : stuck) {  // the kubelet alternates between reasons
    if (state.reported.emplace(each.pod->uid(), each.failure.reason).second) {
      pass.Warning(Reason::kPodCannotStart, Sentence(each));
    }
  }
  state.sentence = Sentence(stuck.front());
  const std::optional<base::nanoseconds> left = LeftOf(pass, stuck.front());
  if (!left || Trains(pass)) return;
  const auto until = pass.world.now + std::chrono::duration_cast<base::WallTime::duration>(*left);
  // To the minute: a sentence that changed in every pass would be written in every pass.
  const auto minute = std::chrono::floor<std::chrono::minutes>(until) + std::chrono::minutes(1);
  state.sentence += fmt::format(" The job waits for it until {}.", base::FormatTime(minute));
}

}  // namespace

absl::StatusOr<bool> HandleStartFailures(Pass& pass, const TrainingJob& job) {
  const std::vector<Stuck> stuck = FindStuck(pass, job);
  if (stuck.empty()) {
    pass.Own(&Memory::starting) = {};
    return false;
  }
  Remember(pass, stuck);
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::ObjectPtr> outdated, FindOutdated(pass, job, stuck));
  if (!outdated.empty()) {
    pass.Event("PodReplaced", fmt::format("The template of pod {}, which could not start, was edited: {} of the job's "
                                          "pods are created again.",
                                          outdated.front()->key().name, outdated.size()));
    MEDLEY_RETURN_IF_ERROR(DeleteSome(pass, outdated));
    pass.RequeueAfter(base::seconds(1));
    return true;
  }
  const std::optional<Stuck> overdue = FindOverdue(pass, stuck);
  ReportStuck(pass, stuck);
  if (!overdue || Trains(pass)) return false;
  const std::string sentence = fmt::format("{} It has been so for {:.0f} min.", Sentence(*overdue),
                                           base::ToSeconds(DeadlineOf(pass, *overdue)) / 60);
  if (pass.observed != nullptr && pass.observed->generation > 0 && !overdue->pool.empty()) {
    return GoBack(pass, job, overdue->pool,
                  fmt::format("Plan {} cannot run: {}", pass.memory.stored_plan.record->plan.generation, sentence));
  }
  MEDLEY_RETURN_IF_ERROR(Finish(pass, job, false, Reason::kPodCannotStart, sentence));
  return true;
}

}  // namespace medley::ops::lifecycle
