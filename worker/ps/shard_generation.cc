#include "worker/ps/shard_generation.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {

ShardGeneration::ShardGeneration(ShardGenerationOptions options, std::shared_ptr<RowStore> store)
    : options_(std::move(options)), store_(std::move(store)) {}

absl::Status ShardGeneration::WaitForPull(int64_t step, std::stop_token stop, base::SteadyTime now) {
  // Either the caller's stop or Close ends the wait, so both request the stop of `either`.
  std::stop_source either;
  std::stop_callback on_stop(stop, [&] { either.request_stop(); });
  std::stop_callback on_close(closed_.get_token(), [&] { either.request_stop(); });
  const absl::Status status = store_->WaitApplied(step - 1, {either.get_token(), now + options_.wait});
  if (closed_.stop_requested())
    return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  MEDLEY_RETURN_IF_ERROR(status);
  if (const int64_t at = store_->AppliedStep(); at != step - 1) {
    return base::FailedPrecondition("a pull for step {} is not possible, the shard has applied step {}", step, at);
  }
  return absl::OkStatus();
}

absl::Status ShardGeneration::Push(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples) {
  if (trainer < 0 || trainer >= options_.trainers) {
    return base::InvalidArgument("got a push of trainer {}, but the generation has {} trainers", trainer,
                                 options_.trainers);
  }
  base::MutexLock lock(mutex_);
  if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  const int64_t at = store_->AppliedStep();
  if (step == at && step == pushing_) return absl::OkStatus();  // a retry: the trainer did not receive the response
  if (step != at + 1)
    return base::FailedPrecondition("a push for step {} is not possible, the shard has applied step {}", step, at);
  if (pushing_ != step) pushed_.clear();
  pushing_ = step;
  samples_ = samples;
  pushed_.try_emplace(trainer, std::move(gradients));
  return ApplyComplete();
}

absl::Status ShardGeneration::ApplyComplete() {
  const bool complete = pushed_.size() == static_cast<size_t>(options_.trainers);
  if (!complete || pushing_ > allowed_) return absl::OkStatus();
  std::vector<GradientView> views;
  for (const auto& [rank, all] : pushed_) {
    for (const Gradients& g : all) views.push_back({g.table, g.keys, g.values});
  }
  const absl::Status status = store_->Apply(pushing_, views, samples_);
  pushed_.clear();
  MEDLEY_RETURN_IF_ERROR(status);
  if (options_.on_applied) options_.on_applied(pushing_);
  return absl::OkStatus();
}

absl::Status ShardGeneration::Allow(int64_t step) {
  base::MutexLock lock(mutex_);
  if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  allowed_ = std::max(allowed_, step);
  return ApplyComplete();
}

void ShardGeneration::Close() {
  closed_.request_stop();
  base::MutexLock lock(mutex_);
  is_closed_ = true;
  pushed_.clear();
}

}  // namespace medley::worker
