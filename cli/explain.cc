// medley explain JOB: reports a job's state, plan, cost, switches and problems from a cluster.
// medley explain --bill JOB or FOLDER: what a job, or a run that was kept, has paid for.
// medley explain FILE: plans a request and explains each stage, the binding constraints and the alternatives.
#include <fmt/printf.h>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/cluster/bill_view.h"
#include "cli/cluster/story_view.h"
#include "cli/commands.h"
#include "cli/dashboard/job_json.h"
#include "cli/exit_status.h"
#include "cli/format.h"
#include "cli/output_file.h"
#include "cli/plan_input.h"
#include "cli/run/saved_run.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/value_text.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

constexpr double kBinds = 1e-3;  // a constraint binds when its value is within this fraction of its bound

// Where the rows of the stage's embedding tables are, of a unit with a GPU.
std::string ExplainTables(const model::Tables& tables) {
  switch (tables.place) {
    case model::TablePlace::kUnspecified:
      return "";
    case model::TablePlace::kDevice:
      return "  tables: whole in the memory of the GPU, so nothing is pulled, and the stage has one unit\n";
    case model::TablePlace::kCache:
      return fmt::sprintf(
          "  tables: on the host; the GPU has a cache of %s bytes, in which %s %% of the rows are expected\n",
          FormatDecimal(static_cast<double>(tables.cache_bytes), 0).c_str(),
          FormatDecimal(100 * tables.hits, 1).c_str());
    case model::TablePlace::kHost:
      return "  tables: in the memory of hosts; each step copies its rows to the GPU\n";
  }
  return "";
}

void ExplainStages(const Planned& planned, std::string& out) {
  const model::ProvisionedPlan& plan = *planned.result.plan;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const model::ProvisionedStage& s = plan.stages[i];
    const bool slowest = s.throughput <= plan.throughput * (1 + 1e-9);
    out += fmt::sprintf("stage %zu: layers %d..%d on %d x %s\n", i, s.first_layer, s.last_layer, s.units,
                        s.resource_type.c_str());
    out += fmt::sprintf("  %s bound: computes %s s and communicates %s s per batch, both at the same time\n",
                        s.compute_seconds >= s.comm_seconds ? "compute" : "communication",
                        FormatDecimal(s.compute_seconds, 6).c_str(), FormatDecimal(s.comm_seconds, 6).c_str());
    out += ExplainTables(s.tables);
    if (slowest) {
      out += fmt::sprintf("  limits the throughput: %s samples/s\n", FormatDecimal(s.throughput, 1).c_str());
    } else {
      out += fmt::sprintf(
          "  could process %s samples/s, %s %% more than the pipeline; with one unit less it would be too slow or "
          "below "
          "minUnits\n",
          FormatDecimal(s.throughput, 1).c_str(), FormatDecimal((s.throughput / plan.throughput - 1) * 100, 1).c_str());
    }
  }
  if (plan.server_units > 0) {
    out += fmt::sprintf("servers: %d x %s serve the parameters of sparse layers at that throughput\n",
                        plan.server_units, planned.request.server_type.c_str());
  }
  if (plan.trainers_with_rows > 0) {
    out += fmt::sprintf("rows: %d trainer%s keep%s the embedding rows, so there are no parameter servers\n",
                        plan.trainers_with_rows, plan.trainers_with_rows == 1 ? "" : "s",
                        plan.trainers_with_rows == 1 ? "s" : "");
  }
}

