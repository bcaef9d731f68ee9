#include "common/base/status.h"
#include "common/model/cluster.h"
#include "common/model/convert.h"
#include "common/model/convert_enums.h"
#include "common/model/convert_objective.h"
#include "common/model/convert_tables.h"
#include "common/model/device.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/provisioned_plan.h"
#include "common/model/reason.h"
#include "common/model/resource.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

namespace pb = scheduler::v1;

template <typename T>
T Or(T value, T fallback) {
  return value == T{} ? fallback : value;
}

Training TrainingFromProto(const pb::Training& in) {
  Training out;
  out.profile_batch_size = in.profile_batch_size();
  out.samples_per_epoch = in.samples_per_epoch();
  out.epochs = Or(in.epochs(), 1.0);
  out.state_factor = Or(in.state_factor(), 3.0);
  out.remaining_samples = in.remaining_samples();
  out.micro_batches = in.micro_batches();
  return out;
}

void TrainingToProto(const Training& training, pb::Training& out) {
  out.set_profile_batch_size(training.profile_batch_size);
  out.set_samples_per_epoch(training.samples_per_epoch);
  out.set_epochs(training.epochs);
  out.set_state_factor(training.state_factor);
  out.set_remaining_samples(training.remaining_samples);
  out.set_micro_batches(training.micro_batches);
}

Constraints ConstraintsFromProto(const pb::Constraints& in) {
  return {in.min_throughput(), in.max_cost_per_hour(), in.deadline_seconds(),
          in.budget_usd(),     Or(in.min_units(), 1),  in.max_units()};
}

void ConstraintsToProto(const Constraints& constraints, pb::Constraints& out) {
  out.set_min_throughput(constraints.min_throughput);
  out.set_max_cost_per_hour(constraints.max_cost_per_hour);
  out.set_deadline_seconds(constraints.deadline_seconds);
  out.set_budget_usd(constraints.budget_usd);
  out.set_min_units(constraints.min_units);
  out.set_max_units(constraints.max_units);
}

pb::Hierarchy GroupingToProto(Grouping grouping) {
  switch (grouping) {
    case Grouping::kNone:
      return pb::HIERARCHY_UNSPECIFIED;
    case Grouping::kAuto:
      return pb::HIERARCHY_AUTO;
    case Grouping::kPool:
      return pb::HIERARCHY_BY_POOL;
    case Grouping::kLinks:
      return pb::HIERARCHY_BY_LINKS;
  }
  return pb::HIERARCHY_UNSPECIFIED;
}

absl::StatusOr<Grouping> GroupingFromProto(pb::Hierarchy hierarchy, std::string_view path) {
  switch (hierarchy) {
    case pb::HIERARCHY_UNSPECIFIED:
      return Grouping::kNone;
    case pb::HIERARCHY_AUTO:
      return Grouping::kAuto;
    case pb::HIERARCHY_BY_POOL:
      return Grouping::kPool;
    case pb::HIERARCHY_BY_LINKS:
      return Grouping::kLinks;
    default:
      return base::InvalidArgument("{}: unknown value {}", path, static_cast<int>(hierarchy));
  }
}

void OptionsToProto(const OptionValues& options, google::protobuf::Struct& out) {
  for (const auto& [name, value] : options) {
    google::protobuf::Value& to = (*out.mutable_fields())[name];
    if (const auto* truth = std::get_if<bool>(&value)) to.set_bool_value(*truth);
    if (const auto* number = std::get_if<double>(&value)) to.set_number_value(*number);
    if (const auto* text = std::get_if<std::string>(&value)) to.set_string_value(*text);
  }
}

