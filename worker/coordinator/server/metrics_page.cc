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
#include "common/metrics/process_metrics.h"
#include "common/metrics/text_page.h"

namespace medley::worker {

std::string MetricsText(const job::v1::Observation& seen) {
  using Kind = metrics::TextPage::Kind;
  metrics::TextPage page;
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    page.Family(name, Kind::kGauge, help);
    page.Sample({}, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, double value) {
    page.Family(name, Kind::kCounter, help);
    page.Sample({}, value);
  };
  gauge("medley_coordinator_phase", "Phase of the job's runtime, as numbered in JobPhase", seen.phase());
  gauge("medley_coordinator_generation", "Generation in force", static_cast<double>(seen.generation()));
  gauge("medley_coordinator_committed_step", "Steps that every member has applied", static_cast<double>(seen.step()));
  gauge("medley_coordinator_samples_done", "Samples in the surviving state", static_cast<double>(seen.samples_done()));
  gauge("medley_coordinator_target_samples", "Samples to train in all", static_cast<double>(seen.samples_total()));
  gauge("medley_coordinator_throughput_samples_per_second", "Samples trained per second over the last seconds",
        seen.throughput());
  gauge("medley_coordinator_loss", "Mean loss of the last steps", seen.loss());
  gauge("medley_coordinator_first_plan_usd", "USD that the first plan would have cost for the same samples",
        seen.usd_first_plan());
  gauge("medley_coordinator_missing_members", "Slots of the plan whose pod is not connected",
        seen.missing_members_size());
  gauge("medley_coordinator_checkpoint_step", "Step of the last complete checkpoint",
        static_cast<double>(seen.last_checkpoint_step()));
  gauge("medley_coordinator_bad_rows", "Rows of the training data that were refused",
        static_cast<double>(seen.bad_rows()));
  counter("medley_coordinator_cost_usd_total", "USD spent: units held times the prices paid", seen.usd_spent());
  counter("medley_coordinator_recoveries_total", "Recoveries", static_cast<double>(seen.restarts()));
  if (seen.switches_size() > 0) {
    gauge("medley_coordinator_last_switch_pause_seconds", "Seconds without training at the last generation switch",
          seen.switches(seen.switches_size() - 1).pause_seconds());
  }
  const auto stages = [&](std::string_view name, std::string_view help,
                          double (*value)(const job::v1::StageObservation&)) {
    page.Family(name, Kind::kGauge, help);
    for (const job::v1::StageObservation& stage : seen.stages()) {
      page.Sample({{"stage", std::to_string(stage.stage())}, {"pool", stage.pool()}}, value(stage));
    }
  };
  using Stage = job::v1::StageObservation;
  stages("medley_coordinator_stage_compute_seconds", "Computation of the stage per step",
         [](const Stage& stage) { return stage.compute_seconds(); });
  stages("medley_coordinator_stage_communication_seconds", "Waiting of the stage per step",
         [](const Stage& stage) { return stage.comm_seconds(); });
  stages("medley_coordinator_stage_units", "Trainers of the stage",
         [](const Stage& stage) { return static_cast<double>(stage.units()); });
  metrics::WriteProcessMetrics(page);
  metrics::WriteBuildInfo(page, "coordinator");
  return page.Take();
}

absl::StatusOr<std::unique_ptr<MetricsPage>> MetricsPage::Start(const std::string& host, int port,
                                                                std::function<job::v1::Observation()> observe) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (port < 0 || port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return base::InvalidArgument("cannot serve metrics on {}:{}: it is not an IP address and a port", host, port);
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "creating the socket for metrics");
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, any, size) != 0 || listen(fd, 16) != 0 || getsockname(fd, any, &size) != 0) {
    const absl::Status cause = base::ErrnoStatus(errno, "bind");
    close(fd);
    return base::Unavailable("cannot serve metrics on {}:{}: {}", host, port, base::Message(cause));
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
  const std::string reply = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      known ? "200 OK" : "404 Not Found", known ? metrics::kTextContentType : "text/plain", body.size(), body);
  for (std::string_view rest = reply; !rest.empty();) {
    const ssize_t n = send(client, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace medley::worker
