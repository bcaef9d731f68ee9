// A gRPC server with bounds: threads, message sizes, and a shutdown with a deadline.
//
// Thread-safe. Services are borrowed and must outlive the server. Handlers run on the server's own
// threads; a handler that streams holds its thread, so `max_threads` bounds the open streams as
// well: calls beyond it are refused with RESOURCE_EXHAUSTED.
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

namespace medley::rpc {

// PEM files. They are looked at every second: a new certificate is served without a restart.
struct ServerTls {
  std::string certificate;  // of the server, with its chain
  std::string key;
  std::string client_ca;  // empty: clients need no certificate
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address to listen on; "0.0.0.0" in pods
  int port = 0;                    // 0: the system chooses, see port()
  int max_threads = 128;
  int max_message_bytes = 64 << 20;
  int max_send_bytes = 64 << 20;
  std::optional<ServerTls> tls;  // none: plain text
};

class Server {
 public:
  // Errors: Unavailable (the port is in use or cannot be bound), InvalidArgument (options).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const std::vector<grpc::Service*>& services);
  ~Server();  // Stop with the default grace

  int port() const { return port_; }
  std::string address() const;  // "host:port"
  // Refuses new calls, lets running ones finish for `grace`, then cancels them. Idempotent; joins.
  void Stop(base::nanoseconds grace = base::milliseconds(500));

 private:
  Server(std::unique_ptr<grpc::Server> server, std::string host, int port);

  const std::unique_ptr<grpc::Server> server_;
  const std::string host_;
  const int port_;
};

}  // namespace medley::rpc
