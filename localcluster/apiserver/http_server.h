// HTTP/1.1 over plain sockets or TLS: one thread a connection, keep-alive, chunked streams.
//
// Thread-safe. Start once; Stop is idempotent: it ends every connection and joins every thread.
// Bounded: connections (more get 429), header and body sizes, idle time, time a write may take.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "localcluster/apiserver/http.h"

namespace medley::kube::apiserver {

class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;
    int max_connections = 256;
    int64_t max_body = 3 << 20;
    std::filesystem::path certificate, key, client_ca;  // PEM; empty: plain HTTP
  };
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  HttpServer(Options options, Handler handler);
  ~HttpServer();

  // Errors: FailedPrecondition naming the address that is in use; InvalidArgument for a bad
  // address or certificate.
  absl::Status Start();
  void Stop();
  // False: every connection ends and new ones are refused, until true. Returns when it is so. Errors:
  // FailedPrecondition when the port was taken meanwhile; before Start and after Stop.
  absl::Status SetListening(bool listening);
  int port() const;
  bool tls() const;
  int64_t connections() const;  // accepted so far

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::kube::apiserver
