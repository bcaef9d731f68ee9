#include "operator/controllers/job_actions.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/capacity/node_facts.h"
#include "operator/capacity/unit_needs.h"
#include "operator/controllers/job_units.h"
#include "operator/controllers/job_world.h"
#include "operator/controllers/pod_creation.h"
#include "operator/lifecycle/stored_plan.h"

namespace medley::ops {

using lifecycle::Action;
using lifecycle::AddSpent;
using lifecycle::Answer;
using lifecycle::ApplyObject;
using lifecycle::AskForPlan;
using lifecycle::Connect;
using lifecycle::CountPlan;
using lifecycle::CountReplan;
using lifecycle::CountRestarts;
using lifecycle::CreateObject;
using lifecycle::CreatePods;
using lifecycle::DeleteObject;
using lifecycle::DeletePods;
using lifecycle::Disconnect;
using lifecycle::DrainMembers;
using lifecycle::Effect;
using lifecycle::EnsureObject;
using lifecycle::GetObject;
using lifecycle::OfferObservation;
using lifecycle::PatchJob;
using lifecycle::PoolsView;
using lifecycle::PublishEvent;
using lifecycle::ReadLog;
using lifecycle::ReadPlan;
using lifecycle::ReadPools;
using lifecycle::ReadProfiles;
using lifecycle::RecordSwitch;
using lifecycle::ReportNewerTerm;
using lifecycle::ReportNoNode;
using lifecycle::ReserveUnits;
using lifecycle::SavePlan;
using lifecycle::SendPlan;
using lifecycle::SuspendTraining;
using lifecycle::TakeTurn;
using lifecycle::WriteLog;

namespace {

constexpr size_t kLongestLog = 1 << 20;  // bytes

}  // namespace

template <typename A, typename Call>
Answer JobActions::Slow(const SlowCalls::Question& question, SlowCalls::Pool pool, Call call) {
  const auto answer = [call = std::move(call)](std::stop_token stop) -> Answer {
    try {
      return typename A::Answer(call(std::move(stop)));
    } catch (const std::exception& error) {  // of a library; it must not end the process
      return typename A::Answer(typename A::Answer::value_type{base::Internal("exception: {}", error.what())});
    }
  };
  return deps_.calls.Ask(key_, question, pool, answer).value_or(Answer(typename A::Answer()));
}

Answer JobActions::Do(const Action& action) {
  return std::visit([this](const auto& each) { return Carry(each); }, action);
}

void JobActions::Do(const Effect& effect) {
  std::visit([this](const auto& each) { Carry(each); }, effect);
}

Answer JobActions::Carry(const ReadPools& action) {
  return input_.job ? ReadPoolsView(deps_, *input_.job, action) : PoolsView();
}

Answer JobActions::Carry(const ReadPlan&) {
  const kube::Key key{key_.ns, PlanConfigMapName(key_.name)};
  return ReadCurrent(deps_, first_, kube::resources::ConfigMaps(), key, deps_.stores.config_maps.Get(key));
}

Answer JobActions::Carry(const ReadProfiles& action) {
  lifecycle::ProfilesView view;
  for (const std::string& pool : action.pools) {
    const kube::ObjectPtr map = deps_.stores.config_maps.Get({key_.ns, ProfileConfigMapName(action.hash, pool)});
    if (map != nullptr) view.stored[pool] = map;
    if (const auto progress = deps_.profiles.Find({key_.ns, action.hash, pool})) view.open[pool] = *progress;
  }
  return view;
}

Answer JobActions::Carry(const GetObject& action) { return deps_.client.Get(action.resource, action.key); }

Answer JobActions::Carry(const ReadLog& action) {
  std::string path = kube::resources::Pods().Path(action.pod.ns, action.pod.name, "log");
  path += std::string("?container=") + kWorkerContainer;
  if (action.tail_lines > 0) path += "&tailLines=" + std::to_string(action.tail_lines);
  const auto read = [&client = deps_.client, path](std::stop_token stop) -> absl::StatusOr<std::string> {
    std::string log;
    MEDLEY_RETURN_IF_ERROR(client.StreamRaw(path, std::move(stop), [&](std::string_view piece) {
      log += piece;
      return log.size() < kLongestLog;
    }));
    return log;
  };
  return Slow<ReadLog>({"log of " + action.uid, path, nullptr}, SlowCalls::Pool::kLogs, read);
}

Answer JobActions::Carry(const TakeTurn&) {
  const int64_t turn = deps_.line.turn();
  if (!input_.job) return TakeTurn::Taken{"", turn};
  const auto ahead = deps_.line.Take(PlaceInLine(deps_, *input_.job, *input_.object));
  return TakeTurn::Taken{ahead ? ahead->ToString() : "", turn};
}

Answer JobActions::Carry(const ReserveUnits& action) {
  const UnitOwner owner{key_, input_.object->uid()};
  std::vector<PlannedUnit> units;
  if (input_.job) units = UnitsOfSlots(deps_, *input_.job, action.slots, action.until_switch, action.coordinator);
  absl::Status done;
  if (action.is_stored) {
    deps_.capacity.Restore(owner, units);
  } else if (const auto ahead = deps_.line.Ahead(key_, action.turn)) {
    done = base::ResourceExhausted("units have become free, and job {}, which waits for them, is planned first",
                                   ahead->ToString());
  } else {
    done = deps_.capacity.Reserve(owner, units);
  }
  ReportFreed(deps_);
  return done;
}

Answer JobActions::Carry(const EnsureObject& action) {
  const kube::Key key = action.object.key();
  if (action.probably_exists) {
    auto existing = deps_.client.Get(action.resource, key);
    if (!kube::IsNotFound(existing.status())) return EnsureObject::Outcome{std::move(existing), false};
  }
  auto made = deps_.client.Create(action.resource, action.object);
  if (kube::IsAlreadyExists(made.status())) return EnsureObject::Outcome{deps_.client.Get(action.resource, key), false};
  const bool created = made.ok();
  return EnsureObject::Outcome{std::move(made), created};
}

Answer JobActions::Carry(const CreateObject& action) { return deps_.client.Create(action.resource, action.object); }

Answer JobActions::Carry(const ApplyObject& action) {
  return deps_.client.Patch(action.resource, action.object.key(), kube::PatchType::kApply, action.object.json(),
                            {.field_manager = "medley-operator", .force = true});
}

Answer JobActions::Carry(const DeleteObject& action) {
  return deps_.client.Delete(action.resource, action.key,
                             {.uid = action.uid, .propagation_policy = action.propagation_policy});
}

Answer JobActions::Carry(const PatchJob& action) {
  const auto patched =
      deps_.client.Patch(TrainingJobs(), key_, kube::PatchType::kMerge, action.patch, {}, action.subresource);
  if (patched.ok() && action.subresource == "status") deps_.metrics.CountStatusWrite();
  return patched.status();
}

absl::Status JobActions::CreatePod(kube::Object pod, bool avoid_noticed_nodes) {
  if (avoid_noticed_nodes) KeepOff(deps_.capacity.NodesToAvoid(deps_.capacity.Demand(pod)), pod);
  deps_.expectations.ExpectCreations(key_, 1);
  absl::Status made = CreateSignedPod(deps_, std::move(pod));
  if (!made.ok()) deps_.expectations.CreationObserved(key_);
  return made;
}

Answer JobActions::Carry(const CreatePods& action) {
  CreatePods::Outcomes outcomes;
  SlowStart(static_cast<int>(action.pods.size()), [&](int i) -> absl::Status {
    const absl::Status made = CreatePod(action.pods[i], action.avoid_noticed_nodes);
    outcomes.tried.push_back(made);
    return kube::IsAlreadyExists(made) ? absl::OkStatus() : made;
  });
  return outcomes;
}

Answer JobActions::Carry(const DeletePods& action) {
  DeletePods::Outcome outcome;
  for (const DeletePods::Target& pod : action.pods) {
    const absl::Status deleted = deps_.client.Delete(kube::resources::Pods(), pod.key, {.uid = pod.uid});
    // A conflict: a newer pod has the name.
    if (!deleted.ok() && !kube::IsNotFound(deleted) && !kube::IsConflict(deleted)) {
      outcome.status = base::Annotate(deleted, "delete pod " + pod.key.ToString());
      break;
    }
    outcome.deleted.insert(pod.uid);
  }
  return outcome;
}

Answer JobActions::Carry(const SavePlan& action) {
  const kube::Resource maps = kube::resources::ConfigMaps();
  const auto update = [&](const std::string& version) {
    kube::Object map = action.map;
    map.mutable_json()["metadata"]["resourceVersion"] = version;
    return deps_.client.Update(maps, map);
  };
  SavePlan::Outcome outcome;
  absl::StatusOr<kube::Object> written = base::NotFound("not written yet");
  if (!action.version.empty()) written = update(action.version);
  if (kube::IsNotFound(written.status())) written = deps_.client.Create(maps, action.map);
  if (kube::IsAlreadyExists(written.status()) || kube::IsConflict(written.status())) {
    outcome = ReadOtherPlan(action.map);
    if (!outcome.status.ok()) return outcome;
    written = update(outcome.version);
  }
  if (written.ok()) outcome.version = written->resource_version();
  outcome.status = base::Annotate(written.status(), "write ConfigMap " + action.map.key().ToString());
  return outcome;
}

SavePlan::Outcome JobActions::ReadOtherPlan(const kube::Object& map) {
  SavePlan::Outcome outcome;
  const auto existing = deps_.client.Get(kube::resources::ConfigMaps(), map.key());
  outcome.status = existing.status();
  if (!existing.ok()) return outcome;
  outcome.version = existing->resource_version();
  const std::string uid = input_.object->uid();
  if (const auto genuine = deps_.options.record_keys.Check(RecordKind::kPlan, uid, *existing); !genuine.ok()) {
    const auto owner = existing->controller();
    if (owner && owner->uid == uid) outcome.refused = base::Message(genuine);
    return outcome;
  }
  outcome.overtaken = true;
  auto plan = ReadPlanRecord(*existing);
  if (plan.ok() && lifecycle::CheckPlanRecord(*plan, key_.name, uid).ok()) {
    outcome.plan_of_other = std::make_shared<const PlanRecord>(*std::move(plan));
  }
  outcome.status = base::Aborted(
      "write ConfigMap {}: another operator (term {}) has written it; the job goes on with "
      "that plan",
      map.key().ToString(), existing->annotation(kLeaderTermAnnotation));
  return outcome;
}

Answer JobActions::Carry(const Connect& action) {
  const auto link = deps_.links.For(key_, action.connection);
  if (link.ok()) return (*link)->latest();
  base::log::Warn("cannot connect to the coordinator",
                  {{"job", key_.ToString()}, {"error", base::ToString(link.status())}});
  return Connect::Answer();
}

Answer JobActions::Carry(const SendPlan& action) {
  const auto link = deps_.links.Find(key_);
  if (link == nullptr) return SendPlan::Answer(base::Unavailable("not connected to the coordinator"));
  const std::string text = link->address() + " " + std::to_string(action.plan.plan.generation);
  return Slow<SendPlan>({"send plan", text, nullptr}, SlowCalls::Pool::kCoordinators,
                        [link, plan = action.plan, term = term_](std::stop_token stop) {
                          return link->ApplyPlan(plan, term, std::move(stop));
                        });
}

Answer JobActions::Carry(const SuspendTraining& action) {
  using Outcome = SuspendTraining::Outcome;
  const auto link = deps_.links.Find(key_);
  if (link == nullptr) {
    return SuspendTraining::Answer(Outcome{base::Unavailable("not connected to the coordinator"), nullptr});
  }
  return Slow<SuspendTraining>({"suspend", link->address(), nullptr}, SlowCalls::Pool::kSuspensions,
                               [link, action, term = term_](std::stop_token stop) {
                                 auto step = link->Suspend(action.reason, action.timeout, term, std::move(stop));
                                 return Outcome{std::move(step), link->latest()};
                               });
}

Answer JobActions::Carry(const DrainMembers& action) {
  const auto link = deps_.links.Find(key_);
  if (link == nullptr) return DrainMembers::Answer(base::Unavailable("not connected to the coordinator"));
  const std::string text = fmt::format("{}: {}", link->address(), fmt::join(action.members, ","));
  return Slow<DrainMembers>({"drain", text, nullptr}, SlowCalls::Pool::kCoordinators,
                            [link, action, term = term_](std::stop_token stop) {
                              return link->Drain(action.members, action.notice, term, std::move(stop));
                            });
}

Answer JobActions::Carry(const AskForPlan& action) {
  return Slow<AskForPlan>(
      {"plan", "", action.request, static_cast<int>(action.urgency)}, SlowCalls::Pool::kPlanner,
      [&scheduler = deps_.scheduler, request = action.request, tenant = key_.ns](std::stop_token stop) {
        AskForPlan::Outcome outcome{scheduler.Plan(*request, tenant, std::move(stop)), false};
        outcome.unavailable = !outcome.result.ok() && IsSchedulerAway(outcome.result.status());
        return outcome;
      });
}

void JobActions::Carry(const PublishEvent& effect) {
  deps_.events.Record(*input_.object, effect.warning ? EventRecorder::Type::kWarning : EventRecorder::Type::kNormal,
                      effect.reason, effect.message);
}

void JobActions::Carry(const CountRestarts& effect) {
  for (int i = 0; i < effect.count; ++i) deps_.metrics.CountRestart();
}

void JobActions::Carry(const CountPlan& effect) { deps_.metrics.CountPlan(effect.result); }

void JobActions::Carry(const CountReplan& effect) { deps_.metrics.CountReplan(effect.decision); }

void JobActions::Carry(const AddSpent& effect) { deps_.metrics.AddSpent(effect.usd); }

void JobActions::Carry(const RecordSwitch& effect) {
  deps_.metrics.ObserveSwitch(key_, effect.recovery, effect.pause_seconds, static_cast<double>(effect.lost_steps));
}

void JobActions::Carry(const Disconnect&) { deps_.links.Drop(key_); }

void JobActions::Carry(const OfferObservation& effect) { deps_.observations.Offer(effect.observation, key_.ns); }

void JobActions::Carry(const ReportNewerTerm& effect) { deps_.heard_of_term(effect.term); }

void JobActions::Carry(const ReportNoNode& effect) {
  const kube::ObjectPtr pool = deps_.stores.pools.Get({"", effect.pool});
  const auto parsed = pool == nullptr ? base::NotFound("no such pool") : ResourcePool::FromObject(*pool);
  if (!parsed.ok() || parsed->scaling != PoolScaling::kAutoscaled) return;
  const bool plain = std::any_of(effect.pods.begin(), effect.pods.end(), [&](const kube::ObjectPtr& pod) {
    return AsksOnlyForUnit(*pod, *parsed, effect.zone);
  });
  if (!plain) return;
  const bool is_new = deps_.outages.Fail(*pool, effect.zone, PlacedPods(deps_, effect.pool), deps_.clock.Now());
  if (is_new) deps_.pool_changed(effect.pool);
}

void JobActions::Carry(const WriteLog& effect) {
  if (effect.warning) {
    base::log::Warn(effect.message, {{"error", effect.error}});
  } else {
    base::log::Debug(effect.message, {{"error", effect.error}});
  }
}

}  // namespace medley::ops