void ExplainConstraints(const Planned& planned, std::string& out) {
  const model::ProvisionedPlan& plan = *planned.result.plan;
  const model::Constraints& c = planned.request.constraints;
  out += fmt::sprintf("constraints at their bound:\n");
  int found = 0;
  const auto check = [&](const char* name, double value, double bound) {
    if (bound <= 0 || std::abs(value / bound - 1) > kBinds) return;
    ++found;
    out += fmt::sprintf("  %s: %s of %s\n", name, FormatDecimal(value, 4).c_str(), FormatDecimal(bound, 4).c_str());
  };
  check("minThroughput", plan.throughput, c.min_throughput);
  check("deadlineSeconds", plan.execution_seconds, c.deadline_seconds);
  check("maxCostPerHour", plan.cost_per_hour, c.max_cost_per_hour);
  check("budgetUsd", plan.cost_usd, c.budget_usd);
  std::map<std::string, int> used;
  for (const model::ProvisionedStage& s : plan.stages) used[s.resource_type] += s.units;
  if (plan.server_units > 0) used[planned.request.server_type] += plan.server_units;
  for (const model::Resource& r : planned.request.resources) {
    if (used[r.name] < r.limit || used[r.name] == 0) continue;
    ++found;
    out += fmt::sprintf("  limit of %s: all %d units are in use\n", r.name.c_str(), r.limit);
  }
  if (found > 0) return;
  switch (planned.request.objective) {
    case model::Objective::kCost:
      out += "  none: this is the cheapest plan with whole units\n";
      return;
    case model::Objective::kCostPerHour:
      out += "  none: no plan with whole units costs less per hour\n";
      return;
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      out += "  none: no plan with whole units is faster\n";
  }
}

void ExplainAlternatives(const Planned& planned, std::string& out) {
  out += fmt::sprintf("alternatives:\n");
  for (const model::Alternative& a : planned.result.alternatives) {
    if (!a.plan) {
      for (const model::Reason& reason : a.reasons) {
        out += fmt::sprintf("  %s: %s\n", a.label.c_str(), reason.message.c_str());
      }
      continue;
    }
    const double cost = planned.result.plan ? planned.result.plan->cost_usd : 0;
    if (planned.result.plan && a.plan->stages == planned.result.plan->stages) {
      out += fmt::sprintf("  %s: this is the plan\n", a.label.c_str());
    } else if (planned.request.objective != model::Objective::kCost) {
      out +=
          fmt::sprintf("  %s: %s USD per hour, %s s to the end for %s USD\n", a.label.c_str(),
                       FormatDecimal(a.plan->cost_per_hour, 4).c_str(),
                       FormatDecimal(a.plan->execution_seconds, 1).c_str(), FormatDecimal(a.plan->cost_usd, 4).c_str());
    } else if (cost > 0 && a.plan->cost_usd <= cost * (1 + 1e-9)) {
      out += fmt::sprintf("  %s: this is the plan\n", a.label.c_str());
    } else {
      out += fmt::sprintf("  %s: costs %s USD, %s %% more, at %s samples/s\n", a.label.c_str(),
                          FormatDecimal(a.plan->cost_usd, 4).c_str(),
                          FormatDecimal((a.plan->cost_usd / cost - 1) * 100, 1).c_str(),
                          FormatDecimal(a.plan->throughput, 1).c_str());
    }
  }
}

void ExplainProof(const model::PlanResult& result, std::string& out) {
  if (result.lower_bound_seconds) {
    out += fmt::sprintf("proof: no plan that meets the constraints ends in less than %s s\n",
                        FormatDecimal(*result.lower_bound_seconds, 1).c_str());
  } else if (result.lower_bound_usd_per_hour) {
    out += fmt::sprintf("proof: no plan that meets the constraints costs less than %s USD per hour\n",
                        FormatDecimal(*result.lower_bound_usd_per_hour, 4).c_str());
  } else if (!result.lower_bound_usd) {
    out += fmt::sprintf("proof: none, because planner %s computes no lower bound\n", result.planner.c_str());
  } else if (*result.gap <= 0) {
    out += fmt::sprintf("proof: no plan that meets the constraints costs less than %s USD\n",
                        FormatDecimal(*result.lower_bound_usd, 4).c_str());
  } else {
    out += fmt::sprintf(
        "proof: the time budget ended; no plan costs less than %s USD, so this one is at most %s %% too expensive\n",
        FormatDecimal(*result.lower_bound_usd, 4).c_str(), FormatDecimal(*result.gap * 100, 3).c_str());
  }
}

