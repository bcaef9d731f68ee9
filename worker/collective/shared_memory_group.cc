#include "worker/collective/shared_memory_group.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/collective/algorithms.h"
#include "worker/collective/following_group.h"
#include "worker/collective/shared_memory.h"

namespace medley::worker {
namespace {

constexpr size_t kMaxSlotBytes = size_t{256} << 10;
constexpr size_t kMaxBytes = size_t{16} << 20;  // of all slots
constexpr size_t kMaxWholeBytes = size_t{32} << 10;
constexpr base::milliseconds kLook{50};  // so often a waiting rank looks whether the others are alive
constexpr int kSpins = 64;               // looks before it sleeps

// True if each rank can have a processor of its own.
bool MaySpin(int ranks) {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= ranks;
}

class SharedMemoryGroup final : public FollowingGroup {
 public:
  SharedMemoryGroup(const GroupOptions& options, std::unique_ptr<Group> base, std::unique_ptr<SharedMemory> memory)
      : FollowingGroup(std::move(base)),
        options_(options),
        memory_(std::move(memory)),
        slot_floats_(SharedSlotBytes(size()) / sizeof(float)),
        spins_(MaySpin(size()) ? kSpins : 0) {}
  ~SharedMemoryGroup() override {
    base::MutexLock lock(mutex_);
    if (closed_) return;
    memory_->SetState(SharedMemory::State::kLeft);
    memory_->WakeAll();
  }

  // All algorithms are one here: memory has no links to choose between.
  absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm) override;

  using FollowingGroup::AllreduceSum;

  void Close(std::string_view why) override {
    CloseOwn(why);
    below().Close(why);
  }

 private:
  void CloseOwn(std::string_view why) override {
    base::MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    why_ = why;
    memory_->SetState(SharedMemory::State::kClosed);
    memory_->WakeAll();
  }
  absl::Status Closed(const std::string& what) {
    base::MutexLock lock(mutex_);
    if (!closed_) return absl::OkStatus();
    return base::Aborted("{}: group {} is closed: {}", what, options_.name, why_);
  }
  absl::Status Sum(std::span<float> values);
  // Adds `values`, at most a slot of them; `left`: how many this and the later ones are.
  absl::Status SumChunk(std::span<float> values, size_t left);
  // Returns when all ranks have made as many steps as this one, which makes one.
  absl::Status Meet();
  // The first rank that has not made so many steps; -1: all have.
  int Missing() const;
  // An error if the group is closed, here or by another, or if one that is missing has left. `look`: or was killed.
  absl::Status CheckOthers(bool look);
  const std::string& NameOf(int rank) const { return options_.members[static_cast<size_t>(rank)]; }

