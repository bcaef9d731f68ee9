#include "operator/recommend/recommender.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/pool_status.h"
#include "operator/api/resource_pool.h"
#include "operator/api/resources.h"
#include "operator/recommend/ask.h"
#include "operator/recommend/foreign_job.h"
#include "operator/recommend/steps.h"
#include "operator/runtime/controller.h"

namespace medley::ops::recommend {
namespace {

// How often the JobSet of a TrainJob with an answer is looked at until it runs.
constexpr base::seconds kChildAgain{2};
constexpr char kInvalid[] = "InvalidAnnotation", kInfeasible[] = "Infeasible", kChosen[] = "Chosen";

std::string NameOf(ForeignKind kind) { return "recommend-" + ResourceOf(kind).plural; }

// True if the pods of the job's nodes are ready.
bool Runs(const kube::Object& object, const ForeignJob& job) {
  if (job.kind == ForeignKind::kJob) {
    const kube::Json& ready = object.At("/status/ready");
    return ready.is_number_integer() && job.nodes && ready >= *job.nodes;
  }
  const bool of_set = job.kind == ForeignKind::kJobSet;
  const kube::Json& list = object.At(of_set ? "/status/replicatedJobsStatus" : "/status/jobsStatus");
  if (!list.is_array()) return false;
  return std::ranges::any_of(list, [&](const kube::Json& each) {
    const kube::Json ready = each.is_object() ? each.value("ready", kube::Json()) : kube::Json();
    return each.is_object() && each.value("name", kube::Json()) == job.target && ready.is_number_integer() &&
           ready >= 1;
  });
}

// What a choice depends on.
bool OfferChanged(const kube::Object& before, const kube::Object& now) {
  const PoolStatus a = PoolStatus::FromJson(before.At("/status")), b = PoolStatus::FromJson(now.At("/status"));
  return before.generation() != now.generation() || before.uid() != now.uid() || a.units != b.units ||
         a.usd_per_unit_hour != b.usd_per_unit_hour ||
         a.conditions.IsFalse(kAvailableCondition) != b.conditions.IsFalse(kAvailableCondition);
}

}  // namespace

// The jobs of one kind.
class Recommender::Kind final : public Reconciler {
 public:
  Kind(Recommender& all, ForeignKind kind)
      : all_(all),
        kind_(kind),
        informer_(all.reads_, all.clock_,
                  {.reflector = {.resource = ResourceOf(kind),
                                 .ns = all.options_.ns,
                                 .label_selector = std::string(kRecommendLabel) + "=true",
                                 .seed = all.options_.seed}}),
        controller_({.name = NameOf(kind)}, *this, all.clock_) {}

  ForeignKind kind() const { return kind_; }
  const kube::Store& store() const { return informer_.store(); }

  absl::Status Start(std::stop_token stop) {
    MEDLEY_RETURN_IF_ERROR(controller_.AddSource(informer_, MapSelf()));
    // What a job had is free again.
    MEDLEY_ASSIGN_OR_RETURN(
        const kube::HandlerId handler,
        informer_.AddHandler({.on_add = nullptr,
                              .on_update =
                                  [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
                                    if (IsFinished(*now) && !IsFinished(*before)) all_.EnqueueAll();
                                  },
                              .on_delete = [this](const kube::ObjectPtr& job, bool) { all_.Forget(job->uid()); }}));
    handler_ = handler;
    informer_.Start();
    return controller_.Start(stop);
  }
  void Stop() {
    controller_.Stop();
    informer_.RemoveHandler(handler_);
    informer_.Stop();
  }
  void EnqueueAll() {
    for (const kube::Key& key : informer_.store().Keys()) controller_.Enqueue(key, kube::WorkQueue::kLowPriority);
  }

  absl::StatusOr<Result> Reconcile(const kube::Key& key) override {
    const kube::ObjectPtr object = informer_.store().Get(key);
    if (object == nullptr) return Result{};
    const auto job = ReadForeignJob(kind_, *object);
    if (!job.ok()) {
      // What cannot be read may also not be suspended; then nobody asks.
      if (object->At("/spec/suspend") != kube::Json(true)) return Result{};
      ForeignJob unread;
      unread.kind = kind_;
      unread.key = key;
      return Say(unread, *object, false, kInvalid, base::Message(job.status()));
    }
    const bool answered = ReadGiven(all_.options_.keys, *object).has_value();
    std::optional<int> child;
    Result later;
    if (kind_ == ForeignKind::kTrainJob && answered && !job->finished) {
      bool runs = false;
      MEDLEY_ASSIGN_OR_RETURN(child, ChildNodes(*job, *object, runs));
      if (!runs) later.requeue_after = kChildAgain;
    }
    switch (NextStep(*job, *object, answered, child)) {
      case ForeignStep::kNothing:
        return later;
      case ForeignStep::kAssign:
        return Assign(*job, *object);
      case ForeignStep::kRecreate:
        return Recreate(*job);
      case ForeignStep::kResume:
        break;
    }
    const auto patched =
        all_.writes_.Patch(ResourceOf(kind_), key, kube::PatchType::kMerge, ResumePatch(*job, *object));
    return After(patched.status(), "resuming " + key.ToString());
  }

