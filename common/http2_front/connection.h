// One connection of a client and the socket pair through which the server reads it. Internal to common/http2_front.
//
//   client --TLS--> Connection --(what the meter lets pass)--> socket pair --> server
//   client <--TLS-- Connection <-------------------------------------------- server
//
// Neither side is read while the other does not take what was read, so a connection holds a bounded number of bytes.
// Not thread-safe: a loop owns it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/http2_front/call_meter.h"

typedef struct ssl_st SSL;

namespace medley::http2_front {

class Connection {
 public:
  // What all connections of a front share. Borrowed.
  struct Shared {
    CallBudget& budget;
    CallMeter::Limits limits;
    // Gives one end of a socket pair to the server, which then owns it.
    std::function<void(int fd)> hand_over;
    std::atomic<int64_t> held{0};  // bytes that wait in connections
  };

  // Takes `client`, which does not block, and `tls`, which may be null.
  Connection(int client, std::shared_ptr<SSL> tls, Shared& shared, base::SteadyTime now);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Moves what can be moved without waiting, up to a bound. `scratch` is overwritten. False: the connection has ended.
  bool Move(std::string& scratch, base::SteadyTime now);

  int client() const { return client_; }
  int server() const { return server_; }  // -1: the client has not introduced itself
  // What to wait for, as masks of epoll.
  uint32_t client_events() const;
  uint32_t server_events() const;
  bool again() const { return again_; }                      // there is more to move at once
  bool paced() const { return paced_; }                      // the budget keeps it from reading: look again soon
  base::nanoseconds paced_for(base::SteadyTime now) const {  // without a break
    return paced_ ? base::nanoseconds(now - paced_since_) : base::nanoseconds(0);
  }
  // How long the client has read nothing of what waits for it.
  base::nanoseconds stalled_for(base::SteadyTime now) const {
    return out_.empty() ? base::nanoseconds(0) : base::nanoseconds(now - drained_);
  }
  bool in_use() const { return meter_.open() > 0; }
  // Whether bytes of either side wait here or in the kernel. Asks the kernel.
  bool HasWork() const;
  base::SteadyTime opened() const { return opened_; }
  base::SteadyTime moved() const { return moved_; }  // when bytes moved last
  const char* why() const { return why_; }           // it ended; empty: one side closed it

 private:
  enum class Io { kDone, kWait, kEnd };
  Io Read(char* to, size_t size, size_t& got);
  Io Write(std::string_view bytes, size_t& sent);
  bool Wants() const;  // more bytes of the client
  bool Handshake();
  bool FromClient(std::string& scratch, base::SteadyTime now);
  bool FromServer(std::string& scratch, base::SteadyTime now);
  bool HandOver(base::SteadyTime now);
  void Hold(std::string& place, std::string_view bytes);

  const int client_;
  int server_ = -1;
  const std::shared_ptr<SSL> tls_;
  Shared& shared_;
  CallMeter meter_;
  const base::SteadyTime opened_;
  base::SteadyTime moved_;
  std::string in_;  // from the client: `passed_` bytes that the server may read, then others
  size_t passed_ = 0;
  std::string out_;           // for the client
  base::SteadyTime drained_;  // when it read of `out_`, or `out_` was empty
  bool greeted_;              // TLS is established
  bool tls_wants_write_ = false;
  bool client_ended_ = false;
  bool server_ended_ = false;
  bool paced_ = false;
  base::SteadyTime paced_since_;
  bool again_ = false;
  const char* why_ = "";
};

}  // namespace medley::http2_front
