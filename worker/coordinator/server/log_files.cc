#include "worker/coordinator/server/log_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr int64_t kMostOfFile = int64_t{2} << 20;
constexpr int64_t kMostOfAll = int64_t{16} << 20;
constexpr std::string_view kLogPrefix = "coordinator-";

// The log's files, oldest first.
absl::StatusOr<std::vector<std::string>> LogNames(const Volume& volume) {
  absl::StatusOr<std::vector<std::string>> names = volume.files().List(volume / kLogFolder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  MEDLEY_RETURN_IF_ERROR(names.status());
  std::erase_if(*names, [](const std::string& name) { return !name.starts_with(kLogPrefix); });
  // For one term, NAME.log.1 is older than NAME.log.
  const auto key = [](const std::string& name) {
    const bool older = name.ends_with(".1");
    return std::pair(older ? name.substr(0, name.size() - 2) : name, !older);
  };
  std::ranges::sort(*names, {}, key);
  return names;
}

absl::Status RemoveOldest(const Volume& volume, const std::string& own) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, LogNames(volume));
  int64_t bytes = 2 * kMostOfFile;  // of the own ones
  for (size_t i = names.size(); i-- > 0;) {
    if (names[i].starts_with(own)) continue;
    const std::filesystem::path path = volume / kLogFolder / names[i];
    MEDLEY_ASSIGN_OR_RETURN(const FileStamp stamp, volume.files().Stat(path));
    bytes += stamp.bytes;
    if (bytes > kMostOfAll) MEDLEY_RETURN_IF_ERROR(volume.files().Remove(path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogFiles>> LogFiles::Open(const Volume& volume, int64_t term) {
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(volume / kLogFolder));
  std::unique_ptr<LogFiles> files(new LogFiles(volume, fmt::format("{}{:06}.log", kLogPrefix, term)));
  MEDLEY_RETURN_IF_ERROR(RemoveOldest(volume, files->name_));
  base::MutexLock lock(files->mutex_);
  if (volume.of_objects()) {
    absl::StatusOr<std::string> before = volume.files().ReadWhole(volume / kLogFolder / files->name_, kMostOfAll);
    if (before.ok()) files->object_ = *std::move(before);
    if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
    return files;
  }
  MEDLEY_RETURN_IF_ERROR(files->OpenFile());
  return files;
}

LogFiles::~LogFiles() {
  base::MutexLock lock(mutex_);
  if (fd_ >= 0) volume_.files().Close(fd_);
}

absl::Status LogFiles::DrainObject(std::string lines) {
  const std::filesystem::path path = volume_ / kLogFolder / name_;
  if (!object_.empty() && std::ssize(object_) + std::ssize(lines) > kMostOfFile) {
    MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(path.string() + ".1", object_));
    object_.clear();
  }
  object_ += lines;
  return volume_.files().WriteAtomic(path, object_);
}

absl::Status LogFiles::OpenFile() {
  const std::filesystem::path path = volume_ / kLogFolder / name_;
  absl::StatusOr<int> fd = volume_.files().OpenToAppend(path);
  if (absl::IsNotFound(fd.status())) fd = volume_.files().Create(path);
  MEDLEY_RETURN_IF_ERROR(fd.status());
  const absl::StatusOr<FileStamp> stamp = volume_.files().Stat(path);
  if (!stamp.ok()) {
    volume_.files().Close(*fd);
    return stamp.status();
  }
  fd_ = *fd;
  bytes_ = stamp->bytes;
  return absl::OkStatus();
}

absl::Status LogFiles::Drain(LogBuffer& waiting) {
  base::MutexLock lock(mutex_);
  std::string lines = waiting.Take();
  if (lines.empty()) return absl::OkStatus();
  if (volume_.of_objects()) return DrainObject(std::move(lines));
  if (fd_ >= 0 && bytes_ > 0 && bytes_ + static_cast<int64_t>(lines.size()) > kMostOfFile) {
    volume_.files().Close(std::exchange(fd_, -1));
    const std::filesystem::path path = volume_ / kLogFolder / name_;
    MEDLEY_RETURN_IF_ERROR(volume_.files().Rename(path, path.string() + ".1"));
  }
  if (fd_ < 0) MEDLEY_RETURN_IF_ERROR(OpenFile());
  MEDLEY_RETURN_IF_ERROR(volume_.files().Write(fd_, lines));
  bytes_ += static_cast<int64_t>(lines.size());
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadLogFiles(const Volume& volume) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, LogNames(volume));
  std::string text;
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> part = volume.files().ReadWhole(volume / kLogFolder / name, kMostOfAll);
    if (absl::IsNotFound(part.status())) continue;  // another coordinator removed it or gave it another name
    MEDLEY_RETURN_IF_ERROR(part.status());
    text += *part;
  }
  if (static_cast<int64_t>(text.size()) > kMostOfAll) {
    const size_t line = text.find('\n', text.size() - static_cast<size_t>(kMostOfAll));
    text.erase(0, line == std::string::npos ? text.size() : line + 1);
  }
  return text;
}

}  // namespace medley::worker
