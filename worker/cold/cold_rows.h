// Rows on the local disk, found by table and key: a log of records for each table, which has no order, and an index of
// the places of keys. Each record and each part of the index has a checksum, which each use checks. What a killed
// process leaves is of no use.
//
// A row that is written again leaves its old record behind. Put copies the live records of the emptiest segments, so
// that at most about half of a log is garbage.
// Thread-safe. Reads and writes wait for the disk. Memory: less than a byte for each row; the system may keep parts of
// the files in memory, and gives that up where memory is short.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace medley::worker {

class ColdRows {
 public:
  struct Options {
    std::filesystem::path folder;   // that it may create a folder of its own in
    std::vector<size_t> row_bytes;  // of a row of each table; > 0
    int64_t most_bytes = 0;         // of the disk; 0: what the disk has
  };
  static constexpr char kPrefix[] = "cold-";  // of the folder's name

  struct Row {
    uint32_t table = 0;
    uint64_t key = 0;
    std::span<const std::byte> bytes;  // as many as Options say
    bool has_copy = false;             // the key surely has a row already: then it need not be compared
  };

  // Errors: Unavailable (the folder), ResourceExhausted (the disk is full).
  static absl::StatusOr<std::unique_ptr<ColdRows>> Open(const Options& options);
  ~ColdRows();  // removes the folder

  // Writes rows in place of earlier ones with their keys. Errors, which leave some rows unwritten: ResourceExhausted
  // where the budget or the disk is full; the next call tries again. DataLoss (an earlier row is damaged), Unavailable.
  absl::Status Put(std::span<const Row> rows);
  // What Get has found.
  struct Copies {
    static constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> at;  // by the number of the key: where its row begins in `bytes`; kNone: it has none
    std::unique_ptr<std::byte[]> bytes;
    size_t row_bytes = 0;

    bool Has(size_t key) const { return key < at.size() && at[key] != kNone; }
    std::span<const std::byte> Of(size_t key) const { return {bytes.get() + at[key], row_bytes}; }
  };
  // Reads the rows of `keys`. Errors, with which `copies` has some rows: DataLoss (a damaged row), Unavailable (the
  // disk).
  absl::Status Get(uint32_t table, std::span<const uint64_t> keys, Copies& copies) const;

  // The rows of a table at one moment, in no order. Not thread-safe.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    // False: there are no more, or status() is an error.
    virtual bool Next(uint64_t& key, std::span<const std::byte>& bytes) = 0;
    virtual absl::Status status() const = 0;
  };
  // The rows of one moment, whatever is written later; a bit of memory for each. The disk keeps what it reads. `this`
  // must outlive it and its cursors.
  class View {
   public:
    virtual ~View() = default;
    virtual std::unique_ptr<Cursor> Open(uint32_t table) const = 0;
  };
  std::unique_ptr<View> TakeView() const;

  int64_t DiskBytes() const;
  const std::filesystem::path& folder() const;

 private:
  class Rep;
  class MomentView;
  explicit ColdRows(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
