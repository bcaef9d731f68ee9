#include "worker/ps/push_log.h"

#include <algorithm>
#include <utility>

#include "medley/job/v1/parameter_server.pb.h"

namespace medley::worker {

size_t PushLogBudget(int64_t limit, int64_t other, size_t most) {
  constexpr int64_t kShare = 8;  // this part of the limit stays free for what is allocated for a moment
  if (limit <= 0) return most;
  const int64_t left = std::min(limit / kShare, limit - limit / kShare - other);
  return static_cast<size_t>(std::clamp<int64_t>(left, 0, static_cast<int64_t>(most)));
}

void PushLog::Add(const Place& place, int shard, const job::v1::PushRequest& push) {
  const int64_t step = push.step();
  const size_t size = push.ByteSizeLong();
  base::MutexLock lock(mutex_);
  allowed_ = budget_(bytes_ + spare_.size() * slab_bytes_);
  if (step <= gave_up_) return;
  const std::shared_ptr<Slab> slab = Room(size, step);
  if (slab == nullptr) {
    gave_up_ = step;
    while (!steps_.empty() && steps_.begin()->first <= step) DropFirst();
    return Reclaim();
  }
  std::byte* const to = slab->memory.get() + slab->used;
  if (!push.SerializeToArray(to, static_cast<int>(size))) return;  // a message is far below 2 GiB
  slab->used += size;
  Step& at = steps_[step];
  if (at.place != place || (!at.sent.empty() && push.part() == 0 && at.sent.front().shard == shard)) at = {place, {}};
  at.sent.push_back({shard, slab, {to, size}});
}

std::shared_ptr<PushLog::Slab> PushLog::Room(size_t bytes, int64_t step) {
  const size_t size = std::max(bytes, slab_bytes_);
  const auto fits = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !slabs_.empty() && slabs_.back()->size - slabs_.back()->used >= bytes;
  };
  while (bytes_ + (fits() ? 0 : size) > allowed_) {
    if (steps_.empty() || steps_.begin()->first >= step) return nullptr;
    DropFirst();
    Reclaim();
  }
  if (fits()) return slabs_.back();
  if (size == slab_bytes_ && !spare_.empty()) {
    slabs_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  } else {
    slabs_.push_back(std::make_shared<Slab>(Slab{std::make_unique_for_overwrite<std::byte[]>(size), size, 0}));
  }
  bytes_ += size;
  while (!spare_.empty() && bytes_ + spare_.size() * slab_bytes_ > allowed_) spare_.pop_back();
  return slabs_.back();
}

void PushLog::DropFirst() { steps_.erase(steps_.begin()); }

void PushLog::Reclaim() {
  std::erase_if(slabs_, [this](std::shared_ptr<Slab>& slab) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (slab.use_count() > 1) return false;
    bytes_ -= slab->size;
    slab->used = 0;
    if (slab->size == slab_bytes_ && bytes_ + (spare_.size() + 1) * slab_bytes_ <= allowed_) spare_.push_back(slab);
    return true;
  });
}

void PushLog::DropThrough(int64_t step) {
  base::MutexLock lock(mutex_);
  if (steps_.empty() || steps_.begin()->first > step) return;
  while (!steps_.empty() && steps_.begin()->first <= step) DropFirst();
  Reclaim();
}

void PushLog::CutAfter(int64_t step) {
  base::MutexLock lock(mutex_);
  steps_.erase(steps_.upper_bound(step), steps_.end());
  gave_up_ = std::min(gave_up_, step);
  Reclaim();
}

void PushLog::Clear() {
  base::MutexLock lock(mutex_);
  steps_.clear();
  gave_up_ = 0;
  Reclaim();
}

std::vector<PushLog::Run> PushLog::Runs() const {
  base::MutexLock lock(mutex_);
  std::vector<Run> runs;
  for (const auto& [step, at] : steps_) {
    const bool same = !runs.empty() && runs.back().last_step + 1 == step &&
                      runs.back().place.trainer == at.place.trainer &&
                      runs.back().place.trainers == at.place.trainers && runs.back().place.shards == at.place.shards;
    if (same) runs.back().last_step = step;
    if (!same) runs.push_back({step, step, at.place});
  }
  return runs;
}

bool PushLog::IsShort() const {
  base::MutexLock lock(mutex_);
  return bytes_ > allowed_ / 2;
}

size_t PushLog::bytes() const {
  base::MutexLock lock(mutex_);
  return bytes_;
}

std::vector<PushLog::Kept> PushLog::Of(int shard, int64_t after_step, int64_t to_step) const {
  base::MutexLock lock(mutex_);
  std::vector<Kept> kept;
  for (auto at = steps_.upper_bound(after_step); at != steps_.end() && at->first <= to_step; ++at) {
    for (const Sent& sent : at->second.sent) {
      if (sent.shard == shard) kept.push_back({at->second.place.trainers, sent.push, sent.slab});
    }
  }
  return kept;
}

}  // namespace medley::worker
