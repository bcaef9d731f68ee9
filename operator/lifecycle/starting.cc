#include "operator/lifecycle/starting.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
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
  const PlanRecord& record = *pass.memory.planning.record;
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

// The pods whose templates have changed since they were created.
absl::StatusOr<std::vector<kube::ObjectPtr>> Outdated(Pass& pass, const TrainingJob& job,
                                                      const std::vector<Stuck>& stuck) {
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

base::nanoseconds DeadlineOf(const Pass& pass, StartFailure::Kind kind) {
  return kind == StartFailure::Kind::kSlow ? pass.options.slow_start_deadline : pass.options.start_deadline;
}

std::string Sentence(const Stuck& stuck) {
  return fmt::format("Pod {} cannot start: {}.", stuck.pod->key().name, stuck.failure.message);
}

// The first pod that has waited for too long.
std::optional<Stuck> Overdue(Pass& pass, const std::vector<Stuck>& stuck) {
  std::optional<Stuck> overdue;
  std::map<std::string, base::SteadyTime> now;
  for (const Stuck& each : stuck) {
    auto& since = pass.memory.starting.since;
    const auto before = since.find(each.pod->uid());
    const base::SteadyTime start = before == since.end() ? pass.world.steady : before->second;
    now[each.pod->uid()] = start;
    if (each.failure.kind == StartFailure::Kind::kNoNode) continue;
    const base::nanoseconds left = start + DeadlineOf(pass, each.failure.kind) - pass.world.steady;
    if (left > base::nanoseconds(0)) {
      pass.RequeueAfter(left);
    } else if (!overdue) {
      overdue = each;
    }
  }
  pass.memory.starting.since = std::move(now);
  return overdue;
}

void Tell(Pass& pass, const std::vector<Stuck>& stuck) {
  StartingState& state = pass.memory.starting;
  std::set<std::string> told;
  for (const Stuck& each : stuck) {
    const std::string id = each.pod->uid() + "/" + each.failure.reason;
    if (!state.told.contains(id)) pass.Warning("PodCannotStart", Sentence(each));
    told.insert(id);
  }
  state.told = std::move(told);
  state.reason = stuck.front().failure.reason;
  state.sentence = Sentence(stuck.front());
  if (stuck.front().failure.kind == StartFailure::Kind::kNoNode) return;
  const base::SteadyTime since = state.since.at(stuck.front().pod->uid());
  const base::nanoseconds left = since + DeadlineOf(pass, stuck.front().failure.kind) - pass.world.steady;
  const auto until = pass.world.now + std::chrono::duration_cast<base::WallTime::duration>(left);
  // To the minute: a sentence that changed in every pass would be written in every pass.
  const auto minute = std::chrono::floor<std::chrono::minutes>(until) + std::chrono::minutes(1);
  state.sentence += fmt::format(" The job waits for it until {}.", base::FormatTime(minute));
}

}  // namespace

absl::StatusOr<bool> HandleStartFailures(Pass& pass, const TrainingJob& job) {
  const std::vector<Stuck> stuck = FindStuck(pass, job);
  if (stuck.empty()) {
    pass.memory.starting = {};
    return false;
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::ObjectPtr> outdated, Outdated(pass, job, stuck));
  if (!outdated.empty()) {
    pass.Event("PodReplaced", fmt::format("The template of pod {}, which could not start, was edited: {} of the job's "
                                          "pods are created again.",
                                          outdated.front()->key().name, outdated.size()));
    MEDLEY_RETURN_IF_ERROR(DeleteSome(pass, outdated));
    pass.RequeueAfter(base::seconds(1));
    return true;
  }
  const std::optional<Stuck> overdue = Overdue(pass, stuck);
  Tell(pass, stuck);
  if (!overdue || IsInForce(pass)) return false;  // a job that trains goes on without the pod
  const std::string sentence = fmt::format("{} It has been so for {:.0f} min.", Sentence(*overdue),
                                           base::ToSeconds(DeadlineOf(pass, overdue->failure.kind)) / 60);
  if (pass.observed != nullptr && pass.observed->generation > 0) {
    return GoBack(pass, job, overdue->pool,
                  fmt::format("Plan {} cannot run: {}", pass.memory.planning.record->plan.generation, sentence));
  }
  MEDLEY_RETURN_IF_ERROR(Finish(pass, job, false, "PodCannotStart", sentence));
  return true;
}

}  // namespace medley::ops::lifecycle
