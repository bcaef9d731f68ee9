#include "localcluster/node/termination_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "kube/json_access.h"
#include "localcluster/node/file_access.h"
#include "localcluster/node/log_files.h"

namespace medley::localcluster {
namespace {

constexpr off_t kMostMessageBytes = 4096;
constexpr size_t kMostLogBytes = 2048;
constexpr int64_t kMostLogLines = 80;

absl::StatusOr<std::string> ReadEnd(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(file, O_RDONLY | O_NONBLOCK));
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return base::ErrnoStatus(errno, "reading " + file.string());
  std::string text(static_cast<size_t>(std::min(size, kMostMessageBytes)), '\0');
  const ssize_t got = pread(fd.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  if (got < 0) return base::ErrnoStatus(errno, "reading " + file.string());
  text.resize(static_cast<size_t>(got));
  return text;
}

std::string EndOfLog(const std::filesystem::path& log, base::Clock& clock) {
  std::string text;
  const auto keep = [&](std::string_view piece) {
    text += piece;
    if (text.size() > kMostLogBytes) text.erase(0, text.size() - kMostLogBytes);
    return true;
  };
  const absl::Status read = ReadLogFiles(
      log, {.tail_lines = kMostLogLines}, clock, std::stop_token(), [] { return true; }, keep);
  if (!read.ok()) base::log::Warn("reading the log of a failed container", {{"error", base::Message(read)}});
  return text;
}

}  // namespace

std::string TerminationMessagePath(const kube::Json& container) {
  const std::string path = kube::GetString(container, "terminationMessagePath");
  return path.empty() ? "/dev/termination-log" : path;
}

absl::Status CreateTerminationLog(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const UniqueFd folder, OpenFolder(file.parent_path(), true));
  unlinkat(folder.get(), file.filename().c_str(), 0);  // of the start before, or what its container has put there
  return OpenFile(file, O_WRONLY | O_CREAT | O_EXCL, 0600).status();
}

std::string ReadTerminationMessage(const kube::Json& container, const std::filesystem::path& file,
                                   const std::filesystem::path& log, int exit_code, base::Clock& clock) {
  const absl::StatusOr<std::string> message = ReadEnd(file);
  if (!message.ok()) {
    base::log::Warn("a container's termination message cannot be read", {{"error", base::Message(message.status())}});
  } else if (!message->empty()) {
    return base::EscapeInvalidUtf8(*message);
  }
  const bool falls_back = kube::GetString(container, "terminationMessagePolicy") == "FallbackToLogsOnError";
  return falls_back && exit_code != 0 ? base::EscapeInvalidUtf8(EndOfLog(log, clock)) : "";
}

}  // namespace medley::localcluster