// What a plan on devices costs and reaches, how it uses them, and what it is compared with.
std::string ExplainDevices(const model::PlanResult& result) {
  const model::StepTimePlan& plan = *result.step_time;
  std::string out = fmt::format("a step takes {} s by the simulator: {} samples/s\n", FormatDecimal(plan.seconds, 6),
                                FormatDecimal(plan.throughput, 1));
  if (plan.usd_per_hour > 0) {
    out += fmt::format("the devices cost {} USD per hour, {} USD a step\n", FormatDecimal(plan.usd_per_hour, 4),
                       FormatDecimal(plan.usd_per_step, 9));
  }
  if (plan.seconds_to_end > 0) {
    out += fmt::format("to the end it takes {} s{}\n", FormatDecimal(plan.seconds_to_end, 1),
                       plan.usd > 0 ? " and costs " + FormatDecimal(plan.usd, 4) + " USD" : "");
  }
  out += plan.explanation + "alternatives:\n";
  for (const model::StepTimePlan::Alternative& other : plan.alternatives) {
    out += other.failure.empty() ? fmt::format("  {}: {} s, {:+.1f} %\n", other.label, FormatDecimal(other.seconds, 6),
                                               100 * (other.seconds / plan.seconds - 1))
                                 : fmt::format("  {}: impossible: {}\n", other.label, other.failure);
  }
  out += plan.lower_bound_seconds > 0
             ? fmt::format("proof: no plan takes less than {} s\n", FormatDecimal(plan.lower_bound_seconds, 6))
             : fmt::format("proof: none, because planner {} proves no bound here\n", result.planner);
  for (const std::string& note : result.notes) out += "note: " + note + "\n";
  return out;
}

// The lines of an explanation; `feasible` says whether there is a plan.
std::string ExplainText(const Planned& planned) {
  if (planned.result.step_time) return ExplainDevices(planned.result);
  std::string out;
  if (!planned.result.plan) {
    out += "no feasible plan exists:\n";
    for (const model::Reason& reason : planned.result.reasons) {
      out += fmt::format("  {}: {}\n", reason.constraint, reason.message);
    }
    return out;
  }
  ExplainStages(planned, out);
  ExplainConstraints(planned, out);
  ExplainAlternatives(planned, out);
  ExplainProof(planned.result, out);
  return out;
}

int ExplainPlan(const PlanFlags& flags, bool json) {
  const auto planned = PlanFile(flags);
  if (!planned.ok()) {
    if (json) PrintJsonError(base::Message(planned.status()));
    std::fprintf(stderr, "medley explain: %s\n", base::Message(planned.status()).c_str());
    return 1;
  }
  const std::string text = ExplainText(*planned);
  if (json) {
    std::string lines;
    for (const std::string& line : Lines(text)) lines += (lines.empty() ? "" : ", ") + JsonText(line);
    std::printf("{\"answer\": %s, \"explain\": [%s]}\n", model::PlanResultJson(planned->result).c_str(), lines.c_str());
  } else {
    std::fputs(text.c_str(), stdout);
  }
  return planned->result.plan || planned->result.step_time ? kDone : kNoPlan;
}

// Whether the argument is a file: "-" or a word with a dot or a slash, except mtj/NAME. Other words are names of jobs.
bool IsFile(const std::string& argument) {
  const std::string name = JobName(argument);
  return name == "-" || name.find_first_of("./") != std::string::npos;
}

// Whether flags are set that need a planning request. They are not allowed with a job, because nothing is planned for
// it.
bool HasPlanFlags(const PlanFlags& flags) {
  return !flags.prices.empty() || !flags.planner.empty() || !flags.profile.empty() || !flags.hardware.empty() ||
         !flags.options.empty() || flags.seed.has_value();
}

