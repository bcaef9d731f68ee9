#include "worker/coordinator/core/row_moves.h"

#include <algorithm>
#include <utility>

#include "common/model/model.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::row_moves {
namespace {

RosterFit FitOfNewest(const CoreState& view) { return members::Fit(view, *view.plans.desired, members::Use::kStaying); }

}  // namespace

bool IsWanted(const CoreState& view) {
  const std::optional<GenerationInfo>& active = view.generations.active;
  const std::optional<job::v1::ApplyPlanRequest>& desired = view.plans.desired;
  if (!active || !desired || view.options.model == nullptr) return false;
  if (active->request.plan().has_servers() == desired->plan().has_servers()) return false;
  return std::ranges::any_of(view.options.model->layers, &model::Layer::sparse);
}

bool HoldsLeases(const CoreState& view) {
  if (view.generations.mode != Mode::kTraining || !IsWanted(view)) return false;
  const std::optional<GenerationInfo>& next = view.generations.next;
  if (next) return next->origin != job::v1::STATE_ORIGIN_PEERS;
  return !view.checkpoints.failure && members::OnlyLeaversMissing(view.members, FitOfNewest(view));
}

bool NeedsCheckpoint(const CoreState& view) {
  return HoldsLeases(view) && !view.generations.next && !checkpoints::HasCommitted(view);
}

Request Next(const CoreState& view) {
  if (!HoldsLeases(view) || view.generations.next) return {};
  const Ledger& ledger = *view.training.ledger;
  if (ledger.committed() != ledger.leased() || !checkpoints::HasCommitted(view)) return {};
  if (view.checkpoints.pending || view.checkpoints.writing) return {};
  // Before the first step the seed says it all.
  const job::v1::StateOrigin origin =
      ledger.committed() > 0 ? job::v1::STATE_ORIGIN_CHECKPOINT : job::v1::STATE_ORIGIN_INITIAL;
  return PrepareRequest{*view.plans.desired, FitOfNewest(view), origin, plans::WhyNew(view.plans)};
}

CheckpointPosition PositionOf(const CoreState& view) {
  return {view.checkpoints.last_folder, 0, view.checkpoints.last_step, view.training.ledger->ToRecord()};
}

}  // namespace medley::worker::row_moves
