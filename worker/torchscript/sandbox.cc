#include "worker/torchscript/sandbox.h"

#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/base/status.h"

namespace medley::worker::torchscript {
namespace {

// What computing needs.
constexpr std::array kAllowed = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(readv),
    SCMP_SYS(close),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(tgkill),
    SCMP_SYS(sysinfo),
    SCMP_SYS(uname),
    SCMP_SYS(getrusage),
    SCMP_SYS(restart_syscall),
#ifdef __SANITIZE_ADDRESS__  // which looks whether memory can be read by writing it to a pipe
    SCMP_SYS(pipe),
    SCMP_SYS(pipe2),
#endif
};

absl::Status Failed(const char* what, int error) {
  return base::Internal("giving up rights: {}: {}", what, std::generic_category().message(error));
}

int64_t AddressSpace() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::Status GiveUpRights(const Limits& limits) {
  const auto memory = static_cast<rlim_t>(AddressSpace() + limits.memory_bytes);
  const auto seconds = static_cast<rlim_t>(limits.cpu_seconds);
  const rlimit space{memory, memory}, cpu{seconds, seconds}, none{0, 0};
  if (setrlimit(RLIMIT_AS, &space) != 0 || setrlimit(RLIMIT_CPU, &cpu) != 0 || setrlimit(RLIMIT_CORE, &none) != 0) {
    return Failed("limits", errno);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return Failed("privileges", errno);
  }
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == nullptr) return Failed("seccomp", ENOMEM);
  int result = 0;
  for (const int call : kAllowed) {
    if (result == 0) result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  }
  if (result == 0) result = seccomp_load(filter);
  seccomp_release(filter);
  return result == 0 ? absl::OkStatus() : Failed("seccomp", -result);
}

}  // namespace medley::worker::torchscript
