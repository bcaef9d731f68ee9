#include "worker/pipeline/prefetcher.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {

Prefetcher::Prefetcher(BatchAssembler assembler, SparseParameters* sparse, base::Clock& clock, Stage stage)
    : assembler_(std::move(assembler)),
      sparse_(sparse),
      clock_(clock),
      stage_(std::move(stage)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Prefetcher::~Prefetcher() {
  thread_.request_stop();
  Drop();
}

void Prefetcher::Add(const StepLease& lease, int64_t version) {
  base::MutexLock lock(mutex_);
  if (entries_.size() >= kMaxPrefetched) return;
  if (std::ranges::find(entries_, lease, &Entry::lease) != entries_.end()) return;
  entries_.push_back({lease, version, std::nullopt});
  changed_.NotifyAll();
}

Prefetcher::Entry* Prefetcher::NextUnprepared() {
  const auto it = std::ranges::find_if(entries_, [](const Entry& entry) { return !entry.result.has_value(); });
  return it == entries_.end() ? nullptr : &*it;
}

void Prefetcher::Run(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this] { return !busy_ && NextUnprepared() != nullptr; })) {
    const StepLease lease = NextUnprepared()->lease;
    const int64_t version = NextUnprepared()->version;
    const WaitLimit limit{cancel_.get_token()};
    busy_ = true;
    mutex_.unlock();
    absl::StatusOr<std::unique_ptr<PreparedStep>> result = Prepare(lease, version, limit);
    mutex_.lock();
    busy_ = false;
    const auto it = std::ranges::find(entries_, lease, &Entry::lease);
    if (it != entries_.end()) it->result = std::move(result);
    changed_.NotifyAll();
  }
}

std::unique_ptr<PreparedStep> Prefetcher::Spare() {
  base::MutexLock lock(mutex_);
  return spare_ != nullptr ? std::move(spare_) : std::make_unique<PreparedStep>();
}

void Prefetcher::Recycle(std::unique_ptr<PreparedStep> step) {
  base::MutexLock lock(mutex_);
  spare_ = std::move(step);
}

absl::StatusOr<std::unique_ptr<PreparedStep>> Prefetcher::Prepare(const StepLease& lease, int64_t version,
                                                                  const WaitLimit& limit) {
  std::unique_ptr<PreparedStep> step = Spare();
  MEDLEY_RETURN_IF_ERROR(assembler_.Assemble(lease, limit.stop, *step));
  step->assembled = clock_.Steady();
  if (sparse_ != nullptr && !step->tables.empty()) {
    // The step before is being computed: rows that it does not change can be here before it ends.
    MEDLEY_ASSIGN_OR_RETURN(const RowsAhead ahead, sparse_->PullAhead(version + 1, step->tables, step->rows, limit));
    const bool some = std::ranges::any_of(ahead.at, [](int64_t at) { return at >= 0; });
    if (stage_ && some) MEDLEY_RETURN_IF_ERROR(stage_(*step));
    MEDLEY_RETURN_IF_ERROR(sparse_->PullChanged(version + 1, step->tables, ahead, step->rows, limit));
  }
  return step;
}

absl::StatusOr<std::unique_ptr<PreparedStep>> Prefetcher::Take(const StepLease& lease, int64_t version,
                                                               const WaitLimit& limit) {
  const base::SteadyTime asked = clock_.Steady();
  Add(lease, version);
  base::MutexLock lock(mutex_);
  while (!entries_.empty() && entries_.front().lease != lease && entries_.front().result.has_value()) {
    entries_.pop_front();
  }
  if (std::ranges::find(entries_, lease, &Entry::lease) == entries_.end()) {
    return base::FailedPrecondition("step {} cannot be prepared: {} other steps occupy the queue", lease.step,
                                    entries_.size());
  }
  const auto ready = [&] {
    const auto it = std::ranges::find(entries_, lease, &Entry::lease);
    return it == entries_.end() || it->result.has_value();
  };
  if (!changed_.WaitUntil(mutex_, limit.stop, limit.deadline, ready)) {
    if (limit.stop.stop_requested()) return base::Cancelled("the wait for the rows of step {} was stopped", lease.step);
    return base::DeadlineExceeded("the rows of step {} did not arrive in time", lease.step);
  }
  const auto it = std::ranges::find(entries_, lease, &Entry::lease);
  if (it == entries_.end()) return base::Cancelled("the prefetched step {} was dropped", lease.step);
  absl::StatusOr<std::unique_ptr<PreparedStep>> result = *std::move(it->result);
  entries_.erase(it);
  if (result.ok()) (*result)->waited = std::max(base::nanoseconds(0), (*result)->assembled - asked);
  return result;
}

void Prefetcher::Drop() {
  base::MutexLock lock(mutex_);
  cancel_.request_stop();
  entries_.clear();
  changed_.NotifyAll();
  // The running pull ends soon, because its stop token has been requested.
  changed_.Wait(mutex_, {}, [this] { return !busy_; });
  cancel_ = std::stop_source();
}

}  // namespace medley::worker
