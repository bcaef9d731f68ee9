#include "worker/cold/cold_rows.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "worker/cold/scratch_folder.h"

namespace medley::worker {
namespace {

constexpr size_t kKeyBytes = sizeof(uint32_t) + sizeof(uint64_t);
constexpr size_t kTogether = 64;  // keys of one look-up
using KeyText = std::array<char, kKeyBytes>;

// In the order of table and key.
KeyText TextOf(uint32_t table, uint64_t key) {
  KeyText text;
  const uint32_t first = __builtin_bswap32(table);
  const uint64_t second = __builtin_bswap64(key);
  std::memcpy(text.data(), &first, sizeof first);
  std::memcpy(text.data() + sizeof first, &second, sizeof second);
  return text;
}
static_assert(std::endian::native == std::endian::little);

uint64_t KeyOf(const rocksdb::Slice& text) {
  uint64_t key = 0;
  std::memcpy(&key, text.data() + sizeof(uint32_t), sizeof key);
  return __builtin_bswap64(key);
}

rocksdb::Slice SliceOf(const KeyText& text) { return {text.data(), text.size()}; }
std::span<const std::byte> BytesOf(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
}

absl::Status StatusOf(const rocksdb::Status& status, const char* what, const std::filesystem::path& folder) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) {
    return base::DataLoss("{} in {}: the disk has damaged them: {}", what, folder.string(), status.ToString());
  }
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit) {
    return base::ResourceExhausted("{} in {}: the disk is full: {}", what, folder.string(), status.ToString());
  }
  return base::Unavailable("{} in {}: {}", what, folder.string(), status.ToString());
}

}  // namespace

class ColdRows::Rep {
 public:
  static absl::StatusOr<std::unique_ptr<Rep>> Open(const Options& options) {
    MEDLEY_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(options.folder, kPrefix));
    std::unique_ptr<Rep> rep(new Rep(std::move(folder), options));
    const rocksdb::Options settings = rep->Settings(std::max(options.memory_bytes, kLeastMemory));
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(settings, (rep->path() / "rows").string(), &db);
    MEDLEY_RETURN_IF_ERROR(StatusOf(opened, "opening a store for cold rows", rep->path()));
    rep->db_.reset(db);
    return rep;
  }

  ~Rep() {
    if (db_ != nullptr) rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);
  }

  absl::Status Put(std::span<const Row> rows) {
    rocksdb::WriteBatch batch;
    for (const Row& row : rows) {
      batch.Put(SliceOf(TextOf(row.table, row.key)),
                rocksdb::Slice(reinterpret_cast<const char*>(row.bytes.data()), row.bytes.size()));
    }
    if (most_bytes_ > 0 && DiskBytes() + static_cast<int64_t>(batch.GetDataSize()) > most_bytes_) {
      return base::ResourceExhausted("writing cold rows in {}: they may take {} bytes, and take {}", path().string(),
                                     most_bytes_, DiskBytes());
    }
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    rocksdb::Status status = db_->Write(options, &batch);
    if (!status.ok() && db_->Resume().ok()) status = db_->Write(options, &batch);  // there may be space by now
    return StatusOf(status, "writing cold rows", path());
  }

  absl::Status Get(uint32_t table, std::span<const uint64_t> keys,
                   absl::FunctionRef<void(size_t, std::span<const std::byte>)> found) const {
    std::array<KeyText, kTogether> texts;
    std::array<rocksdb::Slice, kTogether> slices;
    std::array<rocksdb::PinnableSlice, kTogether> values;
    std::array<rocksdb::Status, kTogether> statuses;
    for (size_t first = 0; first < keys.size(); first += kTogether) {
      const size_t count = std::min(kTogether, keys.size() - first);
      bool ascends = true;
      for (size_t i = 0; i < count; ++i) {
        texts[i] = TextOf(table, keys[first + i]);
        slices[i] = SliceOf(texts[i]);
        values[i].Reset();
        ascends = ascends && (i == 0 || keys[first + i - 1] < keys[first + i]);
      }
      db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), count, slices.data(), values.data(),
                    statuses.data(), ascends);
      for (size_t i = 0; i < count; ++i) {
        if (statuses[i].IsNotFound()) continue;
        MEDLEY_RETURN_IF_ERROR(StatusOf(statuses[i], "reading cold rows", path()));
        found(first + i, BytesOf(values[i]));
      }
    }
    return absl::OkStatus();
  }

  int64_t DiskBytes() const {
    uint64_t in_memory = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &in_memory);
    return static_cast<int64_t>(files_->GetTotalSize() + in_memory);
  }

  rocksdb::DB& db() const { return *db_; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  Rep(ScratchFolder folder, const Options& options) : folder_(std::move(folder)), most_bytes_(options.most_bytes) {}

  rocksdb::Options Settings(int64_t memory) {
    const auto bytes = static_cast<size_t>(memory);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.write_buffer_size = bytes / 6;  // three of them, and half of the memory for filters, indices and blocks
    options.max_write_buffer_number = 3;
    options.compression = rocksdb::kNoCompression;  // floats: it would save little, and cost each miss
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
    options.max_background_jobs = 2;
    options.max_open_files = 256;
    options.info_log_level = rocksdb::WARN_LEVEL;
    options.keep_log_file_num = 1;
    options.avoid_flush_during_shutdown = true;
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    files_.reset(rocksdb::NewSstFileManager(rocksdb::Env::Default()));
    options.sst_file_manager = files_;
    rocksdb::BlockBasedTableOptions table;
    table.block_size = 2048;  // a miss wants one row
    table.checksum = rocksdb::kXXH3;
    table.format_version = 5;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    table.cache_index_and_filter_blocks = true;
    table.cache_index_and_filter_blocks_with_high_priority = true;
    table.block_cache = rocksdb::NewLRUCache(bytes / 2, /*num_shard_bits=*/2, /*strict_capacity_limit=*/false, 0.8);
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    return options;
  }

  ScratchFolder folder_;
  const int64_t most_bytes_;
  std::shared_ptr<rocksdb::SstFileManager> files_;
  std::unique_ptr<rocksdb::DB> db_;  // after what it uses, before the folder is removed
};

