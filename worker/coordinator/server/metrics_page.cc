#include "worker/coordinator/server/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/status.h"
#include "common/metrics/metrics.h"

namespace medley::worker {

std::string MetricsText(const job::v1::Observation& seen) {
  metrics::Registry registry;
  const auto gauge = [&](const std::string& name, const std::string& help, double value,
                         const metrics::Labels& labels = {}) {
    registry.GetGauge("medley_coordinator_" + name, help, labels).Set(value);
  };
  gauge("phase", "State of the job's runtime, as numbered in JobPhase", seen.phase());
  gauge("epoch", "Epoch in force", static_cast<double>(seen.epoch()));
  gauge("committed_step", "Steps that every member has applied", static_cast<double>(seen.step()));
  gauge("samples_done", "Samples in the surviving state", static_cast<double>(seen.samples_done()));
  gauge("samples", "Samples to train in all", static_cast<double>(seen.samples_total()));
  gauge("throughput_samples_per_second", "Over the last seconds", seen.throughput());
  gauge("loss", "Mean of the last steps", seen.loss());
  gauge("spent_usd", "Units held x price", seen.usd_spent());
  gauge("first_plan_usd", "What the first plan would have cost for the same samples", seen.usd_first_plan());
  gauge("missing_members", "Slots of the plan without their pod", seen.missing_members_size());
  gauge("last_checkpoint_step", "Step of the last complete checkpoint",
        static_cast<double>(seen.last_checkpoint_step()));
  gauge("bad_rows", "Rows of the training data that were refused", static_cast<double>(seen.bad_rows()));
  registry.GetCounter("medley_coordinator_recoveries_total", "Recoveries").Increment(
      static_cast<double>(seen.restarts()));
  if (seen.switches_size() > 0) {
    gauge("last_switch_pause_seconds", "Pause of the last epoch switch",
          seen.switches(seen.switches_size() - 1).pause_seconds());
  }
  for (const job::v1::StageObservation& stage : seen.stages()) {
    const metrics::Labels labels = {{"stage", std::to_string(stage.stage())}};
    gauge("stage_compute_seconds", "Per step", stage.compute_seconds(), labels);
    gauge("stage_communication_seconds", "Per step", stage.comm_seconds(), labels);
    gauge("stage_units", "Trainers", stage.units(), labels);
  }
  return registry.Text();
}

absl::StatusOr<std::unique_ptr<MetricsPage>> MetricsPage::Start(const std::string& host, int port,
                                                                std::function<job::v1::Observation()> observe) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (port < 0 || port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return base::InvalidArgument("metrics cannot listen on {}:{}", host, port);
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "opening the metrics socket");
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, any, size) != 0 || listen(fd, 16) != 0 || getsockname(fd, any, &size) != 0) {
    const absl::Status cause = base::ErrnoStatus(errno, "bind");
    close(fd);
    return base::Unavailable("metrics cannot listen on {}:{}: {}", host, port, base::Message(cause));
  }
  return std::unique_ptr<MetricsPage>(new MetricsPage(fd, ntohs(address.sin_port), std::move(observe)));
}

MetricsPage::MetricsPage(int fd, int port, std::function<job::v1::Observation()> observe)
    : fd_(fd), port_(port), observe_(std::move(observe)), thread_([this](std::stop_token stop) { Run(stop); }) {}

MetricsPage::~MetricsPage() {
  thread_.request_stop();
  thread_.join();
  close(fd_);
}

void MetricsPage::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    pollfd waiting{fd_, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    Answer(client);
    close(client);
  }
}

void MetricsPage::Answer(int client) {
  const timeval second{1, 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  std::string request;
  char buffer[2048];
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < 16384) {
    const ssize_t n = recv(client, buffer, sizeof buffer, 0);
    if (n <= 0) return;
    request.append(buffer, static_cast<size_t>(n));
  }
  const bool known = request.starts_with("GET /metrics ") || request.starts_with("GET /metrics?");
  const std::string body = known ? MetricsText(observe_()) : "the page is /metrics\n";
  const std::string reply =
      fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                  known ? "200 OK" : "404 Not Found", known ? metrics::kTextContentType : "text/plain", body.size(),
                  body);
  for (std::string_view rest = reply; !rest.empty();) {
    const ssize_t n = send(client, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace medley::worker
