// Caches responses: the same request gets the same bytes, as long as prices, corrections and policies are unchanged.
//
// The key is a kind ("Plan", "/v1/plan json") and the bytes of the request. The hash only finds an entry; the bytes are
// compared. The total size of requests and responses is bounded; the least recently used entries are evicted first.
// Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/call.h"

namespace medley::sched {

class ResultCache {
 public:
  using Answer = std::shared_ptr<const std::string>;

  // `max_bytes` 0 disables the cache. Borrows the metrics.
  ResultCache(size_t max_bytes, metrics::Registry& metrics);

  // Null if there is no entry, or if the entry has another input version; such an entry is removed.
  Answer Find(std::string_view kind, std::string_view request, const InputVersion& input_version);
  // An entry larger than an eighth of the cache is not stored.
  void Insert(std::string_view kind, std::string_view request, const InputVersion& input_version, std::string answer);

  size_t bytes() const;

 private:
  struct Entry {
    uint64_t hash;
    std::string kind;
    std::string request;
    InputVersion input_version;
    Answer answer;
    size_t Bytes() const { return kOverhead + kind.size() + request.size() + answer->size(); }
  };
  using Entries = std::list<Entry>;
  static constexpr size_t kOverhead = 256;  // estimated bytes of list nodes and control blocks

  void Remove(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_bytes_;
  metrics::Counter& hits_;
  metrics::Counter& misses_;
  metrics::Counter& evictions_;
  metrics::Gauge& bytes_gauge_;
  mutable base::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<uint64_t, Entries::iterator> by_hash_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::sched
