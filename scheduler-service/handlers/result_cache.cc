#include "scheduler-service/handlers/result_cache.h"

#include <utility>

#include "common/base/hash.h"

namespace medley::sched {
namespace {

constexpr char kName[] = "medley_scheduler_cache_total";
constexpr char kHelp[] = "Lookups in the response cache, by result";

uint64_t HashOf(std::string_view kind, std::string_view request) { return base::Hash64(request, base::Hash64(kind)); }

}  // namespace

ResultCache::ResultCache(size_t max_bytes, metrics::Registry& metrics)
    : max_bytes_(max_bytes),
      hits_(metrics.GetCounter(kName, kHelp, {{"result", "hit"}})),
      misses_(metrics.GetCounter(kName, kHelp, {{"result", "miss"}})),
      evictions_(
          metrics.GetCounter("medley_scheduler_cache_evictions_total", "Responses evicted because the cache was full")),
      bytes_gauge_(metrics.GetGauge("medley_scheduler_cache_bytes", "Bytes of requests and responses in the cache")) {}

ResultCache::Answer ResultCache::Find(std::string_view kind, std::string_view request,
                                      const InputVersion& input_version) {
  if (max_bytes_ == 0) return nullptr;
  const uint64_t hash = HashOf(kind, request);
  base::MutexLock lock(mutex_);
  const auto found = by_hash_.find(hash);
  if (found != by_hash_.end() && found->second->request == request && found->second->kind == kind) {
    const auto entry = found->second;
    if (entry->input_version == input_version) {
      entries_.splice(entries_.begin(), entries_, entry);
      hits_.Increment();
      return entry->answer;
    }
    Remove(entry);
  }
  misses_.Increment();
  return nullptr;
}

void ResultCache::Insert(std::string_view kind, std::string_view request, const InputVersion& input_version,
                         std::string answer) {
  Entry entry{HashOf(kind, request), std::string(kind), std::string(request), input_version,
              std::make_shared<const std::string>(std::move(answer))};
  const size_t bytes = entry.Bytes();
  if (bytes > max_bytes_ / 8) return;
  base::MutexLock lock(mutex_);
  // There is one entry per hash, so replace an entry for the same request (from a concurrent call) or with the same
  // hash.
  if (const auto found = by_hash_.find(entry.hash); found != by_hash_.end()) Remove(found->second);
  while (!entries_.empty() && bytes_ + bytes > max_bytes_) {
    Remove(std::prev(entries_.end()));
    evictions_.Increment();
  }
  bytes_ += bytes;
  entries_.push_front(std::move(entry));
  by_hash_[entries_.front().hash] = entries_.begin();
  bytes_gauge_.Set(static_cast<double>(bytes_));
}

void ResultCache::Remove(Entries::iterator entry) {
  bytes_ -= entry->Bytes();
  by_hash_.erase(entry->hash);
  entries_.erase(entry);
  bytes_gauge_.Set(static_cast<double>(bytes_));
}

size_t ResultCache::bytes() const {
  base::MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace medley::sched
