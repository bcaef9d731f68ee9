// medley plan FILE: plans offline and prints the plan as a table, JSON or YAML.
// medley plan --from JOB: plans for a job of a cluster in this process and compares the plan with the one in force.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "cli/cluster/calibration.h"
#include "cli/cluster/comparison.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/plan_input.h"
#include "cli/plan_pareto.h"
#include "cli/planner_list.h"
#include "cli/planner_program.h"
#include "cli/simulation.h"
#include "cli/table.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "operator/records/plan_request.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

std::string Layers(const model::PlanRequest& request, int first, int last) {
  const auto name = [&](int i) {
    const std::string& given = request.model.layers[static_cast<size_t>(i)].name;
    return given.empty() ? std::to_string(i) : given;
  };
  return first == last ? name(first) : name(first) + ".." + name(last);
}

std::string PlanTable(const Planned& planned) {
  const model::ProvisionedPlan& plan = *planned.result.plan;
  Table table({"STAGE", "LAYERS", "POOL", "UNITS", "SAMPLES/S", "COMPUTE S", "COMM S"});
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const model::ProvisionedStage& s = plan.stages[i];
    table.Add({std::to_string(i), Layers(planned.request, s.first_layer, s.last_layer), s.resource_type,
               std::to_string(s.units), FormatDecimal(s.throughput, 1), FormatDecimal(s.compute_seconds, 6),
               FormatDecimal(s.comm_seconds, 6)});
  }
  if (plan.server_units > 0) {
    table.Add({"-", "parameter servers", planned.request.server_type, std::to_string(plan.server_units), "", "", ""});
  }
  if (plan.trainers_with_rows > 0) {
    table.Add({"-", "embedding rows", "(in the trainers)", std::to_string(plan.trainers_with_rows), "", "", ""});
  }
  for (const model::ProvisionedStage& s : plan.stages) {
    if (!s.tables.OnDevice()) continue;
    const bool cached = s.tables.place == model::TablePlace::kCache;
    table.Add({"-", cached ? "cached rows" : "tables", "(on its GPU)", "1", "", "", ""});
  }
  return table.Text();
}

std::string AlternativesTable(const Planned& planned) {
  Table table({"ALTERNATIVE", "UNITS", "SERVERS", "SAMPLES/S", "USD/H", "USD", "COST"});
  for (const model::Alternative& a : planned.result.alternatives) {
    if (!a.plan) {
      table.Add({a.label, "", "", "", "", "", "infeasible: " + (a.reasons.empty() ? "" : a.reasons[0].message)});
      continue;
    }
    const double more = planned.result.plan ? (a.plan->cost_usd / planned.result.plan->cost_usd - 1) * 100 : 0;
    table.Add({a.label, std::to_string(a.plan->stages[0].units), std::to_string(a.plan->server_units),
               FormatDecimal(a.plan->throughput, 1), FormatDecimal(a.plan->cost_per_hour, 4),
               FormatDecimal(a.plan->cost_usd, 4), planned.result.plan ? fmt::format("{:+.1f} %", more) : ""});
  }
  return table.Text();
}

void PrintReasons(const model::PlanResult& result) {
  std::printf("infeasible:\n");
  for (const model::Reason& reason : result.reasons) {
    const std::string type = reason.resource_type.empty() ? "" : " of " + reason.resource_type;
    std::printf("  %s%s: %s\n", reason.constraint.c_str(), type.c_str(), reason.message.c_str());
  }
}

std::string Seconds(double seconds) { return FormatDecimal(seconds, 6) + " s"; }

// Who had the last word.
std::string ChosenBy(const model::PlanResult& result) {
  return result.judge.empty() ? "" : "; the " + result.judge + " chose the plan";
}

