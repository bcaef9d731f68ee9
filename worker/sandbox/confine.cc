#include "worker/sandbox/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/base/status.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEDLEY_UNCONFINED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEDLEY_UNCONFINED 1
#endif
#endif

namespace medley::worker {
namespace {

constexpr std::array kDenied = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(personality),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(syslog),
    SCMP_SYS(vhangup),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
};

absl::Status Failed(const char* what, int error) {
  return base::Internal("confining this process: {}: {}", what, std::generic_category().message(error));
}

// The kinds of sockets that a job uses: TCP, UDP for names, and the kernel's list of interfaces.
int DenySockets(scmp_filter_ctx filter, bool gpus, bool offline) {
  int result = 0;
  if (offline) {
    for (const int call : {SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind)}) {
      if (result == 0) result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), call, 0);
    }
    return result;
  }
  for (int domain = 0; domain < 64 && result == 0; ++domain) {
    const bool allowed = domain == AF_INET || domain == AF_INET6 || domain == AF_NETLINK || (gpus && domain == AF_UNIX);
    if (allowed) continue;
    result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1,
                              SCMP_A0_32(SCMP_CMP_EQ, static_cast<scmp_datum_t>(domain)));
  }
  for (const int domain : {AF_INET, AF_INET6}) {
    constexpr scmp_datum_t kType = 0xf;  // without SOCK_CLOEXEC and SOCK_NONBLOCK
    if (result != 0) break;
    result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 2,
                              SCMP_A0_32(SCMP_CMP_EQ, static_cast<scmp_datum_t>(domain)),
                              SCMP_A1_32(SCMP_CMP_MASKED_EQ, kType, SOCK_RAW));
  }
  return result;
}

absl::Status LoadFilter(const Confinement& confinement) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return Failed("seccomp", ENOMEM);
  // All threads, also those that libraries have begun before main.
  int result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  for (const int call : kDenied) {
    if (result == 0) result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
  }
  if (result == 0 && confinement.programs.empty()) {
    result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 0);
    if (result == 0) result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0);
  }
  if (result == 0) result = DenySockets(filter, confinement.gpus, confinement.offline);
  if (result == 0) result = seccomp_load(filter);
  seccomp_release(filter);
  return result == 0 ? absl::OkStatus() : Failed("seccomp", -result);
}

constexpr uint64_t kRefer = uint64_t{1} << 13;     // LANDLOCK_ACCESS_FS_REFER, from version 2
constexpr uint64_t kTruncate = uint64_t{1} << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE, from version 3

uint64_t WritingRights(int version) {
  uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                    LANDLOCK_ACCESS_FS_MAKE_SYM;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  return rights;
}

class Ruleset {
 public:
  explicit Ruleset(int file) : file_(file) {}
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;
  ~Ruleset() { ::close(file_); }

  // A path that does not exist gets no right.
  absl::Status Allow(const std::filesystem::path& path, uint64_t rights) {
    const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (folder < 0) return absl::OkStatus();
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights;
    rule.parent_fd = folder;
    const auto result = ::syscall(SYS_landlock_add_rule, file_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    const int error = errno;
    ::close(folder);
    return result == 0 ? absl::OkStatus() : Failed("Landlock's rule", error);
  }
  absl::Status Enforce() const {
    return ::syscall(SYS_landlock_restrict_self, file_, 0) == 0 ? absl::OkStatus() : Failed("Landlock", errno);
  }

 private:
  const int file_;
};

// The loader of this program, which is opened for every program that is started.
constexpr const char* kLoaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};

absl::StatusOr<std::string> RestrictFiles(const Confinement& confinement) {
  const auto version =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
  if (version < 1) return std::string("the kernel has no Landlock: files are protected by their permissions only");
  const uint64_t writing = WritingRights(version);
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = writing | LANDLOCK_ACCESS_FS_EXECUTE;
  const auto file = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
  if (file < 0) return Failed("Landlock's rules", errno);
  Ruleset rules(file);
  for (const std::filesystem::path& folder : confinement.writable) {
    std::error_code ignored;  // whoever writes there first reports it
    std::filesystem::create_directories(folder, ignored);
    MEDLEY_RETURN_IF_ERROR(rules.Allow(folder, writing));
  }
  // /dev/null and GPUs; names of threads.
  const uint64_t existing = LANDLOCK_ACCESS_FS_WRITE_FILE | (version >= 3 ? kTruncate : 0);
  for (const std::filesystem::path& path : confinement.files) MEDLEY_RETURN_IF_ERROR(rules.Allow(path, existing));
  MEDLEY_RETURN_IF_ERROR(rules.Allow("/dev", existing));
  MEDLEY_RETURN_IF_ERROR(rules.Allow("/proc/self", existing));
  if (confinement.gpus) MEDLEY_RETURN_IF_ERROR(rules.Allow("/dev/shm", writing));
  for (const std::filesystem::path& program : confinement.programs) {
    MEDLEY_RETURN_IF_ERROR(rules.Allow(program, LANDLOCK_ACCESS_FS_EXECUTE));
    for (const char* loader : kLoaders) MEDLEY_RETURN_IF_ERROR(rules.Allow(loader, LANDLOCK_ACCESS_FS_EXECUTE));
  }
  MEDLEY_RETURN_IF_ERROR(rules.Enforce());
  return std::string();
}

}  // namespace

absl::StatusOr<std::string> Confine(const Confinement& confinement) {
#ifdef MEDLEY_UNCONFINED
  static_cast<void>(confinement);
  static_cast<void>(&LoadFilter);
  static_cast<void>(&RestrictFiles);
  return std::string("a program with sanitizers is not confined");
#else
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("privileges", errno);
  MEDLEY_ASSIGN_OR_RETURN(std::string missing, RestrictFiles(confinement));
  MEDLEY_RETURN_IF_ERROR(LoadFilter(confinement));
  return missing;
#endif
}

}  // namespace medley::worker
