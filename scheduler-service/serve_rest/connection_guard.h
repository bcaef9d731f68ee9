// Closes connections that waste resources: idle ones, clients that send too slowly or too much, and, if there are too
// many connections, those that have been idle the longest.
//
// cpprestsdk has no timeouts and no limit on headers, and it does not expose its sockets. Therefore the guard inspects
// the sockets of its own process several times per second: it lists /proc/self/fd, duplicates each descriptor (so that
// it cannot be reused meanwhile), selects the connections of the listening port, and reads how many bytes the kernel
// has received and sent. It closes a connection with shutdown(2), which looks to the library as if the client
// disconnected.
//
// Thread-safe. No other process may listen on the port.
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
    base::nanoseconds idle = base::seconds(90);  // longest time without traffic; must exceed the longest planning time
    base::nanoseconds receive = base::seconds(20);      // longest time from the first byte of a request to its last
    uint64_t max_unanswered_bytes = uint64_t{8} << 20;  // most bytes received since the last byte sent
    size_t max_connections = 1024;
  };
  // `answering` returns the number of requests whose headers have arrived and that are not answered yet. Borrows
  // `metrics` and `clock`.
  ConnectionGuard(const Options& options, std::function<int()> answering, metrics::Registry& metrics,
                  base::Clock& clock);

  // Inspects all connections once and returns the number of closed ones. The thread calls it every `period`.
  int InspectAll();

 private:
  struct Connection {
    uint64_t received = 0, sent = 0;
    uint64_t received_at_sent = 0;  // value of `received` when `sent` last grew
    base::SteadyTime changed;       // when `received` or `sent` last grew
    base::SteadyTime asking_since;  // when bytes without an answer were first seen
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
  std::jthread thread_;  // must be the last member because it uses the others
};

}  // namespace medley::sched
