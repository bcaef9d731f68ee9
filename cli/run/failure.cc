#include "cli/run/failure.h"

#include <algorithm>

#include "cli/once.h"
#include "cli/run/pod_logs.h"

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
