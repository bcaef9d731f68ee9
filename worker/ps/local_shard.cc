#include "worker/ps/local_shard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

// The answer to a pull, which another thread may give.
struct PullAnswer {
  base::Mutex mutex;
  base::CondVar given;
  std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
};

std::vector<uint64_t> KeysOf(const KeysAt& part) {
  std::vector<uint64_t> keys(part.places.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = part.table->keys[part.places[i]];
  return keys;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ShardGeneration>> LocalShard::Shard() const {
  if (auto shard = server_.Find(generation_)) return shard;
  return base::FailedPrecondition("this trainer has no shard of generation {}", generation_);
}

absl::Status LocalShard::AwaitStep(ShardGeneration& shard, int64_t step, std::span<const KeysAt> parts,
                                   const base::Clock& clock, const WaitLimit& limit) const {
  const auto answer = std::make_shared<PullAnswer>();
  const int64_t pull = shard.Pull(step, clock.Steady(), limit.deadline, [answer](const absl::Status& status) {
    base::MutexLock lock(answer->mutex);
    answer->status = status;
    answer->given.NotifyAll();
  });
  if (pull != 0 && shard.store().HasTiers()) {
    for (const KeysAt& part : parts) shard.store().Expect(part.table->operation, KeysOf(part));
  }
  {
    base::MutexLock lock(answer->mutex);
    const bool given =
        answer->given.WaitUntil(answer->mutex, limit.stop, limit.deadline, [&] { return answer->status.has_value(); });
    if (given) return *answer->status;
  }
  if (pull != 0) shard.Cancel(pull);
  if (limit.stop.stop_requested()) return base::Cancelled("the pull was stopped");
  return base::DeadlineExceeded("step {} was not applied in time, the trainer's own shard has applied step {}",
                                step - 1, shard.store().AppliedStep());
}

absl::Status LocalShard::Pull(int64_t step, std::span<const KeysAt> parts, std::span<float* const> rows,
                              const base::Clock& clock, const WaitLimit& limit) const {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<ShardGeneration> shard, Shard());
  MEDLEY_RETURN_IF_ERROR(AwaitStep(*shard, step, parts, clock, limit));
  std::vector<float> some;
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeysAt& part = parts[p];
    const auto columns = static_cast<size_t>(part.table->columns);
    const size_t count = part.places.size();
    if (count == part.table->keys.size()) {
      MEDLEY_RETURN_IF_ERROR(
          shard->store().Read(part.table->operation, part.table->keys, std::span(rows[p], count * columns)));
      continue;
    }
    some.resize(count * columns);
    MEDLEY_RETURN_IF_ERROR(shard->store().Read(part.table->operation, KeysOf(part), some));
    for (size_t i = 0; i < count; ++i) {
      std::copy_n(some.data() + i * columns, columns, rows[p] + part.places[i] * columns);
    }
  }
  return absl::OkStatus();
}

absl::Status LocalShard::Push(int64_t step, int trainer, std::span<const KeysAt> parts,
                              std::span<const std::span<const float>> gradients, int64_t samples,
                              WireFormat format) const {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<ShardGeneration> shard, Shard());
  std::vector<Gradients> own;
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeysAt& part = parts[p];
    const auto columns = static_cast<size_t>(part.table->columns);
    std::vector<float> values(part.places.size() * columns);
    for (size_t i = 0; i < part.places.size(); ++i) {
      std::copy_n(gradients[p].data() + part.places[i] * columns, columns, values.data() + i * columns);
    }
    RoundAsOnWire(format, WireValues::kGradients, values);
    own.push_back(Gradients::Of(part.table->operation, KeysOf(part), std::move(values)));
  }
  return shard->Push(step, trainer, std::move(own), samples);
}

}  // namespace medley::worker
