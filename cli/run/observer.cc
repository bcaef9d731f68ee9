#include "cli/run/observer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/cluster/job_plan_request.h"
#include "cli/request_prices.h"
#include "cli/run/goal.h"
#include "cli/run/pod_logs.h"
#include "cli/run/view.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"

namespace medley::cli {
namespace {

const kube::Resource& Jobs() {
  static const kube::Resource kJobs{"medley.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};
  return kJobs;
}
const kube::Resource& Pools() {
  static const kube::Resource kPools{"medley.dev", "v1alpha1", "resourcepools", "ResourcePool", false};
  return kPools;
}

// What the units of the plan cost at the prices of the request.
double UsdPerHour(const model::ProvisionedPlan& plan, const model::PlanRequest& request) {
  const auto price = [&](const std::string& type) {
    const auto found = std::ranges::find(request.resources, type, &model::Resource::name);
    return found == request.resources.end() ? 0 : found->price_per_unit_hour;
  };
  double usd = plan.server_units * price(request.server_type);
  for (const model::ProvisionedStage& stage : plan.stages) usd += stage.units * price(stage.resource_type);
  return usd;
}

}  // namespace

Observer::Observer(base::Clock& clock, LocalCluster& cluster, kube::Key job, const Scenario& scenario,
                   std::filesystem::path scenario_folder)
    : clock_(clock),
      cluster_(cluster),
      job_(std::move(job)),
      scenario_(scenario),
      folder_(std::move(scenario_folder)),
      start_(clock.Steady()),
      next_look_(start_) {}

double Observer::Seconds() const { return base::ToSeconds(clock_.Steady() - start_); }

void Observer::Say(std::string line) { messages_.Add(Seconds(), std::move(line)); }

std::vector<std::string> Observer::TakeMessages(bool over) { return messages_.Take(Seconds(), over); }

absl::Status Observer::Step(RunRecord& record) {
  const auto job = cluster_.client().Get(Jobs(), job_);
  if (kube::IsNotFound(job.status()) && record.last.complete) return absl::OkStatus();
  if (!job.ok()) return base::Annotate(job.status(), "reading the job");
  const auto pools = cluster_.client().List(Pools(), {});
  if (!pools.ok()) return base::Annotate(pools.status(), "reading the pools");
  record.last = TakeSnapshot(*job, pools->items);
  if (record.last.failed) SaidAtTheEnd(record.last.problem);
  MEDLEY_RETURN_IF_ERROR(ReadEvents());
  if (const auto most = Answer(record.last.refusal, record.last.problem)) {
    record.last.problem = record.last.refusal = "";  // that goal is not the user's
    MEDLEY_RETURN_IF_ERROR(SetGoal(*most, record));
  }
  const Snapshot& view = record.last;
  const ops::RescaleStatus* switched = view.rescales.empty() ? nullptr : &view.rescales.back();
  record.points.push_back({base::ToSeconds(clock_.Steady() - start_), view.observed.samples,
                           switched != nullptr ? switched->to_generation : 1, view.plan ? view.plan->throughput : 0,
                           view.plan ? view.plan->simulated_throughput : 0,
                           !view.rescaling && (switched == nullptr || !switched->recovery)});
  NotePlan(view);
  NoteMoves(view, record);
  NoteCurve(view);
  NoteReading(view);
  if (view.problem != problem_) {
    problem_ = view.problem;
    if (!problem_.empty()) messages_.Warn(Seconds(), problem_);
  }
  return Act(view, record);
}

void Observer::NoteReading(const Snapshot& view) {
  constexpr base::nanoseconds kBetweenLooks = base::seconds(2);
  const base::SteadyTime now = clock_.Steady();
  if (view.observed.samples > 0 || view.complete || view.failed || now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  const std::string line = ReadingLine(cluster_.run_folder());
  if (line.empty() || line == reading_) return;
  reading_ = line;
  Say(line);
}

absl::Status Observer::ReadEvents() {
  const auto events = cluster_.client().List(kube::resources::Events(), {.ns = job_.ns});
  if (!events.ok()) return base::Annotate(events.status(), "reading events");
  std::vector<const kube::Object*> fresh;
  for (const kube::Object& event : events->items) {
    if (event.String("/involvedObject/name") != job_.name) continue;
    if (Answer(event.String("/reason"), event.String("/message"))) continue;  // SetGoal says it
    const std::string id = event.key().name + "/" + event.At("/count").dump();
    if (seen_events_.insert(id).second) fresh.push_back(&event);
  }
  std::sort(fresh.begin(), fresh.end(), [](const kube::Object* a, const kube::Object* b) {
    return a->String("/lastTimestamp") < b->String("/lastTimestamp");
  });
  for (const kube::Object* event : fresh) {
    std::string line = event->String("/reason") + ": " + event->String("/message");
    if (event->String("/type") == "Warning") {
      messages_.Warn(Seconds(), std::move(line));
    } else {
      Say(std::move(line));
    }
  }
  return absl::OkStatus();
}

void Observer::NotePlan(const Snapshot& view) {
  if (!view.plan || view.plan->stages.empty()) return;
  if (view.plan->generation == plan_generation_ || view.plan->summary == plan_shown_) return;
  plan_generation_ = view.plan->generation;
  plan_shown_ = view.plan->summary;
  Say("");
  for (const std::string& line : PlanTable(*view.plan)) messages_.AddRaw("          " + line);
}

void Observer::NoteCurve(const Snapshot& view) {
  const std::vector<ops::EvaluationStatus>& evaluations = view.observed.evaluations;
  if (evaluations.empty()) return;
  for (const ops::EvaluationStatus& evaluation : evaluations) {
    if (evaluation.step > last_evaluation_) Say(CurveLine(evaluation));
  }
  last_evaluation_ = evaluations.back().step;  // smaller after a rollback: what is evaluated again is shown again
}

void Observer::NoteMoves(const Snapshot& view, RunRecord& record) {
  for (const ops::RescaleStatus& move : view.rescales) {
    // Generations only grow, so a move to a later generation than the last one seen is new.
    if (move.from_generation <= 0 || move.to_generation <= last_generation_) continue;
    last_generation_ = move.to_generation;
    // When a member returns, leaves or stands by, the generation changes but the plan does not.
    const bool returned = !move.recovery && (move.reason == "MemberReturned" || move.reason == "MemberLeft" ||
                                             move.reason == "MemberSlow" || move.reason == "StandbyReturned");
    (move.recovery ? record.recoveries : returned ? record.returns : record.rescales).push_back(move);
    Say(fmt::format("generation {} -> {} ({}): training paused for {:.0f} ms{}{}", move.from_generation,
                    move.to_generation, move.reason, move.pause_seconds * 1000, OfStart(move),
                    move.lost_steps > 0 ? fmt::format(", {} steps trained again", move.lost_steps) : ""));
  }
}

std::optional<double> Observer::Answer(std::string_view reason, std::string_view message) const {
  return scenario_.goal_percent > 0 ? MostReached(reason, message) : std::nullopt;
}

absl::Status Observer::SetGoal(double most, RunRecord& record) {
  if (std::exchange(goal_set_, true)) return absl::OkStatus();  // the condition is that of the goal before
  double goal = GoalOf(most, scenario_.goal_percent);
  std::string why = fmt::format("minThroughput is {:g} % of that: {}", scenario_.goal_percent, Thousands(goal));
  if (scenario_.mix_saves_percent > 0) {
    const auto mix = FindMix(most);
    if (mix.ok()) {
      goal = mix->samples_per_second;
      why = fmt::format("minThroughput is {}, because {}", Thousands(goal), mix->why);
    } else {
      why += "; " + base::Message(mix.status());
    }
    record.nothing_to_move_to = scenario_.expect.rescales > 0 && !(mix.ok() && mix->moves);
    if (record.nothing_to_move_to) why += "; no goal leaves a much cheaper plan when the prices change";
  }
  const kube::Json patch = {{"spec", {{"objective", {{"minThroughput", goal}}}}}};
  const auto patched = cluster_.client().Patch(Jobs(), job_, kube::PatchType::kMerge, patch);
  if (!patched.ok()) return base::Annotate(patched.status(), "setting the goal of the scenario");
  Say(fmt::format("the machines reach at most {} samples/s; {}", Thousands(most), why));
  return absl::OkStatus();
}

// Plans as the scheduling service does, from what the cluster knows of the job and its pools now.
absl::StatusOr<MixGoal> Observer::FindMix(double most) const {
  MEDLEY_ASSIGN_OR_RETURN(
      const Cluster cluster,
      Connect({.kubeconfig = {.kubeconfig = cluster_.kubeconfig(), .context = "", .ns = job_.ns}}, clock_));
  MEDLEY_ASSIGN_OR_RETURN(JobObjects objects, ReadJobObjects(cluster, job_.name));
  const sched::Registry planners = sched::BuiltinPlanners();
  MEDLEY_ASSIGN_OR_RETURN(const sched::HardwareCatalog hardware, sched::HardwareCatalog::Builtin());
  struct Priced {
    model::PlanRequest request;
    sched::PriceOrigin origin;
  };
  const auto request = [&](double rate, const std::string& prices) -> absl::StatusOr<Priced> {
    kube::MergePatch(objects.job.mutable_json(), {{"spec", {{"objective", {{"minThroughput", rate}}}}}});
    MEDLEY_ASSIGN_OR_RETURN(JobPlanRequest asked, BuildJobPlanRequest(objects, !prices.empty(), clock_.Now()));
    Priced priced{std::move(asked.request), {asked.catalog_revision, asked.price_time}};
    if (!prices.empty()) {
      MEDLEY_RETURN_IF_ERROR(PriceRequest(folder_ / prices, hardware, clock_, priced.request, priced.origin));
    }
    return priced;
  };
  model::PlanRequest now, then;  // those of the goal that was asked for last
  const auto plan = [&](double rate, const std::string& prices,
                        model::PlanRequest& kept) -> absl::StatusOr<model::PlanResult> {
    MEDLEY_ASSIGN_OR_RETURN(Priced asked, request(rate, prices));
    kept = asked.request;
    return sched::MakePlan(asked.request, asked.origin, planners, clock_, {});
  };
  std::optional<LaterPrices> later;
  const auto step = std::ranges::find_if(scenario_.steps, [](const ScenarioStep& s) { return !s.prices.empty(); });
  if (step != scenario_.steps.end()) {
    later = LaterPrices{
        .plan = [&](double rate) { return plan(rate, step->prices, then); },
        .cost_usd =
            [&](const model::ProvisionedPlan& p) { return p.cost_usd * UsdPerHour(p, then) / UsdPerHour(p, now); }};
  }
  return FindMixGoal(
      most, scenario_.mix_saves_percent, [&](double rate) { return plan(rate, "", now); }, later);
}

absl::Status Observer::Act(const Snapshot& view, RunRecord& record) {
  if (view.observed.samples_total <= 0) return absl::OkStatus();
  while (next_step_ < scenario_.steps.size() && view.progress_percent >= scenario_.steps[next_step_].at_percent) {
    const ScenarioStep& step = scenario_.steps[next_step_];
    // Wait until the plan that an earlier step caused is in force, so that the step kills a pod that trains.
    if (step.kill && view.rescaling) return absl::OkStatus();
    if (!step.say.empty()) Say("--- " + step.say);
    if (!step.prices.empty()) MEDLEY_RETURN_IF_ERROR(cluster_.SetPrices(folder_ / step.prices));
    if (step.kill) MEDLEY_RETURN_IF_ERROR(KillOne(*step.kill, record));
    ++next_step_;
  }
  return absl::OkStatus();
}

absl::Status Observer::KillOne(const KillStep& step, RunRecord& record) {
  std::string selector = "medley.dev/job-name=" + job_.name + ",medley.dev/role=" + step.role;
  // Select by pool, because a pod that a later plan reuses keeps the stage label from its creation.
  if (step.stage >= 0 && record.last.plan && step.stage < static_cast<int>(record.last.plan->stages.size())) {
    selector += ",medley.dev/pool=" + record.last.plan->stages[static_cast<size_t>(step.stage)].pool;
  }
  const auto pods = cluster_.client().List(kube::resources::Pods(), {.ns = job_.ns, .label_selector = selector});
  if (!pods.ok()) return base::Annotate(pods.status(), "listing pods to kill");
  for (const kube::Object& pod : pods->items) {
    if (pod.String("/status/phase") != "Running" || pod.deleting()) continue;
    MEDLEY_RETURN_IF_ERROR(cluster_.KillPod(pod.key()));
    Say("--- SIGKILL to " + pod.key().name);
    ++record.kills;
    return absl::OkStatus();
  }
  return base::NotFound("the scenario cannot kill a {}: no running pod matches the selector {}", step.role, selector);
}

}  // namespace medley::cli
