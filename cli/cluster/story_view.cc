#include "cli/cluster/story_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/cluster/advice.h"
#include "cli/cluster/embedding_view.h"
#include "cli/cluster/story_parts.h"
#include "cli/cluster/top_view.h"
#include "cli/exit_status.h"
#include "cli/format.h"
#include "cli/once.h"
#include "cli/table.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"

namespace medley::cli {
namespace {

constexpr size_t kEventsShown = 12;
constexpr size_t kSwitchesShown = 5;
constexpr size_t kColumns = 100;  // width of wrapped sentences

// Appends a section: its heading and the indented lines; nothing when `body` is empty.
void Section(const std::string& heading, const std::vector<std::string>& body, std::vector<std::string>& lines) {
  if (body.empty()) return;
  lines.emplace_back();
  lines.push_back(heading);
  for (const std::string& line : body) lines.push_back(line.empty() ? "" : "  " + line);
}

// The same, but wraps each sentence.
void Sentences(const std::string& heading, const std::vector<std::string>& body, std::vector<std::string>& lines) {
  std::vector<std::string> wrapped;
  for (const std::string& sentence : body) {
    for (std::string& line : Wrapped(sentence, kColumns)) wrapped.push_back(std::move(line));
  }
  Section(heading, wrapped, lines);
}

std::string Headline(const Story& story, const ops::JobStatus& status) {
  std::string line = fmt::format("job {} is {}", story.job.key().ToString(),
                                 story.job.deleting() ? "Terminating (it was deleted)" : status.Phase());
  if (status.observed && status.observed->samples_total > 0) {
    const ops::ObservedStatus& seen = *status.observed;
    line +=
        fmt::format(", {} % done: {} of {} samples", seen.progress_percent,
                    Thousands(static_cast<double>(seen.samples)), Thousands(static_cast<double>(seen.samples_total)));
    if (seen.loss != 0) line += fmt::format(", loss {:.4f}", seen.loss);
    if (!status.finished() && seen.estimated_remaining_seconds > 0) {
      line += fmt::format(", {} left", Span(static_cast<double>(seen.estimated_remaining_seconds)));
    }
    for (const auto& [name, value] : seen.metrics) {
      const bool whole = std::abs(value) >= 2 && value == std::floor(value);
      line += ", " + name + " " + (whole ? Thousands(value) : fmt::format("{:.4f}", value));
    }
  }
  return line;
}

std::vector<std::string> Problems(const Story& story, const ops::JobStatus& status) {
  std::vector<std::string> body;
  const std::string name = story.job.key().name;
  const std::string managed_by = story.job.String("/spec/runPolicy/managedBy");
  if (!managed_by.empty() && managed_by != ops::kThisOperator) {
    body.push_back(fmt::format("spec.runPolicy.managedBy is {}: Medley leaves the job to that controller", managed_by));
    return body;
  }
  if (status.conditions.all().empty()) {
    body.emplace_back("the operator has not processed the job yet");
    body.emplace_back("to do: check that the operator runs: kubectl -n medley-system get deployment medley-operator");
    return body;
  }
  const std::vector<const ops::Condition*> conditions = NotableConditions(status);
  for (const ops::Condition* condition : conditions) {
    const std::string why = condition->reason == condition->type ? "" : ", " + condition->reason;
    body.push_back(
        fmt::format("{}={}{}: {}", condition->type, ops::ToString(condition->status), why, condition->message));
    if (const std::string advice = Advice(condition->reason, name); !advice.empty()) body.push_back("to do: " + advice);
  }
  if (conditions.empty() && status.conditions.IsTrue(ops::kPlannedCondition) && !status.finished() &&
      !status.conditions.IsTrue(ops::kRunningCondition)) {
    body.push_back("its pods have been created; they are connecting and building the model: medley logs " + name +
                   " -f");
  }
  if (status.observed_generation != 0 && status.observed_generation < story.job.generation()) {
    body.emplace_back("the operator has not processed the last change of the spec yet");
  }
  if (status.finished()) return body;
  for (std::string& line : DeletedPools(story, status)) body.push_back(std::move(line));
  for (std::string& line : PodProblems(story)) body.push_back(std::move(line));
  return body;
}

std::string ProblemsHeading(const ops::JobStatus& status) {
  if (status.conditions.IsTrue(ops::kFailedCondition)) return "why it failed";
  const bool trains = status.finished() || status.conditions.IsTrue(ops::kRunningCondition);
  return trains ? "current state" : "why it does not train";
}

// The pools of which jobs get no further units, and why.
std::vector<std::string> UnavailablePools(const Story& story) {
  std::vector<std::string> lines;
  for (const kube::Object& pool : story.pools) {
    const ops::PoolStatus status = ops::PoolStatus::FromJson(pool.At("/status"));
    const ops::Condition* available = status.conditions.Find(ops::kAvailableCondition);
    if (available == nullptr || available->status != ops::ConditionStatus::kFalse) continue;
    if (available->Has(ops::Reason::kNoNodes) || available->Has(ops::Reason::kInvalidSpec)) continue;
    lines.push_back(fmt::format("{}: {}", pool.key().name, available->message));
  }
  return lines;
}

// A table of the pools, when the job is waiting; else those that are unavailable.
std::vector<std::string> PoolLines(const Story& story, const ops::JobStatus& status, base::WallTime now) {
  const bool waits = !status.finished() && !status.conditions.IsTrue(ops::kRunningCondition) &&
                     !status.conditions.IsTrue(ops::kSuspendedCondition);
  if (status.finished() || story.pools.empty()) return {};
  if (!waits) return UnavailablePools(story);
  std::vector<std::string> lines = TopLines(TakeTop({}, story.pools, now), false, 0);
  // Drop the four lines before the pools: the sums, the line about jobs and two empty lines.
  lines.erase(lines.begin(), lines.begin() + 4);
  return lines;
}

std::vector<std::string> Money(const ops::JobStatus& status) {
  std::vector<std::string> body;
  if (!status.cost) return body;
  body.push_back(fmt::format("spent  {} USD, {} USD per million samples", Usd(status.cost->spent_usd),
                             Usd(status.cost->usd_per_million_samples)));
  if (!status.cost->saved_usd) return body;  // the job has its first plan
  const double saved = *status.cost->saved_usd;
  const std::string than = "compared with the first plan at the same prices";
  if (saved > 0) {
    body.push_back(
        fmt::format("saved  {} USD ({:.0f} %) {}", Usd(saved), 100 * saved / (saved + status.cost->spent_usd), than));
  } else if (saved < 0) {
    body.push_back(fmt::format("cost   {} USD more {}", Usd(-saved), than));
  } else {
    body.push_back("saved  0 USD " + than);
  }
  return body;
}

std::vector<std::string> Switches(const ops::JobStatus& status, base::WallTime now) {
  std::vector<std::string> body;
  std::vector<ops::RescaleStatus> switches = status.rescales;
  if (switches.empty() && status.last_rescale) switches.push_back(*status.last_rescale);
  std::reverse(switches.begin(), switches.end());
  for (size_t i = 0; i < std::min(switches.size(), kSwitchesShown); ++i) {
    const ops::RescaleStatus& s = switches[i];
    body.push_back(fmt::format("{} {} -> {}, {}: {} ago, training paused for {:.2f} s{}{}",
                               s.recovery ? "recovery" : "rescale", s.from_generation, s.to_generation, s.reason,
                               Ago(s.at, now), s.pause_seconds,
                               s.start_seconds > 0 ? fmt::format(" ({:.2f} s to start)", s.start_seconds) : "",
                               s.lost_steps > 0 ? ", " + Counted(s.lost_steps, "step") + " trained again" : ""));
  }
  if (switches.size() > kSwitchesShown) {
    body.push_back(fmt::format("and {} earlier ones", switches.size() - kSwitchesShown));
  }
  if (status.restarts > 0) body.push_back(Counted(status.restarts, "restart") + " in total");
  return body;
}

// A sentence that a condition or an earlier Event says is not said again.
std::vector<std::string> Events(const Story& story, base::WallTime now, Once& once) {
  Table table({"AGO", "TIMES", "REASON", "OBJECT", "MESSAGE"});
  const size_t first = story.events.size() - std::min(story.events.size(), kEventsShown);
  for (size_t i = first; i < story.events.size(); ++i) {
    const kube::Object& event = story.events[i];
    const kube::Json& count = event.At("/count");
    const std::string last = event.String("/lastTimestamp");
    const std::string message = event.String("/message");
    const std::string rest = event.String("/type") == "Warning" ? once.Rest(message) : message;
    table.Add({Ago(last.empty() ? event.String("/eventTime") : last, now),
               count.is_number_integer() ? count.dump() : "1", event.String("/reason"),
               event.String("/involvedObject/kind") == "Pod" ? event.String("/involvedObject/name") : "job",
               rest.empty() ? "as above" : rest});
  }
  return story.events.empty() ? std::vector<std::string>() : Lines(table.Text());
}

}  // namespace

std::vector<std::string> StoryLines(const Story& story, base::WallTime now) {
  const ops::JobStatus status = ops::JobStatus::FromJson(story.job.At("/status"));
  std::vector<std::string> lines = {Headline(story, status)};
  Once once;
  for (const ops::Condition* condition : NotableConditions(status)) once.Said(condition->message);
  Sentences(ProblemsHeading(status), Problems(story, status), lines);
  Section("pools", PoolLines(story, status, now), lines);
  Section("goals", Goals(story, status, now), lines);
  Section("plan", Plan(story, status, now), lines);
  const bool fastest =
      story.job.At("/spec/objective/fastest") == true || story.job.At("/spec/objective/minimize") == "Seconds";
  Section(fastest ? "other plans" : "plans on a single pool", Alternatives(status), lines);
  Section("predicted and measured", Prediction(story, status), lines);
  if (status.observed && status.observed->embeddings) {
    Section("rows of embedding tables", {EmbeddingSentence(*status.observed->embeddings)}, lines);
  }
  if (status.observed && status.observed->tables) {
    Section("embedding tables of GPUs", {TablesSentence(*status.observed->tables)}, lines);
  }
  Section("cost", Money(status), lines);
  Section("generation switches, newest first", Switches(status, now), lines);
  Section("events, newest last", Events(story, now, once), lines);
  Sentences("could not be read", story.unread, lines);
  return lines;
}

int StoryExitStatus(const Story& story) {
  const ops::JobStatus status = ops::JobStatus::FromJson(story.job.At("/status"));
  if (status.conditions.IsTrue(ops::kFailedCondition)) return kJobFailed;
  return !status.finished() && status.conditions.IsFalse(ops::kPlannedCondition) ? kNoPlan : kDone;
}

}  // namespace medley::cli
