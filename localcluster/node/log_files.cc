#include "localcluster/node/log_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::kube {
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
  return fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<LogWriter> LogWriter::Open(fs::path path, int64_t max_bytes, const base::Clock& clock) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return base::ErrnoStatus(error.value(), "creating folder " + path.parent_path().string());
  LogWriter writer(std::move(path), std::max<int64_t>(max_bytes, 1), clock);
  MEDLEY_RETURN_IF_ERROR(writer.Reopen());
  return writer;
}

absl::Status LogWriter::Reopen() {
  fd_ = UniqueFd(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_.valid()) return base::ErrnoStatus(errno, "opening " + path_.string());
  struct stat info = {};
  size_ = fstat(fd_.get(), &info) == 0 ? info.st_size : 0;
  char last = '\n';
  in_line_ = size_ > 0 && pread(fd_.get(), &last, 1, size_ - 1) == 1 && last != '\n';
  return absl::OkStatus();
}

// Keeps `path_` pointing to a file at every moment, because a following reader may open it at any time.
void LogWriter::BeginPart() {
  const fs::path older = OlderPart(path_);
  const fs::path fresh = path_.string() + ".new";
  unlink(older.c_str());
  unlink(fresh.c_str());
  UniqueFd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid() || link(path_.c_str(), older.c_str()) != 0 || rename(fresh.c_str(), path_.c_str()) != 0) {
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
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus(errno, "opening log " + path.string());
  std::string text;
  // If both are the same file, the writer has just begun a new part.
  if (!SameFile(fd.get(), OlderPart(path))) text = base::ReadFile(OlderPart(path)).value_or("");
  text += ReadRest(fd.get());
  const size_t from = options.tail_lines ? TailOffset(text, *options.tail_lines) : 0;
  if (!bounded(std::string_view(text).substr(from)) || !options.follow) return absl::OkStatus();
  for (;;) {
    const bool last = ended();  // checked before the read, so that the read sees all output
    if (!bounded(ReadRest(fd.get()))) return absl::OkStatus();
    if (!SameFile(fd.get(), path)) {  // the writer has begun a new part
      if (!bounded(ReadRest(fd.get()))) return absl::OkStatus();
      UniqueFd next(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!next.valid()) return absl::OkStatus();  // the pod has been deleted
      fd = std::move(next);
      continue;
    }
    if (last || !clock.SleepFor(kFollowPeriod, stop)) return absl::OkStatus();
  }
}

}  // namespace medley::kube
