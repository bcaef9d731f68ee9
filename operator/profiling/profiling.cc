#include "operator/profiling/profiling.h"
#include "common/model/profile.h"
#include "operator/api/cause.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "operator/api/resources.h"
#include "operator/api/start_failure.h"
#include "operator/api/worker_state.h"
#include "operator/builders/pods.h"
#include "operator/records/left_result.h"
#include "operator/records/profile_store.h"
#include "operator/records/program_plan.h"

namespace medley::ops::profiling {
namespace {

using Stage = ProfileProgress::Stage;
using Step = Decision::Step;

constexpr int kMaxDoublings = 16;
// Failures for lack of memory, before a job is not measured on the pool any more: a third try would end like the
// second.
constexpr int kMostShortages = 2;

base::nanoseconds Backoff(int failures, const Options& options) {
  const auto times = int64_t{1} << std::min(failures - 1, kMaxDoublings);
  return std::min(options.first_retry * times, options.longest_retry);
}

std::string VersionOf(const ResourcePool& pool) {
  return pool.object.uid() + "/" + std::to_string(pool.object.generation());
}

// How long the pod may go on.
base::nanoseconds DeadlineOf(const World& world, const Memory& memory, const Options& options) {
  if (!memory.seen_with_node && world.pool->scaling == PoolScaling::kAutoscaled) {
    return base::FromSeconds(world.pool->provision_timeout_seconds);
  }
  if (!world.others_wait) return options.deadline;
  return std::min(options.deadline, options.turn_deadline * (int64_t{1} << std::min(Failures(memory), kMaxDoublings)));
}

// What is reported while nothing new has failed: the last failure, else `otherwise`. `first_try`: failures of other
// jobs' templates say nothing of this one.
ProfileProgress Report(const Memory& memory, ProfileProgress otherwise, bool first_try = false) {
  ProfileProgress progress = memory.last_failure && !first_try ? *memory.last_failure : std::move(otherwise);
  if (progress.public_message.empty()) progress.public_message = progress.message;
  progress.failures = memory.failures;
  progress.refused = memory.refused;
  return progress;
}

// The job whose template the pod has, which need not be the one that is chosen now.
std::string OwnerOf(const World& world, const kube::Object& pod) {
  const auto owner = pod.controller();
  return owner ? owner->uid : world.job->object.uid();
}

// How long the kubelet still has to delete the pod. nullopt: nobody has asked for it.
std::optional<base::nanoseconds> UntilOverdue(const kube::Object& pod, base::WallTime now, const Options& options) {
  const auto due = base::ParseTime(pod.String("/metadata/deletionTimestamp"));
  if (!due.ok()) return std::nullopt;
  return std::chrono::duration_cast<base::nanoseconds>(*due - now) + options.overdue;
}

// Waits for pods that terminate, and forces the deletion of those whose node does not answer: they would keep their
// names, and their places among max_pods, as long as the Node object stays.
void AwaitDeletions(const World& world, const Options& options, Decision& decision) {
  for (const kube::ObjectPtr& pod : world.pods) {
    const auto left = UntilOverdue(*pod, world.now, options);
    if (!left) continue;
    if (*left <= base::nanoseconds(0)) {
      decision.step = Step::kForceDeletePods;
      return;
    }
    decision.requeue_after = std::min(decision.requeue_after.value_or(*left), *left);
  }
}

// Nothing is left to do but to delete what still exists.
Decision End(const World& world, const Options& options) {
  Decision decision;
  const bool runs = std::any_of(world.pods.begin(), world.pods.end(), [](const auto& pod) { return !pod->deleting(); });
  if (runs) {
    decision.step = Step::kDeletePods;
  } else {
    AwaitDeletions(world, options, decision);
  }
  return decision;
}

struct Failure {
  Stage stage = Stage::kFailed;
  Reason reason = Reason::kProfilerFailed;
  std::string how;    // a clause without a subject and without words of the log
  std::string cause;  // what the log says; empty: nothing
};

// The pod has failed. It is counted once and deleted.
Decision Fail(const World& world, Memory memory, const Options& options, const Failure& failure) {
  Decision decision;
  const kube::Object& pod = *world.pods.front();
  if (memory.failed_pod != pod.uid()) {
    memory.failed_pod = pod.uid();
    const std::string job = OwnerOf(world, pod);
    const int failures = ++memory.failures[job];
    if (failure.stage == Stage::kRefused) memory.refused.insert(job);
    // After a refusal the template of another job may be right.
    memory.retry_at = world.steady;
    if (failure.stage != Stage::kRefused) memory.retry_at += Backoff(failures, options);
    const std::string where =
        fmt::format("Profiler pod {} of pool {} {}.", pod.key().ToString(), world.pool->name, failure.how);
    memory.last_failure = ProfileProgress{
        failure.stage, failure.reason, CauseFirst(failure.cause, where), where, {}, {}, CauseFirst(failure.cause, "")};
    decision.events.push_back({true, std::string(ToString(failure.reason)), memory.last_failure->message});
  }
  decision.step = Step::kDeletePods;
  decision.progress = Report(memory, {});
  decision.requeue_after = std::max(memory.retry_at - world.steady, base::nanoseconds(0));
  decision.memory = std::move(memory);
  return decision;
}

bool EndedWithoutMemory(const kube::Object& pod) {
  return WorkerStatus(pod).String("/state/terminated/reason") == "OOMKilled";
}

std::string MemoryAdvice(const ResourcePool& pool) {
  const auto memory = pool.unit_resources.find("memory");
  return fmt::format(
      ". A unit of the pool has {} of memory: give it more (spec.unit.resources.memory), or train with smaller "
      "batches or tables",
      memory == pool.unit_resources.end() ? "no limit" : memory->second);
}

Decision CheckEnded(const World& world, const Memory& memory, const Options& options) {
  const kube::Object& pod = *world.pods.front();
  if (!world.log) return {.step = Step::kReadLog, .memory = memory, .progress = Report(memory, {})};
  const std::string log = world.log->ok() ? **world.log : TerminationMessage(pod);
  if (!WorkerHasSucceeded(pod)) {
    const std::string how = DescribeEnd(pod, "");
    const std::string cause = LogTellsEnd(pod) ? CauseIn(LastLine(log)) : "";
    const auto before = memory.failures.find(OwnerOf(world, pod));
    const int failures = before == memory.failures.end() ? 0 : before->second;
    if (EndedWithoutMemory(pod) && failures + 1 >= kMostShortages) {
      const std::string advice = MemoryAdvice(*world.pool);
      return Fail(world, memory, options, {Stage::kRefused, Reason::kProfileFailed, how + advice, cause});
    }
    if (ExitCode(pod) != kPermanentFailure) {
      return Fail(world, memory, options, {Stage::kFailed, Reason::kProfilerFailed, how, cause});
    }
    return Fail(world, memory, options,
                {Stage::kRefused, Reason::kProfileFailed, how + ". A retry will not help", cause});
  }
  const auto json = ProfileJsonInLog(log);
  const absl::StatusOr<model::Profile> profile =
      json.ok() ? ParseProfile(*json, world.pool->name) : absl::StatusOr<model::Profile>(json.status());
  if (!profile.ok()) {
    return Fail(world, memory, options,
                {Stage::kFailed, Reason::kProfileUnreadable, "printed no profile that can be read",
                 base::Message(profile.status())});
  }
  Decision decision{.step = Step::kStore, .profile = *json};
  decision.events.push_back({false, "Profiled", MeasuredWords(*profile, world.pool->name)});
  return decision;
}

Decision AwaitDeletion(const World& world, Memory memory, const Options& options) {
  ProfileProgress terminating{Stage::kWaiting,
                              Reason::kMeasuring,
                              fmt::format("Profiler pod {} terminates.", world.pods.front()->key().ToString()),
                              "",
                              {},
                              {}};
  Decision decision;
  decision.progress = Report(memory, std::move(terminating));
  decision.memory = std::move(memory);
  AwaitDeletions(world, options, decision);
  return decision;
}

// Whether the job's template is not that from which the pod was made.
bool IsOutdated(const World& world, const kube::Object& pod, const Options& options) {
  const std::string made_from = pod.annotation(kTemplateAnnotation);
  return !made_from.empty() && OwnerOf(world, pod) == world.job->object.uid() &&
         made_from != TemplateDigest(*world.job, Role::kProfiler, &*world.pool, options.worker);
}

// Whether the pod's node has not been ready for so long that the pod is measured elsewhere.
bool NodeIsLost(const World& world, Memory& memory, const Options& options) {
  if (!world.node_not_ready) {
    memory.not_ready_since.reset();
    return false;
  }
  if (!memory.not_ready_since) memory.not_ready_since = world.steady;
  return world.steady - *memory.not_ready_since >= options.node_patience;
}

// No failure of the job's template: the next pod is created when this one has been deleted.
Decision LeaveNode(const World& world, Memory memory) {
  const kube::Object& pod = *world.pods.front();
  const std::string sentence = fmt::format("Node {} of profiler pod {} is not ready: pool {} is measured on another.",
                                           pod.String("/spec/nodeName"), pod.key().ToString(), world.pool->name);
  Decision decision;
  decision.step = Step::kDeletePods;
  if (memory.lost_pod != pod.uid())
    decision.events.push_back({true, std::string(ToString(Reason::kNodeLost)), sentence});
  memory.lost_pod = pod.uid();
  decision.progress = Report(memory, {Stage::kWaiting, Reason::kMeasuring, sentence, "", {}, {}});
  decision.memory = std::move(memory);
  return decision;
}

Decision CheckPod(const World& world, Memory memory, const Options& options) {
  const kube::Object& pod = *world.pods.front();
  if (pod.deleting()) return AwaitDeletion(world, std::move(memory), options);
  if (const std::string made_for = pod.annotation(kPoolVersionAnnotation);
      !made_for.empty() && made_for != PoolVersion(*world.pool)) {
    ProfileProgress outdated{
        Stage::kWaiting,
        Reason::kMeasuring,
        fmt::format("Pool {} was edited: profiler pod {} is replaced.", world.pool->name, pod.key().ToString()),
        fmt::format("Pool {} was edited, so its profiler pod is replaced.", world.pool->name),
        {},
        {}};
    return {.step = Step::kDeletePods, .memory = memory, .progress = Report(memory, std::move(outdated))};
  }
  const bool has_node = !pod.String("/spec/nodeName").empty() || pod.String("/status/phase") != "Pending";
  if (memory.seen_pod != pod.uid() || (has_node && !memory.seen_with_node)) {
    memory.seen_pod = pod.uid();
    memory.seen_with_node = has_node;
    memory.seen_since = world.steady;
    memory.not_ready_since.reset();
  }
  memory.failed_creations.erase(OwnerOf(world, pod));
  const std::optional<StartFailure> start = StartFailureOf(pod, world.now);
  if (start && IsOutdated(world, pod, options)) {
    ProfileProgress outdated{Stage::kWaiting,
                             Reason::kMeasuring,
                             fmt::format("The template of profiler pod {}, which could not start, was edited: the pod "
                                         "is replaced.",
                                         pod.key().ToString()),
                             "A profiler pod is replaced.",
                             {},
                             {}};
    return {.step = Step::kDeletePods, .memory = memory, .progress = Report(memory, std::move(outdated))};
  }
  const base::nanoseconds deadline = DeadlineOf(world, memory, options);
  const base::nanoseconds left = memory.seen_since + deadline - world.steady;
  const bool refused = start && start->kind == StartFailure::Kind::kRefused;
  if (left <= base::nanoseconds(0) && refused) {
    const std::string times = fmt::format(" for {:.0f} s", base::ToSeconds(deadline));
    return Fail(world, memory, options,
                {Stage::kRefused, Reason::kProfileFailed, "cannot start" + times + ": " + start->message,
                 "cannot start" + times + ": " + start->reason});
  }
  if (left <= base::nanoseconds(0)) {
    const std::string how = fmt::format("has {} within {:.0f} s", has_node ? "given no result" : "found no node",
                                        base::ToSeconds(deadline));
    Decision decision = Fail(world, memory, options, {Stage::kFailed, Reason::kProfilingTimedOut, how, ""});
    decision.no_node = !has_node && !decision.events.empty();
    return decision;
  }
  if (WorkerHasEnded(pod)) return CheckEnded(world, memory, options);
  if (NodeIsLost(world, memory, options)) return LeaveNode(world, std::move(memory));
  ProfileProgress running{
      Stage::kRunning,
      Reason::kMeasuring,
      fmt::format("Profiler pod {} measures the layers on pool {}.", pod.key().ToString(), world.pool->name),
      "",
      {},
      {}};
  if (start) {
    running.reason = Reason::kPodCannotStart;
    running.message = fmt::format("Profiler pod {} of pool {} cannot start: {}.", pod.key().ToString(),
                                  world.pool->name, start->message);
    running.public_message = fmt::format("A profiler pod cannot start: {}.", start->reason);
  }
  Decision decision;
  const bool first_try = !memory.failures.contains(OwnerOf(world, pod));
  decision.progress = Report(memory, std::move(running), first_try);
  decision.memory = std::move(memory);
  // Others may begin to wait.
  const base::nanoseconds poll = options.max_pods > 0 ? options.unit_poll : options.node_poll;
  decision.requeue_after = std::min({left, poll, options.node_poll});
  return decision;
}

}  // namespace

bool IsReady(const World& world, const Memory& memory) {
  if (!world.pods.empty() || world.stored || !world.job || !world.pool || world.free_units <= 0) return false;
  if (memory.pool_version != VersionOf(*world.pool)) return true;  // failures are forgotten
  return memory.retry_at <= world.steady && !memory.refused.contains(world.job->object.uid());
}

int Failures(const Memory& memory) {
  int failures = 0;
  for (const auto& [job, count] : memory.failures) failures += count;
  return failures;
}

std::string PoolVersion(const ResourcePool& pool) {
  kube::Json spec = pool.object.At("/spec");
  for (const char* field : {"limit", "price", "offering", "namespaces", "scaling", "provisionTimeout"}) {
    if (spec.is_object()) spec.erase(field);
  }
  return base::HashHex(kube::Dump(spec));
}

bool DeletionIsOverdue(const kube::Object& pod, base::WallTime now, const Options& options) {
  const auto left = UntilOverdue(pod, now, options);
  return left && *left <= base::nanoseconds(0);
}

std::string ChooseJob(const std::vector<std::string>& uids, const Memory& memory) {
  const auto cost = [&](const std::string& uid) {
    const auto failures = memory.failures.find(uid);
    const auto creations = memory.failed_creations.find(uid);
    return std::pair(memory.refused.contains(uid),
                     (failures == memory.failures.end() ? 0 : failures->second) +
                         (creations == memory.failed_creations.end() ? 0 : creations->second));
  };
  return *std::min_element(uids.begin(), uids.end(),
                           [&](const std::string& a, const std::string& b) { return cost(a) < cost(b); });
}

Decision Decide(const World& world, const Memory& before, const Options& options) {
  if (world.stored || !world.job || !world.pool) return End(world, options);
  const std::string version = VersionOf(*world.pool);
  Memory memory = before.pool_version == version ? before : Memory{.pool_version = version};
  if (!world.pods.empty()) return CheckPod(world, std::move(memory), options);
  Decision decision;
  if (memory.refused.contains(world.job->object.uid())) {
    decision.progress = Report(memory, {});
  } else if (memory.retry_at > world.steady) {
    decision.progress = Report(memory, {});
    decision.requeue_after = memory.retry_at - world.steady;
  } else if (world.other_pods) {
    decision.progress =
        Report(memory,
               {Stage::kRunning,
                Reason::kMeasuring,
                fmt::format("Job {} waits for other profiler pods to end (--max-profilers is {}) before its layers are "
                            "measured on pool {}.",
                            world.job->key().ToString(), options.max_pods, world.pool->name),
                "",
                {},
                {}});
    decision.requeue_after = options.turn_poll;
  } else if (world.free_units <= 0) {
    decision.progress = Report(
        memory, {Stage::kWaiting,
                 Reason::kNoFreeUnit,
                 fmt::format("Job {} waits for a free unit of pool {} on which to measure its layers; the units are "
                             "limited by {}.",
                             world.job->key().ToString(), world.pool->name, world.bound),
                 "A job waits for a free unit of the pool on which to measure its layers.",
                 {},
                 {}});
    decision.requeue_after = options.unit_poll;
  } else {
    decision.step = Step::kCreatePod;
    decision.progress = Report(memory, {Stage::kRunning,
                                        Reason::kMeasuring,
                                        fmt::format("A profiler pod for job {} is being created on pool {}.",
                                                    world.job->key().ToString(), world.pool->name),
                                        "",
                                        {},
                                        {}});
  }
  decision.memory = std::move(memory);
  return decision;
}

Decision AfterFailedCreation(const World& world, const Memory& memory, const Options& options, const std::string& why) {
  Decision decision;
  decision.memory = memory;
  Memory& next = decision.memory;
  const int failures = ++next.failed_creations[world.job->object.uid()];
  next.retry_at = world.steady + Backoff(failures, options);
  const std::string start = fmt::format(
      "The layers of job {} cannot be measured on pool {}, because no profiler pod can "
      "be created",
      world.job->key().ToString(), world.pool->name);
  next.last_failure =
      ProfileProgress{Stage::kWaiting, Reason::kFailedCreatePod, start + ": " + why + ".", start + ".", {}, {}};
  decision.events.push_back({true, std::string(ToString(Reason::kFailedCreatePod)), next.last_failure->message});
  decision.progress = Report(next, {});
  decision.requeue_after = next.retry_at - world.steady;
  return decision;
}

}  // namespace medley::ops::profiling