absl::StatusOr<OptionValues> OptionsFromProto(const google::protobuf::Struct& in) {
  OptionValues out;
  for (const auto& [name, value] : in.fields()) {
    switch (value.kind_case()) {
      case google::protobuf::Value::kBoolValue:
        out[name] = value.bool_value();
        break;
      case google::protobuf::Value::kNumberValue:
        out[name] = value.number_value();
        break;
      case google::protobuf::Value::kStringValue:
        out[name] = value.string_value();
        break;
      default:
        return base::InvalidArgument("planner.options.{}: must be a number, a text, true or false", name);
    }
  }
  return out;
}

void PlannerToProto(const PlannerOptions& options, pb::PlannerOptions& out) {
  out.set_name(options.name);
  out.set_seed(options.seed);
  out.set_time_budget_seconds(options.time_budget_seconds);
  out.set_schedule(ToProto(options.schedule));
  out.set_max_staleness(options.max_staleness);
  if (options.evaluator == EvaluatorKind::kCostModel) out.set_evaluator(pb::EVALUATOR_COST_MODEL);
  out.mutable_sync()->set_mode(ToProto(options.sync.mode));
  out.mutable_sync()->set_fraction(options.sync.fraction);
  out.mutable_sync()->set_target_ratio(options.sync.target_ratio);
  if (options.sync.detector != AnomalyDetector::kOff) {
    out.mutable_sync()->mutable_anomaly()->set_detector(ToProto(options.sync.detector));
    out.mutable_sync()->mutable_anomaly()->set_window(options.sync.anomaly_window);
    out.mutable_sync()->mutable_anomaly()->set_threshold(options.sync.anomaly_threshold);
  }
  out.mutable_sync()->set_hierarchy(GroupingToProto(options.sync.hierarchy));
  if (!options.options.empty()) OptionsToProto(options.options, *out.mutable_options());
  if (options.policy == PolicyOptions{}) return;
  pb::PolicyOptions& policy = *out.mutable_policy();
  policy.set_trained(options.policy.trained);
  policy.set_name(options.policy.name);
  policy.set_inference_only(options.policy.inference_only);
  policy.set_return_policy(options.policy.return_policy);
}

absl::StatusOr<PlannerOptions> PlannerFromProto(const pb::PlannerOptions& in) {
  PlannerOptions out;
  out.name = in.name();
  out.seed = in.seed();
  out.time_budget_seconds = Or(in.time_budget_seconds(), 10.0);
  MEDLEY_ASSIGN_OR_RETURN(out.schedule, FromProto(in.schedule(), "planner.schedule"));
  out.max_staleness = in.max_staleness();
  MEDLEY_ASSIGN_OR_RETURN(out.sync.mode, FromProto(in.sync().mode(), "planner.sync.mode"));
  out.sync.fraction = Or(in.sync().fraction(), 1.0);
  out.sync.target_ratio = Or(in.sync().target_ratio(), 0.02);
  const plan::v1::AnomalyPolicy& anomaly = in.sync().anomaly();
  MEDLEY_ASSIGN_OR_RETURN(out.sync.detector, FromProto(anomaly.detector(), "planner.sync.anomaly.detector"));
  out.sync.anomaly_window = anomaly.window() == 0 ? 16 : anomaly.window();
  out.sync.anomaly_threshold = Or(anomaly.threshold(), 3.0);
  MEDLEY_ASSIGN_OR_RETURN(out.sync.hierarchy, GroupingFromProto(in.sync().hierarchy(), "planner.sync.hierarchy"));
  if (!pb::Evaluator_IsValid(in.evaluator())) {
    return base::InvalidArgument("planner.evaluator: unknown value {}", static_cast<int>(in.evaluator()));
  }
  if (in.evaluator() == pb::EVALUATOR_COST_MODEL) out.evaluator = EvaluatorKind::kCostModel;
  MEDLEY_ASSIGN_OR_RETURN(out.options, OptionsFromProto(in.options()));
  out.policy = {in.policy().trained(), in.policy().name(), in.policy().inference_only(), in.policy().return_policy()};
  return out;
}

