#include "tests/integration/operator/operator_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/status.h"
#include "kube/client/http_client.h"

namespace medley::ops {

OperatorProcess::OperatorProcess(const std::vector<std::string>& arguments, std::filesystem::path log)
    : log_(std::move(log)) {
  const char* folder = std::getenv("MEDLEY_BIN_DIR");
  MEDLEY_CHECK(folder != nullptr, "MEDLEY_BIN_DIR is not set");
  const std::string program = std::string(folder) + "/medley-operator";
  std::vector<std::string> line = {program};
  line.insert(line.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : line) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  const int error = posix_spawn(&pid_, program.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  MEDLEY_CHECK(error == 0, base::ToString(base::ErrnoStatus(error, program)));
}

OperatorProcess::~OperatorProcess() {
  if (Ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string OperatorProcess::Log() const { return base::ReadFile(log_).value_or(""); }

int OperatorProcess::HttpPort() {
  constexpr std::string_view kSays = "medley-operator: http port ";
  if (port_ != 0) return port_;
  const std::string log = Log();
  const size_t at = log.find(kSays);
  if (at == std::string::npos || log.find('\n', at) == std::string::npos) return 0;
  port_ = std::atoi(log.c_str() + at + kSays.size());
  return port_;
}

std::string OperatorProcess::Get(const std::string& path) {
  if (HttpPort() == 0) return "";
  kube::ClientConfig config;
  config.server = "http://127.0.0.1:" + std::to_string(HttpPort());
  config.request_timeout = std::chrono::seconds(30);
  config.max_retries = 0;
  return kube::HttpClient(config, clock_, 1).GetRaw(path).value_or("");
}

std::optional<double> OperatorProcess::Metric(const std::string& name) {
  const std::string page = "\n" + Get("/metrics");
  const size_t at = page.find("\n" + name + " ");
  if (at == std::string::npos) return std::nullopt;
  return std::atof(page.c_str() + at + name.size() + 2);
}

void OperatorProcess::Signal(int signal) { MEDLEY_CHECK(kill(pid_, signal) == 0, "signal"); }

void OperatorProcess::Pause() {
  Signal(SIGSTOP);
  const std::string threads = "/proc/" + std::to_string(pid_) + "/task";
  const bool stopped = WaitUntil(
      [&] {
        for (const auto& thread : std::filesystem::directory_iterator(threads)) {
          // "pid (name) state ...", where the name may hold anything.
          const std::string stat = base::ReadFile(thread.path() / "stat").value_or("");
          const size_t name_end = stat.rfind(')');
          if (name_end == std::string::npos || stat.compare(name_end, 3, ") T") != 0) return false;
        }
        return true;
      },
      base::seconds(30));
  MEDLEY_CHECK(stopped, "a process that was sent SIGSTOP runs on");
}

std::optional<int> OperatorProcess::Ended() {
  int status = 0;
  if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return ended_;
}

bool WaitUntil(const std::function<bool()>& holds, base::nanoseconds patience) {
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + patience;
  while (!holds()) {
    if (clock.Steady() > deadline) return false;
    clock.SleepFor(base::milliseconds(10), {});
  }
  return true;
}

}  // namespace medley::ops
