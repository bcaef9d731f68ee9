// Serves GET /metrics of the coordinator: the latest observation in Prometheus' text format, one connection at a time.
//
// Thread-safe. Owns its thread; a client has one second to send its request.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// The page for one observation.
std::string MetricsText(const job::v1::Observation& observation);

class MetricsPage {
 public:
  // `port` 0: the system chooses one. Errors: Unavailable naming the address when it is in use, InvalidArgument.
  static absl::StatusOr<std::unique_ptr<MetricsPage>> Start(const std::string& host, int port,
                                                            std::function<job::v1::Observation()> observe);
  ~MetricsPage();
  int port() const { return port_; }

 private:
  MetricsPage(int fd, int port, std::function<job::v1::Observation()> observe);
  void Run(std::stop_token stop);
  void Answer(int client);

  const int fd_;
  const int port_;
  const std::function<job::v1::Observation()> observe_;
  std::jthread thread_;
};

}  // namespace medley::worker
