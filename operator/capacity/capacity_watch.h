// Feeds a CapacityView from informers, and says who shall look again when capacity changed:
// jobs on a node that got a notice at once, everybody else after a debounce, so that a burst of
// changes (a node pool that scales, a namespace that fills) is one look.
//
//   node, quota, limit range --> view --> [debounce] --> enqueue_job(all, or of a namespace)
//   pod                      --> view --> [debounce] --> enqueue_pool(all)
//
// Pods of others that come and go are no reason to plan again: jobs look at their units whenever
// they are looked at. Thread-safe. Owner: OperatorApp. Order: AddSources, informers start,
// WaitForSync, Start, Stop.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "operator/capacity/capacity_view.h"
#include "operator/runtime/controller.h"

namespace medley::ops {

inline kube::Resource LimitRanges() { return {"", "v1", "limitranges", "LimitRange", true}; }

class CapacityWatch {
 public:
  struct Options {
    base::nanoseconds debounce = base::seconds(1);
    std::function<void(const kube::Key&)> enqueue_job;
    std::function<void(const kube::Key&)> enqueue_pool;
  };
  struct Sources {
    kube::Informer& nodes;
    kube::Informer& pods;
    kube::Informer& quotas;
    kube::Informer& limit_ranges;
  };

  // `jobs` and `pools`: whom to tell. Borrowed.
  CapacityWatch(Options options, const kube::Store& jobs, const kube::Store& pools, base::Clock& clock);
  ~CapacityWatch();

  absl::Status AddSources(const Sources& sources);
  // Until the view holds all that the informers first listed. Errors: DeadlineExceeded, Cancelled.
  absl::Status WaitForSync(base::nanoseconds timeout, std::stop_token stop) const;
  absl::Status Start(std::stop_token stop) { return controller_.Start(std::move(stop)); }
  void Stop();  // idempotent

  const CapacityView& view() const { return view_; }

 private:
  // Keys: {namespace or "", "jobs"}, {"", "pools"}.
  class Teller final : public Reconciler {
   public:
    Teller(const Options& options, const kube::Store& jobs, const kube::Store& pools)
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
  void NodeChanged(const std::string& name, const std::optional<Notice>& before, bool changed);
  void TellJobs(const std::string& ns);
  void TellPools();

  const Options options_;
  CapacityView view_;
  Teller teller_;
  Controller controller_;
  std::vector<std::pair<kube::Informer*, kube::HandlerId>> handlers_;  // fixed after AddSources
};

}  // namespace medley::ops
