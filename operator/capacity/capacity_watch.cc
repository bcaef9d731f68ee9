#include "operator/capacity/capacity_watch.h"

#include "common/base/status.h"

namespace medley::ops {
namespace {

constexpr char kJobs[] = "jobs";
constexpr char kPools[] = "pools";
constexpr base::nanoseconds kPoll = base::milliseconds(5);

}  // namespace

CapacityWatch::CapacityWatch(Options options, const kube::Store& jobs, const kube::Store& pools, base::Clock& clock)
    : options_(std::move(options)),
      requeuer_(options_, jobs, pools),
      controller_({.name = "capacity"}, requeuer_, clock) {}

CapacityWatch::~CapacityWatch() { Stop(); }

absl::Status CapacityWatch::AddSources(const Sources& sources) {
  const auto add = [this](kube::Informer& informer, kube::EventHandler handler) -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(const kube::HandlerId id, informer.AddHandler(std::move(handler)));
    handlers_.emplace_back(&informer, id);
    return absl::OkStatus();
  };
  view_.ExpectJobs(sources.ns);
  MEDLEY_RETURN_IF_ERROR(add(sources.jobs, JobHandler()));
  MEDLEY_RETURN_IF_ERROR(add(sources.nodes, NodeHandler()));
  MEDLEY_RETURN_IF_ERROR(add(sources.pods, PodHandler()));
  MEDLEY_RETURN_IF_ERROR(add(sources.quotas, QuotaHandler()));
  return add(sources.limit_ranges, LimitRangeHandler());
}

absl::Status CapacityWatch::WaitForSync(base::nanoseconds timeout, std::stop_token stop) const {
  const auto synced = [this] {
    for (const auto& [informer, handler] : handlers_) {
      if (!informer->HandlerSynced(handler)) return false;
    }
    return true;
  };
  base::Mutex mutex;
  base::CondVar never;
  base::MutexLock lock(mutex);
  for (base::nanoseconds waited{0}; !synced(); waited += kPoll) {
    if (stop.stop_requested()) return base::Cancelled("waiting for the capacity view: stopped");
    if (waited >= timeout)
      return base::DeadlineExceeded(
          "the capacity view was not filled within {} s: the API server is slow or unavailable",
          base::ToSeconds(timeout));
    never.WaitFor(mutex, stop, kPoll, [] { return false; });
  }
  return absl::OkStatus();
}

void CapacityWatch::Stop() {
  for (const auto& [informer, handler] : handlers_) informer->RemoveHandler(handler);
  controller_.Stop();
}

void CapacityWatch::ReportFreed() {
  if (options_.units_freed && view_.TakeFreed()) options_.units_freed();
}

void CapacityWatch::RequeueJobs(const std::string& ns) { controller_.EnqueueAfter({ns, kJobs}, options_.debounce); }

void CapacityWatch::RequeuePools() { controller_.EnqueueAfter({"", kPools}, options_.debounce); }

void CapacityWatch::NodeChanged(const std::string& name, const std::optional<Notice>& before, bool changed) {
  if (!changed) return;
  // The jobs on this node may have only seconds to move.
  if (view_.NoticeOf(name) != before) {
    for (const kube::Key& job : view_.JobsOn(name)) options_.enqueue_job(job);
  }
  RequeueJobs("");
  RequeuePools();
  ReportFreed();
}

kube::EventHandler CapacityWatch::NodeHandler() {
  const auto put = [this](const kube::Object& node) {
    const std::string name = node.key().name;
    const std::optional<Notice> before = view_.NoticeOf(name);
    NodeChanged(name, before, view_.PutNode(node));
  };
  kube::EventHandler handler;
  handler.on_add = [put](const kube::ObjectPtr& node, bool) { put(*node); };
  handler.on_update = [put](const kube::ObjectPtr&, const kube::ObjectPtr& now) { put(*now); };
  handler.on_delete = [this](const kube::ObjectPtr& node, bool) {
    const std::string name = node->key().name;
    for (const kube::Key& job : view_.JobsOn(name)) options_.enqueue_job(job);
    NodeChanged(name, std::nullopt, view_.EraseNode(name));
  };
  return handler;
}

kube::EventHandler CapacityWatch::PodHandler() {
  const auto requeue = [this](bool changed) {
    if (changed) RequeuePools();
    ReportFreed();
  };
  kube::EventHandler handler;
  handler.on_add = [this, requeue](const kube::ObjectPtr& pod, bool) { requeue(view_.PutPod(*pod)); };
  handler.on_update = [this, requeue](const kube::ObjectPtr&, const kube::ObjectPtr& now) {
    requeue(view_.PutPod(*now));
  };
  handler.on_delete = [this, requeue](const kube::ObjectPtr& pod, bool) { requeue(view_.ErasePod(pod->key())); };
  return handler;
}

kube::EventHandler CapacityWatch::QuotaHandler() {
  kube::EventHandler handler;
  const auto put = [this](const kube::Object& quota) {
    if (view_.PutQuota(quota)) RequeueJobs(quota.key().ns);
    ReportFreed();
  };
  handler.on_add = [put](const kube::ObjectPtr& quota, bool) { put(*quota); };
  handler.on_update = [put](const kube::ObjectPtr&, const kube::ObjectPtr& now) { put(*now); };
  handler.on_delete = [this](const kube::ObjectPtr& quota, bool) {
    view_.EraseQuota(quota->key());
    RequeueJobs(quota->key().ns);
    ReportFreed();
  };
  return handler;
}

kube::EventHandler CapacityWatch::LimitRangeHandler() {
  const auto put = [this](const kube::Object& limit_range) {
    view_.PutLimitRange(limit_range);
    RequeueJobs(limit_range.key().ns);
  };
  kube::EventHandler handler;
  handler.on_add = [put](const kube::ObjectPtr& object, bool) { put(*object); };
  handler.on_update = [put](const kube::ObjectPtr&, const kube::ObjectPtr& now) { put(*now); };
  handler.on_delete = [this](const kube::ObjectPtr& object, bool) {
    view_.EraseLimitRange(object->key());
    RequeueJobs(object->key().ns);
  };
  return handler;
}

kube::EventHandler CapacityWatch::JobHandler() {
  kube::EventHandler handler;
  handler.on_add = [this](const kube::ObjectPtr& job, bool) { view_.PutJob(job->key(), job->uid()); };
  handler.on_update = [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
    if (before->uid() != now->uid()) view_.PutJob(now->key(), now->uid());
  };
  handler.on_delete = [this](const kube::ObjectPtr& job, bool) {
    view_.EraseJob(job->key());
    ReportFreed();
  };
  return handler;
}

absl::StatusOr<Result> CapacityWatch::Requeuer::Reconcile(const kube::Key& key) {
  if (key.name == kPools) {
    for (const kube::Key& pool : pools_.Keys()) options_.enqueue_pool(pool);
    return Result{};
  }
  for (const kube::Key& job : jobs_.Keys()) {
    if (key.ns.empty() || key.ns == job.ns) options_.enqueue_job(job);
  }
  return Result{};
}

}  // namespace medley::ops
