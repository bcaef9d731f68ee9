// Starts the installed Prometheus (Debian package `prometheus`) for one test, with its own folder and loopback port,
// independent of the package's service.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

namespace medley::sched {

class PrometheusServer {
 public:
  // Scrapes `target` ("127.0.0.1:PORT", path /metrics) every 100 ms. Returns once it answers. Tries another port if
  // another process has taken the first one.
  // Errors: NotFound (no program), Unavailable (it ended, or did not answer within a minute) with the end of its log.
  static absl::StatusOr<std::unique_ptr<PrometheusServer>> Start(const std::string& target);
  ~PrometheusServer();  // kills, waits, removes the folder
  PrometheusServer(const PrometheusServer&) = delete;
  PrometheusServer& operator=(const PrometheusServer&) = delete;

  std::string url() const;

 private:
  PrometheusServer(std::filesystem::path folder, int port);
  absl::Status Run(const std::string& target);

  const std::filesystem::path folder_;
  const int port_;
  int pid_ = -1;
};

}  // namespace medley::sched
