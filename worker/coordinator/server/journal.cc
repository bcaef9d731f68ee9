#include "worker/coordinator/server/journal.h"

#include <unistd.h>
#include <zlib.h>

#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr int64_t kCompactAt = int64_t{4} << 20;
constexpr int64_t kMaxJournal = int64_t{1} << 32;
constexpr size_t kHeader = 8;

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string Record(const job::v1::CoordinatorState& state) {
  const std::string bytes = state.SerializeAsString();
  const auto length = static_cast<uint32_t>(bytes.size());
  const uint32_t crc = Crc(bytes);
  std::string record(kHeader, '\0');
  std::memcpy(record.data(), &length, 4);
  std::memcpy(record.data() + 4, &crc, 4);
  return record + bytes;
}

// Returns the last complete record. Sets `torn` when incomplete data follows it.
std::optional<job::v1::CoordinatorState> LastRecord(std::string_view bytes, bool* torn) {
  std::optional<job::v1::CoordinatorState> last;
  *torn = false;
  while (!bytes.empty()) {
    uint32_t length = 0;
    uint32_t crc = 0;
    *torn = true;
    if (bytes.size() < kHeader) return last;
    std::memcpy(&length, bytes.data(), 4);
    std::memcpy(&crc, bytes.data() + 4, 4);
    bytes.remove_prefix(kHeader);
    if (bytes.size() < length) return last;
    const std::string_view body = bytes.substr(0, length);
    job::v1::CoordinatorState state;
    if (Crc(body) != crc || !state.ParseFromArray(body.data(), static_cast<int>(body.size()))) return last;
    last = std::move(state);
    bytes.remove_prefix(length);
    *torn = false;
  }
  return last;
}

constexpr char kName[] = "journal";

std::string FileName(int64_t term) { return term == 0 ? kName : fmt::format("{}-{:08}", kName, term); }

using JournalFiles = std::map<int64_t, std::filesystem::path>;  // by term

// Without a term, only the file without one counts, whether it exists or not.
absl::StatusOr<JournalFiles> JournalsUpTo(const Volume& volume, int64_t term) {
  if (term == 0) return JournalFiles{{0, volume / kName}};
  JournalFiles files;
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume.files().List(volume.root()));
  for (const std::string& name : names) {
    int64_t of_term = 0;
    if (name != kName) {
      const size_t digits = sizeof(kName);  // after "journal-"
      if (!name.starts_with(std::string(kName) + "-") || name.size() == digits) continue;
      const auto [last, bad] = std::from_chars(name.data() + digits, name.data() + name.size(), of_term);
      if (bad != std::errc() || last != name.data() + name.size()) continue;  // a temporary file
    }
    if (of_term <= term) files[of_term] = volume / name;
  }
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(Volume volume, int64_t term) {
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(volume.root()));
  MEDLEY_ASSIGN_OR_RETURN(const JournalFiles earlier, JournalsUpTo(volume, term));
  std::unique_ptr<Journal> journal(new Journal(std::move(volume), FileName(term)));
  Files& files = journal->volume_.files();
  for (auto file = earlier.rbegin(); file != earlier.rend() && !journal->restored_; ++file) {
    const absl::StatusOr<std::string> bytes = files.ReadWhole(file->second, kMaxJournal);
    if (term == 0 && absl::IsNotFound(bytes.status())) break;
    if (!bytes.ok()) return bytes.status();
    bool torn = false;
    journal->restored_ = LastRecord(*bytes, &torn);
    if (torn) log::Warn("dropped an incomplete record at the end of the journal", {{"path", file->second.string()}});
  }
  if (journal->restored_) {
    MEDLEY_RETURN_IF_ERROR(journal->Compact(*journal->restored_));
  } else {
    MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(journal->path_, ""));
    MEDLEY_RETURN_IF_ERROR(journal->Reopen());
  }
  for (const auto& [of_term, path] : earlier) {
    if (of_term < term) (void)files.Remove(path);  // best effort: it is not read any more
  }
  return journal;
}

Journal::~Journal() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Journal::Reopen() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  MEDLEY_ASSIGN_OR_RETURN(fd_, volume_.files().OpenToAppend(path_));
  bytes_ = lseek(fd_, 0, SEEK_END);
  return absl::OkStatus();
}

absl::Status Journal::Compact(const job::v1::CoordinatorState& state) {
  MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(path_, Record(state)));
  return Reopen();
}

absl::Status Journal::Append(const job::v1::CoordinatorState& state) {
  if (bytes_ > kCompactAt) return Compact(state);
  const std::string record = Record(state);
  MEDLEY_RETURN_IF_ERROR(base::Annotate(volume_.files().Write(fd_, record), path_.string()));
  MEDLEY_RETURN_IF_ERROR(base::Annotate(volume_.files().Sync(fd_), path_.string()));
  bytes_ += static_cast<int64_t>(record.size());
  return absl::OkStatus();
}

}  // namespace medley::worker
