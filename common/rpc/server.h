// A gRPC server with limits on threads and message sizes, and a shutdown with a deadline.
//
// Thread-safe. The server borrows the services; they must outlive it. Handlers run on the server's threads. A streaming
// handler occupies its thread, so `max_threads` also limits the number of open streams. Further calls are refused with
// RESOURCE_EXHAUSTED. Methods of gRPC's callback API run on a few threads of gRPC instead, which they must not block;
// any number of their calls may wait.
//
// A front (common/http2_front) listens on the port, ends TLS, and lets pass to gRPC what it may keep. Where only clients
// with a certificate connect, gRPC may listen itself (ServerOptions::trust_certificates).
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace medley::http2_front {
class Front;
}

namespace medley::rpc {

class MutualTls;

// Names of PEM files. The server checks them every second and uses a new certificate without a restart.
struct ServerTls {
  std::string certificate;  // of the server, with its chain
  std::string key;
  std::string client_ca;  // empty: clients need no certificate
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address to listen on, IPv6 without brackets; "::": all of this machine
  int port = 0;                    // 0: the system chooses, see port()
  int max_threads = 128;
  // The services answer each call in a thread (the synchronous API): while half of max_threads are in use, the
  // front lets each connection have few calls open, so that nobody is refused for want of a thread because a few
  // connections flood the server. False where calls of the callback API wait in any number.
  bool answers_in_threads = false;
  int max_message_bytes = 64 << 20;  // of a received message; a larger one gets RESOURCE_EXHAUSTED
  int max_send_bytes = 64 << 20;
  // The size of gRPC's buffers for all connections, above 0. Without free ones gRPC reads no further and ends calls
  // with RESOURCE_EXHAUSTED until the rest fits.
  int64_t max_memory_bytes = int64_t{256} << 20;
  // Bytes of a request that a client may send before the server reads any, which is the memory of a call that is
  // refused unread. Larger messages take more round trips. 0: gRPC's default, which is 64 KiB and grows.
  int read_ahead_bytes = 0;
  // Calls that a client may have open on one connection; further ones wait at the client. A connection of a client that
  // opens more is closed.
  int max_calls_per_connection = 1000;
  // A further connection takes the place of one without open calls, or is refused.
  int max_connections = 2048;
  // Open calls of all connections, and calls that were cancelled before a handler took them. Those of a connection with
  // many wait from half of this number on.
  int max_calls = 4096;
  std::optional<ServerTls> tls;                 // nullopt: plain text
  std::shared_ptr<const MutualTls> mutual_tls;  // takes the place of `tls`, and requires certificates of clients
  // With mutual_tls: gRPC listens without a front. Who has no certificate gets no further than the handshake; who has
  // one is trusted with the memory of the process. For servers whose traffic would pay for the front's two copies.
  bool trust_certificates = false;
  // Interval of pings on an idle connection, which detect a client whose machine vanished; 0: no pings. A client
  // answers within 5 s even when no thread of it waits on the channel.
  base::milliseconds keepalive_interval{0};
  base::milliseconds keepalive_timeout{20000};
};

class Server {
 public:
  // Errors: Unavailable (the port is in use or cannot be bound), InvalidArgument (options).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const std::vector<grpc::Service*>& services);
  ~Server();  // calls Stop with the default grace period

  int port() const { return port_; }
  std::string address() const;  // "host:port", "[host]:port" for IPv6
  // Refuses new calls, waits up to `grace` for running calls, cancels the rest and joins the threads. Idempotent.
  void Stop(base::nanoseconds grace = base::milliseconds(500));

 private:
  Server(std::unique_ptr<grpc::Server> server, std::unique_ptr<http2_front::Front> front, std::string host, int port);

  const std::unique_ptr<grpc::Server> server_;
  const std::unique_ptr<http2_front::Front> front_;  // hands connections to server_ until Stop; null: none
  const std::string host_;
  const int port_;
};

}  // namespace medley::rpc
