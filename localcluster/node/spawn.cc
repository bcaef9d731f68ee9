#include "localcluster/node/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "common/base/status.h"

namespace medley::kube {
namespace {

enum Step : int { kSetup, kCgroup, kFolder, kLimit, kExec };
constexpr std::array<const char*, 5> kStepNames = {"prepare", "enter its cgroup", "enter its working folder",
                                                   "limit its memory", "execute"};

struct Failure {
  int step;
  int error;
};

// All that the child needs. It is allocated before the fork, because the child may not allocate.
struct ChildPlan {
  const char* program;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* folder;
  std::vector<int> cgroups;
  std::optional<rlim_t> data_limit;
  int null_fd;
  int output_fd;
  int failure_fd;
  pid_t parent;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Fail(const ChildPlan& plan, Step step) {
  const Failure failure = {step, errno};
  [[maybe_unused]] const ssize_t written = write(plan.failure_fd, &failure, sizeof(failure));
  _exit(127);
}

void ResetSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child and makes only async-signal-safe calls.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ResetSignals();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(plan, kSetup);
  if (getppid() != plan.parent) _exit(127);  // the parent died before PDEATHSIG was set
  if (setsid() < 0) Fail(plan, kSetup);
  for (const int fd : plan.cgroups) {
    if (write(fd, "0", 1) != 1) Fail(plan, kCgroup);
  }
  if (plan.data_limit) {
    const rlimit limit = {*plan.data_limit, *plan.data_limit};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) Fail(plan, kLimit);
  }
  if (chdir(plan.folder) != 0) Fail(plan, kFolder);
  if (dup2(plan.null_fd, 0) < 0 || dup2(plan.output_fd, 1) < 0 || dup2(plan.output_fd, 2) < 0) {
    Fail(plan, kSetup);
  }
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) Fail(plan, kSetup);
  execve(plan.program, plan.argv.data(), plan.envp.data());
  Fail(plan, kExec);
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return base::ErrnoStatus(errno, "creating a pipe");
  Pipe made{UniqueFd(fds[0]), UniqueFd(fds[1])};
  // Avoid descriptors 0 to 2, which the child replaces.
  if (fds[0] <= 2 || fds[1] <= 2) {
    made.read = UniqueFd(fcntl(made.read.get(), F_DUPFD_CLOEXEC, 3));
    made.write = UniqueFd(fcntl(made.write.get(), F_DUPFD_CLOEXEC, 3));
  }
  return made;
}

// Waits until exec closes the failure pipe, or the child reports a failure.
absl::Status AwaitExec(const SpawnSpec& spec, pid_t pid, int failure_fd) {
  Failure failure{};
  ssize_t got = 0;
  do {
    got = read(failure_fd, &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got == 0) return absl::OkStatus();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (got != static_cast<ssize_t>(sizeof(failure))) return base::Internal("lost the child of '{}'", spec.program);
  const char* step = kStepNames.at(static_cast<size_t>(failure.step));
  const std::string& object = failure.step == kFolder ? spec.working_folder : spec.program;
  return base::ErrnoStatus(failure.error, fmt::format("{} '{}'", step, object));
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const SpawnSpec& spec) {
  MEDLEY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  MEDLEY_ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  const UniqueFd null_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd.valid()) return base::ErrnoStatus(errno, "opening /dev/null");
  std::vector<UniqueFd> cgroups;
  std::vector<int> cgroup_fds;
  for (const std::string& path : spec.cgroup_procs) {
    cgroups.emplace_back(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!cgroups.back().valid()) return base::ErrnoStatus(errno, "opening " + path);
    cgroup_fds.push_back(cgroups.back().get());
  }
  const ChildPlan plan{
      spec.program.c_str(),
      Pointers(spec.arguments),
      Pointers(spec.environment),
      spec.working_folder.c_str(),
      std::move(cgroup_fds),
      spec.data_limit_bytes ? std::optional<rlim_t>(static_cast<rlim_t>(*spec.data_limit_bytes)) : std::nullopt,
      null_fd.get(),
      output.write.get(),
      failure.write.get(),
      getpid()};
  const pid_t pid = fork();
  if (pid < 0) return base::ErrnoStatus(errno, "fork");
  if (pid == 0) RunChild(plan);
  failure.write.Reset();
  output.write.Reset();
  Spawned spawned{pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), std::move(output.read)};
  const int pidfd_error = errno;
  MEDLEY_RETURN_IF_ERROR(AwaitExec(spec, pid, failure.read.get()));
  if (!spawned.pidfd.valid()) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return base::ErrnoStatus(pidfd_error, "pidfd_open");
  }
  fcntl(spawned.output.get(), F_SETFL, O_NONBLOCK);
  return spawned;
}

}  // namespace medley::kube
