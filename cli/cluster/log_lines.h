// Parses, merges and formats the log lines of several pods. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::cli {

struct LogLine {
  std::string pod;
  base::WallTime time{};  // zero: the line has no time
  std::string timestamp;  // the text of the time
  std::string text;
};

// Parses a line of the API with timestamps=true, such as "2026-11-21T07:15:00.123Z text". Without a time the whole line
// is the text.
LogLine ParseLogLine(std::string pod, std::string_view line);

// Merges logs by time. Lines of one pod keep their order, even if its clock went back; a line without a time stays
// after the line before it.
std::vector<LogLine> MergeByTime(std::vector<std::vector<LogLine>> logs);

// Turns a line of Medley's JSON logs into text for users: {"time":"2026-11-21T07:15:00.123456Z","level":"warn",
// "component":"c","msg":"lost","member":"m"} -> "07:15:00.123 WARN lost  member=m". Returns other lines unchanged.
std::string Readable(const std::string& text);

// A line for programs: {"pod": ..., "time": ..., "text": ..., "log": {...}}, with `log` for a line that is a JSON
// object itself, and `time` for one that has a time. Ends with a newline.
std::string LogJson(const LogLine& line);

struct LogStyle {
  bool colours = false;     // print each pod's name in its own colour
  bool timestamps = false;  // print the kubelet's time before each line
  bool raw = false;         // print lines as they were written, not by Readable
};

// Formats lines as "adult-coordinator | text", with names padded to the longest one so far. Not thread-safe.
class LogPrinter {
 public:
  explicit LogPrinter(LogStyle style) : style_(style) {}
  // Announces a pod, so that lines before its first one are padded to the same width.
  void Expect(const std::string& pod);
  std::string Line(const LogLine& line);  // ends with a newline

 private:
  const LogStyle style_;
  size_t width_ = 0;
  std::map<std::string, int> colour_of_;
};

}  // namespace medley::cli
