#include "cli/cluster/log_lines.h"

#include <fmt/core.h>

#include <algorithm>

#include "kube/object.h"

namespace medley::cli {
namespace {

constexpr int kColours[] = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94};

}  // namespace

LogLine ParseLogLine(std::string pod, std::string_view line) {
  LogLine parsed;
  parsed.pod = std::move(pod);
  const size_t space = line.find(' ');
  const std::string_view first = line.substr(0, space);
  const auto time = first.size() >= 20 && first[4] == '-' ? base::ParseTime(first)
                                                          : absl::StatusOr<base::WallTime>(absl::UnknownError(""));
  if (!time.ok()) {
    parsed.text = std::string(line);
    return parsed;
  }
  parsed.time = *time;
  parsed.timestamp = std::string(first);
  if (space != std::string_view::npos) parsed.text = std::string(line.substr(space + 1));
  return parsed;
}

std::vector<LogLine> MergeByTime(std::vector<std::vector<LogLine>> logs) {
  std::vector<LogLine> all;
  for (std::vector<LogLine>& log : logs) {
    base::WallTime last{};
    for (LogLine& line : log) {
      line.time = std::max(line.time, last);
      last = line.time;
      all.push_back(std::move(line));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const LogLine& a, const LogLine& b) { return a.time < b.time; });
  return all;
}

std::string Readable(const std::string& text) {
  // A pod may write anything; parsed, a long line takes many times its bytes.
  constexpr size_t kLongest = size_t{1} << 18;
  if (!text.starts_with('{') || text.size() > kLongest) return text;
  const kube::Object line(kube::Json::parse(text, nullptr, false));
  const std::string time = line.String("/time");
  const std::string level = line.String("/level");
  if (time.size() < 23 || level.empty() || line.At("/msg").is_null()) return text;
  std::string out = time.substr(11, 12) + " ";
  if (level == "warn") out += "WARN ";
  if (level == "error") out += "ERROR ";
  out += line.String("/msg");
  for (const auto& [name, value] : line.json().items()) {
    if (name == "time" || name == "level" || name == "component" || name == "msg") continue;
    const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    const bool quoted = word.empty() || word.find_first_of(" \t\n\"=") != std::string::npos;
    out += "  " + name + "=" + (quoted ? kube::Json(word).dump() : word);
  }
  return out;
}

std::string LogJson(const LogLine& line) {
  kube::Json json = {{"pod", line.pod}, {"text", line.text}};
  if (!line.timestamp.empty()) json["time"] = line.timestamp;
  constexpr size_t kLongest = size_t{1} << 18;
  if (line.text.starts_with('{') && line.text.size() <= kLongest) {
    kube::Json parsed = kube::Json::parse(line.text, nullptr, false);
    if (parsed.is_object()) json["log"] = std::move(parsed);
  }
  return json.dump(-1, ' ', false, kube::Json::error_handler_t::replace) + "\n";
}

void LogPrinter::Expect(const std::string& pod) { width_ = std::max(width_, pod.size()); }

std::string LogPrinter::Line(const LogLine& line) {
  Expect(line.pod);
  std::string prefix = fmt::format("{:<{}} |", line.pod, width_);
  if (style_.colours) {
    const auto [found, fresh] = colour_of_.try_emplace(line.pod, static_cast<int>(colour_of_.size()));
    prefix =
        fmt::format("\x1b[{}m{}\x1b[0m", kColours[static_cast<size_t>(found->second) % std::size(kColours)], prefix);
  }
  return prefix + " " + (style_.timestamps && !line.timestamp.empty() ? line.timestamp + " " : "") +
         (style_.raw ? line.text : Readable(line.text)) + "\n";
}

}  // namespace medley::cli