// Where the layers are, how long a step takes, why, and what it is compared with.
void PrintStepTime(const Planned& planned) {
  const model::PlanResult& result = planned.result;
  const model::StepTimePlan& plan = *result.step_time;
  Table stages({"LAYERS", "DEVICES", "SHARES"});
  for (const model::Placement& placement : result.execution_plan->placements) {
    constexpr size_t kShown = 8;
    std::string devices, shares;
    for (size_t r = 0; r < placement.replicas.size() && r < kShown; ++r) {
      devices += (r == 0 ? "" : " ") + placement.replicas[r].device;
      shares += (r == 0 ? "" : " ") + fmt::format("{:.3g}", placement.replicas[r].share);
    }
    if (placement.replicas.size() > kShown) devices += fmt::format(" and {} more", placement.replicas.size() - kShown);
    for (const model::OperationRange& range : placement.operations) {
      stages.Add({Layers(planned.request, range.first, range.end - 1), devices, shares});
    }
  }
  std::printf("%s\n", stages.Text().c_str());
  std::printf("step         %s by the simulator, %s samples/s\n", Seconds(plan.seconds).c_str(),
              FormatDecimal(plan.throughput, 1).c_str());
  if (plan.usd_per_hour > 0) {
    std::printf("price        %s USD/h, %s USD a step\n", FormatDecimal(plan.usd_per_hour, 4).c_str(),
                FormatDecimal(plan.usd_per_step, 9).c_str());
  }
  if (plan.seconds_to_end > 0) {
    std::printf("to the end   %s%s s\n", plan.usd > 0 ? (FormatDecimal(plan.usd, 4) + " USD in ").c_str() : "",
                FormatDecimal(plan.seconds_to_end, 1).c_str());
  }
  if (plan.model_seconds > 0) {
    std::printf("closed form  %s, the simulator %s %%\n", Seconds(plan.model_seconds).c_str(),
                fmt::format("{:+.1f}", 100 * (plan.seconds / plan.model_seconds - 1)).c_str());
  }
  if (plan.lower_bound_seconds > 0) {
    std::printf("lower bound  %s of %s\n", Seconds(plan.lower_bound_seconds).c_str(),
                plan.choices > 0         ? "every plan within the bounds, by the closed form or the simulator"
                : plan.model_seconds > 0 ? "the closed form"
                                         : "every plan of operations");
  }
  std::printf("simulated    %lld plans%s\n\n", static_cast<long long>(plan.simulated),
              plan.repaired > 0 ? fmt::format(", {} were repaired", plan.repaired).c_str() : "");
  if (!plan.explanation.empty()) std::printf("%s\n", plan.explanation.c_str());
  Table others({"ALTERNATIVE", "STEP", "USD/H", "COMPARED"});
  for (const model::StepTimePlan::Alternative& other : plan.alternatives) {
    if (other.failure.empty()) {
      others.Add({other.label, Seconds(other.seconds),
                  other.usd_per_hour > 0 ? FormatDecimal(other.usd_per_hour, 4) : "",
                  fmt::format("{:+.1f} %", 100 * (other.seconds / plan.seconds - 1))});
    } else {
      others.Add({other.label, "", "", "impossible: " + other.failure});
    }
  }
  std::printf("%s", others.Text().c_str());
  for (const std::string& note : result.notes) std::printf("note: %s\n", note.c_str());
  std::printf("planner      %s, %s ms%s\n", result.planner.c_str(),
              FormatDecimal(result.planning_seconds * 1000, 3).c_str(), ChosenBy(result).c_str());
}

void PrintTable(const Planned& planned) {
  const model::PlanResult& result = planned.result;
  if (result.step_time) {
    PrintStepTime(planned);
    return;
  }
  if (result.plan) {
    const model::ProvisionedPlan& plan = *result.plan;
    std::printf("%s\n", PlanTable(planned).c_str());
    std::printf("throughput   %s samples/s\n", FormatDecimal(plan.throughput, 1).c_str());
    std::printf("price        %s USD/h\n", FormatDecimal(plan.cost_per_hour, 4).c_str());
    std::printf("cost         %s USD in %s s\n", FormatDecimal(plan.cost_usd, 4).c_str(),
                FormatDecimal(plan.execution_seconds, 1).c_str());
    if (result.lower_bound_usd) {
      std::printf("lower bound  %s USD, gap %s %%\n", FormatDecimal(*result.lower_bound_usd, 4).c_str(),
                  FormatDecimal(*result.gap * 100, 4).c_str());
    }
    if (result.lower_bound_usd_per_hour) {
      std::printf("lower bound  %s USD/h, gap %s %%\n", FormatDecimal(*result.lower_bound_usd_per_hour, 4).c_str(),
                  FormatDecimal(*result.gap * 100, 4).c_str());
    }
    if (result.lower_bound_seconds) {
      std::printf("lower bound  %s s, gap %s %%\n", FormatDecimal(*result.lower_bound_seconds, 1).c_str(),
                  FormatDecimal(*result.gap * 100, 4).c_str());
    }
    if (result.simulated) {
      const double gap = plan.cost_usd > 0 ? (result.simulated->cost_usd / plan.cost_usd - 1) * 100 : 0;
      std::printf("simulated    %s samples/s, %s USD, %s%s %% to the closed form, best of %d plans\n",
                  FormatDecimal(result.simulated->throughput, 1).c_str(),
                  FormatDecimal(result.simulated->cost_usd, 4).c_str(), gap < 0 ? "" : "+",
                  FormatDecimal(gap, 1).c_str(), result.simulated->candidates);
    }
  } else {
    PrintReasons(result);
  }
  for (const std::string& note : result.notes) std::printf("note         %s\n", note.c_str());
  std::printf("planner      %s, %s ms%s\n", result.planner.c_str(),
              FormatDecimal(result.planning_seconds * 1000, 3).c_str(), ChosenBy(result).c_str());
  if (!result.alternatives.empty()) std::printf("\n%s", AlternativesTable(planned).c_str());
}

