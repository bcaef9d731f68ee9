#include "localcluster/node/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "common/base/status.h"

namespace medley::localcluster {
namespace {

enum Step : int { kSetup, kCgroup, kFolder, kLimit, kExec, kNamespace, kNetwork, kAwaitsIds };
constexpr std::array<const char*, 8> kStepNames = {
    "prepare", "enter its cgroup",       "enter its working folder", "limit its memory",
    "execute", "enter a user namespace", "enter its network",        "number the users of its namespace"};

// What the child says to the parent: a failure, or with kAwaitsIds that it waits for the numbers of its namespace.
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
  std::optional<int> network;
  int null_fd;
  int output_fd;
  int failure_fd;
  pid_t parent;
  bool confined;
  bool user_namespace;
  int go_fd;         // the parent writes a byte when the numbers are set
  int parent_go_fd;  // its other end, which the child closes
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

// In the child. Ends it when the parent has ended or could not set the numbers.
void EnterUserNamespace(const ChildPlan& plan) {
  close(plan.parent_go_fd);
  if (unshare(CLONE_NEWUSER) != 0) Fail(plan, kNamespace);
  const Failure waiting = {kAwaitsIds, 0};
  if (write(plan.failure_fd, &waiting, sizeof(waiting)) != static_cast<ssize_t>(sizeof(waiting))) _exit(127);
  char go = 0;
  ssize_t got = 0;
  do {
    got = read(plan.go_fd, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(127);
}

// Runs in the child and makes only async-signal-safe calls.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ResetSignals();
  if (plan.network && setns(*plan.network, CLONE_NEWNET) != 0) Fail(plan, kNetwork);
  if (plan.user_namespace) EnterUserNamespace(plan);
  if (plan.confined && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) Fail(plan, kSetup);
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

bool WriteProc(pid_t pid, const char* file, const std::string& text) {
  const UniqueFd fd(open(fmt::format("/proc/{}/{}", pid, file).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Lines "N N COUNT" for the lines "N M COUNT" of our own map: every number stays what it is.
std::string Identity(const char* file) {
  std::ifstream map(file);
  std::string text;
  for (uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;) {
    text += fmt::format("{0} {0} {1}\n", inside, count);
  }
  return text;
}

// Sets the numbers of the child's namespace: all, which needs privileges, so that a child of root may still use the
// files of all users; otherwise those of this process.
bool SetIds(pid_t pid) {
  if (geteuid() == 0 && WriteProc(pid, "uid_map", Identity("/proc/self/uid_map"))) {
    return WriteProc(pid, "gid_map", Identity("/proc/self/gid_map"));
  }
  return WriteProc(pid, "setgroups", "deny") && WriteProc(pid, "uid_map", fmt::format("{0} {0} 1\n", geteuid())) &&
         WriteProc(pid, "gid_map", fmt::format("{0} {0} 1\n", getegid()));
}

ssize_t ReadFailure(int fd, Failure& failure) {
  ssize_t got = 0;
  do {
    got = read(fd, &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  return got;
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Waits until exec closes the failure pipe, or the child reports a failure. Unimplemented: it has no user namespace.
absl::Status AwaitExec(const SpawnSpec& spec, pid_t pid, int failure_fd, UniqueFd go) {
  Failure failure{};
  ssize_t got = ReadFailure(failure_fd, failure);
  if (got == static_cast<ssize_t>(sizeof(failure)) && failure.step == kAwaitsIds) {
    const bool set = SetIds(pid) && write(go.get(), "1", 1) == 1;
    go.Reset();
    if (!set) {
      Reap(pid);
      return base::Unimplemented("the user namespace of '{}' cannot be set up", spec.program);
    }
    got = ReadFailure(failure_fd, failure);
  }
  if (got == 0) return absl::OkStatus();
  Reap(pid);
  if (failure.step == kNamespace) return base::Unimplemented("no user namespace for '{}'", spec.program);
  if (got != static_cast<ssize_t>(sizeof(failure))) return base::Internal("lost the child of '{}'", spec.program);
  const char* step = kStepNames.at(static_cast<size_t>(failure.step));
  const std::string& object = failure.step == kFolder ? spec.working_folder : spec.program;
  return base::ErrnoStatus(failure.error, fmt::format("{} '{}'", step, object));
}

// Unimplemented: user_namespace is set and the machine does not allow it.
absl::StatusOr<Spawned> SpawnOnce(const SpawnSpec& spec, bool user_namespace) {
  MEDLEY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  MEDLEY_ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  MEDLEY_ASSIGN_OR_RETURN(Pipe go, MakePipe());
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
      spec.network_namespace,
      null_fd.get(),
      output.write.get(),
      failure.write.get(),
      getpid(),
      spec.confined,
      user_namespace,
      go.read.get(),
      go.write.get()};
  const pid_t pid = fork();
  if (pid < 0) return base::ErrnoStatus(errno, "fork");
  if (pid == 0) RunChild(plan);
  failure.write.Reset();
  output.write.Reset();
  go.read.Reset();
  Spawned spawned{pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), std::move(output.read),
                  user_namespace};
  const int pidfd_error = errno;
  MEDLEY_RETURN_IF_ERROR(AwaitExec(spec, pid, failure.read.get(), std::move(go.write)));
  if (!spawned.pidfd.valid()) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return base::ErrnoStatus(pidfd_error, "pidfd_open");
  }
  fcntl(spawned.output.get(), F_SETFL, O_NONBLOCK);
  return spawned;
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const SpawnSpec& spec) {
  if (spec.confined) {
    auto spawned = SpawnOnce(spec, true);
    if (!absl::IsUnimplemented(spawned.status())) return spawned;
  }
  return SpawnOnce(spec, false);
}

}  // namespace medley::localcluster
