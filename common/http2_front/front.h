// The listening port of a server that reads HTTP/2: takes connections, ends their TLS, and gives the server the bytes
// of each on a socket pair, as fast as a CallMeter lets them pass.
//
// It bounds what clients without a token can make the server keep: connections, calls that were cancelled before the
// server looked at them, and frames that cost more than they carry. At most `max_connections` are open; a new one then
// takes the place of the one without an open call that has been idle for the longest time, and is refused if there is
// none. One is not idle while bytes wait to be moved in either direction. Thread-safe. The front has a few threads,
// each with connections of its own.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http2_front/call_budget.h"
#include "common/http2_front/call_meter.h"
#include "common/http2_front/tls.h"

namespace medley::http2_front {

struct FrontOptions {
  std::string host = "127.0.0.1";  // an address, IPv6 without brackets; "::": all of this machine
  int port = 0;                    // 0: the system chooses
  int max_connections = 1024;
  int threads = 0;                         // 0: by the number of processors
  base::milliseconds introduction{20000};  // longest time from a connection's begin to its first frame
  base::milliseconds max_stalled{20000};   // longest time in which a client reads nothing of what waits for it
  base::milliseconds max_paced{10000};     // longest time without a break in which a connection waits for its meter
  CallBudget::Options budget;
  CallMeter::Limits limits;
  std::optional<TlsOptions> tls;  // nullopt: plain text
};

class Front {
 public:
  explicit Front(FrontOptions options);
  ~Front();  // calls Stop

  // Binds the port. Errors: Unavailable (the address is in use or cannot be bound).
  absl::Status Bind();
  // Takes connections, after Bind. `hand_over` is called by the front's threads until Stop, with one end of a socket
  // pair that does not block.
  void Start(std::function<void(int fd)> hand_over);
  int port() const { return port_; }
  int connections() const;
  // Takes no further connections. Idempotent.
  void Close();
  // Sends what the server has written so far, then closes all connections. Idempotent.
  void Stop();

 private:
  class Loop;
  struct State;

  const FrontOptions options_;
  const std::unique_ptr<State> state_;
  int port_ = 0;
};

}  // namespace medley::http2_front
