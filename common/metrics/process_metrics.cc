#include "common/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace medley::metrics {
namespace {

std::string Slurp(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/self/stat from "state" on. The command's name before them may contain spaces and parentheses.
std::vector<std::string> StatFields() {
  const std::string text = Slurp("/proc/self/stat");
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(text.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), std::istream_iterator<std::string>()};
}

double Number(const std::vector<std::string>& fields, size_t man_page_number) {
  return std::strtod(fields[man_page_number - 3].c_str(), nullptr);
}

// The machine's start in seconds of Unix time; 0 if /proc/stat does not contain it.
double BootTime() {
  const std::string text = Slurp("/proc/stat");
  const size_t at = text.find("\nbtime ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + 7, nullptr);
}

void WriteStat(TextPage& page) {
  const std::vector<std::string> stat = StatFields();
  if (stat.size() < 22) return;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    page.Family(name, TextPage::Kind::kGauge, help);
    page.Sample({}, value);
  };
  page.Family("process_cpu_seconds_total", TextPage::Kind::kCounter,
              "Total user and system CPU time spent in seconds.");
  page.Sample({}, (Number(stat, 14) + Number(stat, 15)) / ticks);
  gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
        Number(stat, 24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", Number(stat, 23));
  gauge("process_threads", "Threads of the process.", Number(stat, 20));
  if (const double boot = BootTime(); boot > 0) {
    gauge("process_start_time_seconds", "Start time of the process in seconds of Unix time.",
          boot + Number(stat, 22) / ticks);
  }
}

}  // namespace

void WriteProcessMetrics(TextPage& page) {
  WriteStat(page);
  std::error_code error;
  int64_t open = 0;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) ++open;
  if (!error) {
    page.Family("process_open_fds", TextPage::Kind::kGauge, "Number of open file descriptors.");
    page.Sample({}, static_cast<double>(open));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    page.Family("process_max_fds", TextPage::Kind::kGauge, "Maximum number of open file descriptors.");
    page.Sample({}, static_cast<double>(limit.rlim_cur));
  }
}

void WriteBuildInfo(TextPage& page, std::string_view component) {
  page.Family("medley_build_info", TextPage::Kind::kGauge, "Always 1; the labels are the component and its version.");
  page.Sample({{"component", component}, {"version", MEDLEY_VERSION}}, 1);
}

}  // namespace medley::metrics
