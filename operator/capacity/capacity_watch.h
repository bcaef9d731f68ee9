// Updates a CapacityView from informers and requeues jobs and pools when capacity has changed: the jobs on a node that
// got a notice at once, all others after a debounce, so that a burst of changes (a node pool that scales, many new
// pods) causes one reconciliation.
//
//   node               --> view --> [debounce] --> enqueue_job(all), enqueue_pool(all)
//   quota, limit range --> view --> [debounce] --> enqueue_job(all of the namespace)
//   pod                --> view --> [debounce] --> enqueue_pool(all)
//   what frees units   --> view --> units_freed
//
// A change of another workload's pods does not requeue jobs: every reconciliation of a job reads its units anyway.
// Thread-safe. Owner: OperatorApp. Order of calls: AddSources, start of the informers, WaitForSync, Start, Stop.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "operator/capacity/capacity_view.h"
#include "operator/runtime/controller.h"

namespace medley::ops {

inline kube::Resource LimitRanges() { return {"", "v1", "limitranges", "LimitRange", true}; }
inline kube::Resource PriorityClasses() {
  return {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};
}

class CapacityWatch {
 public:
  struct Options {
    base::nanoseconds debounce = base::seconds(1);
    std::function<void(const kube::Key&)> enqueue_job;
    std::function<void(const kube::Key&)> enqueue_pool;
    // Something may have become free; called without a debounce. null: nobody waits for units.
    std::function<void()> units_freed;
  };
  struct Sources {
    kube::Informer& nodes;
    kube::Informer& pods;
    kube::Informer& quotas;
    kube::Informer& limit_ranges;
    kube::Informer& jobs;
    std::string ns;  // whose jobs the informer lists; empty: all
  };

  // `jobs` and `pools`: the objects to requeue. Borrowed.
  CapacityWatch(Options options, const kube::Store& jobs, const kube::Store& pools, base::Clock& clock);
  ~CapacityWatch();

  absl::Status AddSources(const Sources& sources);
  // Waits until the view holds all objects of the informers' first lists. Errors: DeadlineExceeded, Cancelled.
  absl::Status WaitForSync(base::nanoseconds timeout, std::stop_token stop) const;
  absl::Status Start(std::stop_token stop) { return controller_.Start(std::move(stop)); }
  void Stop();  // idempotent

  CapacityView& view() { return view_; }

 private:
  // Requeues jobs or pools. Keys: {namespace, "jobs"} ({"", "jobs"}: all jobs) and {"", "pools"}.
  class Requeuer final : public Reconciler {
   public:
    Requeuer(const Options& options, const kube::Store& jobs, const kube::Store& pools)
        : options_(options), jobs_(jobs), pools_(pools) {}
    absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

   private:
    const Options& options_;
    const kube::Store& jobs_;
    const kube::Store& pools_;
  };

  kube::EventHandler NodeHandler();
  kube::EventHandler PodHandler();
  kube::EventHandler QuotaHandler();
  kube::EventHandler LimitRangeHandler();
  kube::EventHandler JobHandler();
  void NodeChanged(const std::string& name, const std::optional<Notice>& before, bool changed);
  void ReportFreed();
  void RequeueJobs(const std::string& ns);
  void RequeuePools();

  const Options options_;
  CapacityView view_;
  Requeuer requeuer_;
  Controller controller_;
  std::vector<std::pair<kube::Informer*, kube::HandlerId>> handlers_;  // constant after AddSources
};

}  // namespace medley::ops
