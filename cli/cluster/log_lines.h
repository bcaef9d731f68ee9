// Lines of logs of several pods: order and prefixes. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::cli {

struct LogLine {
  std::string pod;
  base::WallTime time{};  // zero: the line bears none
  std::string timestamp;  // as it stands in the log
  std::string text;
};

// "2026-11-21T07:15:00.123Z text" as the API gives it with timestamps=true; a line without one
// keeps all its text.
LogLine ParseLogLine(std::string pod, std::string_view line);

// By time; lines of one pod keep their order, also where its clock went back, and one without a
// time stays behind the line before it.
std::vector<LogLine> MergeByTime(std::vector<std::vector<LogLine>> logs);

// A line of Medley's own JSON for people: {"time":"2026-11-21T07:15:00.123456Z","level":"warn",
// "component":"c","msg":"lost","member":"m"} -> "07:15:00.123 WARN lost  member=m". Others stay.
std::string Readable(const std::string& text);

struct LogStyle {
  bool colours = false;     // one for each pod, in the order of appearance
  bool timestamps = false;  // of the kubelet, before each line
  bool raw = false;         // lines as they were written, else Readable
};

// "adult-coordinator | text": names padded to the longest so far. Not thread-safe.
class LogPrinter {
 public:
  explicit LogPrinter(LogStyle style) : style_(style) {}
  // So that the first lines are padded alike.
  void Expect(const std::string& pod);
  std::string Line(const LogLine& line);  // with its newline

 private:
  const LogStyle style_;
  size_t width_ = 0;
  std::map<std::string, int> colour_of_;
};

}  // namespace medley::cli
