#include "localcluster/node/log_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "localcluster/node/file_access.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
constexpr base::milliseconds kFollowPeriod{50};
constexpr size_t kTimeWidth = sizeof("2006-01-02T15:04:05.000000000Z ") - 1;

// RFC 3339 with nine digits of fractions, so that the texts sort like the times.
std::string TimeText(base::WallTime time) {
  const std::string whole = base::FormatTime(time);  // ends with Z
  const auto nanos = std::chrono::duration_cast<base::nanoseconds>(time.time_since_epoch()).count();
  const int64_t fraction = (nanos % 1'000'000'000 + 1'000'000'000) % 1'000'000'000;
  return fmt::format("{}.{:09}Z", whole.substr(0, whole.size() - 1), fraction);
}

fs::path OlderPart(const fs::path& path) { return path.string() + ".1"; }

// Passes on bytes up to the requested limit. Returns false if the reader wants no more.
class BoundedSink {
 public:
  BoundedSink(const LogOptions& options, const std::function<bool(std::string_view)>& sink)
      : lines_(options), left_(options.limit_bytes.value_or(INT64_MAX)), sink_(sink) {}
  bool operator()(std::string_view stored) {
    const std::string text = lines_.Take(stored);
    std::string_view bytes = text;
    if (bytes.empty()) return left_ > 0;
    bytes = bytes.substr(0, static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(bytes.size()))));
    left_ -= static_cast<int64_t>(bytes.size());
    return !bytes.empty() && sink_(bytes) && left_ > 0;
  }

 private:
  LogLines lines_;
  int64_t left_;
  const std::function<bool(std::string_view)>& sink_;
};

// Everything from the descriptor's position to the end of the file.
std::string ReadRest(int fd) {
  std::string out;
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(buffer.data(), static_cast<size_t>(got));
  }
}

bool SameFile(int fd, const fs::path& path) {
  struct stat held = {}, named = {};
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<LogWriter> LogWriter::Open(fs::path path, int64_t max_bytes, const base::Clock& clock) {
  MEDLEY_ASSIGN_OR_RETURN(UniqueFd folder, OpenFolder(path.parent_path(), true));
  LogWriter writer(std::move(path), std::move(folder), std::max<int64_t>(max_bytes, 1), clock);
  MEDLEY_RETURN_IF_ERROR(writer.Reopen());
  return writer;
}

absl::Status LogWriter::Reopen() {
  MEDLEY_ASSIGN_OR_RETURN(fd_, OpenFile(path_, O_RDWR | O_CREAT | O_APPEND));
  struct stat info = {};
  size_ = fstat(fd_.get(), &info) == 0 ? info.st_size : 0;
  char last = '\n';
  in_line_ = size_ > 0 && pread(fd_.get(), &last, 1, size_ - 1) == 1 && last != '\n';
  return absl::OkStatus();
}

// Keeps `path_` pointing to a file at every moment, because a following reader may open it at any time.
void LogWriter::BeginPart() {
  const std::string name = path_.filename();
  const std::string older = OlderPart(path_).filename();
  const std::string fresh = name + ".new";
  const int folder = folder_.get();
  unlinkat(folder, older.c_str(), 0);
  unlinkat(folder, fresh.c_str(), 0);
  UniqueFd fd(openat(folder, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid() || linkat(folder, name.c_str(), folder, older.c_str(), 0) != 0 ||
      renameat(folder, fresh.c_str(), folder, name.c_str()) != 0) {
    return;  // let the full part grow, so that no output is lost
  }
  fd_ = std::move(fd);
  size_ = 0;
}

void LogWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = fd_.valid() ? write(fd_.get(), bytes.data(), bytes.size()) : -1;
    if (put < 0 && fd_.valid() && errno == EINTR) continue;
    if (put <= 0) {
      lost_ += static_cast<int64_t>(bytes.size());
      return;
    }
    size_ += put;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void LogWriter::Write(std::string_view bytes) {
  const std::string time = TimeText(clock_->Now()) + " ";
  std::string out;
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline == std::string_view::npos ? newline : newline + 1);
    const auto have = size_ + static_cast<int64_t>(out.size());
    if (have > 0 && have + static_cast<int64_t>(piece.size() + time.size()) > max_bytes_) {
      if (in_line_) out += '\n';
      Append(std::exchange(out, {}));
      BeginPart();
      in_line_ = false;
    }
    if (!in_line_) out += time;
    out += piece;
    in_line_ = piece.back() != '\n';
    bytes.remove_prefix(piece.size());
  }
  Append(out);
}

LogLines::LogLines(const LogOptions& options)
    : timestamps_(options.timestamps), since_(options.since ? TimeText(*options.since) : "") {}

std::string LogLines::Take(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    if (!in_text_) {
      const size_t part = std::min(bytes.size(), kTimeWidth - time_.size());
      time_ += bytes.substr(0, part);
      bytes.remove_prefix(part);
      if (time_.size() < kTimeWidth) break;
      in_text_ = true;
      skip_ = time_ < since_;
      if (!skip_ && timestamps_) out += time_;
      continue;
    }
    const size_t newline = bytes.find('\n');
    const size_t part = newline == std::string_view::npos ? bytes.size() : newline + 1;
    if (!skip_) out += bytes.substr(0, part);
    bytes.remove_prefix(part);
    if (newline == std::string_view::npos) break;
    in_text_ = false;
    time_.clear();
  }
  return out;
}

size_t TailOffset(std::string_view text, int64_t lines) {
  if (lines <= 0) return text.size();
  size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  while (at > 0) {
    const size_t newline = text.rfind('\n', at - 1);
    if (newline == std::string_view::npos) return 0;
    if (--lines == 0) return newline + 1;
    at = newline;
  }
  return 0;
}

absl::Status ReadLogFiles(const fs::path& path, const LogOptions& options, base::Clock& clock, std::stop_token stop,
                          const std::function<bool()>& ended, const std::function<bool(std::string_view)>& sink) {
  BoundedSink bounded(options, sink);
  auto opened = OpenFile(path, O_RDONLY);
  if (!opened.ok()) return base::Annotate(opened.status(), "the log");
  UniqueFd fd = *std::move(opened);
  std::string text;
  // If both are the same file, the writer has just begun a new part.
  if (!SameFile(fd.get(), OlderPart(path))) {
    if (const auto older = OpenFile(OlderPart(path), O_RDONLY); older.ok()) text = ReadRest(older->get());
  }
  text += ReadRest(fd.get());
  const size_t from = options.tail_lines ? TailOffset(text, *options.tail_lines) : 0;
  if (!bounded(std::string_view(text).substr(from)) || !options.follow) return absl::OkStatus();
  for (;;) {
    const bool last = ended();  // checked before the read, so that the read sees all output
    if (!bounded(ReadRest(fd.get()))) return absl::OkStatus();
    if (!SameFile(fd.get(), path)) {  // the writer has begun a new part
      if (!bounded(ReadRest(fd.get()))) return absl::OkStatus();
      auto next = OpenFile(path, O_RDONLY);
      if (!next.ok()) return absl::OkStatus();  // the pod has been deleted
      fd = *std::move(next);
      continue;
    }
    if (last || !clock.SleepFor(kFollowPeriod, stop)) return absl::OkStatus();
  }
}

}  // namespace medley::localcluster
