#include "worker/agent/spawn_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

absl::Status CannotExecute(const std::string& command, int error) {
  const std::string why = fmt::format("the command '{}' cannot be started: {}", command, strerror(error));
  if (error == ENOENT || error == ENOTDIR) return base::NotFound("{}", why);
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE)
    return base::ResourceExhausted("{}", why);
  return base::PermissionDenied("{}", why);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child and makes only async-signal-safe calls.
[[noreturn]] void Execute(const char* program, char* const* argv, char* const* envp, int output, int failure,
                          pid_t parent) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t nothing;
  sigemptyset(&nothing);
  sigprocmask(SIG_SETMASK, &nothing, nullptr);
  const int input = open("/dev/null", O_RDONLY);
  const bool ready = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && input >= 0 &&
                     dup2(input, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0 &&
                     syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
  if (ready) execve(program, argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<std::string> FindCommand(const std::string& command, const std::string& path) {
  if (command.find('/') != std::string::npos) {
    if (access(command.c_str(), X_OK) == 0) return command;
    return CannotExecute(command, errno);
  }
  std::string_view rest = path;
  int error = ENOENT;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.empty()) continue;
    const std::string file = (std::filesystem::path(folder) / command).string();
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    if (access(file.c_str(), X_OK) == 0) return file;
    error = errno;
  }
  if (error != ENOENT) return CannotExecute(command, error);
  return base::NotFound("the command '{}' cannot be started: no folder of PATH ({}) has it", command, path);
}

absl::StatusOr<SpawnedProcess> SpawnProcess(const std::string& program, const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment) {
  std::array<int, 2> output{}, failure{};
  if (pipe2(output.data(), O_CLOEXEC) != 0) return CannotExecute(program, errno);
  if (pipe2(failure.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    close(output[0]);
    close(output[1]);
    return CannotExecute(program, error);
  }
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Execute(program.c_str(), argv.data(), envp.data(), output[1], failure[1], parent);
  int error = pid < 0 ? errno : 0;
  close(output[1]);
  close(failure[1]);
  // Ends with nothing when the program runs.
  if (pid > 0) {
    ssize_t got = 0;
    do {
      got = read(failure[0], &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof(error))) error = 0;
  }
  close(failure[0]);
  if (error != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    close(output[0]);
    return CannotExecute(program, error);
  }
  setpgid(pid, pid);  // as the child does: it may not have come so far
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  return SpawnedProcess{pid, output[0]};
}

}  // namespace medley::worker
