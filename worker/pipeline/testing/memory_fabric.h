// Channels, reductions and shared tables between the threads of one process, so that a test can run a whole pipeline.
//
// Thread-safe. Owned by the test; the ends that it returns refer to it.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "worker/pipeline/dense_reducer.h"
#include "worker/pipeline/flow_channel.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker::testing {

// Passes messages between devices, by (tag, sender, receiver). The queue has no bound, because tests are finite.
class MemoryFabric {
 public:
  std::unique_ptr<FlowChannel> End(int device);
  int64_t floats_sent() const;

 private:
  friend class MemoryChannel;
  using Key = std::tuple<Tag, int, int>;
  absl::Status Put(const Key& key, std::span<const float> data);
  absl::Status Take(const Key& key, std::span<float> data, const WaitLimit& limit);

  mutable base::Mutex mutex_;
  base::CondVar arrived_;
  std::map<Key, std::vector<float>> messages_ ABSL_GUARDED_BY(mutex_);
  int64_t floats_sent_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Sums blocks over `replicas`, or those of a group that has no outer level, in the order of their numbers, whichever
// arrives first.
class MemorySum {
 public:
  explicit MemorySum(int replicas) : replicas_(replicas) {}
  std::unique_ptr<DenseReducer> End(int replica);

 private:
  friend class MemoryReducer;
  struct Round {
    std::map<int, std::vector<float>> parts;
    std::vector<float> sum;
    int taken = 0;
  };
  using Key = std::tuple<int64_t, int, std::vector<int>>;  // step, block, who adds
  absl::Status Sum(const Key& key, int replica, std::span<float> values, const WaitLimit& limit);

  const int replicas_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<Key, Round> rounds_ ABSL_GUARDED_BY(mutex_);
};

// Tables shared by `replicas`, each of which uses some of them. Like parameter servers, applies a step when all have
// pushed it.
class SharedTables {
 public:
  SharedTables(int replicas, std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed,
               int kept_updates = 1)
      : replicas_(replicas), tables_(std::move(tables), optimizer, seed, kept_updates) {}
  std::unique_ptr<SparseParameters> End(int replica);
  LocalTables& tables() { return tables_; }

 private:
  friend class SharedTablesEnd;
  struct Pushed {
    std::vector<TableKeys> tables;
    std::vector<std::vector<float>> gradients;
  };
  absl::Status Push(int64_t step, int replica, Pushed pushed, int64_t samples);

  const int replicas_;
  LocalTables tables_;
  base::Mutex mutex_;
  std::map<int64_t, std::map<int, Pushed>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker::testing