namespace {

class TableCursor final : public ColdRows::Cursor {
 public:
  TableCursor(rocksdb::DB& db, const rocksdb::Snapshot* snapshot, uint32_t table, const std::filesystem::path& folder)
      : folder_(folder), end_(TextOf(table + 1, 0)), end_slice_(SliceOf(end_)) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.iterate_upper_bound = &end_slice_;
    options.fill_cache = false;
    options.readahead_size = size_t{256} << 10;
    rows_.reset(db.NewIterator(options));
    rows_->Seek(SliceOf(TextOf(table, 0)));
  }

  bool Next(uint64_t& key, std::span<const std::byte>& bytes) override {
    if (began_ && rows_->Valid()) rows_->Next();
    began_ = true;
    if (!rows_->Valid()) return false;
    key = KeyOf(rows_->key());
    bytes = BytesOf(rows_->value());
    return true;
  }
  absl::Status status() const override { return StatusOf(rows_->status(), "reading cold rows", folder_); }

 private:
  const std::filesystem::path& folder_;
  const KeyText end_;
  const rocksdb::Slice end_slice_;
  std::unique_ptr<rocksdb::Iterator> rows_;
  bool began_ = false;
};

class MomentView final : public ColdRows::View {
 public:
  MomentView(rocksdb::DB& db, const std::filesystem::path& folder)
      : db_(db), folder_(folder), snapshot_(db.GetSnapshot()) {}
  ~MomentView() override { db_.ReleaseSnapshot(snapshot_); }
  std::unique_ptr<ColdRows::Cursor> Open(uint32_t table) const override {
    return std::make_unique<TableCursor>(db_, snapshot_, table, folder_);
  }

 private:
  rocksdb::DB& db_;
  const std::filesystem::path& folder_;
  const rocksdb::Snapshot* const snapshot_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ColdRows>> ColdRows::Open(const Options& options) {
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<Rep> rep, Rep::Open(options));
  return std::unique_ptr<ColdRows>(new ColdRows(std::move(rep)));
}

ColdRows::ColdRows(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ColdRows::~ColdRows() = default;
absl::Status ColdRows::Put(std::span<const Row> rows) { return rep_->Put(rows); }
absl::Status ColdRows::Get(uint32_t table, std::span<const uint64_t> keys,
                           absl::FunctionRef<void(size_t, std::span<const std::byte>)> found) const {
  return rep_->Get(table, keys, found);
}
std::unique_ptr<ColdRows::View> ColdRows::TakeView() const {
  return std::make_unique<MomentView>(rep_->db(), rep_->path());
}
int64_t ColdRows::DiskBytes() const { return rep_->DiskBytes(); }
absl::Status ColdRows::Flush() {
  return StatusOf(rep_->db().Flush(rocksdb::FlushOptions()), "writing cold rows", rep_->path());
}
const std::filesystem::path& ColdRows::folder() const { return rep_->path(); }

}  // namespace medley::worker
