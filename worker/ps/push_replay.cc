#include "worker/ps/push_replay.h"

#include <utility>

#include "common/base/status.h"

namespace medley::worker {

PushReplay::PushReplay(std::shared_ptr<RowStore> store, int64_t to_step)
    : store_(std::move(store)), to_step_(to_step), applied_(store_->AppliedStep()) {}

absl::Status PushReplay::Take(Push push, const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  const int64_t step = push.step;
  const auto turn = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !failed_.ok() || applied_ >= step - 1; };
  const bool comes = step > to_step_ || changed_.WaitUntil(mutex_, limit.stop, limit.deadline, turn);
  if (!comes && limit.stop.stop_requested())
    return base::Cancelled("taking the pushes of step {} again was stopped", step);
  if (!comes) return base::DeadlineExceeded("the push of step {} could not be taken in time: {}", step, Missing());
  MEDLEY_RETURN_IF_ERROR(failed_);
  if (step <= applied_) return absl::OkStatus();
  failed_ = TakeNext(std::move(push));
  if (!failed_.ok() || applied_ == step) changed_.NotifyAll();
  return failed_;
}

absl::Status PushReplay::TakeNext(Push push) {
  if (push.step > to_step_) {
    return base::InvalidArgument("got the push of step {} again, but the rows are rebuilt up to step {}", push.step,
                                 to_step_);
  }
  if (push.step == begun_ && push.trainers != trainers_) {
    return base::InvalidArgument("trainer {} says that {} trainers pushed step {}, another one said {}", push.trainer,
                                 push.trainers, push.step, trainers_);
  }
  if (collecting_ == nullptr || push.trainers != trainers_) {
    collecting_ = std::make_unique<ShardGeneration>(ShardGenerationOptions{.trainers = push.trainers}, store_);
    MEDLEY_RETURN_IF_ERROR(collecting_->Allow(to_step_));
    trainers_ = push.trainers;
  }
  begun_ = push.step;
  MEDLEY_RETURN_IF_ERROR(
      collecting_->Push(push.step, push.trainer, std::move(push.gradients), push.samples, push.part));
  applied_ = store_->AppliedStep();
  return absl::OkStatus();
}

absl::Status PushReplay::Await(const WaitLimit& limit) {
  base::MutexLock lock(mutex_);
  const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !failed_.ok() || applied_ >= to_step_; };
  if (changed_.WaitUntil(mutex_, limit.stop, limit.deadline, done)) return failed_;
  if (limit.stop.stop_requested()) return base::Cancelled("rebuilding the rows of a lost server was stopped");
  return base::DeadlineExceeded("the rows of a lost server were not rebuilt in time: {}", Missing());
}

void PushReplay::Stop() {
  base::MutexLock lock(mutex_);
  if (failed_.ok()) failed_ = base::Cancelled("the rows of a lost server are not rebuilt here any more");
  changed_.NotifyAll();
}

std::string PushReplay::Missing() const {
  return fmt::format("step {} of {} is applied, and not all of its trainers have sent what they pushed after it",
                     applied_, to_step_);
}

}  // namespace medley::worker
