#include "worker/cold/cold_rows.h"

#include <absl/functional/function_ref.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/cold/key_index.h"
#include "worker/cold/row_log.h"
#include "worker/cold/scratch_folder.h"

namespace medley::worker {
namespace {

constexpr size_t kTogether = 512;          // keys of one look-up
constexpr int64_t kLivePerGarbage = 1;     // records of a log; more garbage is removed
constexpr uint32_t kLeastGarbage = 2;      // segments of it
constexpr uint32_t kCopiedTogether = 512;  // records
constexpr size_t kPrefetched = 8;          // look-ups in the index, and records
constexpr size_t kLine = 64;
constexpr uint32_t kWorthIt = 8;  // one of so many records of a segment is garbage: it is copied to make room

struct Table {
  std::unique_ptr<RowLog> log;
  std::unique_ptr<KeyIndex> index;
};

absl::Status Damaged(const std::filesystem::path& folder) {
  return base::DataLoss("reading cold rows in {}: the disk has damaged them", folder.string());
}

}  // namespace

class ColdRows::Rep {
 public:
  static absl::StatusOr<std::unique_ptr<Rep>> Open(const Options& options) {
    MEDLEY_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(options.folder, kPrefix));
    std::unique_ptr<Rep> rep(new Rep(std::move(folder), options.most_bytes));
    for (size_t t = 0; t < options.row_bytes.size(); ++t) {
      Table table;
      MEDLEY_ASSIGN_OR_RETURN(table.log,
                              RowLog::Create(rep->path() / fmt::format("table-{}.rows", t), options.row_bytes[t]));
      MEDLEY_ASSIGN_OR_RETURN(table.index, KeyIndex::Create(rep->path() / fmt::format("table-{}.index", t)));
      rep->tables_.push_back(std::move(table));
    }
    return rep;
  }

  absl::Status Put(std::span<const Row> rows) {
    base::MutexLock writing(writing_);
    std::vector<const Row*> of_table;
    for (uint32_t t = 0; t < tables_.size(); ++t) {
      of_table.clear();
      for (const Row& row : rows) {
        if (row.table == t) of_table.push_back(&row);
      }
      if (!of_table.empty()) MEDLEY_RETURN_IF_ERROR(PutInto(tables_[t], of_table));
    }
    return absl::OkStatus();
  }

  absl::Status Get(uint32_t number, std::span<const uint64_t> keys, Copies& copies) const {
    const Table& table = tables_[number];
    const size_t record = table.log->record_bytes();
    std::vector<Reading> readings;
    std::vector<std::shared_ptr<const RowLog::Extent>> extents;  // by segment
    readings.reserve(keys.size());
    copies.at.assign(keys.size(), Copies::kNone);
    copies.row_bytes = table.log->row_bytes();
    for (size_t first = 0; first < keys.size(); first += kTogether) {
      const size_t end = std::min(keys.size(), first + kTogether);
      MEDLEY_RETURN_IF_ERROR(FindPlaces(table, keys, first, end, readings, extents));
    }
    copies.bytes = std::make_unique_for_overwrite<std::byte[]>(readings.size() * record);
    const auto of = [&](size_t r) { return std::span(copies.bytes.get() + r * record, record); };
    if (readings.empty()) return absl::OkStatus();
    CopyFromMemory(*table.log, readings, copies.bytes.get());
    for (size_t r = 0; r < readings.size(); ++r) {
      readings[r].is_read = readings[r].in_memory != nullptr || table.log->ReadNow(readings[r].place, of(r));
    }
    for (size_t r = 0; r < readings.size(); ++r) {
      if (!readings[r].is_read) MEDLEY_RETURN_IF_ERROR(table.log->Read(readings[r].place, of(r)));
      if (!table.log->IsWhole(of(r).data())) return Damaged(path());
      const size_t k = readings[r].key;
      if (RowLog::KeyOf(of(r).data()) == keys[k]) copies.at[k] = r * record + RowLog::kHeadBytes;
    }
    return absl::OkStatus();
  }

