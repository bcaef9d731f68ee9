#include "worker/coordinator/core/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/executable.h"
#include "common/model/leader_term.h"
#include "common/model/model.h"
#include "common/program/compile.h"
#include "worker/coordinator/core/roster.h"

namespace medley::worker::plans {
namespace {

std::span<const model::Layer> LayersOf(const CoreOptions& options) {
  return options.model == nullptr ? std::span<const model::Layer>() : options.model->layers;
}

}  // namespace

absl::Status Check(const CoreOptions& options, const job::v1::ApplyPlanRequest& request) {
  MEDLEY_RETURN_IF_ERROR(ValidateApply(request));
  std::vector<model::OperationParts> operations;
  for (const model::Layer& layer : LayersOf(options)) {
    operations.push_back({.tables = layer.sparse, .dense = !layer.sparse && layer.weight_bytes > 0});
  }
  MEDLEY_RETURN_IF_ERROR(model::CheckExecutable(request.plan(), operations));
  if (operations.empty()) return absl::OkStatus();
  // What members would refuse later, after the job has prepared for it.
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, model::FromProto(request.plan()));
  return base::Annotate(program::Compile(plan, *options.model).status(), "plan");
}

absl::Status MayFollow(const PlansState& plans, const CoreOptions& options, const job::v1::ApplyPlanRequest& request) {
  const std::optional<job::v1::ApplyPlanRequest>& desired = plans.desired;
  if (desired && request.plan().generation() < desired->plan().generation()) {
    return base::FailedPrecondition("plan {} is older than plan {}", request.plan().generation(),
                                    desired->plan().generation());
  }
  const std::optional<job::v1::RefusedPlan>& refused = plans.refused;
  if (refused && request.plan().generation() == refused->generation()) {
    return base::FailedPrecondition("plan {} was given up, because {} cannot run it: {}", refused->generation(),
                                    refused->member(), refused->message());
  }
  const bool tables = std::ranges::any_of(LayersOf(options), [](const model::Layer& layer) { return layer.sparse; });
  // They have another form there, so they move through a checkpoint.
  if (tables && !options.checkpoints && desired && desired->plan().has_servers() != request.plan().has_servers()) {
    return base::Unimplemented(
        "plan.servers: a job whose embedding tables are {} and that writes no checkpoints cannot train with a plan "
        "whose tables are {}",
        desired->plan().has_servers() ? "on parameter servers" : "at a trainer",
        request.plan().has_servers() ? "on parameter servers" : "at a trainer");
  }
  return absl::OkStatus();
}

Cause WhyNew(const PlansState& plans) { return {job::v1::SWITCH_CAUSE_PLAN, plans.desired->reason(), ""}; }

absl::StatusOr<bool> AcceptTerm(PlansState& own, int64_t leader_term, Effects& out) {
  if (leader_term < own.leader_term) return model::StaleTerm(leader_term, own.leader_term);
  if (leader_term == own.leader_term) return false;
  out.Log(false, fmt::format("requests now come from the leader of term {}, before from term {}", leader_term,
                             own.leader_term));
  own.leader_term = leader_term;
  return true;
}

bool Accept(PlansState& own, const job::v1::ApplyPlanRequest& request) {
  if (own.desired && request.plan().generation() == own.desired->plan().generation()) {
    *own.desired->mutable_usd_per_unit_hour() = request.usd_per_unit_hour();
    return false;
  }
  own.desired = request;
  own.refused.reset();
  if (!own.first) own.first = request;
  return true;
}

void Refuse(PlansState& own, const job::v1::ApplyPlanRequest& in_force, int64_t plan, const std::string& member,
            const std::string& message) {
  own.refused.emplace();
  own.refused->set_generation(plan);
  own.refused->set_member(member);
  own.refused->set_message(message);
  if (own.desired->plan().generation() == plan) own.desired = in_force;
}

void Restore(PlansState& own, const CoreOptions& options, const job::v1::CoordinatorState& journal) {
  own.leader_term = journal.leader_term();
  // The operator sends its plan again, so one that cannot be carried out is forgotten.
  if (journal.has_desired() && Check(options, journal.desired()).ok()) own.desired = journal.desired();
  if (journal.has_first_plan()) own.first = journal.first_plan();
}

}  // namespace medley::worker::plans