// Writes the policy that planning ended with to `file` and removes it from the result, so that it is not printed.
absl::Status SavePolicy(const std::string& file, Planned& planned) {
  if (file.empty()) return absl::OkStatus();
  if (planned.result.policy.empty()) {
    return base::InvalidArgument("--save-policy: planner {} has no policy; use --planner rl-lstm",
                                 planned.result.planner);
  }
  MEDLEY_RETURN_IF_ERROR(WriteOutput(file, planned.result.policy));
  planned.result.policy.clear();
  return absl::OkStatus();
}

std::string Encoded(const google::protobuf::Message& message, const std::string& output) {
  return output == "json" ? model::ToJson(message, true) : model::ToYaml(message);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "medley plan: %s\n", base::Message(status).c_str());
  return 1;
}

// Writes the timeline of the plan, and returns the use and memory of its devices.
absl::StatusOr<std::string> DevicesOf(const Planned& planned, const TimelineFiles& files) {
  MEDLEY_ASSIGN_OR_RETURN(const ProgramInput input, InputOf(planned));
  MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation simulated, SimulateInput(input, {}, files));
  MEDLEY_RETURN_IF_ERROR(WriteTimeline("medley plan", simulated, input, files));
  return DeviceTable(simulated);
}

int PrintPlanners(const std::string& output) {
  const auto list = ListPlanners();
  if (!list.ok()) return Fail(list.status());
  std::fputs((output == "table" ? PlannersText(*list) : Encoded(*list, output)).c_str(), stdout);
  if (output == "table" && !HasPlannerProgram(OwnFolder())) {
    std::printf("\nThe program medley-planner has more, those of papers: ./dev programs reproductions builds it.\n");
  }
  return 0;
}

int RunPlan(const PlanFlags& flags, const TimelineFiles& files) {
  auto planned = PlanFile(flags);
  const absl::Status saved = planned.ok() ? SavePolicy(flags.save_policy, *planned) : planned.status();
  if (!saved.ok()) return Fail(saved);
  absl::StatusOr<std::string> devices = "";
  if (planned->result.execution_plan && (files.wanted() || planned->result.step_time)) {
    devices = DevicesOf(*planned, files);
    if (!devices.ok()) return Fail(devices.status());
  }
  if (flags.output == "table") {
    PrintTable(*planned);
    if (planned->result.step_time) std::printf("\n%s", devices->c_str());
  } else {
    scheduler::v1::PlanResponse message;
    model::ToProto(planned->result, message);
    std::fputs(Encoded(message, flags.output).c_str(), stdout);
  }
  return planned->result.plan || planned->result.step_time ? 0 : 2;
}

absl::StatusOr<JobPlanRequest> ReadJobPlanRequest(const PlanFlags& flags, const ClusterFlags& cluster_flags,
                                                  const std::string& job) {
  base::SystemClock clock;
  MEDLEY_ASSIGN_OR_RETURN(const Cluster cluster, Connect(cluster_flags, clock));
  MEDLEY_ASSIGN_OR_RETURN(const JobObjects objects, ReadJobObjects(cluster, job));
  MEDLEY_ASSIGN_OR_RETURN(JobPlanRequest job_request, BuildJobPlanRequest(objects, !flags.prices.empty(), clock.Now()));
  if (flags.profile.empty()) CalibrateByMeasurement(job_request);
  MEDLEY_RETURN_IF_ERROR(AdjustRequest(flags, job_request.request));
  return job_request;
}

