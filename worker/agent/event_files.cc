#include "worker/agent/event_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLookBytes = 1 << 20;  // of a file in one look
constexpr base::seconds kFindEach{2};

// At most kMostLookBytes from `offset` on.
std::string ReadFrom(const fs::path& path, uint64_t offset) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  std::string bytes(kMostLookBytes, '\0');
  const ssize_t got = pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  close(file);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

std::vector<fs::path> EventFilesBelow(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (int entries = 0; !error && at != end && entries < EventFiles::kMostEntries; at.increment(error), ++entries) {
    if (at.depth() >= EventFiles::kMostDepth) at.disable_recursion_pending();
    std::error_code unreadable;
    const bool named = at->path().filename().string().find("tfevents") != std::string::npos;
    if (named && at->is_regular_file(unreadable)) found.push_back(at->path());
  }
  return found;
}

}  // namespace

EventFiles::EventFiles(fs::path folder) : folder_(std::move(folder)) {
  for (fs::path& path : EventFilesBelow(folder_)) older_.insert(std::move(path));
}

void EventFiles::Find() {
  for (const fs::path& path : EventFilesBelow(folder_)) {
    if (files_.size() < kMostFiles && !older_.contains(path)) files_.try_emplace(path);
  }
}

std::vector<EventReport> EventFiles::Read(base::SteadyTime now, bool last) {
  if (last || now - found_at_ >= kFindEach) {
    Find();
    found_at_ = now;
  }
  std::vector<EventReport> reports;
  for (auto& [path, file] : files_) {
    if (!file.damaged) Read(path, file, reports);
  }
  return reports;
}

void EventFiles::Read(const fs::path& path, File& file, std::vector<EventReport>& reports) {
  const std::string bytes = ReadFrom(path, file.read);
  if (bytes.empty()) return;
  const absl::StatusOr<EventsRead> read = ReadEvents(bytes);
  if (!read.ok()) {
    file.damaged = true;
    base::log::Warn("an event file of TensorBoard is not read further",
                    {{"file", path.string()}, {"why", base::Message(read.status())}});
    return;
  }
  file.read += read->used;
  reports.insert(reports.end(), read->reports.begin(), read->reports.end());
}

}  // namespace medley::worker
