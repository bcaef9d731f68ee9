#include "worker/coordinator/core/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/rows_member.h"
#include "worker/coordinator/core/row_moves.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::choices {
namespace {

using members::Fit;
using members::Use;

}  // namespace

bool MayChange(const CoreState& view, base::SteadyTime now) {
  return !view.generations.next && !view.ending.suspending && !view.hand_over.successor && !training::AllLeased(view) &&
         now >= view.recovery.retry_at && !view.recovery.budget.spent();
}

Request NewPlan(const CoreState& view) {
  const job::v1::ApplyPlanRequest& desired = *view.plans.desired;
  if (desired.plan().generation() == view.generations.active->request.plan().generation()) return {};
  if (row_moves::IsWanted(view)) return row_moves::Next(view);
  RosterFit fit = Fit(view, desired, Use::kStaying);
  if (!members::OnlyLeaversMissing(view.members, fit)) return {};
  return PrepareRequest{desired, std::move(fit), job::v1::STATE_ORIGIN_PEERS, plans::WhyNew(view.plans)};
}

std::string Leaver(const CoreState& view) {
  std::string leaver;
  for (const auto& [name, member] : view.generations.active->members) {
    const ConnectedMember* connected = members::Connected(view.members, member.peer);
    if (connected != nullptr && connected->leaving) leaver = model::ProcessOf(name);
  }
  return leaver;
}

Request Without(const CoreState& view, const std::string& leaver, RosterFit fit) {
  return PrepareRequest{view.generations.active->request,
                        std::move(fit),
                        job::v1::STATE_ORIGIN_PEERS,
                        {job::v1::SWITCH_CAUSE_MEMBER_LEFT, leaver + " leaves", leaver}};
}

Request TakeBack(const CoreState& view, RosterFit fit, base::SteadyTime now) {
  const GenerationInfo& active = *view.generations.active;
  std::string newcomer;
  base::SteadyTime since = now;
  for (const job::v1::Peer& peer : fit.peers) {
    const std::string& name = peer.slot().member();
    if (active.members.contains(name)) continue;
    newcomer = model::ProcessOf(name);
    since = std::min(since, members::Find(view.members, name)->since);
  }
  if (newcomer.empty() || !fit.covers) return {};
  if (!fit.full() && now - since < view.options.fold_in_wait) return {};
  return PrepareRequest{active.request, std::move(fit), job::v1::STATE_ORIGIN_PEERS,
                        standing_by::WhyReturned(view.standing_by, newcomer)};
}

bool NeedsCheckpoint(const CoreState& view, base::SteadyTime now) {
  if (view.generations.next || now < view.recovery.retry_at || !view.options.checkpoints) return false;
  if (!row_moves::IsWanted(view)) return false;
  if (Fit(view, view.generations.active->request, Use::kAll).covers) return false;
  return Fit(view, *view.plans.desired, Use::kStaying).full();
}

Request FromSurvivors(const CoreState& view, base::SteadyTime now) {
  if (view.generations.next || now < view.recovery.retry_at) return {};
  const job::v1::ApplyPlanRequest& in_force = view.generations.active->request;
  const job::v1::ApplyPlanRequest& desired = *view.plans.desired;
  const std::pair<const job::v1::ApplyPlanRequest*, Use> all[] = {{&in_force, Use::kHolders},
                                                                  {&desired, Use::kStaying},
                                                                  {&in_force, Use::kStaying},
                                                                  {&desired, Use::kAll},
                                                                  {&in_force, Use::kAll}};
  const GenerationInfo& active = *view.generations.active;
  std::optional<job::v1::Rebuild> rebuild;
  Cause cause = view.recovery.cause;
  if (!generations::StateIsWhole(active)) {
    const auto plan = rebuilding::Plan(view, view.generations.halted_step);
    if (std::holds_alternative<std::string>(plan)) return {};
    rebuild = std::get<job::v1::Rebuild>(plan);
    cause = rebuilding::Explained(std::move(cause), *rebuild, active.plan.servers().units());
  }
  for (const auto& [plan, use] : all) {
    // Shards are rebuilt as they were, and divided again later.
    if (rebuild && plan->plan().servers().units() != active.plan.servers().units()) continue;
    if (plan == &desired && row_moves::IsWanted(view)) continue;  // its members cannot take the tables
    RosterFit fit = Fit(view, *plan, use);
    if (!fit.covers) continue;
    return PrepareRequest{*plan, std::move(fit), job::v1::STATE_ORIGIN_PEERS, std::move(cause), 0, std::move(rebuild)};
  }
  return {};
}

std::optional<RosterFit> ToStart(const CoreState& view, base::SteadyTime now) {
  const std::optional<job::v1::ApplyPlanRequest>& desired = view.plans.desired;
  if (!desired || now < view.recovery.retry_at) return std::nullopt;
  RosterFit fit = Fit(view, *desired, Use::kStaying);
  if (!fit.covers) fit = Fit(view, *desired, Use::kAll);  // a leaving member is better than none
  const base::nanoseconds patience = view.generations.from > 0 ? view.options.fold_in_wait : view.options.member_wait;
  const bool late = fit.covers && now - view.recovery.waiting_since >= patience;
  if (!fit.full() && !late && !members::OnlyLeaversMissing(view.members, fit)) return std::nullopt;
  return fit;
}

Request FromCheckpoint(const CoreState& view, RosterFit fit) {
  const bool restores = view.restoring.position.has_value();
  // Without an interruption this is a first start, or the job resumes after a suspension.
  const bool interrupted = view.generations.from > 0 && !view.recovery.cause.text.empty();
  Cause cause = interrupted ? view.recovery.cause : plans::WhyNew(view.plans);
  if (restores && !view.restoring.why_older.empty()) cause.text += "; " + view.restoring.why_older;
  return PrepareRequest{*view.plans.desired, std::move(fit),
                        restores ? job::v1::STATE_ORIGIN_CHECKPOINT : job::v1::STATE_ORIGIN_INITIAL, std::move(cause)};
}

Request CheckDeadline(const CoreState& view, base::SteadyTime now) {
  const GenerationsState& generations = view.generations;
  if (generations.mode == Mode::kTraining || generations.mode == Mode::kHalting || generations.next) return {};
  if (!view.plans.desired || view.restoring.finding) return {};
  if (now - view.recovery.waiting_since <= view.options.member_wait) return {};
  const std::string& cause = view.recovery.cause.text;
  return FailRequest{fmt::format("no generation could start for {:.0f} s; missing members: {}{}",
                                 base::ToSeconds(view.options.member_wait), fmt::join(MissingMembers(view), ", "),
                                 cause.empty() ? "" : "; the last cause: " + cause),
                     true};
}

std::vector<std::string> MissingMembers(const CoreState& view) {
  const std::optional<job::v1::ApplyPlanRequest>& desired = view.plans.desired;
  const std::optional<GenerationInfo>& active = view.generations.active;
  if (view.ending.over() || !desired) return {};
  std::vector<std::string> missing = Fit(view, *desired, Use::kStaying).missing;
  if (active && active->request.plan().generation() != desired->plan().generation()) {
    for (std::string& name : Fit(view, active->request, Use::kStaying).missing) {
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(std::move(name));
    }
  }
  return missing;
}

}  // namespace medley::worker::choices
