// The pushes that a trainer has sent since the last checkpoint, so that a server that is lost can be given them again
// (docs/adr/0083-a-lost-server-is-given-its-pushes-again.md).
//
// Messages are copied into slabs, because kept messages between freed ones would let the heap grow to many times their
// size. When the slabs take more than the budget, the oldest steps are dropped, and a lost server needs a checkpoint
// that is newer. Slabs of dropped steps are used again, so that after a while a step costs no new memory. Outlives
// generations. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/mutex.h"

namespace medley::job::v1 {
class PushRequest;
}  // namespace medley::job::v1

namespace medley::worker {

class PushLog {
 public:
  // How a step was pushed. It is the same for all messages of a step.
  struct Place {
    int64_t generation = 0;
    int trainer = 0;   // rank among those that push
    int trainers = 1;  // how many push
    int shards = 1;
    bool operator==(const Place&) const = default;
  };
  // Steps in a row that were pushed from the same rank to the same number of shards.
  struct Run {
    int64_t first_step = 0;
    int64_t last_step = 0;
    Place place;  // that of the first step
  };
  struct Kept {
    int trainers = 1;
    std::span<const std::byte> push;     // a PushRequest
    std::shared_ptr<const void> keeper;  // of `push`
  };

  // The most bytes of slabs, asked for with every message. `held`: what the log has now.
  using Budget = std::function<size_t(size_t held)>;
  explicit PushLog(Budget budget, size_t slab_bytes = size_t{1} << 20)
      : budget_(std::move(budget)), slab_bytes_(slab_bytes) {}

  // Keeps a message of a step, whose number it has; steps come in ascending order. A step that was pushed before in
  // another way takes the place of that.
  void Add(const Place& place, int shard, const job::v1::PushRequest& push);

  void DropThrough(int64_t step);  // a checkpoint has this step
  void CutAfter(int64_t step);     // the later ones were undone
  void Clear();                    // the state is another one

  std::vector<Run> Runs() const;  // in the order of the steps
  // Whether most of the budget is used.
  bool IsShort() const;
  size_t bytes() const;  // of slabs in use
  // The messages to one shard of the steps (after_step, to_step], in the order of steps and parts.
  std::vector<Kept> Of(int shard, int64_t after_step, int64_t to_step) const;

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
    size_t used = 0;
  };
  struct Sent {
    int shard = 0;
    std::shared_ptr<Slab> slab;
    std::span<const std::byte> push;
  };
  struct Step {
    Place place;
    std::vector<Sent> sent;
  };

  // A slab with so much room, for which steps before `step` may be dropped; null: not even then.
  std::shared_ptr<Slab> Room(size_t bytes, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reclaim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // slabs that no step uses any more

  const Budget budget_;
  const size_t slab_bytes_;
  mutable base::Mutex mutex_;
  std::map<int64_t, Step> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Slab>> slabs_ ABSL_GUARDED_BY(mutex_);  // in use; the last one is filled
  std::vector<std::shared_ptr<Slab>> spare_ ABSL_GUARDED_BY(mutex_);  // each of slab_bytes_
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;                          // of slabs_
  size_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;                        // the budget, when it was asked for last
  int64_t gave_up_ ABSL_GUARDED_BY(mutex_) = 0;  // the last step that found no room: its other messages are not kept
};

// Bytes that a log may use in a process with `limit` bytes of memory of which `other` are used by everything else: at
// most `most`, and less where memory is short, so that the log gives way instead of the process.
size_t PushLogBudget(int64_t limit, int64_t other, size_t most);

}  // namespace medley::worker
