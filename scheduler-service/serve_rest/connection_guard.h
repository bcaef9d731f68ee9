// Ends connections that cost without asking anything: idle ones, senders that drip or never stop, and the oldest idle
// ones when there are too many.
//
// cpprestsdk has no timeouts, no bound on headers and does not show its sockets. The guard therefore looks at the
// process's own sockets from outside: several times a second it goes through /proc/self/fd, takes a duplicate of each
// descriptor (so that what it looks at cannot become another one meanwhile), keeps those that are connections of the
// listening port, and reads how many bytes the kernel has received and sent on them. A connection is ended by
// shutdown(2), which the library sees as the client having left.
//
// Thread-safe. The port may be listened on by this process only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"

namespace medley::sched {

class ConnectionGuard {
 public:
  struct Options {
    int port = 0;
    base::nanoseconds period = base::milliseconds(200);
    base::nanoseconds idle = base::seconds(90);         // nothing received or sent; more than the longest planning
    base::nanoseconds receive = base::seconds(20);      // from the first byte of a request to its last
    uint64_t max_unanswered_bytes = uint64_t{8} << 20;  // received since the last byte sent
    size_t max_connections = 1024;
  };
  // `answering`: how many requests have arrived (headers) and are not answered. Borrows metrics and clock.
  ConnectionGuard(const Options& options, std::function<int()> answering, metrics::Registry& metrics,
                  base::Clock& clock);

  // One look; the thread does nothing else. Returns how many connections were ended.
  int Look();

 private:
  struct Connection {
    uint64_t received = 0, sent = 0;
    uint64_t received_at_sent = 0;  // `received` when `sent` was last seen to grow
    base::SteadyTime changed;       // when either was last seen to grow
    base::SteadyTime asking_since;  // first sight of bytes that are not answered
    bool asking = false;
    bool seen = false;
  };

  void Inspect(int fd, base::SteadyTime now);
  const char* Fault(const Connection& connection, bool grew, base::SteadyTime now) const;
  void End(int fd, const char* reason);
  void EndOldestIdle();

  const Options options_;
  const std::function<int()> answering_;
  metrics::Registry& metrics_;
  metrics::Gauge& open_;
  base::Clock& clock_;
  std::map<ino_t, Connection> connections_;
  int ended_ = 0;
  std::jthread thread_;  // the last member
};

}  // namespace medley::sched
