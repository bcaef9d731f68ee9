// Rows on the local disk, found by table and key: RocksDB without a log of its own, because what a killed process
// leaves is of no use. Blocks have checksums, which each read from the disk checks.
//
// Thread-safe. Reads wait for the disk; a write is copied, and written in the background. Memory is within
// Options::memory_bytes: buffers of writes, filters, indices and the cache of blocks.
#pragma once

#include <absl/functional/function_ref.h>
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
    std::filesystem::path folder;             // that it may create a folder of its own in
    int64_t memory_bytes = int64_t{8} << 20;  // at least kLeastMemory
    int64_t most_bytes = 0;                   // of the disk; 0: what the disk has
  };
  static constexpr int64_t kLeastMemory = int64_t{2} << 20;
  static constexpr char kPrefix[] = "cold-";  // of the folder's name

  struct Row {
    uint32_t table = 0;
    uint64_t key = 0;
    std::span<const std::byte> bytes;
  };

  // Errors: Unavailable (the folder), those of RocksDB.
  static absl::StatusOr<std::unique_ptr<ColdRows>> Open(const Options& options);
  ~ColdRows();  // removes the folder

  // Writes rows in place of earlier ones with their keys: all of them, or none. Errors: ResourceExhausted where the
  // budget or the disk is full; the next call tries again.
  absl::Status Put(std::span<const Row> rows);
  // Calls found(i, bytes) for each of `keys` that has a row; ascending keys are faster. Errors: DataLoss (a damaged
  // row), Unavailable (the disk).
  absl::Status Get(uint32_t table, std::span<const uint64_t> keys,
                   absl::FunctionRef<void(size_t i, std::span<const std::byte> bytes)> found) const;

  // The rows of a table at one moment, in the order of their keys. Not thread-safe.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    // False: there are no more, or status() is an error.
    virtual bool Next(uint64_t& key, std::span<const std::byte>& bytes) = 0;
    virtual absl::Status status() const = 0;
  };
  // The rows of one moment, whatever is written later. `this` must outlive it and its cursors.
  class View {
   public:
    virtual ~View() = default;
    virtual std::unique_ptr<Cursor> Open(uint32_t table) const = 0;
  };
  std::unique_ptr<View> TakeView() const;

  int64_t DiskBytes() const;
  // Writes what is in memory to the disk, for tests.
  absl::Status Flush();
  const std::filesystem::path& folder() const;

 private:
  class Rep;
  explicit ColdRows(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
