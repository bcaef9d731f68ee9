#include "worker/agent/stacks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/agent/spawn_process.h"

namespace medley::worker {
namespace {

constexpr base::seconds kStackWait{10};
constexpr size_t kMostStackBytes = 64 << 10;

// What it prints until it ends; it is killed after kStackWait.
std::string OutputOf(const SpawnedProcess& process, base::Clock& clock) {
  std::string text;
  const base::SteadyTime deadline = clock.Steady() + kStackWait;
  std::array<char, 4096> bytes{};
  while (clock.Steady() < deadline && text.size() < kMostStackBytes) {
    pollfd readable{process.output, POLLIN, 0};
    if (poll(&readable, 1, 100) == 0) continue;
    const ssize_t got = read(process.output, bytes.data(), bytes.size());
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
  }
  kill(-process.pid, SIGKILL);
  close(process.output);
  waitpid(process.pid, nullptr, 0);
  return text;
}

}  // namespace

void PrintStacks(const std::vector<std::pair<int, int>>& pid_of_rank, const std::string& path,
                 const std::vector<std::string>& environment, base::Clock& clock) {
  const absl::StatusOr<std::string> spy = FindCommand("py-spy", path);
  if (!spy.ok()) {
    base::log::Info("the stacks of the program are not printed: it has no py-spy in its PATH");
    return;
  }
  for (const auto& [rank, pid] : pid_of_rank) {
    const auto process = SpawnProcess(*spy, {"py-spy", "dump", "--pid", std::to_string(pid)}, environment);
    if (!process.ok()) {
      base::log::Warn("the stacks of the program are not printed", {{"why", base::Message(process.status())}});
      return;
    }
    const std::string text = OutputOf(*process, clock);
    for (size_t from = 0; from < text.size();) {
      const size_t end = std::min(text.find('\n', from), text.size());
      const std::string line = fmt::format("[{}] hangs: {}\n", rank, text.substr(from, end - from));
      std::fwrite(line.data(), 1, line.size(), stdout);
      from = end + 1;
    }
    std::fflush(stdout);
  }
}

}  // namespace medley::worker
