#include "worker/ps/shard_generation.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {

Gradients Gradients::Of(int table, std::vector<uint64_t> keys, std::vector<float> values) {
  auto kept =
      std::make_shared<std::pair<std::vector<uint64_t>, std::vector<float>>>(std::move(keys), std::move(values));
  return {.table = table, .keys = kept->first, .values = kept->second, .keeper = kept};
}

ShardGeneration::ShardGeneration(ShardGenerationOptions options, std::shared_ptr<RowStore> store)
    : options_(std::move(options)), store_(std::move(store)) {}

absl::Status ShardGeneration::Readiness(int64_t step, int64_t at) const {
  if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  if (at == step - 1) return absl::OkStatus();
  if (at < step - 1) return base::Unavailable("step {} is not applied yet", step - 1);
  return base::FailedPrecondition("a pull for step {} is not possible, the shard has applied step {}", step, at);
}

int64_t ShardGeneration::Pull(int64_t step, base::SteadyTime now, base::SteadyTime deadline, Done done) {
  absl::Status status;
  {
    base::MutexLock lock(mutex_);
    status = Readiness(step, store_->AppliedStep());
    if (status.code() == absl::StatusCode::kUnavailable) {
      if (waiting_.size() < kMaxWaiting) {
        waiting_[++last_pull_] = {step, std::min(deadline, now + options_.wait), std::move(done)};
        return last_pull_;
      }
      status = base::ResourceExhausted("{} pulls wait on this parameter server already", waiting_.size());
    }
  }
  done(std::move(status));
  return 0;
}

absl::StatusOr<int64_t> ShardGeneration::StepAhead(int64_t step) const {
  base::MutexLock lock(mutex_);
  if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  const int64_t at = store_->AppliedStep();
  return at == step - 1 || at == step - 2 ? at : -1;
}

void ShardGeneration::Cancel(int64_t pull) {
  Done done;
  int64_t step = 0;
  {
    base::MutexLock lock(mutex_);
    const auto found = waiting_.find(pull);
    if (found == waiting_.end()) return;
    done = std::move(found->second.done);
    step = found->second.step;
    waiting_.erase(found);
  }
  done(base::Cancelled("the caller cancelled its pull for step {}", step));
}

void ShardGeneration::Expire(base::SteadyTime now) {
  Answers late;
  {
    base::MutexLock lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (it->second.deadline > now) {
        ++it;
        continue;
      }
      late.emplace_back(std::move(it->second.done),
                        base::DeadlineExceeded("step {} was not applied in time, the shard has applied step {}",
                                               it->second.step - 1, store_->AppliedStep()));
      it = waiting_.erase(it);
    }
  }
  Call(std::move(late));
}

size_t ShardGeneration::WaitingPulls() const {
  base::MutexLock lock(mutex_);
  return waiting_.size();
}

ShardGeneration::Answers ShardGeneration::TakeReady() {
  Answers ready;
  const int64_t at = store_->AppliedStep();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    absl::Status status = Readiness(it->second.step, at);
    if (status.code() == absl::StatusCode::kUnavailable) {
      ++it;
      continue;
    }
    ready.emplace_back(std::move(it->second.done), std::move(status));
    it = waiting_.erase(it);
  }
  return ready;
}

void ShardGeneration::Call(Answers answers) {
  for (auto& [done, status] : answers) done(std::move(status));
}

absl::Status ShardGeneration::Push(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples,
                                   PushPart part, Answers* later) {
  absl::Status status;
  Answers ready;
  {
    base::MutexLock lock(mutex_);
    status = Collect(step, trainer, std::move(gradients), samples, part);
    ready = TakeReady();
  }
  if (later != nullptr) {
    *later = std::move(ready);
  } else {
    Call(std::move(ready));
  }
  return status;
}

absl::Status ShardGeneration::Collect(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples,
                                      PushPart part) {
  if (trainer < 0 || trainer >= options_.trainers) {
    return base::InvalidArgument("got a push of trainer {}, but the generation has {} trainers", trainer,
                                 options_.trainers);
  }
  if (part.count < 1 || part.count > kMaxParts || part.index < 0 || part.index >= part.count) {
    return base::InvalidArgument("got part {} of a push of {} parts", part.index, part.count);
  }
  if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
  const int64_t at = store_->AppliedStep();
  if (step == at && step == pushing_) return absl::OkStatus();  // a retry: the trainer did not receive the response
  if (step != at + 1)
    return base::FailedPrecondition("a push for step {} is not possible, the shard has applied step {}", step, at);
  if (pushing_ != step) pushed_.clear();
  pushing_ = step;
  samples_ = samples;
  Pushed& pushed = pushed_.try_emplace(trainer, Pushed{part.count, {}}).first->second;
  if (pushed.parts != part.count) {
    return base::InvalidArgument("trainer {} pushes step {} in {} parts, but pushed a part of {} before", trainer, step,
                                 part.count, pushed.parts);
  }
  pushed.received.try_emplace(part.index, std::move(gradients));
  return ApplyComplete();
}

bool ShardGeneration::IsComplete() const {
  return pushed_.size() == static_cast<size_t>(options_.trainers) &&
         std::all_of(pushed_.begin(), pushed_.end(),
                     [](const auto& of) { return of.second.received.size() == static_cast<size_t>(of.second.parts); });
}

absl::Status ShardGeneration::ApplyComplete() {
  if (pushing_ > allowed_ || !IsComplete()) return absl::OkStatus();
  std::vector<GradientView> views;
  for (const auto& [rank, pushed] : pushed_) {
    for (const auto& [index, all] : pushed.received) {
      for (const Gradients& g : all) views.push_back({g.table, g.keys, g.values});
    }
  }
  const absl::Status status = store_->Apply(pushing_, views, samples_);
  pushed_.clear();
  MEDLEY_RETURN_IF_ERROR(status);
  if (options_.on_applied) options_.on_applied(pushing_);
  return absl::OkStatus();
}

absl::Status ShardGeneration::Allow(int64_t step) {
  absl::Status status;
  Answers ready;
  {
    base::MutexLock lock(mutex_);
    if (is_closed_) return base::Aborted("generation {} is closed on this parameter server", options_.generation);
    allowed_ = std::max(allowed_, step);
    status = ApplyComplete();
    ready = TakeReady();
  }
  Call(std::move(ready));
  return status;
}

void ShardGeneration::Close() {
  Answers refused;
  {
    base::MutexLock lock(mutex_);
    is_closed_ = true;
    pushed_.clear();
    refused = TakeReady();
  }
  Call(std::move(refused));
}

}  // namespace medley::worker