  int64_t DiskBytes() const {
    base::MutexLock lock(mutex_);
    return Bytes();
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  const Table& table(uint32_t number) const { return tables_[number]; }
  std::vector<std::vector<RowLog::Segment>> Segments() const {
    base::MutexLock lock(mutex_);
    std::vector<std::vector<RowLog::Segment>> segments;
    for (const Table& table : tables_) segments.push_back(table.log->segments());
    return segments;
  }

 private:
  // A record that may be of a key.
  struct Reading {
    size_t key = 0;
    uint32_t place = 0;
    const std::byte* in_memory = nullptr;
    bool is_read = false;
  };

  Rep(ScratchFolder folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  int64_t Bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int64_t bytes = 0;
    for (const Table& table : tables_) bytes += table.log->bytes() + table.index->bytes();
    return bytes;
  }

  // Adds the records that may be of some of the keys, and the room of their segments, which stays theirs meanwhile.
  absl::Status FindPlaces(const Table& table, std::span<const uint64_t> keys, size_t first, size_t end,
                          std::vector<Reading>& readings,
                          std::vector<std::shared_ptr<const RowLog::Extent>>& extents) const {
    base::MutexLock lock(mutex_);
    for (size_t k = first; k < end; ++k) table.index->Prefetch(KeyIndex::Hash(keys[k]));
    KeyIndex::Places places;
    for (size_t k = first; k < end; ++k) {
      places.clear();
      MEDLEY_RETURN_IF_ERROR(table.index->Find(KeyIndex::Hash(keys[k]), places));
      for (const uint32_t place : places) {
        readings.push_back({k, place});
        const uint32_t segment = table.log->SegmentOf(place);
        if (segment >= extents.size()) extents.resize(table.log->segments().size());
        auto& extent = extents[segment];
        if (extent == nullptr) extent = table.log->ExtentOf(place);
      }
    }
    return absl::OkStatus();
  }

  // Copies the records that the system surely has in memory to their places in `to`.
  static void CopyFromMemory(const RowLog& log, std::span<Reading> readings, std::byte* to) {
    const size_t record = log.record_bytes();
    const MappedFile::Check check = log.CheckMemory();
    for (size_t r = 0; r < readings.size() + kPrefetched; ++r) {
      if (r < readings.size()) {
        readings[r].in_memory = log.InMemory(readings[r].place);
        for (size_t at = 0; readings[r].in_memory != nullptr && at < record; at += kLine) {
          __builtin_prefetch(readings[r].in_memory + at);
        }
      }
      if (r < kPrefetched) continue;
      const std::byte* const from = readings[r - kPrefetched].in_memory;
      if (from != nullptr) std::copy_n(from, record, to + (r - kPrefetched) * record);
    }
  }

  // Writes records and, with the lock, calls placed(i, place) for each.
  absl::Status Append(Table& table, std::span<const std::byte> records,
                      absl::FunctionRef<absl::Status(size_t i, uint32_t place)> placed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    RowLog& log = *table.log;
    std::vector<RowLog::Piece> pieces;
    {
      base::MutexLock lock(mutex_);
      MEDLEY_ASSIGN_OR_RETURN(pieces, log.Reserve(static_cast<uint32_t>(records.size() / log.record_bytes())));
    }
    absl::Status status;
    auto left = records;
    for (const RowLog::Piece& piece : pieces) {
      const size_t bytes = piece.count * log.record_bytes();
      if (status.ok()) status = log.Write(piece, left.first(bytes));
      left = left.subspan(bytes);
    }
    base::MutexLock lock(mutex_);
    if (!status.ok()) {
      log.GiveBack(pieces);
      return status;
    }
    size_t i = 0;
    for (const RowLog::Piece& piece : pieces) {
      for (uint32_t n = 0; n < piece.count; ++n) MEDLEY_RETURN_IF_ERROR(placed(i++, piece.first + n));
    }
    return absl::OkStatus();
  }

  absl::Status PutInto(Table& table, std::span<const Row* const> rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    RowLog& log = *table.log;
    KeyIndex& index = *table.index;
    const size_t record = log.record_bytes();
    MEDLEY_RETURN_IF_ERROR(MakeRoom(static_cast<int64_t>(rows.size() * record)));
    const auto records = std::make_unique_for_overwrite<std::byte[]>(rows.size() * record);
    for (size_t r = 0; r < rows.size(); ++r) {
      MEDLEY_CHECK(rows[r]->bytes.size() == log.row_bytes(), "rows of a table have one size");
      log.Compose(rows[r]->key, rows[r]->bytes, records.get() + r * record);
    }
    KeyIndex::Places places;
    const auto placed = [&](size_t r, uint32_t place) ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
      if (r + kPrefetched < rows.size()) index.Prefetch(KeyIndex::Hash(rows[r + kPrefetched]->key));
      const uint32_t hash = KeyIndex::Hash(rows[r]->key);
      log.SetLive(place);
      if (rows[r]->has_copy) {
        MEDLEY_ASSIGN_OR_RETURN(const std::optional<uint32_t> only, index.MoveOnly(hash, place));
        if (only) log.SetDead(*only);
        if (only) return absl::OkStatus();
      }
      places.clear();
      MEDLEY_RETURN_IF_ERROR(index.Find(hash, places));
      for (const uint32_t old : places) {
        MEDLEY_ASSIGN_OR_RETURN(const uint64_t key, KeyAt(log, old));
        if (key != rows[r]->key) continue;
        MEDLEY_RETURN_IF_ERROR(index.Move(hash, old, place));
        log.SetDead(old);
        return absl::OkStatus();
      }
      const absl::Status added = index.Add(hash, place);
      if (!added.ok()) log.SetDead(place);
      return added;
    };
    MEDLEY_RETURN_IF_ERROR(Append(table, {records.get(), rows.size() * record}, placed));
    return Clean(table, static_cast<uint32_t>(rows.size()));
  }

