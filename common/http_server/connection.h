// Serves one connection: reads requests and writes responses until either side ends it. Internal to common/http_server,
// because it needs asio's headers.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/http_server/server.h"

namespace medley::http_server {

// Why a connection did not end properly.
inline constexpr char kEndedIdle[] = "idle";         // it sent no request for too long
inline constexpr char kEndedSlow[] = "slow";         // a request or a response took too long
inline constexpr char kEndedTooMany[] = "too many";  // a new client needed the place
inline constexpr char kEndedSize[] = "size";         // its request is too large
inline constexpr char kEndedBroken[] = "broken";     // the client closed it before it had its response

// What a connection is doing. By it, the thread that accepts connections decides which ones to end. Thread-safe.
class Progress {
 public:
  // Sets the deadline of the current phase. The accepting thread ends connections that are overdue.
  void FinishWithin(std::chrono::milliseconds time) { deadline_ = Now() + Nanos(time); }
  void NoDeadline() { deadline_ = 0; }
  // Whether no byte of a request has arrived yet.
  void SetIdle(bool idle) { idle_ = idle; }
  bool idle() const { return idle_; }
  bool Overdue() const {
    const int64_t deadline = deadline_;
    return deadline != 0 && Now() > deadline;
  }

  // The connection waits for a request; until Work it may be evicted.
  void Wait() { waiting_since_ = Now(); }
  // A request has arrived. Returns false if the connection was evicted.
  bool Work() {
    const int64_t since = waiting_since_.exchange(0);
    return since != kEvicted;
  }
  bool working() const { return waiting_since_ == 0; }
  // When the connection began to wait; 0: it works on a request or was evicted.
  int64_t waiting_since() const {
    const int64_t since = waiting_since_;
    return since == kEvicted ? 0 : since;
  }
  // Returns false if the connection no longer waits since `since`.
  bool Evict(int64_t since) { return waiting_since_.compare_exchange_strong(since, kEvicted); }

 private:
  static constexpr int64_t kEvicted = -1;
  static int64_t Now() { return base::SystemClock().Steady().time_since_epoch().count(); }
  static int64_t Nanos(std::chrono::milliseconds time) { return base::nanoseconds(time).count(); }

  std::atomic<bool> idle_ = true;
  std::atomic<int64_t> deadline_ = 0;
  std::atomic<int64_t> waiting_since_ = 0;
};

// Memory that many connections share. A quarter is left to requests that are small, so that they are answered while
// many large ones are read. Thread-safe.
class Budget {
 public:
  static constexpr int64_t kSmall = 128 << 10;
  explicit Budget(int64_t bytes) : for_small_(bytes / 4), left_(bytes) {}
  // `bytes` more, of a request that then has `all`.
  bool Take(int64_t bytes, int64_t all) {
    const int64_t must_be_left = all > kSmall ? for_small_ : 0;
    int64_t left = left_;
    while (left >= bytes + must_be_left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }
  void Give(int64_t bytes) { left_ += bytes; }

 private:
  const int64_t for_small_;
  std::atomic<int64_t> left_;
};

// The number of requests that are being answered. Thread-safe.
class Answering {
 public:
  void Begin() {
    base::MutexLock lock(mutex_);
    ++count_;
  }
  void End() {
    base::MutexLock lock(mutex_);
    if (--count_ == 0) none_.NotifyAll();
  }
  int count() const {
    base::MutexLock lock(mutex_);
    return count_;
  }
  bool WaitNone(base::nanoseconds timeout) {
    base::MutexLock lock(mutex_);
    return none_.WaitFor(mutex_, {}, timeout, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return count_ == 0; });
  }

 private:
  mutable base::Mutex mutex_;
  base::CondVar none_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct ConnectionContext {
  const HttpServer::Options& options;
  const HttpServer::Handler& handler;
  Budget& budget;
  Progress& progress;
  Answering& answering;
  std::stop_token client_left;
};

// Returns when the connection has ended: null when it ended properly, or one of the reasons above. Never throws. `tls`
// null: plain HTTP.
const char* ServeConnection(boost::asio::ip::tcp::socket& socket, boost::asio::ssl::context* tls,
                            const ConnectionContext& context, std::stop_token stop);

}  // namespace medley::http_server