void ClusterToProto(const Cluster& cluster, pb::Cluster& out) {
  for (const Device& device : cluster.devices) ToProto(device, *out.add_devices());
  for (const ClusterLink& link : cluster.links) {
    pb::ClusterLink& to = *out.add_links();
    to.set_from(link.from);
    to.set_to(link.to);
    to.set_latency_seconds(link.latency_seconds);
    to.set_bytes_per_second(link.bytes_per_second);
  }
}

void StepTimeToProto(const StepTimePlan& plan, pb::StepTimePlan& out) {
  out.set_seconds(plan.seconds);
  out.set_throughput(plan.throughput);
  out.set_lower_bound_seconds(plan.lower_bound_seconds);
  out.set_model_seconds(plan.model_seconds);
  out.set_simulated(plan.simulated);
  out.set_repaired(plan.repaired);
  for (const StepTimePlan::Alternative& alternative : plan.alternatives) {
    pb::StepTimeAlternative& to = *out.add_alternatives();
    to.set_label(alternative.label);
    to.set_seconds(alternative.seconds);
    to.set_failure(alternative.failure);
    to.set_usd_per_hour(alternative.usd_per_hour);
  }
  out.set_explanation(plan.explanation);
  out.set_usd_per_hour(plan.usd_per_hour);
  out.set_usd_per_step(plan.usd_per_step);
  out.set_seconds_to_end(plan.seconds_to_end);
  out.set_usd(plan.usd);
  out.set_choices(plan.choices);
}

StepTimePlan StepTimeFromProto(const pb::StepTimePlan& in) {
  StepTimePlan plan{.seconds = in.seconds(),
                    .throughput = in.throughput(),
                    .lower_bound_seconds = in.lower_bound_seconds(),
                    .model_seconds = in.model_seconds(),
                    .simulated = in.simulated(),
                    .repaired = in.repaired(),
                    .alternatives = {},
                    .explanation = in.explanation(),
                    .usd_per_hour = in.usd_per_hour(),
                    .usd_per_step = in.usd_per_step(),
                    .seconds_to_end = in.seconds_to_end(),
                    .usd = in.usd(),
                    .choices = in.choices()};
  for (const pb::StepTimeAlternative& from : in.alternatives()) {
    plan.alternatives.push_back({from.label(), from.seconds(), from.failure(), from.usd_per_hour()});
  }
  return plan;
}

// Converts a list of resources into `out`, in order.
template <typename List>
absl::Status ResourcesFromProto(const List& in, std::vector<Resource>& out) {
  for (int i = 0; i < in.size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(Resource resource, FromProto(in.Get(i), fmt::format("resources[{}]", i)));
    out.push_back(std::move(resource));
  }
  return absl::OkStatus();
}

}  // namespace

void ToProto(const PlanRequest& request, pb::PlanRequest& out) {
  out.Clear();
  ToProto(request.model, *out.mutable_model());
  TrainingToProto(request.training, *out.mutable_training());
  ConstraintsToProto(request.constraints, *out.mutable_constraints());
  for (const Resource& resource : request.resources) ToProto(resource, *out.add_resources());
  out.set_server_type(request.server_type);
  out.set_server_memory_bytes(request.server_memory_bytes);
  PlannerToProto(request.planner, *out.mutable_planner());
  out.set_profile_id(request.profile_id);
  out.set_simulate(request.simulate);
  for (const AllreduceMeasurement& measured : request.allreduces) ToProto(measured, *out.add_allreduces());
  for (const Link& link : request.links) ToProto(link, *out.add_links());
  out.set_objective(ObjectiveToProto(request.objective));
  if (request.cluster != Cluster{}) ClusterToProto(request.cluster, *out.mutable_cluster());
  out.set_rows(RowsPlaceToProto(request.rows));
}