  absl::StatusOr<uint64_t> KeyAt(const RowLog& log, uint32_t place) const {
    std::vector<std::byte> record(log.record_bytes());
    MEDLEY_RETURN_IF_ERROR(log.Read(place, record));
    if (!log.IsWhole(record.data())) return Damaged(path());
    return RowLog::KeyOf(record.data());
  }

  // Copies at most about twice as many records as rows were put.
  absl::Status Clean(Table& table, uint32_t rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    for (uint32_t copied = 0; copied < 2 * rows; copied += kCopiedTogether) {
      {
        base::MutexLock lock(mutex_);
        const int64_t least = int64_t{kLeastGarbage} * table.log->slots();
        if (table.log->garbage() <= std::max(least, table.log->live() / kLivePerGarbage)) break;
      }
      const absl::Status cleaned = CleanSome(table).status();
      if (absl::IsResourceExhausted(cleaned)) break;  // the rows are written
      MEDLEY_RETURN_IF_ERROR(cleaned);
    }
    return absl::OkStatus();
  }

  // Removes garbage of any log where the disk may not have more bytes.
  absl::Status MakeRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    if (most_bytes_ <= 0) return absl::OkStatus();
    for (size_t t = 0; DiskBytes() + bytes > most_bytes_;) {
      if (t == tables_.size()) {
        return base::ResourceExhausted("writing cold rows in {}: they may take {} bytes, and take {}", path().string(),
                                       most_bytes_, DiskBytes());
      }
      MEDLEY_ASSIGN_OR_RETURN(const bool some, CleanSome(tables_[t]));
      if (!some) ++t;
    }
    return absl::OkStatus();
  }

  // Copies live records of the emptiest segment to the end of the log. False: there is too little garbage.
  absl::StatusOr<bool> CleanSome(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_) {
    RowLog& log = *table.log;
    std::vector<uint32_t> old;
    std::shared_ptr<const RowLog::Extent> extent;
    {
      base::MutexLock lock(mutex_);
      const auto number = log.Emptiest();
      if (!number) return false;
      const RowLog::Segment& segment = log.segments()[*number];
      if (segment.used - segment.live < segment.used / kWorthIt) return false;
      if (segment.live == 0) {
        log.Drop(*number);
        return true;
      }
      extent = segment.extent;
      for (size_t word = 0; word < segment.bits.size() && old.size() < kCopiedTogether; ++word) {
        for (uint64_t bits = segment.bits[word]; bits != 0; bits &= bits - 1) {
          old.push_back(
              log.PlaceOf(*number, static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits))));
        }
      }
    }
    const size_t record = log.record_bytes();
    const size_t read_bytes = (old.back() - old.front() + 1) * record, bytes = old.size() * record;
    const auto read = std::make_unique_for_overwrite<std::byte[]>(read_bytes);
    const auto records = std::make_unique_for_overwrite<std::byte[]>(bytes);
    MEDLEY_RETURN_IF_ERROR(log.Read(old.front(), {read.get(), read_bytes}));
    for (size_t i = 0; i < old.size(); ++i) {
      const std::byte* const from = read.get() + (old[i] - old.front()) * record;
      if (!log.IsWhole(from)) return Damaged(path());
      std::copy_n(from, record, records.get() + i * record);
    }
    const auto hash_of = [&](size_t i) { return KeyIndex::Hash(RowLog::KeyOf(records.get() + i * record)); };
    const auto placed = [&](size_t i, uint32_t place) ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
      if (i + kPrefetched < old.size()) table.index->Prefetch(hash_of(i + kPrefetched));
      MEDLEY_RETURN_IF_ERROR(table.index->Move(hash_of(i), old[i], place));
      log.SetDead(old[i]);
      log.SetLive(place);
      return absl::OkStatus();
    };
    MEDLEY_RETURN_IF_ERROR(Append(table, {records.get(), bytes}, placed));
    return true;
  }

  const ScratchFolder folder_;
  const int64_t most_bytes_;
  base::Mutex writing_;        // held by the only writer, also while it waits for the disk
  mutable base::Mutex mutex_;  // guards what logs and indices know; the disk is read and written without it
  std::vector<Table> tables_;  // constant after Open
};

