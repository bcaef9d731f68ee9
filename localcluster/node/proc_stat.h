// Reads /proc about processes. Stateless; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::localcluster {

struct ProcStat {
  pid_t pid = 0;
  char state = '?';  // 'Z': ended, but not reaped yet
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  base::nanoseconds cpu{0};  // user + system, of the process itself
  uint64_t start_ticks = 0;  // since boot; together with the pid it identifies a process
  int64_t resident_bytes = 0;
};

// The fields of a /proc/PID/stat line; nullopt if `line` is not one.
std::optional<ProcStat> ParseProcStat(std::string_view line, int64_t ticks_a_second, int64_t page_bytes);

// nullopt if the process does not exist.
std::optional<ProcStat> ReadProcStat(pid_t pid);
// All processes that are visible.
std::vector<ProcStat> ReadAllProcStats();
// True if the process was started with "NAME=value" in its environment.
bool StartedWithVariable(pid_t pid, std::string_view variable);
// Changes with every boot of the machine.
std::string BootId();

}  // namespace medley::localcluster