  const GroupOptions options_;
  const std::unique_ptr<SharedMemory> memory_;
  const size_t slot_floats_;
  const int spins_;
  uint64_t steps_ = 0;  // only the thread of collectives uses these
  int half_ = 0;
  base::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(mutex_);
};

absl::Status SharedMemoryGroup::AllreduceSum(std::span<float> values, model::AllreduceAlgorithm) {
  if (values.empty()) return absl::OkStatus();
  const std::string what = fmt::format("allreduce of {} values", values.size());
  MEDLEY_RETURN_IF_ERROR(Closed(what));
  const absl::Status status = Sum(values);
  if (status.ok()) return status;
  MEDLEY_RETURN_IF_ERROR(Closed(what));
  Close(fmt::format("{} failed: {}", what, base::Message(status)));
  return base::Unavailable("{} in group {}: {}", what, options_.name, base::Message(status));
}

absl::Status SharedMemoryGroup::Sum(std::span<float> values) {
  while (!values.empty()) {
    const std::span<float> chunk = values.first(std::min(values.size(), slot_floats_));
    MEDLEY_RETURN_IF_ERROR(SumChunk(chunk, values.size()));
    values = values.subspan(chunk.size());
  }
  return absl::OkStatus();
}

// A slot is written again two chunks later. Who writes then has met the others in the chunk between, so they have read.
// Every value is added in the order of ranks, whichever rank adds it.
absl::Status SharedMemoryGroup::SumChunk(std::span<float> values, size_t left) {
  const int n = size();
  const auto slot = [&](int of) { return memory_->Slot(of, half_).first(values.size()); };
  std::copy(values.begin(), values.end(), slot(rank()).begin());
  memory_->Count(rank(), half_).store(left, std::memory_order_relaxed);
  MEDLEY_RETURN_IF_ERROR(Meet());
  for (int other = 0; other < n; ++other) {
    const uint64_t theirs = memory_->Count(other, half_).load(std::memory_order_relaxed);
    if (theirs != left) return base::DataLoss("{} has {} values to add, expected {}", NameOf(other), theirs, left);
  }
  if (values.size_bytes() <= kMaxWholeBytes) {  // each rank adds all, which spares a meeting
    const auto first = slot(0);
    std::copy(first.begin(), first.end(), values.begin());
    for (int other = 1; other < n; ++other) AddTo(values, slot(other));
  } else {  // each rank adds its part, in the slot of rank 0
    const Part own = PartOf(values.size(), rank(), n);
    const std::span<float> sum = slot(0).subspan(own.first, own.count);
    for (int other = 1; other < n; ++other) AddTo(sum, slot(other).subspan(own.first, own.count));
    MEDLEY_RETURN_IF_ERROR(Meet());
    const auto all = slot(0);
    std::copy(all.begin(), all.end(), values.begin());
  }
  half_ = 1 - half_;
  return absl::OkStatus();
}

int SharedMemoryGroup::Missing() const {
  for (int other = 0; other < size(); ++other) {
    if (memory_->Step(other).load() < steps_) return other;
  }
  return -1;
}

absl::Status SharedMemoryGroup::Meet() {
  memory_->Step(rank()).store(++steps_);
  if (Missing() < 0) {
    memory_->WakeAll();
    return absl::OkStatus();
  }
  for (int i = 0; i < spins_; ++i) {
    if (Missing() < 0) return absl::OkStatus();
    ::sched_yield();
  }
  const base::SystemClock clock;
  const base::SteadyTime begin = clock.Steady(), deadline = begin + options_.timeout;
  base::SteadyTime next_look = begin + kLook;
  while (true) {
    const uint32_t changes = memory_->Changes();
    const int missing = Missing();
    if (missing < 0) return absl::OkStatus();
    const base::SteadyTime now = clock.Steady();
    const bool look = now >= next_look;
    if (look) next_look = now + kLook;
    MEDLEY_RETURN_IF_ERROR(CheckOthers(look));
    if (now >= deadline) return base::Unavailable("no message from {} in time", NameOf(missing));
    memory_->Wait(changes, std::min<base::nanoseconds>(kLook, deadline - now));
  }
}

absl::Status SharedMemoryGroup::CheckOthers(bool look) {
  {
    base::MutexLock lock(mutex_);
    if (closed_) return base::Unavailable("{}", why_);
  }
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    const SharedMemory::State state = memory_->StateOf(other);
    if (state == SharedMemory::State::kClosed) return base::Unavailable("{} has closed the group", NameOf(other));
    const bool left = state == SharedMemory::State::kLeft || (look && !memory_->Alive(other));
    // Its last step counts, so look at that after its end.
    if (left && memory_->Step(other).load() < steps_) return base::Unavailable("{} has left", NameOf(other));
  }
  return absl::OkStatus();
}

// Null unless every rank has the memory. A rank that `may` not share votes against it.
absl::StatusOr<std::unique_ptr<SharedMemory>> AgreeOnMemory(Group& base, bool may, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [&base] { base.Close("the group is no longer needed"); });
  const int ranks = base.size();
  const size_t slot_bytes = SharedSlotBytes(ranks);
  absl::StatusOr<std::unique_ptr<SharedMemory>> memory = base::Unavailable("sharing memory: rank 0 has none");
  SharedMemoryKey key;
  if (base.rank() == 0 && may) {
    memory = SharedMemory::Create(ranks, slot_bytes);
    if (memory.ok()) key = (*memory)->key();
  }
  MEDLEY_RETURN_IF_ERROR(base.Broadcast(std::as_writable_bytes(std::span(&key, 1)), 0));
  if (base.rank() > 0 && may && key.process != 0) memory = SharedMemory::Open(key, base.rank(), ranks, slot_bytes);
  float able = memory.ok() ? 1 : 0;
  MEDLEY_RETURN_IF_ERROR(base.AllreduceSum({&able, 1}, model::AllreduceAlgorithm::kLinear));
  return able == static_cast<float>(ranks) ? *std::move(memory) : nullptr;
}

}  // namespace

size_t SharedSlotBytes(int ranks) {
  return std::clamp(kMaxBytes / (2 * static_cast<size_t>(ranks)) / 128 * 128, size_t{128}, kMaxSlotBytes);
}

absl::StatusOr<std::unique_ptr<Group>> ShareMemory(std::unique_ptr<Group> base, const GroupOptions& options,
                                                   std::stop_token stop) {
  auto memory = AgreeOnMemory(*base, options.may_share_memory, stop);
  if (!memory.ok() && stop.stop_requested()) return base::Cancelled("connecting group {} was stopped", options.name);
  MEDLEY_RETURN_IF_ERROR(memory.status());
  if (*memory == nullptr) return base;
  return std::make_unique<SharedMemoryGroup>(options, std::move(base), *std::move(memory));
}

}  // namespace medley::worker