namespace {

class TableCursor final : public ColdRows::Cursor {
 public:
  TableCursor(const RowLog& log, const std::vector<RowLog::Segment>& segments, const std::filesystem::path& folder)
      : log_(log), segments_(segments), folder_(folder) {}

  bool Next(uint64_t& key, std::span<const std::byte>& bytes) override {
    for (; status_.ok() && segment_ < segments_.size(); ++segment_, slot_ = 0) {
      const RowLog::Segment& segment = segments_[segment_];
      while (slot_ < segment.used && !segment.IsLive(slot_)) ++slot_;
      if (slot_ >= segment.used) continue;
      if (!Load(segment)) return false;
      const auto record = std::span<const std::byte>(records_).subspan((slot_ - first_) * log_.record_bytes());
      if (!log_.IsWhole(record.data())) {
        status_ = Damaged(folder_);
        return false;
      }
      ++slot_;
      key = RowLog::KeyOf(record.data());
      bytes = record.subspan(RowLog::kHeadBytes, log_.row_bytes());
      return true;
    }
    return false;
  }
  absl::Status status() const override { return status_; }

 private:
  static constexpr size_t kReadTogether = size_t{64} << 10;

  bool Load(const RowLog::Segment& segment) {
    if (loaded_ == segment_ && slot_ >= first_ && slot_ - first_ < count_) return true;
    loaded_ = segment_;
    first_ = slot_;
    count_ = static_cast<uint32_t>(std::clamp<size_t>(kReadTogether / log_.record_bytes(), 1, segment.used - slot_));
    records_.resize(count_ * log_.record_bytes());
    status_ = log_.Read(log_.PlaceOf(segment_, slot_), records_);
    return status_.ok();
  }

  const RowLog& log_;
  const std::vector<RowLog::Segment>& segments_;
  const std::filesystem::path& folder_;
  absl::Status status_;
  uint32_t segment_ = 0, slot_ = 0;
  uint32_t loaded_ = UINT32_MAX, first_ = 0, count_ = 0;  // what records_ are
  std::vector<std::byte> records_;
};

}  // namespace

class ColdRows::MomentView final : public ColdRows::View {
 public:
  explicit MomentView(const Rep& rep) : rep_(rep), segments_(rep.Segments()) {}
  std::unique_ptr<Cursor> Open(uint32_t table) const override {
    return std::make_unique<TableCursor>(*rep_.table(table).log, segments_[table], rep_.path());
  }

 private:
  const Rep& rep_;
  const std::vector<std::vector<RowLog::Segment>> segments_;
};

absl::StatusOr<std::unique_ptr<ColdRows>> ColdRows::Open(const Options& options) {
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<Rep> rep, Rep::Open(options));
  return std::unique_ptr<ColdRows>(new ColdRows(std::move(rep)));
}

ColdRows::ColdRows(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ColdRows::~ColdRows() = default;
absl::Status ColdRows::Put(std::span<const Row> rows) { return rep_->Put(rows); }
absl::Status ColdRows::Get(uint32_t table, std::span<const uint64_t> keys, Copies& copies) const {
  return rep_->Get(table, keys, copies);
}
std::unique_ptr<ColdRows::View> ColdRows::TakeView() const { return std::make_unique<MomentView>(*rep_); }
int64_t ColdRows::DiskBytes() const { return rep_->DiskBytes(); }
const std::filesystem::path& ColdRows::folder() const { return rep_->path(); }

}  // namespace medley::worker
