// core/v1 Events for people: what happened to an object and why (client-go's record with aggregation).
//
// Record never blocks on the API and never fails its caller: events wait in a bounded queue for one
// thread; what does not fit, or exceeds the rate of its object, is dropped and counted. The same (object,
// type, reason, message) within 10 minutes is one Event whose count grows. Thread-safe.
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
    size_t remembered = 4096;  // events whose counts are kept
    double burst = 25;         // for one object
    double per_second = 1.0 / 30;
    base::nanoseconds window = std::chrono::minutes(10);
    uint64_t seed = 1;
  };
  enum class Type { kNormal, kWarning };

  EventRecorder(kube::Client& client, base::Clock& clock, Options options);
  ~EventRecorder();  // gives up what is queued

  void Record(const kube::Object& object, Type type, std::string_view reason, std::string_view message);
  // Waits until all that was recorded is written or given up. False: `timeout` (real time) passed.
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
  std::map<Id, Known> known_;  // of the thread alone
  uint64_t sequence_ = 0;      // of the thread alone
  std::jthread thread_;
};

}  // namespace medley::ops