 private:
  bool IsFinished(const kube::Object& object) const {
    const auto job = ReadForeignJob(kind_, object);
    return job.ok() && job->finished;
  }
  // The job has changed or vanished since it was read: its change is an event, which brings it here again.
  static absl::StatusOr<Result> After(const absl::Status& written, const std::string& what) {
    if (written.ok() || kube::IsConflict(written) || kube::IsNotFound(written)) return Result{};
    return base::Annotate(written, what);
  }

  absl::StatusOr<Result> Assign(const ForeignJob& job, const kube::Object& object) {
    const auto ask = ReadAsk(object);
    if (!ask.ok()) return Say(job, object, false, kInvalid, base::Message(ask.status()));
    Chosen chosen;
    {
      const base::MutexLock lock(all_.mutex_);
      chosen = Choose(*ask, job, all_.Offers(job.key.ns));
      if (chosen.choice) all_.pending_[job.uid] = {chosen.choice->pool, chosen.choice->nodes};
    }
    if (!chosen.choice) return Say(job, object, false, kInfeasible, chosen.why_not);
    const Choice& choice = *chosen.choice;
    const std::string signature = SignGiven(all_.options_.keys, job.uid, {choice.pool, choice.nodes});
    const auto patched = all_.writes_.Patch(ResourceOf(kind_), job.key, kube::PatchType::kMerge,
                                            AssignPatch(job, object, choice, signature));
    if (!patched.ok()) {
      const base::MutexLock lock(all_.mutex_);
      all_.pending_.erase(job.uid);
      return After(patched.status(), "giving units to " + job.key.ToString());
    }
    return Say(job, *patched, true, kChosen, choice.InWords());
  }

  // The condition and an Event, if they are new.
  absl::StatusOr<Result> Say(const ForeignJob& job, const kube::Object& object, bool recommended,
                             const std::string& reason, const std::string& message) {
    const kube::Json patch = ConditionPatch(job, object, recommended, reason, message, all_.clock_.Now());
    if (patch.is_null()) return Result{};
    const auto patched = all_.writes_.Patch(ResourceOf(kind_), job.key, kube::PatchType::kMerge, patch, {}, "status");
    if (!patched.ok()) return After(patched.status(), "writing the condition of " + job.key.ToString());
    using Type = EventRecorder::Type;
    all_.events_.Record(object, recommended ? Type::kNormal : Type::kWarning, reason, message);
    return Result{};
  }

  // The number of nodes of the suspended JobSet that Trainer has made of the TrainJob. `runs`: it is not suspended.
  absl::StatusOr<std::optional<int>> ChildNodes(const ForeignJob& job, const kube::Object& object, bool& runs) {
    const auto set = all_.reads_.Get(ResourceOf(ForeignKind::kJobSet), job.key);
    if (kube::IsNotFound(set.status())) return std::nullopt;
    if (!set.ok()) return base::Annotate(set.status(), "reading the JobSet of " + job.key.ToString());
    const auto owner = set->controller();
    if (!owner || owner->uid != object.uid()) return std::nullopt;
    runs = set->At("/spec/suspend") != kube::Json(true);
    if (runs) return std::nullopt;
    kube::Object targeted = *set;
    targeted.SetAnnotation(kTargetAnnotation, job.target);
    const auto read = ReadForeignJob(ForeignKind::kJobSet, targeted);
    if (!read.ok()) return std::nullopt;  // Trainer has another name for its nodes, and decides by itself
    return read->nodes;
  }

  // JobSet forbids another number of pods, also while it is suspended; Trainer makes a new one. Then the job is
  // resumed.
  absl::StatusOr<Result> Recreate(const ForeignJob& job) {
    const auto set = all_.reads_.Get(ResourceOf(ForeignKind::kJobSet), job.key);
    if (!set.ok() && !kube::IsNotFound(set.status())) return set.status();
    const auto owner = set.ok() ? set->controller() : std::nullopt;
    if (set.ok() && owner && owner->uid == job.uid && set->At("/spec/suspend") == kube::Json(true)) {
      const absl::Status deleted = all_.writes_.Delete(
          ResourceOf(ForeignKind::kJobSet), job.key,
          {.uid = set->uid(), .resource_version = set->resource_version(), .propagation_policy = "Background"});
      if (!deleted.ok() && !kube::IsNotFound(deleted) && !kube::IsConflict(deleted)) {
        return base::Annotate(deleted, "deleting the JobSet of " + job.key.ToString());
      }
    }
    return Result{.requeue_after = base::milliseconds(200)};
  }

