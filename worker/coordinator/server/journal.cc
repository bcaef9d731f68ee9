#include "worker/coordinator/server/journal.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/utf8_strings.h"

namespace medley::worker {
namespace {

constexpr int64_t kCompactAt = int64_t{4} << 20;
constexpr int64_t kMaxJournal = int64_t{64} << 20;  // far more than it has before it is compacted
constexpr uint32_t kMaxRecord = uint32_t{16} << 20;
constexpr size_t kHeader = 8;
constexpr size_t kReserveBytes = size_t{1} << 20;  // more than any record
constexpr size_t kLeastReserve = size_t{1} << 14;
constexpr char kReserve[] = "journal.reserve";

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string Record(job::v1::CoordinatorState state) {
  rpc::EscapeStrings(state);  // a record with other strings could not be read again
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
    if (length > kMaxRecord || bytes.size() < length) return last;
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

std::string FileName(const Claim& of) { return of.term == 0 ? kName : fmt::format("{}-{}", kName, ClaimName(of)); }

struct JournalFile {
  Claim of;  // without an address
  std::filesystem::path path;
  int64_t number = 0;  // of an object
};

std::string ObjectName(const std::string& name, int64_t number) { return fmt::format("{}.{:08}", name, number); }

// Takes ".00000012" from the end of the name; 0: it has no such end.
int64_t TakeNumber(std::string_view& name) {
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos) return 0;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + point + 1, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 1) return 0;
  name.remove_suffix(name.size() - point);
  return number;
}

// The newest first. Without a term, only what has none counts, whether it exists or not.
absl::StatusOr<std::vector<JournalFile>> JournalsUpTo(const Volume& volume, const Claim& own) {
  const bool objects = volume.of_objects();
  if (own.term == 0 && !objects) return std::vector<JournalFile>{{{}, volume / kName}};
  std::vector<JournalFile> files;
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume.files().List(volume.root()));
  for (const std::string& name : names) {
    JournalFile file{.of = {}, .path = volume / name};
    std::string_view rest = name;
    file.number = objects ? TakeNumber(rest) : 0;
    if (objects && file.number == 0) continue;
    if (rest != kName) {
      if (!rest.starts_with(std::string(kName) + "-")) continue;
      const std::optional<Claim> claim = ParseClaimName(rest.substr(sizeof(kName)));
      if (!claim) continue;  // a temporary file
      file.of = *claim;
    }
    if (!file.of.IsNewerThan(own)) files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const JournalFile& a, const JournalFile& b) {
    if (a.of.IsNewerThan(b.of) || b.of.IsNewerThan(a.of)) return a.of.IsNewerThan(b.of);
    return a.number > b.number;
  });
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(Volume volume, const Claim& own) {
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(volume.root()));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<JournalFile> earlier, JournalsUpTo(volume, own));
  std::unique_ptr<Journal> journal(new Journal(std::move(volume), FileName(own)));
  Files& files = journal->volume_.files();
  for (const JournalFile& file : earlier) {
    const absl::StatusOr<std::string> bytes = files.ReadWhole(file.path, kMaxJournal);
    if (own.term == 0 && absl::IsNotFound(bytes.status())) break;
    if (!bytes.ok()) return bytes.status();
    bool torn = false;
    journal->restored_ = LastRecord(*bytes, &torn);
    if (torn) base::log::Warn("dropped an incomplete record at the end of the journal", {{"path", file.path.string()}});
    if (journal->restored_) break;
  }
  if (journal->volume_.of_objects()) {
    for (const JournalFile& file : earlier) {  // a process of the same claim may have written
      if (!own.IsNewerThan(file.of)) journal->number_ = std::max(journal->number_, file.number);
    }
    if (journal->restored_) MEDLEY_RETURN_IF_ERROR(journal->WriteObject(*journal->restored_));
    for (const JournalFile& file : earlier) (void)files.Remove(file.path);  // best effort: it is not read any more
    return journal;
  }
  journal->reserve_ = files.Stat(journal->volume_ / kReserve).ok();  // of an earlier process
  if (journal->restored_) {
    absl::Status compacted = journal->Compact(*journal->restored_);
    if (absl::IsResourceExhausted(compacted)) compacted = journal->WriteWithReserve(*journal->restored_);
    MEDLEY_RETURN_IF_ERROR(compacted);
  } else {
    MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(journal->path_, ""));
    MEDLEY_RETURN_IF_ERROR(journal->Reopen());
  }
  for (const JournalFile& file : earlier) {
    if (own.IsNewerThan(file.of)) (void)files.Remove(file.path);  // best effort: it is not read any more
  }
  journal->KeepReserve();
  return journal;
}

Journal::~Journal() {
  if (fd_ >= 0) volume_.files().Close(fd_);
}

// A number is used once, also when its request failed: that one may come late.
absl::Status Journal::WriteObject(const job::v1::CoordinatorState& state) {
  ++number_;
  MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(ObjectName(path_.string(), number_), Record(state)));
  if (number_ > 2) (void)volume_.files().Remove(ObjectName(path_.string(), number_ - 2));  // best effort
  return absl::OkStatus();
}

absl::Status Journal::Reopen() {
  if (fd_ >= 0) volume_.files().Close(fd_);
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
  if (volume_.of_objects()) return WriteObject(state);
  absl::Status status = bytes_ > kCompactAt ? Compact(state) : Write(Record(state));
  if (absl::IsResourceExhausted(status)) status = WriteWithReserve(state);
  if (status.ok()) KeepReserve();
  return status;
}

absl::Status Journal::Write(const std::string& record) {
  if (fd_ < 0) MEDLEY_RETURN_IF_ERROR(Reopen());
  absl::Status status = volume_.files().Write(fd_, record);
  if (status.ok()) status = volume_.files().Sync(fd_);
  if (status.ok()) {
    bytes_ += static_cast<int64_t>(record.size());
    return status;
  }
  // Half a record would hide every later one.
  if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) {
    base::log::Warn("an incomplete record stays in the journal",
                    {{"error", base::Message(base::ErrnoStatus(errno, ""))}});
    return base::Internal("{}: {}", path_.string(), base::Message(status));
  }
  return base::Annotate(status, path_.string());
}

// The journal with one record takes the place of the one with many, so this frees more than it needs.
absl::Status Journal::WriteWithReserve(const job::v1::CoordinatorState& state) {
  if (reserve_) MEDLEY_RETURN_IF_ERROR(volume_.files().Remove(volume_ / kReserve));
  reserve_ = false;
  return Compact(state);
}

// Best effort. Other writers may take the room first; then the next record waits until they have given up. A smaller
// reserve is better than none: with none, records would fill up the room of which a compaction needs a part.
void Journal::KeepReserve() {
  if (reserve_) return;
  const std::filesystem::path path = volume_ / kReserve;
  for (size_t bytes = kReserveBytes; bytes >= kLeastReserve && !reserve_; bytes /= 2) {
    const absl::StatusOr<int> fd = volume_.files().Create(path);
    if (!fd.ok()) return;
    absl::Status status = volume_.files().Write(*fd, std::string(bytes, '\0'));
    if (status.ok()) status = volume_.files().Sync(*fd);
    volume_.files().Close(*fd);
    reserve_ = status.ok();
    if (!status.ok()) (void)volume_.files().Remove(path);
    if (!status.ok() && !absl::IsResourceExhausted(status)) return;
  }
}

}  // namespace medley::worker
