#include "cli/run/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "common/base/status.h"

extern char** environ;

namespace medley::cli {
namespace {

// Copies the pipe to the log until every writer has closed it. After a stop request it ends earlier, because
// descendants of the program may keep the pipe open: when the pipe is empty, or as many bytes are copied as the pipe
// can hold.
void Pump(std::stop_token stop, int fd, const std::filesystem::path& path) {
  std::ofstream log(path, std::ios::app | std::ios::binary);
  char buffer[1 << 14];
  int reads_after_stop = 64;
  while (!stop.stop_requested() || reads_after_stop-- > 0) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int n = poll(&ready, 1, 100);
    if (n < 0 && errno != EINTR) return;
    if (n <= 0) {
      if (stop.stop_requested()) return;
      continue;
    }
    const ssize_t bytes = read(fd, buffer, sizeof buffer);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (bytes <= 0) return;
    log.write(buffer, bytes);
    log.flush();
  }
}

}  // namespace

ChildProcess::ChildProcess(localcluster::Spawned spawned, std::filesystem::path log) : spawned_(std::move(spawned)) {
  pump_ =
      std::jthread([fd = spawned_.output.get(), path = std::move(log)](std::stop_token stop) { Pump(stop, fd, path); });
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  localcluster::SpawnSpec spec;
  spec.program = options.program.string();
  spec.arguments.push_back(spec.program);
  spec.arguments.insert(spec.arguments.end(), options.arguments.begin(), options.arguments.end());
  for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
  spec.working_folder = std::filesystem::current_path().string();
  auto spawned = localcluster::Spawn(spec);
  if (!spawned.ok()) return base::Annotate(spawned.status(), "starting " + spec.program);
  return std::unique_ptr<ChildProcess>(new ChildProcess(*std::move(spawned), options.log));
}

ChildProcess::~ChildProcess() {
  Stop(base::seconds(2));
  pump_.request_stop();
}

bool ChildProcess::WaitFor(int timeout_ms) {
  if (ended_) return true;
  pollfd ready{.fd = spawned_.pidfd.get(), .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, timeout_ms) <= 0) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(spawned_.pid), &info, WEXITED) != 0) {
    ended_ = "lost";
  } else if (info.si_code == CLD_EXITED) {
    ended_ = fmt::format("exit code {}", info.si_status);
  } else {
    ended_ = fmt::format("signal {}", info.si_status);
  }
  pump_.request_stop();
  pump_.join();
  return true;
}

std::optional<std::string> ChildProcess::Ended() {
  WaitFor(0);
  return ended_;
}

void ChildProcess::Stop(base::nanoseconds grace) {
  if (Ended()) return;
  kill(spawned_.pid, SIGTERM);
  if (WaitFor(static_cast<int>(std::chrono::duration_cast<base::milliseconds>(grace).count()))) return;
  kill(spawned_.pid, SIGKILL);
  WaitFor(5000);
}

int64_t ChildProcess::PeakMemory() const {
  std::ifstream status("/proc/" + std::to_string(spawned_.pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
  }
  return 0;
}

}  // namespace medley::cli
