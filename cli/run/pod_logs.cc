#include "cli/run/pod_logs.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRead = 16;                               // logs
constexpr std::streamoff kEndOfLog = std::streamoff{4} << 10;  // bytes

std::string EndOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(0, std::ios::end);
  const std::streamoff size = in.tellg();
  if (size <= 0) return "";
  in.seekg(std::max<std::streamoff>(0, size - kEndOfLog));
  std::string text(static_cast<size_t>(std::min(size, kEndOfLog)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

}  // namespace

// Folders are named NAMESPACE_POD_UID (localcluster/node).
std::vector<PodLog> AllLogs(const fs::path& run_folder) {
  std::vector<PodLog> logs;
  std::error_code error;
  for (fs::directory_iterator at(run_folder / "node" / "pods", error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    const std::string name = entry.path().filename().string();
    const size_t first = name.find('_');
    const size_t last = name.rfind('_');
    if (first == std::string::npos || last <= first) continue;
    std::error_code missing;
    for (fs::directory_iterator log(entry.path() / "logs" / "worker", missing); !missing && log != end;
         log.increment(missing)) {
      const fs::directory_entry& file = *log;
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

std::string ReadingMessage(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t begin = text.rfind('\n', end);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("msg") || !json["msg"].is_string()) return "";
  const auto message = json["msg"].get<std::string>();
  return message.starts_with("reading the ") ? message : "";
}

std::string ReadingLine(const fs::path& run_folder) {
  const std::vector<PodLog> logs = AllLogs(run_folder);
  for (size_t i = 0; i < std::min(kMostRead, logs.size()); ++i) {
    const PodLog& log = logs[logs.size() - 1 - i];
    if (const std::string message = ReadingMessage(EndOf(log.file)); !message.empty()) return log.pod + ": " + message;
  }
  return "";
}

}  // namespace medley::cli
