#include "operator/runtime/controller.h"

#include <exception>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::ops {

Controller::Controller(Options options, Reconciler& reconciler, base::Clock& clock)
    : name_(std::move(options.name)),
      worker_count_(options.workers),
      sync_timeout_(options.sync_timeout),
      metrics_(options.metrics),
      reconciler_(reconciler),
      clock_(clock),
      queue_(clock, std::move(options.limiter), options.queue_metrics) {}

Controller::~Controller() { Stop(); }

absl::Status Controller::AddSource(kube::Informer& informer, KeyMapper map, UpdateFilter filter) {
  constexpr int kLow = kube::WorkQueue::kLowPriority;
  const auto add = [this, map = std::move(map)](const kube::Object& object, int priority) {
    for (const kube::Key& key : map(object)) queue_.Add(key, priority);
  };
  kube::EventHandler handler;
  handler.on_add = [add](const kube::ObjectPtr& object, bool initial) { add(*object, initial ? kLow : 0); };
  handler.on_update = [add, filter = std::move(filter)](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
    const bool resync = before->resource_version() == now->resource_version();
    if (!resync && filter != nullptr && !filter(*before, *now)) return;
    add(*now, resync ? kLow : 0);
    if (!resync) add(*before, 0);  // the old owner may be another one; the queue drops duplicates
  };
  handler.on_delete = [add](const kube::ObjectPtr& last, bool) { add(*last, 0); };
  auto id = informer.AddHandler(std::move(handler));
  if (!id.ok()) return id.status();
  base::MutexLock lock(mutex_);
  sources_.push_back({&informer, *id});
  return absl::OkStatus();
}

void Controller::Enqueue(const kube::Key& key, int priority) { queue_.Add(key, priority); }

void Controller::EnqueueAfter(const kube::Key& key, base::nanoseconds delay) { queue_.AddAfter(key, delay); }

absl::Status Controller::Start(std::stop_token stop) {
  std::vector<Source> sources;
  {
    base::MutexLock lock(mutex_);
    if (started_ || stopped_) {
      return base::FailedPrecondition("start controller '{}': it has been started or stopped before", name_);
    }
    started_ = true;
    sources = sources_;
  }
  for (const Source& source : sources) {
    const absl::Status synced = source.informer->WaitForSync(sync_timeout_, stop);
    if (!synced.ok()) return base::Annotate(synced, "start controller '" + name_ + "'");
  }
  base::MutexLock lock(mutex_);
  if (stopped_) return base::Cancelled("start controller '{}': stopped", name_);
  for (int i = 0; i < worker_count_; ++i) {
    workers_.emplace_back([this](std::stop_token mine) { Work(mine); });
  }
  return absl::OkStatus();
}

void Controller::Stop() {
  std::vector<Source> sources;
  std::vector<std::jthread> workers;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    sources.swap(sources_);
    workers.swap(workers_);
  }
  for (const Source& source : sources) source.informer->RemoveHandler(source.handler);
  queue_.ShutDown();
  for (std::jthread& worker : workers) worker.request_stop();
  for (std::jthread& worker : workers) worker.join();
}

void Controller::Work(std::stop_token stop) {
  while (const auto key = queue_.Get(stop)) {
    const base::SteadyTime began = clock_.Steady();
    if (metrics_ != nullptr) metrics_->OnStart();
    const absl::StatusOr<Result> result = Run(*key);
    Finish(*key, result, clock_.Steady() - began);
    queue_.Done(*key);
  }
}

absl::StatusOr<Result> Controller::Run(const kube::Key& key) {
  std::string what;
  try {
    return reconciler_.Reconcile(key);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "it is not a std::exception";
  }
  if (metrics_ != nullptr) metrics_->OnException();
  return base::Internal("reconcile '{}': exception: {}", key.ToString(), what);
}

void Controller::Finish(const kube::Key& key, const absl::StatusOr<Result>& result, base::nanoseconds took) {
  using Outcome = ControllerMetrics::Outcome;
  Outcome outcome = Outcome::kSuccess;
  if (!result.ok()) {
    const bool terminal = IsTerminal(result.status());
    outcome = terminal ? Outcome::kTerminalError : Outcome::kError;
    base::log::Warn("reconcile failed", {{"controller", name_},
                                         {"key", key.ToString()},
                                         {"error", base::ToString(result.status())},
                                         {"retry", terminal ? "no" : "yes"}});
    if (terminal) {
      queue_.Forget(key);
    } else {
      queue_.AddRateLimited(key);
    }
  } else {
    queue_.Forget(key);
    if (result->requeue_after && *result->requeue_after > base::nanoseconds(0)) {
      outcome = Outcome::kRequeueAfter;
      queue_.AddAfter(key, *result->requeue_after);
    }
  }
  if (metrics_ != nullptr) metrics_->OnReconcile(outcome, took);
}

}  // namespace medley::ops
