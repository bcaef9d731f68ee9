// What /proc says of processes. Stateless; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::kube {

struct ProcStat {
  pid_t pid = 0;
  char state = '?';  // 'Z': ended, not yet waited for
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  base::nanoseconds cpu{0};  // user + system, of the process itself
  uint64_t start_ticks = 0;  // since boot: with the pid, the identity of a process
  int64_t resident_bytes = 0;
};

// The fields of one /proc/PID/stat line. No value: it is not such a line.
std::optional<ProcStat> ParseProcStat(std::string_view line, int64_t ticks_a_second, int64_t page_bytes);

// No value: there is no such process.
std::optional<ProcStat> ReadProcStat(pid_t pid);
// Of every process that can be seen.
std::vector<ProcStat> ReadAllProcStats();
// Does the process have "NAME=value" in the environment it was started with?
bool StartedWithVariable(pid_t pid, std::string_view variable);
// Changes with every boot of the machine.
std::string BootId();

}  // namespace medley::kube
