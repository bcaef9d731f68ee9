// /metrics, /healthz and /readyz over HTTP/1.1. Thread-safe.
//
// One thread, one request at a time, at most a few KiB each and a few seconds for it: probes and a
// scraper, not users.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>

namespace medley::ops {

class HttpEndpoints {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;  // 0: the system chooses
  };
  struct Sources {
    std::function<std::string()> metrics;  // text exposition
    std::function<absl::Status()> healthy;
    std::function<absl::Status()> ready;
  };
  HttpEndpoints(Options options, Sources sources);
  ~HttpEndpoints();

  // Errors: Unavailable when the address is in use or cannot be bound.
  absl::Status Start();
  void Stop();  // idempotent; joins
  int port() const;

 private:
  class Server;
  const Options options_;
  const Sources sources_;
  std::unique_ptr<Server> server_;
};

}  // namespace medley::ops