absl::StatusOr<kube::Object> JobOfBill(const ClusterFlags& flags, const std::string& name, base::Clock& clock) {
  std::error_code ignored;
  if (IsFile(name) || std::filesystem::exists(std::filesystem::path(name) / kSavedRunFile, ignored)) {
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<SavedRun> run, ReadSavedRun(name));
    if (!run)
      return base::NotFound("{}: the folder holds no run: give the folder of medley run, or the name of a job", name);
    return run->job;
  }
  MEDLEY_ASSIGN_OR_RETURN(const Cluster cluster, Connect(flags, clock));
  return GetJob(cluster, JobName(name));
}

int RunBill(const ClusterFlags& flags, const std::string& name, bool json) {
  base::SystemClock clock;
  const auto job = JobOfBill(flags, name, clock);
  if (!job.ok()) {
    if (json) PrintJsonError(base::Message(job.status()));
    std::fprintf(stderr, "medley explain: %s\n", base::Message(job.status()).c_str());
    return 1;
  }
  if (json) {
    const kube::Json goodput = job->At("/status/goodput");
    std::printf("%s\n", goodput.is_object() ? kube::Dump(goodput).c_str() : "{}");
    return 0;
  }
  for (const std::string& line : BillLines(*job)) std::printf("%s\n", line.c_str());
  return 0;
}

int RunJob(const ClusterFlags& flags, const std::string& job, bool json) {
  base::SystemClock clock;
  const auto cluster = Connect(flags, clock);
  const auto story = cluster.ok() ? ReadStory(*cluster, job) : absl::StatusOr<Story>(cluster.status());
  if (!story.ok()) {
    if (json) PrintJsonError(base::Message(story.status()));
    std::fprintf(stderr, "medley explain: %s\n", base::Message(story.status()).c_str());
    return 1;
  }
  if (json) {
    std::printf("%s\n", JobJson(*story, clock.Now()).c_str());
    return StoryExitStatus(*story);
  }
  for (const std::string& line : StoryLines(*story, clock.Now())) std::printf("%s\n", line.c_str());
  return StoryExitStatus(*story);
}

}  // namespace

void AddExplain(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("explain",
                         "Explain the state of a TrainingJob: its plan, cost, switches and problems; or "
                         "explain the plan for a planning request");
  const auto flags = std::make_shared<PlanFlags>();
  const auto cluster = std::make_shared<ClusterFlags>();
  command
      ->add_option("JOB", flags->file,
                   "name of a TrainingJob in a cluster; or a file with a planning request (its name has a dot or a "
                   "slash; - reads standard input)")
      ->required();
  AddPlanFlags(*command, *flags);
  AddClusterFlags(*command, *cluster);
  command->add_option("-o,--output", flags->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  const auto bill = std::make_shared<bool>(false);
  command->add_flag(
      "--bill", *bill,
      "Print what the job has paid for, by category, beside what its first plan promised. JOB is the name "
      "of a TrainingJob, or the folder of a run");
  command->callback([flags, cluster, bill, &exit_status] {
    const bool json = flags->output == "json";
    if (*bill) {
      exit_status = RunBill(*cluster, flags->file, json);
      return;
    }
    if (!IsFile(flags->file) && HasPlanFlags(*flags)) {
      if (json) PrintJsonError("planning options need a file: use medley plan --from " + flags->file);
      std::fprintf(stderr,
                   "medley explain: '%s' is the name of a TrainingJob, and planning options need a file: use "
                   "medley plan --from %s\n",
                   flags->file.c_str(), flags->file.c_str());
      exit_status = 1;
      return;
    }
    exit_status = IsFile(flags->file) ? ExplainPlan(*flags, json) : RunJob(*cluster, flags->file, json);
  });
}

}  // namespace medley::cli
