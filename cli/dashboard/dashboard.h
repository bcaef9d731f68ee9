// Serves a web page of a cluster's jobs on 127.0.0.1, to whoever has its address.
//
// The address contains 128 random bits, because every user of the machine can connect to its port.
// It reads the cluster when a page asks, at most once a second for all pages. Thread-safe. Owner: the command.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/cluster/connection.h"
#include "cli/price_service.h"
#include "common/base/clock.h"

namespace medley::cli {

struct DashboardOptions {
  int port = 0;  // 0: the system chooses
  bool all_namespaces = false;
  PriceService price_service;  // the scheduling service; without an address there is no history of prices
};

class Dashboard {
 public:
  Dashboard(Cluster cluster, base::Clock& clock, DashboardOptions options);
  ~Dashboard();

  // Errors: Unavailable naming the port when it is in use.
  absl::Status Start();
  void Stop();  // idempotent
  std::string url() const;

 private:
  class Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::cli
