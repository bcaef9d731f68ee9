#include "worker/agent/process_use.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/base/file.h"

namespace medley::worker {
namespace {

struct Process {
  int parent = 0;
  double ticks = 0;
};

// "PID (NAME) STATE PARENT ..."; the name may have anything in it.
bool Parse(const std::string& stat, Process& process) {
  const size_t close = stat.rfind(") ");
  if (close == std::string::npos) return false;
  std::istringstream fields(stat.substr(close + 2));
  std::string skipped;
  fields >> skipped >> process.parent;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  for (int field = 14; field < 18; ++field) {  // utime, stime, cutime, cstime
    double ticks = 0;
    fields >> ticks;
    process.ticks += ticks;
  }
  return static_cast<bool>(fields);
}

// What is in the folder. A process may end while its threads are listed, which ends the list and is no exception.
std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) entries.push_back(at->path());
  return entries;
}

// What all threads of the process have waited: the second number of schedstat, in nanoseconds.
double DelaySeconds(const std::filesystem::path& process) {
  double seconds = 0;
  for (const std::filesystem::path& thread : EntriesOf(process / "task")) {
    std::istringstream fields(base::ReadFile(thread / "schedstat").value_or(""));
    double ran = 0, waited = 0;
    if (fields >> ran >> waited) seconds += waited / 1e9;
  }
  return seconds;
}

// Bytes of a row of /proc/PID/status.
int64_t Row(const std::string& status, std::string_view name) {
  const size_t at = status.find("\n" + std::string(name) + ":");
  if (at == std::string::npos) return 0;
  return std::atoll(status.c_str() + at + name.size() + 2) * 1024;
}

}  // namespace

ProcessUse UseOfDescendants(int ancestor, const std::filesystem::path& root) {
  std::map<int, Process> processes;
  for (const std::filesystem::path& entry : EntriesOf(root / "proc")) {
    const std::string name = entry.filename();
    int pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    Process process;
    const auto stat = base::ReadFile(entry / "stat");
    if (stat.ok() && Parse(*stat, process)) processes.emplace(pid, process);
  }
  const auto descends = [&](int pid) {
    for (size_t steps = 0; steps <= processes.size(); ++steps) {
      const auto found = processes.find(pid);
      if (found == processes.end()) return false;
      pid = found->second.parent;
      if (pid == ancestor) return true;
    }
    return false;
  };
  ProcessUse use;
  for (const auto& [pid, process] : processes) {
    if (!descends(pid)) continue;
    use.processor_seconds += process.ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    use.delay_seconds += DelaySeconds(root / "proc" / std::to_string(pid));
    const std::string status = base::ReadFile(root / "proc" / std::to_string(pid) / "status").value_or("");
    const int64_t shared = Row(status, "RssFile") + Row(status, "RssShmem");
    use.own_bytes += std::max<int64_t>(0, Row(status, "VmHWM") - shared);
    use.shared_bytes = std::max(use.shared_bytes, shared);
  }
  return use;
}

}  // namespace medley::worker