absl::StatusOr<PlanRequest> FromProto(const pb::PlanRequest& in) {
  PlanRequest request;
  MEDLEY_ASSIGN_OR_RETURN(request.model, FromProto(in.model()));
  request.training = TrainingFromProto(in.training());
  request.constraints = ConstraintsFromProto(in.constraints());
  MEDLEY_RETURN_IF_ERROR(ResourcesFromProto(in.resources(), request.resources));
  request.server_type = in.server_type();
  request.server_memory_bytes = in.server_memory_bytes();
  MEDLEY_ASSIGN_OR_RETURN(request.planner, PlannerFromProto(in.planner()));
  MEDLEY_RETURN_IF_ERROR(ObjectiveFromProto(in, request));
  if (request.planner.name.empty()) request.planner.name = request.on_devices() ? "auto" : "exact";
  request.profile_id = in.profile_id();
  request.simulate = in.simulate();
  for (int i = 0; i < in.allreduces_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(request.allreduces.emplace_back(),
                            FromProto(in.allreduces(i), fmt::format("allreduces[{}]", i)));
  }
  for (const auto& link : in.links()) request.links.push_back(FromProto(link));
  MEDLEY_ASSIGN_OR_RETURN(request.rows, RowsPlaceFromProto(in.rows()));
  return request;
}

void ToProto(const ProvisionedPlan& plan, pb::ProvisionedPlan& out) {
  out.Clear();
  for (const ProvisionedStage& stage : plan.stages) {
    pb::ProvisionedStage& to = *out.add_stages();
    to.set_first_layer(stage.first_layer);
    to.set_last_layer(stage.last_layer);
    to.set_resource_type(stage.resource_type);
    to.set_units(stage.units);
    to.set_throughput(stage.throughput);
    to.set_compute_seconds(stage.compute_seconds);
    to.set_comm_seconds(stage.comm_seconds);
    TablesToProto(stage.tables, to);
  }
  out.set_server_units(plan.server_units);
  out.set_throughput(plan.throughput);
  out.set_cost_usd(plan.cost_usd);
  out.set_cost_per_hour(plan.cost_per_hour);
  out.set_execution_seconds(plan.execution_seconds);
  out.set_trainers_with_rows(plan.trainers_with_rows);
}

ProvisionedPlan FromProto(const pb::ProvisionedPlan& in) {
  ProvisionedPlan plan;
  for (const pb::ProvisionedStage& stage : in.stages()) {
    plan.stages.push_back({stage.first_layer(), stage.last_layer(), stage.resource_type(), stage.units(),
                           stage.throughput(), stage.compute_seconds(), stage.comm_seconds()});
    // A place that this build does not know stays unspecified.
    if (const auto tables = FromProto(stage.tables(), ""); tables.ok()) plan.stages.back().tables = *tables;
  }
  plan.server_units = in.server_units();
  plan.trainers_with_rows = in.trainers_with_rows();
  plan.throughput = in.throughput();
  plan.cost_usd = in.cost_usd();
  plan.cost_per_hour = in.cost_per_hour();
  plan.execution_seconds = in.execution_seconds();
  return plan;
}

void ToProto(const Reason& reason, pb::Reason& out) {
  out.set_constraint(reason.constraint);
  out.set_resource_type(reason.resource_type);
  out.set_needed(reason.needed);
  out.set_available(reason.available);
  out.set_message(reason.message);
}

Reason FromProto(const pb::Reason& in) {
  return {in.constraint(), in.resource_type(), in.needed(), in.available(), in.message()};
}

