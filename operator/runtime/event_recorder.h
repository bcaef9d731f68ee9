// Writes core/v1 Events: what happened to an object and why (as client-go's record package, with aggregation).
//
// Best effort: Record never waits for the API server and reports no errors. One thread writes the Events from a bounded
// queue. Events that do not fit into the queue, or that exceed the rate for their object, are dropped and counted.
// Repetitions of the same (object, type, reason, message) within 10 minutes increase the count of one Event.
// Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/client.h"

namespace medley::ops {

class EventRecorder {
 public:
  struct Options {
    std::string component = "medley-operator";
    size_t queue_capacity = 1024;
    size_t remembered = 4096;      // Events whose counts are remembered
    double burst = 25;             // Events of one object
    double per_second = 1.0 / 30;  // of one object, after the burst
    base::nanoseconds window = std::chrono::minutes(10);
    uint64_t seed = 1;
  };
  enum class Type { kNormal, kWarning };

  EventRecorder(kube::Client& client, base::Clock& clock, Options options);
  ~EventRecorder();  // drops queued Events

  void Record(const kube::Object& object, Type type, std::string_view reason, std::string_view message);
  // Waits until every recorded Event is written or dropped. False: `timeout` (real time) has passed.
  bool Flush(base::nanoseconds timeout);
  int64_t dropped() const { return dropped_; }

 private:
  using Id = std::tuple<std::string, std::string, std::string, std::string>;  // uid, type, reason, message
  struct Pending {
    kube::Json involved;
    Type type;
    std::string reason, message;
    base::WallTime at;
  };
  struct Known {
    kube::Key key;
    int64_t count = 0;
    base::WallTime first, last;
  };
  struct Bucket {
    double tokens = 0;
    base::SteadyTime at;
  };
  bool TakeToken(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(std::stop_token stop);
  absl::Status Write(const Pending& event);
  absl::Status Create(const Pending& event, const Id& id);

  kube::Client& client_;
  base::Clock& clock_;
  const Options options_;
  std::atomic<int64_t> dropped_{0};
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Pending> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Id, Known> known_;  // used by the thread only
  uint64_t sequence_ = 0;      // used by the thread only
  std::jthread thread_;
};

}  // namespace medley::ops
