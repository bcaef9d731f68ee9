#include "cli/run/failure.h"

#include <algorithm>
#include <system_error>

#include "cli/once.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLogs = 3;

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

// As a whole word: a pod's name may begin that of another.
bool Names(const std::string& message, const std::string& pod) {
  for (size_t at = message.find(pod); at != std::string::npos; at = message.find(pod, at + 1)) {
    const size_t end = at + pod.size();
    const bool begins = at == 0 || !IsWord(message[at - 1]);
    if (begins && (end == message.size() || !IsWord(message[end]))) return true;
  }
  return false;
}

struct PodLog {
  std::string pod;
  fs::path file;
  fs::file_time_type written;
};

// Folders are named NAMESPACE_POD_UID (localcluster/node).
std::vector<PodLog> AllLogs(const fs::path& run_folder) {
  std::vector<PodLog> logs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_folder / "node" / "pods", error)) {
    const std::string name = entry.path().filename().string();
    const size_t first = name.find('_');
    const size_t last = name.rfind('_');
    if (first == std::string::npos || last <= first) continue;
    std::error_code missing;
    for (const auto& file : fs::directory_iterator(entry.path() / "logs" / "worker", missing)) {
      std::error_code unread;
      const auto written = fs::last_write_time(file.path(), unread);
      if (!unread) logs.push_back({name.substr(first + 1, last - first - 1), file.path(), written});
    }
  }
  std::sort(logs.begin(), logs.end(), [](const PodLog& a, const PodLog& b) {
    return a.written != b.written ? a.written < b.written : a.file < b.file;
  });
  return logs;
}

}  // namespace

std::vector<std::string> FailureLines(const std::vector<std::string>& failures, const std::vector<fs::path>& logs) {
  Once once;
  std::vector<std::string> lines;
  for (const std::string& failure : failures) {
    for (const std::string& sentence : SentencesOf(failure)) {
      if (const std::string rest = once.Rest(sentence); !rest.empty()) {
        lines.push_back((lines.empty() ? "medley: " : "  ") + rest);
      }
    }
  }
  if (lines.empty()) return lines;
  for (const fs::path& log : logs) lines.push_back("  log: " + log.string());
  return lines;
}

std::vector<fs::path> LogsOf(const fs::path& run_folder, const std::string& message) {
  const std::vector<PodLog> all = AllLogs(run_folder);
  std::vector<fs::path> found;
  const auto take = [&](auto wanted) {
    for (const PodLog& log : all) {
      if (wanted(log)) found.push_back(log.file);
    }
  };
  take([&](const PodLog& log) { return Names(message, log.pod); });
  if (found.empty()) take([](const PodLog& log) { return log.pod.find("-coordinator") != std::string::npos; });
  if (found.size() > kMostLogs) found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(kMostLogs));
  return found;
}

}  // namespace medley::cli
