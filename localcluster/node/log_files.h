// The log files of one start of a container: NAME, and NAME.1, the previous part, which was NAME until it was full.
//
// Each line of a file is "TIME TEXT", as a kubelet's runtime writes it. TIME is when the line began, in RFC 3339 with
// nine digits of fractions.
//
// LogWriter belongs to one thread. The reading functions may run in any thread and process at the same time.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "localcluster/log_reader.h"
#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {

class LogWriter {
 public:
  // Creates the folder. A part has at most `max_bytes`, so at most twice that is kept. A line that does not fit into
  // the part in which it began is split. `clock` is borrowed.
  static absl::StatusOr<LogWriter> Open(std::filesystem::path path, int64_t max_bytes, const base::Clock& clock);
  // Counts errors of the file system instead of reporting them: a full disk must not stop a process.
  void Write(std::string_view bytes);
  int64_t lost_bytes() const { return lost_; }

 private:
  LogWriter(std::filesystem::path path, UniqueFd folder, int64_t max_bytes, const base::Clock& clock)
      : path_(std::move(path)), folder_(std::move(folder)), max_bytes_(max_bytes), clock_(&clock) {}
  absl::Status Reopen();
  void BeginPart();
  void Append(std::string_view bytes);

  std::filesystem::path path_;
  UniqueFd folder_;
  int64_t max_bytes_;
  const base::Clock* clock_;
  UniqueFd fd_;
  int64_t size_ = 0;
  bool in_line_ = false;  // the last byte of the file is not a newline
  int64_t lost_ = 0;
};

// Reads both parts. With options.follow, continues until `ended` is true and everything has been read. Ignores
// options.container and options.previous.
absl::Status ReadLogFiles(const std::filesystem::path& path, const LogOptions& options, base::Clock& clock,
                          std::stop_token stop, const std::function<bool()>& ended,
                          const std::function<bool(std::string_view)>& sink);

// Converts the bytes of log files to what a reader requested: removes the times, unless options.timestamps is set, and
// skips lines older than options.since. The bytes may come in pieces of any size. Not thread-safe.
class LogLines {
 public:
  explicit LogLines(const LogOptions& options);
  std::string Take(std::string_view bytes);

 private:
  const bool timestamps_;
  std::string since_;  // in the format of the file; empty: no lower bound
  std::string time_;   // of the current line, as far as it has been read
  bool in_text_ = false;
  bool skip_ = false;
};

// The offset at which the last `lines` lines of `text` begin.
size_t TailOffset(std::string_view text, int64_t lines);

}  // namespace medley::localcluster
