#include "localcluster/node/cgroup_enforcer.h"

#include <absl/strings/numbers.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <system_error>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kLeastQuotaUs = 1000;  // the kernel's minimum
constexpr int kRemoveTries = 500;

absl::Status WriteControl(const fs::path& file, const std::string& text) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::ErrnoStatus(errno, fmt::format("writing '{}' to {}", text, file.string()));
  }
  return absl::OkStatus();
}

absl::Status MakeGroup(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return base::ErrnoStatus(errno, "creating cgroup " + folder.string());
  }
  return absl::OkStatus();
}

void KillMembers(const fs::path& folder) {
  std::ifstream members(folder / "cgroup.procs");
  for (pid_t pid = 0; members >> pid;) {
    if (pid > 0 && pid != getpid()) kill(pid, SIGKILL);
  }
}

// Kills the processes inside and removes the folder. Killed processes leave a cgroup only after they have been reaped.
void RemoveGroup(const fs::path& folder, base::Clock& clock) {
  for (int i = 0; i < kRemoveTries; ++i) {
    KillMembers(folder);
    if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return;
    clock.SleepFor(base::milliseconds(1), std::stop_token());
  }
  base::log::Warn("removing a cgroup failed", {{"path", folder.string()}});
}

void RemoveTree(const fs::path& folder, base::Clock& clock) {
  std::error_code error;
  std::vector<fs::path> children;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (at->is_directory(unknown)) children.push_back(at->path());
  }
  for (const fs::path& child : children) RemoveGroup(child, clock);
  if (fs::exists(folder, error)) RemoveGroup(folder, clock);
}

int64_t OomKills(const fs::path& file) {
  std::ifstream in(file);
  std::string name, value;
  while (in >> name >> value) {
    int64_t count = 0;
    if (name == "oom_kill" && absl::SimpleAtoi(value, &count)) return count;
  }
  return 0;
}

class CgroupEnforcement final : public Enforcement {
 public:
  CgroupEnforcement(bool unified, std::vector<fs::path> folders, base::nanoseconds cpu_period, base::Clock& clock)
      : unified_(unified), folders_(std::move(folders)), cpu_period_(cpu_period), clock_(clock) {}
  ~CgroupEnforcement() override {
    for (const fs::path& folder : folders_) RemoveGroup(folder, clock_);
  }

  absl::Status Set(const Limits& limits) {
    for (const fs::path& folder : folders_) MEDLEY_RETURN_IF_ERROR(MakeGroup(folder));
    if (limits.cores) MEDLEY_RETURN_IF_ERROR(SetCores(limits.cores));
    if (limits.memory_bytes) MEDLEY_RETURN_IF_ERROR(SetMemory(*limits.memory_bytes));
    return absl::OkStatus();
  }

  void Prepare(SpawnSpec& spec) const override {
    for (const fs::path& folder : folders_) spec.cgroup_procs.push_back((folder / "cgroup.procs").string());
  }
  void Attach(std::shared_ptr<Process>) override {}
  absl::Status SetCores(std::optional<double> cores) override {
    int64_t period = std::chrono::duration_cast<std::chrono::microseconds>(cpu_period_).count();
    int64_t quota = cores ? std::llround(*cores * static_cast<double>(period)) : -1;
    if (cores && quota < kLeastQuotaUs) {
      period = std::llround(static_cast<double>(kLeastQuotaUs) / *cores);
      quota = kLeastQuotaUs;
    }
    if (unified_) {
      const std::string most = cores ? std::to_string(quota) : "max";
      return WriteControl(folders_[0] / "cpu.max", fmt::format("{} {}", most, period));
    }
    MEDLEY_RETURN_IF_ERROR(WriteControl(folders_[0] / "cpu.cfs_period_us", std::to_string(period)));
    return WriteControl(folders_[0] / "cpu.cfs_quota_us", std::to_string(quota));
  }
  bool OutOfMemory() override {
    return OomKills(folders_.back() / (unified_ ? "memory.events" : "memory.oom_control")) > 0;
  }

 private:
  absl::Status SetMemory(int64_t bytes) {
    const std::string text = std::to_string(bytes);
    const fs::path& folder = folders_.back();
    std::error_code error;
    if (unified_) {
      MEDLEY_RETURN_IF_ERROR(WriteControl(folder / "memory.max", text));
      MEDLEY_RETURN_IF_ERROR(WriteControl(folder / "memory.oom.group", "1"));
      if (!fs::exists(folder / "memory.swap.max", error)) return absl::OkStatus();
      return WriteControl(folder / "memory.swap.max", "0");
    }
    MEDLEY_RETURN_IF_ERROR(WriteControl(folder / "memory.limit_in_bytes", text));
    if (!fs::exists(folder / "memory.memsw.limit_in_bytes", error)) return absl::OkStatus();
    return WriteControl(folder / "memory.memsw.limit_in_bytes", text);
  }

  const bool unified_;
  const std::vector<fs::path> folders_;
  const base::nanoseconds cpu_period_;
  base::Clock& clock_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CgroupEnforcer>> CgroupEnforcer::Make(const CgroupLayout& layout,
                                                                     const std::string& instance,
                                                                     base::nanoseconds cpu_period, base::Clock& clock) {
  std::vector<fs::path> parents;
  std::error_code error;
  const bool unified = layout.unified && fs::exists(*layout.unified / "cpu.stat", error) &&
                       WriteControl(*layout.unified / "cgroup.subtree_control", "+cpu +memory").ok();
  if (unified) {
    parents = {*layout.unified};
  } else if (layout.cpu && layout.memory) {
    parents = {*layout.cpu, *layout.memory};
  } else {
    return base::FailedPrecondition("this process may not create cgroups for both cpu and memory");
  }
  std::vector<fs::path> folders;
  for (const fs::path& parent : parents) {
    folders.push_back(parent / ("medley-" + instance));
    RemoveTree(folders.back(), clock);
  }
  auto enforcer = std::unique_ptr<CgroupEnforcer>(new CgroupEnforcer(unified, folders, cpu_period, clock));
  const absl::Status tried = enforcer->TryOut();
  if (!tried.ok()) return base::FailedPrecondition("{}", base::Message(tried));
  return enforcer;
}

CgroupEnforcer::~CgroupEnforcer() {
  for (const fs::path& folder : folders_) RemoveTree(folder, clock_);
}

absl::Status CgroupEnforcer::TryOut() {
  for (const fs::path& folder : folders_) MEDLEY_RETURN_IF_ERROR(MakeGroup(folder));
  if (unified_) {
    MEDLEY_RETURN_IF_ERROR(WriteControl(folders_[0] / "cgroup.subtree_control", "+cpu +memory"));
  }
  return Apply("try-out", {1.0, int64_t{64} << 20}).status();
}

absl::StatusOr<std::unique_ptr<Enforcement>> CgroupEnforcer::Apply(const std::string& id, const Limits& limits) {
  std::vector<fs::path> folders;
  for (const fs::path& folder : folders_) folders.push_back(folder / id);
  auto enforcement = std::make_unique<CgroupEnforcement>(unified_, std::move(folders), cpu_period_, clock_);
  MEDLEY_RETURN_IF_ERROR(enforcement->Set(limits));
  return enforcement;
}

}  // namespace medley::localcluster