void ToProto(const PlanResult& result, pb::PlanResponse& out) {
  out.Clear();
  out.set_feasible(result.plan.has_value() || result.step_time.has_value());
  if (result.plan) ToProto(*result.plan, *out.mutable_plan());
  if (result.step_time) StepTimeToProto(*result.step_time, *out.mutable_step_time());
  if (result.simulated) {
    out.mutable_simulated()->set_throughput(result.simulated->throughput);
    out.mutable_simulated()->set_cost_usd(result.simulated->cost_usd);
    out.mutable_simulated()->set_candidates(result.simulated->candidates);
  }
  for (const Reason& reason : result.reasons) ToProto(reason, *out.add_reasons());
  out.set_planner(result.planner);
  out.set_judge(result.judge);
  out.set_planning_seconds(result.planning_seconds);
  out.set_seed(result.seed);
  out.set_lower_bound_usd(result.lower_bound_usd.value_or(0));
  out.set_lower_bound_usd_per_hour(result.lower_bound_usd_per_hour.value_or(0));
  out.set_lower_bound_seconds(result.lower_bound_seconds.value_or(0));
  out.set_gap(result.plan ? result.gap.value_or(1) : 0);
  out.set_catalog_revision(result.catalog_revision);
  google::protobuf::Timestamp time;
  if (!result.price_time.empty() && TimeToProto(result.price_time, time).ok()) *out.mutable_price_time() = time;
  if (result.execution_plan) ToProto(*result.execution_plan, *out.mutable_execution_plan());
  for (const Alternative& alternative : result.alternatives) {
    pb::Alternative& to = *out.add_alternatives();
    to.set_label(alternative.label);
    if (alternative.plan) ToProto(*alternative.plan, *to.mutable_plan());
    for (const Reason& reason : alternative.reasons) ToProto(reason, *to.add_reasons());
  }
  for (const Resource& resource : result.resources) ToProto(resource, *out.add_resources());
  if (result.prediction) ToProto(*result.prediction, *out.mutable_prediction());
  out.set_policy(result.policy);
  for (const std::string& note : result.notes) out.add_notes(note);
}

absl::StatusOr<PlanResult> FromProto(const pb::PlanResponse& in) {
  if (in.feasible() != (in.has_plan() || in.has_step_time()) || (in.has_plan() && in.has_step_time())) {
    return base::InvalidArgument("plan: it or stepTime must be set exactly if feasible is true");
  }
  PlanResult result;
  if (in.has_plan()) result.plan = FromProto(in.plan());
  if (in.has_step_time()) result.step_time = StepTimeFromProto(in.step_time());
  if (auto& s = in.simulated(); in.has_simulated()) result.simulated = {s.throughput(), s.cost_usd(), s.candidates()};
  for (const pb::Reason& reason : in.reasons()) result.reasons.push_back(FromProto(reason));
  result.planner = in.planner();
  result.judge = in.judge();
  result.planning_seconds = in.planning_seconds();
  result.seed = in.seed();
  const auto bound = [&](double value, std::optional<double>& to) {
    if (!in.has_plan() || !(value > 0)) return;
    to = value;
    result.gap = in.gap();
  };
  bound(in.lower_bound_usd(), result.lower_bound_usd);
  bound(in.lower_bound_usd_per_hour(), result.lower_bound_usd_per_hour);
  bound(in.lower_bound_seconds(), result.lower_bound_seconds);
  result.catalog_revision = in.catalog_revision();
  if (in.has_price_time()) result.price_time = TimeFromProto(in.price_time());
  if (in.has_execution_plan()) {
    MEDLEY_ASSIGN_OR_RETURN(result.execution_plan, FromProto(in.execution_plan()));
  }
  for (const pb::Alternative& from : in.alternatives()) {
    Alternative alternative;
    alternative.label = from.label();
    if (from.has_plan()) alternative.plan = FromProto(from.plan());
    for (const pb::Reason& reason : from.reasons()) alternative.reasons.push_back(FromProto(reason));
    result.alternatives.push_back(std::move(alternative));
  }
  MEDLEY_RETURN_IF_ERROR(ResourcesFromProto(in.resources(), result.resources));
  if (in.has_prediction()) result.prediction = FromProto(in.prediction());
  result.policy = in.policy();
  result.notes.assign(in.notes().begin(), in.notes().end());
  return result;
}

}  // namespace medley::model
