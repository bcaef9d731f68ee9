#include "operator/capacity/capacity_watch.h"

#include "common/base/status.h"

namespace medley::ops {
namespace {

constexpr char kJobs[] = "jobs";
constexpr char kPools[] = "pools";
constexpr base::nanoseconds kPoll = base::milliseconds(5);

// Room for somebody: a limit that moved, or use that went down.
bool FreesSomething(const QuotaFacts& before, const QuotaFacts& now) {
  if (before.hard != now.hard || before.scopes != now.scopes) return true;
  for (const auto& [name, used] : before.used) {
    if (AmountOf(now.used, name) < used) return true;
  }
  return false;
}

}  // namespace

CapacityWatch::CapacityWatch(Options options, const kube::Store& jobs, const kube::Store& pools, base::Clock& clock)
    : options_(std::move(options)), teller_(options_, jobs, pools), controller_({.name = "capacity"}, teller_, clock) {}

CapacityWatch::~CapacityWatch() { Stop(); }

absl::Status CapacityWatch::AddSources(const Sources& sources) {
  const auto add = [this](kube::Informer& informer, kube::EventHandler handler) -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(const kube::HandlerId id, informer.AddHandler(std::move(handler)));
    handlers_.emplace_back(&informer, id);
    return absl::OkStatus();
  };
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
    if (stop.stop_requested()) return base::Cancelled("wait for the view of capacity: stopped");
    if (waited >= timeout) return base::DeadlineExceeded("the view of capacity was not filled");
    never.WaitFor(mutex, stop, kPoll, [] { return false; });
  }
  return absl::OkStatus();
}

void CapacityWatch::Stop() {
  for (const auto& [informer, handler] : handlers_) informer->RemoveHandler(handler);
  controller_.Stop();
}

void CapacityWatch::TellJobs(const std::string& ns) { controller_.EnqueueAfter({ns, kJobs}, options_.debounce); }

void CapacityWatch::TellPools() { controller_.EnqueueAfter({"", kPools}, options_.debounce); }

void CapacityWatch::NodeChanged(const std::string& name, const std::optional<Notice>& before, bool changed) {
  if (!changed) return;
  // Who runs there has seconds.
  if (view_.NoticeOf(name) != before) {
    for (const kube::Key& job : view_.JobsOn(name)) options_.enqueue_job(job);
  }
  TellJobs("");
  TellPools();
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
  const auto tell = [this](bool changed) {
    if (changed) TellPools();
  };
  kube::EventHandler handler;
  handler.on_add = [this, tell](const kube::ObjectPtr& pod, bool) { tell(view_.PutPod(*pod)); };
  handler.on_update = [this, tell](const kube::ObjectPtr&, const kube::ObjectPtr& now) { tell(view_.PutPod(*now)); };
  handler.on_delete = [this, tell](const kube::ObjectPtr& pod, bool) { tell(view_.ErasePod(pod->key())); };
  return handler;
}

kube::EventHandler CapacityWatch::QuotaHandler() {
  kube::EventHandler handler;
  handler.on_add = [this](const kube::ObjectPtr& quota, bool) {
    view_.PutQuota(*quota);
    TellJobs(quota->key().ns);
  };
  handler.on_update = [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
    view_.PutQuota(*now);
    if (FreesSomething(QuotaFactsOf(*before), QuotaFactsOf(*now))) TellJobs(now->key().ns);
  };
  handler.on_delete = [this](const kube::ObjectPtr& quota, bool) {
    view_.EraseQuota(quota->key());
    TellJobs(quota->key().ns);
  };
  return handler;
}

kube::EventHandler CapacityWatch::LimitRangeHandler() {
  const auto put = [this](const kube::Object& limit_range) {
    view_.PutLimitRange(limit_range);
    TellJobs(limit_range.key().ns);
  };
  kube::EventHandler handler;
  handler.on_add = [put](const kube::ObjectPtr& object, bool) { put(*object); };
  handler.on_update = [put](const kube::ObjectPtr&, const kube::ObjectPtr& now) { put(*now); };
  handler.on_delete = [this](const kube::ObjectPtr& object, bool) {
    view_.EraseLimitRange(object->key());
    TellJobs(object->key().ns);
  };
  return handler;
}

absl::StatusOr<Result> CapacityWatch::Teller::Reconcile(const kube::Key& key) {
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
