#include "tests/integration/scheduler/prometheus_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "tests/integration/scheduler/replay_server.h"

namespace medley::sched {
namespace {

constexpr char kProgram[] = "/usr/bin/prometheus";

std::string Tail(const std::filesystem::path& log) {
  const std::string text = base::ReadFile(log).value_or("");
  return text.substr(text.size() < 2000 ? 0 : text.size() - 2000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrometheusServer>> PrometheusServer::Start(const std::string& target) {
  if (access(kProgram, X_OK) != 0) return base::NotFound("{}: install the package prometheus", kProgram);
  for (int tries = 1;; ++tries) {
    MEDLEY_ASSIGN_OR_RETURN(std::filesystem::path folder, base::MakeTempDir("prometheus"));
    std::unique_ptr<PrometheusServer> server(new PrometheusServer(std::move(folder), UnusedPort()));
    const absl::Status started = server->Run(target);
    if (started.ok()) return server;
    const bool taken = base::Message(started).find("address already in use") != std::string::npos;
    if (!taken || tries == 5) return started;
  }
}

PrometheusServer::PrometheusServer(std::filesystem::path folder, int port) : folder_(std::move(folder)), port_(port) {}

PrometheusServer::~PrometheusServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  base::RemoveTempDir(folder_);
}

std::string PrometheusServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

absl::Status PrometheusServer::Run(const std::string& target) {
  MEDLEY_RETURN_IF_ERROR(
      base::WriteFileAtomic(folder_ / "prometheus.yml", fmt::format("global: {{scrape_interval: 100ms, scrape_timeout: "
                                                                    "100ms}}\nscrape_configs:\n- job_name: exporter\n"
                                                                    "  static_configs: [{{targets: ['{}']}}]\n",
                                                                    target)));
  const std::filesystem::path log = folder_ / "log";
  std::vector<std::string> arguments = {kProgram, "--config.file=" + (folder_ / "prometheus.yml").string(),
                                        "--storage.tsdb.path=" + (folder_ / "data").string(),
                                        fmt::format("--web.listen-address=127.0.0.1:{}", port_)};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) return base::ErrnoStatus(errno, "fork");
  if (pid_ == 0) {  // only async-signal-safe calls between fork and exec
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    execv(kProgram, argv.data());
    _exit(127);
  }
  base::SystemClock clock;
  CurlFetcher fetcher({.total_timeout = std::chrono::seconds(2)}, clock);
  const base::SteadyTime deadline = clock.Steady() + base::seconds(60);
  while (clock.Steady() < deadline) {
    const auto reply = fetcher.Fetch({.url = url() + "/-/ready"}, {});
    if (reply.ok() && reply->code == 200) return absl::OkStatus();
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return base::Unavailable("prometheus ended: {}", Tail(log));
    }
    clock.SleepFor(base::milliseconds(20), {});
  }
  return base::Unavailable("prometheus does not answer: {}", Tail(log));
}

}  // namespace medley::sched
