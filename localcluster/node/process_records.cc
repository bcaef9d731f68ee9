#include "localcluster/node/process_records.h"

#include <signal.h>

#include <system_error>
#include <vector>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/proc_stat.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
constexpr int kWaitTries = 500;

std::vector<ProcStat> OursOf(const kube::Json& record, const std::string& container_id) {
  std::vector<ProcStat> ours;
  if (kube::GetString(record, "boot") != BootId()) return ours;
  const auto pid = static_cast<pid_t>(kube::GetInt(record, "pid", 0));
  const auto start = static_cast<uint64_t>(kube::GetInt(record, "startTicks", -1));
  for (const ProcStat& stat : ReadAllProcStats()) {
    if (stat.state == 'Z') continue;
    const bool leader = stat.pid == pid && stat.start_ticks == start;
    const bool follower = stat.session == pid && stat.start_ticks >= start &&
                          StartedWithVariable(stat.pid, "MEDLEY_CONTAINER_ID=" + container_id);
    if (leader || follower) ours.push_back(stat);
  }
  return ours;
}

// Repeats until no process is left, because a process may fork during the search.
int KillAll(const kube::Json& record, const std::string& container_id, base::Clock& clock) {
  int killed = 0;
  for (int i = 0; i < kWaitTries; ++i) {
    const std::vector<ProcStat> ours = OursOf(record, container_id);
    if (ours.empty()) break;
    if (i == 0) killed = static_cast<int>(ours.size());
    for (const ProcStat& stat : ours) kill(stat.pid, SIGKILL);
    clock.SleepFor(base::milliseconds(10), std::stop_token());
  }
  return killed;
}

}  // namespace

absl::Status ProcessRecords::Write(const std::string& container_id, pid_t pid) const {
  const auto stat = ReadProcStat(pid);
  if (!stat) return absl::OkStatus();  // it has ended already
  std::error_code error;
  fs::create_directories(folder_, error);
  const kube::Json record = {{"pid", pid}, {"startTicks", stat->start_ticks}, {"boot", BootId()}};
  return base::WriteFileAtomic(folder_ / (container_id + ".json"), record.dump());
}

void ProcessRecords::Remove(const std::string& container_id) const {
  std::error_code error;
  fs::remove(folder_ / (container_id + ".json"), error);
}

absl::StatusOr<int> ProcessRecords::KillLeftovers(base::Clock& clock) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return base::ErrnoStatus(error.value(), "creating folder " + folder_.string());
  int killed = 0;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    files.push_back(at->path());
  for (const fs::path& file : files) {
    const auto text = base::ReadFile(file, 1 << 16);
    const kube::Json record = text.ok() ? kube::Json::parse(*text, nullptr, false) : kube::Json();
    if (!record.is_object()) {
      base::log::Warn("removed an unreadable process record", {{"path", file.string()}});
    } else {
      killed += KillAll(record, file.stem().string(), clock);
    }
    fs::remove(file, error);
  }
  return killed;
}

}  // namespace medley::localcluster
