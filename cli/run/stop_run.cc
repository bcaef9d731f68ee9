#include "cli/run/stop_run.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/job_status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

constexpr base::nanoseconds kPoll = base::milliseconds(100);

// Waits until the job is suspended. Returns why no checkpoint was taken; empty: one was.
std::string AwaitSuspension(base::Clock& clock, kube::Client& client, const kube::Key& job, base::SteadyTime deadline,
                            StoppedRun& stopped) {
  while (clock.Steady() < deadline) {
    const auto object = client.Get(ops::TrainingJobs(), job);
    if (!object.ok()) return base::Message(object.status());
    const ops::JobStatus status = ops::JobStatus::FromJson(object->At("/status"));
    if (status.observed) stopped.step = std::max(stopped.step, status.observed->step);
    const ops::Condition* disk = status.conditions.Find(ops::kCheckpointFailingCondition);
    const bool failing = disk != nullptr && disk->status == ops::ConditionStatus::kTrue;
    if (status.conditions.IsTrue(ops::kCompleteCondition)) {
      stopped.complete = true;
      return "";
    }
    for (const char* type : {ops::kFailedCondition, ops::kSuspendedCondition}) {
      const ops::Condition* condition = status.conditions.Find(type);
      if (condition == nullptr || condition->status != ops::ConditionStatus::kTrue) continue;
      return failing ? disk->message : condition->message;
    }
    clock.SleepFor(kPoll, std::stop_token());
  }
  return "the job did not stop in time";
}

bool NeedsQuotes(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+";
  return word.empty() || word.find_first_not_of(kPlain) != std::string::npos;
}

}  // namespace

StoppedRun StopAndSave(base::Clock& clock, kube::Client& client, const kube::Key& job, const worker::Volume& job_folder,
                       base::nanoseconds timeout) {
  StoppedRun stopped;
  const auto before = client.Get(ops::TrainingJobs(), job);
  const ops::JobStatus status = before.ok() ? ops::JobStatus::FromJson(before->At("/status")) : ops::JobStatus();
  stopped.complete = status.conditions.IsTrue(ops::kCompleteCondition);
  if (status.observed) stopped.step = status.observed->step;
  std::string problem = before.ok() ? "" : base::Message(before.status());
  if (before.ok() && !status.finished() && stopped.step > 0) {
    const auto asked = client.Patch(ops::TrainingJobs(), job, kube::PatchType::kMerge,
                                    {{"spec", {{"runPolicy", {{"suspend", true}}}}}});
    problem = asked.ok() ? AwaitSuspension(clock, client, job, clock.Steady() + timeout, stopped)
                         : base::Message(asked.status());
  }
  if (!job_folder.empty()) stopped.checkpoint = NewestCheckpoint(job_folder);
  const bool saved = stopped.checkpoint && stopped.checkpoint->step >= stopped.step;
  if (saved) stopped.step = stopped.checkpoint->step;
  if (!saved && stopped.step > 0) stopped.problem = problem.empty() ? "no checkpoint was written" : problem;
  return stopped;
}

std::vector<std::string> StopLines(const StoppedRun& stopped, const std::string& command) {
  if (!stopped.checkpoint) {
    if (stopped.step == 0) return {"stopped before the first step: there is nothing to continue"};
    return {fmt::format("stopped at step {} without a checkpoint, so there is nothing to continue: {}", stopped.step,
                        stopped.problem)};
  }
  std::vector<std::string> lines;
  if (stopped.problem.empty()) {
    lines.push_back(
        fmt::format("stopped at step {}; the checkpoint is {}", stopped.step, stopped.checkpoint->folder.string()));
  } else {
    lines.push_back(fmt::format("stopped at step {}; the last checkpoint is of step {}: {} ({})", stopped.step,
                                stopped.checkpoint->step, stopped.checkpoint->folder.string(), stopped.problem));
  }
  lines.push_back("continue with: " + command);
  return lines;
}

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!NeedsQuotes(word)) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

}  // namespace medley::cli
