#include "localcluster/node/proc_stat.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <dirent.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "common/base/status.h"

namespace medley::localcluster {
namespace {

std::optional<std::string> Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

}  // namespace

std::optional<ProcStat> ParseProcStat(std::string_view line, int64_t ticks_a_second, int64_t page_bytes) {
  // The line is "PID (NAME) STATE PPID PGRP SESSION ..."; NAME may contain any character.
  const size_t close = line.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  ProcStat stat;
  const std::vector<std::string> fields = absl::StrSplit(
      absl::string_view(line.data() + close + 1, line.size() - close - 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (fields.size() < 22 || fields[0].size() != 1) return std::nullopt;
  int64_t user = 0, system = 0, pages = 0;
  const std::string pid(line.substr(0, line.find(' ')));
  if (!absl::SimpleAtoi(pid, &stat.pid) || !absl::SimpleAtoi(fields[1], &stat.parent) ||
      !absl::SimpleAtoi(fields[2], &stat.group) || !absl::SimpleAtoi(fields[3], &stat.session) ||
      !absl::SimpleAtoi(fields[11], &user) || !absl::SimpleAtoi(fields[12], &system) ||
      !absl::SimpleAtoi(fields[19], &stat.start_ticks) || !absl::SimpleAtoi(fields[21], &pages)) {
    return std::nullopt;
  }
  stat.state = fields[0][0];
  stat.cpu = base::nanoseconds((user + system) * (1'000'000'000 / ticks_a_second));
  stat.resident_bytes = pages * page_bytes;
  return stat;
}

std::optional<ProcStat> ReadProcStat(pid_t pid) {
  const auto text = Slurp(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  return ParseProcStat(*text, sysconf(_SC_CLK_TCK), sysconf(_SC_PAGESIZE));
}

std::vector<ProcStat> ReadAllProcStats() {
  std::vector<ProcStat> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (folder == nullptr) return all;
  while (const dirent* entry = readdir(folder.get())) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(static_cast<const char*>(entry->d_name), &pid)) continue;
    if (const auto stat = ReadProcStat(pid)) all.push_back(*stat);
  }
  return all;
}

bool StartedWithVariable(pid_t pid, std::string_view variable) {
  const auto text = Slurp(fmt::format("/proc/{}/environ", pid));
  if (!text) return false;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\0', at), text->size());
    if (std::string_view(*text).substr(at, end - at) == variable) return true;
    at = end + 1;
  }
  return false;
}

std::string BootId() {
  std::string id = Slurp("/proc/sys/kernel/random/boot_id").value_or("");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace medley::localcluster
