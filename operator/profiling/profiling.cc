#include "operator/profiling/profiling.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/worker_state.h"
#include "operator/records/profile_store.h"

namespace medley::ops::profiling {
namespace {

using Stage = ProfileProgress::Stage;
using Step = Decision::Step;

constexpr int kMaxDoublings = 16;

base::nanoseconds Backoff(int failures, const Options& options) {
  const auto times = int64_t{1} << std::min(failures - 1, kMaxDoublings);
  return std::min(options.first_retry * times, options.longest_retry);
}

// Nothing is left to do but to delete what still runs.
Decision End(const World& world) {
  Decision decision;
  const bool runs = std::any_of(world.pods.begin(), world.pods.end(), [](const auto& pod) { return !pod->deleting(); });
  if (runs) decision.step = Step::kDeletePods;
  return decision;
}

// The pod has failed. It is counted once and deleted.
Decision Fail(const World& world, Memory memory, const Options& options, Stage stage, const std::string& reason,
              const std::string& how) {
  Decision decision;
  const kube::Object& pod = *world.pods.front();
  if (memory.failed_pod != pod.uid()) {
    memory.failed_pod = pod.uid();
    ++memory.failures;
    memory.retry_at = world.steady + Backoff(memory.failures, options);
    memory.last_failure = ProfileProgress{
        stage, reason, fmt::format("Profiler pod {} of pool {} {}.", pod.key().ToString(), world.pool->name, how),
        memory.failures};
    decision.events.push_back({true, reason, memory.last_failure->message});
  }
  decision.step = Step::kDeletePods;
  decision.progress = memory.last_failure;
  if (stage != Stage::kRefused) decision.requeue_after = std::max(memory.retry_at - world.steady, base::nanoseconds(0));
  decision.memory = std::move(memory);
  return decision;
}

Decision CheckEnded(const World& world, const Memory& memory, const Options& options) {
  const kube::Object& pod = *world.pods.front();
  if (!world.log) return {.step = Step::kReadLog, .memory = memory, .progress = memory.last_failure};
  const std::string log = world.log->ok() ? **world.log : "";
  if (!WorkerHasSucceeded(pod)) {
    const bool permanent = ExitCode(pod) == kPermanentFailure;
    const std::string how = DescribeEnd(pod, LastLine(log));
    return permanent ? Fail(world, memory, options, Stage::kRefused, "ProfileFailed", how + ". A retry will not help")
                     : Fail(world, memory, options, Stage::kFailed, "ProfilerFailed", how);
  }
  const auto json = ProfileJsonInLog(log);
  const absl::Status valid = json.ok() ? ParseProfile(*json, world.pool->name).status() : json.status();
  if (!valid.ok()) {
    return Fail(world, memory, options, Stage::kFailed, "ProfileUnreadable",
                "printed no profile that can be read: " + base::Message(valid));
  }
  Decision decision;
  decision.step = Step::kStore;
  decision.profile = *json;
  decision.events.push_back({false, "Profiled", "the layers were measured on pool " + world.pool->name});
  return decision;
}

Decision CheckPod(const World& world, const Memory& memory, const Options& options) {
  const kube::Object& pod = *world.pods.front();
  const ProfileProgress running{
      Stage::kRunning, "Measuring",
      fmt::format("Profiler pod {} measures the layers on pool {}.", pod.key().ToString(), world.pool->name),
      memory.failures};
  if (pod.deleting()) return {.memory = memory, .progress = memory.last_failure ? memory.last_failure : running};
  if (WorkerHasEnded(pod)) return CheckEnded(world, memory, options);
  const auto created = base::ParseTime(pod.String("/metadata/creationTimestamp"));
  const base::nanoseconds left = created.ok() ? *created + options.deadline - world.now : options.deadline;
  if (left <= base::nanoseconds(0)) {
    return Fail(world, memory, options, Stage::kFailed, "ProfilingTimedOut",
                fmt::format("has not ended within {:.0f} s", base::ToSeconds(options.deadline)));
  }
  return {.memory = memory, .progress = memory.last_failure ? memory.last_failure : running, .requeue_after = left};
}

}  // namespace

Decision Decide(const World& world, const Memory& before, const Options& options) {
  if (world.stored || !world.job || !world.pool) return End(world);
  const int64_t generation = world.pool->object.generation();
  const Memory memory = before.pool_generation == generation ? before : Memory{.pool_generation = generation};
  if (!world.pods.empty()) return CheckPod(world, memory, options);
  if (memory.last_failure && memory.last_failure->stage == Stage::kRefused)
    return {.memory = memory, .progress = memory.last_failure};
  if (memory.retry_at > world.steady) {
    return {.memory = memory, .progress = memory.last_failure, .requeue_after = memory.retry_at - world.steady};
  }
  if (world.free_units <= 0) {
    const ProfileProgress waiting{Stage::kWaiting, "NoFreeUnit",
                                  fmt::format("The layers are measured on pool {} once it has a free unit; now the "
                                              "units are limited by {}.",
                                              world.pool->name, world.bound),
                                  memory.failures};
    return {.memory = memory,
            .progress = memory.last_failure ? memory.last_failure : waiting,
            .requeue_after = options.unit_poll};
  }
  const ProfileProgress starting{Stage::kRunning, "Measuring",
                                 fmt::format("A profiler pod is created on pool {}.", world.pool->name),
                                 memory.failures};
  return {.step = Step::kCreatePod, .memory = memory, .progress = memory.last_failure ? memory.last_failure : starting};
}

Decision AfterFailedCreation(const World& world, const Memory& memory, const Options& options, const std::string& why) {
  Decision decision;
  decision.memory = memory;
  Memory& next = decision.memory;
  ++next.failures;
  next.retry_at = world.steady + Backoff(next.failures, options);
  next.last_failure = ProfileProgress{
      Stage::kWaiting, "FailedCreatePod",
      fmt::format("The layers cannot be measured on pool {}, because no profiler pod can be created: {}.",
                  world.pool->name, why),
      next.failures};
  decision.events.push_back({true, "FailedCreatePod", next.last_failure->message});
  decision.progress = next.last_failure;
  decision.requeue_after = next.retry_at - world.steady;
  return decision;
}

}  // namespace medley::ops::profiling