  Recommender& all_;
  const ForeignKind kind_;
  kube::Informer informer_;
  Controller controller_;
  kube::HandlerId handler_ = 0;
};

Recommender::Recommender(kube::Client& reads, kube::Client& writes, kube::Informer& pools, EventRecorder& events,
                         base::Clock& clock, Options options)
    : reads_(reads), writes_(writes), pools_(pools), events_(events), clock_(clock), options_(std::move(options)) {
  for (const ForeignKind kind : kForeignKinds) kinds_.push_back(std::make_unique<Kind>(*this, kind));
}

Recommender::~Recommender() { Stop(); }

absl::Status Recommender::Start() {
  const auto handler = pools_.AddHandler({.on_add = [this](const kube::ObjectPtr&, bool) { EnqueueAll(); },
                                          .on_update =
                                              [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
                                                if (OfferChanged(*before, *now)) EnqueueAll();
                                              },
                                          .on_delete = nullptr});
  if (!handler.ok()) return handler.status();
  pool_handler_ = *handler;
  finder_ = std::jthread([this](std::stop_token stop) { FindKinds(std::move(stop)); });
  return absl::OkStatus();
}

void Recommender::Stop() {
  finder_.request_stop();
  if (finder_.joinable()) finder_.join();
  pools_.RemoveHandler(pool_handler_);
  for (const auto& kind : kinds_) kind->Stop();
}

void Recommender::FindKinds(std::stop_token stop) {
  std::vector<Kind*> missing;
  for (const auto& kind : kinds_) missing.push_back(kind.get());
  while (!missing.empty() && !stop.stop_requested()) {
    std::erase_if(missing, [&](Kind* kind) {
      const kube::Resource resource = ResourceOf(kind->kind());
      if (!IsServed(resource)) return false;
      const absl::Status started = kind->Start(stop);
      if (stop.stop_requested()) return true;
      if (!started.ok())
        base::log::Warn("no recommendations", {{"for", resource.plural}, {"error", base::ToString(started)}});
      if (started.ok()) base::log::Info("recommends", {{"for", resource.plural}});
      return true;
    });
    const base::MutexLock lock(mutex_);
    wake_.WaitFor(mutex_, stop, options_.look_again, [] { return false; });
  }
}

bool Recommender::IsServed(const kube::Resource& resource) const {
  const auto text = reads_.GetRaw("/apis/" + resource.ApiVersion());
  if (!text.ok()) return false;
  const kube::Json list = kube::Json::parse(*text, nullptr, false);
  const kube::Json found = list.is_object() ? list.value("resources", kube::Json()) : kube::Json();
  return found.is_array() && std::ranges::any_of(found, [&](const kube::Json& each) {
           return each.is_object() && each.value("name", kube::Json()) == resource.plural;
         });
}

void Recommender::Forget(const std::string& uid) {
  {
    const base::MutexLock lock(mutex_);
    pending_.erase(uid);
  }
  EnqueueAll();
}

void Recommender::EnqueueAll() {
  for (const auto& kind : kinds_) kind->EnqueueAll();
}

std::map<std::string, Recommender::Unfinished> Recommender::AllGiven() {
  std::map<std::string, Unfinished> all;
  for (const auto& kind : kinds_) {
    for (const kube::ObjectPtr& object : kind->store().List()) {
      const auto given = ReadGiven(options_.keys, *object);
      if (!given) continue;
      pending_.erase(object->uid());
      const auto job = ReadForeignJob(kind->kind(), *object);
      if (job.ok() && job->finished) continue;
      all[object->uid()] = {*given, job.ok() && Runs(*object, *job)};
    }
  }
  for (const auto& [uid, given] : pending_) all[uid] = {given, false};
  return all;
}

std::vector<NodeOffer> Recommender::Offers(const std::string& ns) {
  std::map<std::string, int> given, waiting;  // by pool: units of all, and of those whose pods the pool does not show
  for (const auto& [uid, each] : AllGiven()) {
    given[each.given.pool] += each.given.nodes;
    if (!each.runs) waiting[each.given.pool] += each.given.nodes;
  }
  std::vector<NodeOffer> offers;
  for (const kube::ObjectPtr& object : pools_.store().List()) {
    const auto pool = ResourcePool::FromObject(*object);
    if (!pool.ok() || object->deleting() || !pool->Allows(ns)) continue;
    const PoolStatus status = PoolStatus::FromJson(object->At("/status"));
    NodeOffer& offer = offers.emplace_back();
    offer.name = pool->name;
    offer.usd_per_unit_hour = status.usd_per_unit_hour;
    offer.node_selector = pool->node_selector;
    offer.tolerations = pool->tolerations;
    const int64_t room = int64_t{status.units.free} - waiting[pool->name];
    const int64_t limit = int64_t{pool->limit} - status.units.used - given[pool->name];
    offer.free = static_cast<int>(std::max<int64_t>(0, std::min(room, limit)));
    if (const Condition* available = status.conditions.Find(kAvailableCondition);
        available != nullptr && available->status == ConditionStatus::kFalse) {
      offer.unavailable = available->message;
    }
  }
  return offers;
}

}  // namespace medley::ops::recommend