absl::StatusOr<int> PlanJob(const PlanFlags& flags, const ClusterFlags& cluster, const std::string& job) {
  MEDLEY_ASSIGN_OR_RETURN(JobPlanRequest job_request, ReadJobPlanRequest(flags, cluster, job));
  MEDLEY_ASSIGN_OR_RETURN(PricedRequest priced, WithPrices(flags, job_request.request,
                                                           {job_request.catalog_revision, job_request.price_time}));
  job_request.request = priced.request;
  if (flags.output == "request") {
    scheduler::v1::PlanRequest message;
    model::ToProto(job_request.request, message);
    std::fputs(model::ToYaml(message).c_str(), stdout);
    return 0;
  }
  MEDLEY_ASSIGN_OR_RETURN(Planned planned, PlanPricedRequest(std::move(priced), "job " + job));
  MEDLEY_RETURN_IF_ERROR(SavePolicy(flags.save_policy, planned));
  // As the operator takes the answer: one to the goal step time has a price too.
  const model::PlanResult priced_result = ops::WithPrice(planned.result, job_request.request);
  const Comparison comparison = Compare(job_request, priced_result);
  if (flags.output == "table") {
    PrintTable(planned);
    if (comparison.running) std::printf("\n");
    for (const std::string& line : ComparisonLines(comparison, priced_result)) std::printf("%s\n", line.c_str());
    for (const std::string& note : job_request.notes) std::printf("note: %s\n", note.c_str());
  } else {
    scheduler::v1::PlanResponse message;
    model::ToProto(planned.result, message);
    const std::string json = ComparisonJson(job_request, comparison, model::ToJson(message));
    const std::string text = flags.output == "json" ? json : document::ToYaml(kube::Json::parse(json, nullptr, false));
    std::fputs(text.c_str(), stdout);
  }
  return priced_result.plan ? 0 : 2;
}

}  // namespace

void AddPlan(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "plan", "Plan offline: compute the cheapest mix of machines for a planning request or a TrainingJob");
  const auto flags = std::make_shared<PlanFlags>();
  const auto cluster = std::make_shared<ClusterFlags>();
  const auto from = std::make_shared<std::string>();
  const auto planners = std::make_shared<bool>(false);
  CLI::Option* file = command->add_option(
      "file", flags->file,
      "file with a planning request, YAML or JSON (docs/design/planning.md), - reads standard input; or, with "
      "--profile, a job file with its pools, as for medley run");
  command->add_option("--from", *from, "plan for this TrainingJob of a cluster instead of a file")->excludes(file);
  AddPlanFlags(*command, *flags);
  command->add_flag("--planners", *planners, "list the planners, what they take and their options, and plan nothing")
      ->excludes(file);
  command
      ->add_option("-o,--output", flags->output,
                   "table, json or yaml; with --from also request: print the planning request")
      ->check(CLI::IsMember({"table", "json", "yaml", "request"}))
      ->capture_default_str();
  command->add_option("--policy", flags->policy, "file with a trained policy to start from (planner rl-lstm)");
  command->add_flag("--inference-only", flags->inference_only, "use the policy without training it further")
      ->needs("--policy");
  command->add_option("--save-policy", flags->save_policy,
                      "file to write the policy to after planning; -: standard output");
  const auto timeline = std::make_shared<TimelineFiles>();
  command
      ->add_option("--timeline", timeline->svg,
                   "file to write a picture of the simulated timeline to (SVG); -: standard output")
      ->excludes("--from");
  command
      ->add_option("--trace", timeline->trace,
                   "file to write its Chrome trace to (chrome://tracing, Perfetto); -: standard output")
      ->excludes("--from");
  const auto pareto = std::make_shared<ParetoFlags>();
  CLI::Option* front =
      command
          ->add_flag("--pareto", pareto->wanted, "print all plans for which no other plan is both cheaper and faster")
          ->excludes("--from");
  command->add_option("--points", pareto->points, "with --pareto: print at most this number of plans")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(front);
  command->add_option("--svg", pareto->svg, "with --pareto: file to write a drawing to; -: standard output")
      ->needs(front);
  AddClusterFlags(*command, *cluster);
  command->callback([flags, cluster, from, planners, timeline, pareto, &exit_status] {
    const absl::Status opened =
        OpenStandardOutput({&flags->save_policy, &timeline->svg, &timeline->trace, &pareto->svg});
    if (!opened.ok()) {
      exit_status = Fail(opened);
    } else if (*planners) {
      exit_status = PrintPlanners(flags->output);
    } else if (!from->empty()) {
      const auto status = PlanJob(*flags, *cluster, *from);
      exit_status = status.ok() ? *status : Fail(status.status());
    } else if (flags->file.empty()) {
      exit_status =
          Fail(base::InvalidArgument("nothing to plan: name a file with a planning request, or use --from JOB"));
    } else if (flags->output == "request") {
      exit_status = Fail(base::InvalidArgument("-o request needs --from JOB"));
    } else {
      exit_status = pareto->wanted ? RunPareto(*flags, *pareto) : RunPlan(*flags, *timeline);
    }
  });
}

}  // namespace medley::cli
