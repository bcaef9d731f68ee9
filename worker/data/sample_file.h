// A file of samples, which processes of one machine map into their memory: the pages are read when first used,
// shared, and dropped by the kernel when it needs the memory. Or they read it by blocks (sample_windows.h). It says
// what it has been made from and has checksums of everything in it.
//
//   header | what else is known of the data | checksums of blocks | for each set: ids, numerics, labels, weights
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "worker/data/batch.h"
#include "worker/data/block_file.h"
#include "worker/data/table_rows.h"
#include "worker/data/transform.h"

namespace medley::worker {

// What a data set has beside its samples.
struct SampleFacts {
  Transform transform;
  int64_t bad_rows = 0;
  std::string digest;
};
std::string ToBytes(const SampleFacts& facts);
// Errors: DataLoss.
absl::StatusOr<SampleFacts> FactsFromBytes(std::string_view bytes);

// How many samples a file has, and what each consists of.
struct SampleCounts {
  SampleShape shape;
  bool weights = false;
  std::array<int64_t, 2> samples = {};  // by RowSet
};

// Where the lists of a file are, in bytes from its beginning. By RowSet; ids, numerics, labels, weights.
struct SampleLayout {
  std::array<std::array<int64_t, 4>, 2> begin = {};
  std::array<std::array<int64_t, 4>, 2> bytes = {};
  std::array<int64_t, 4> block_bytes = {};                    // of a whole block of the list
  std::array<std::array<int64_t, 4>, 2> first_checksum = {};  // of its blocks, among all checksums
  int64_t checksums = 0;
  int64_t checksums_at = 0;
  int64_t end = 0;
};
SampleLayout LayoutOf(const SampleCounts& counts, int64_t facts_bytes);

// A mapped file. Immutable and thread-safe; the mapping lasts as long as the object, also when the file is removed.
class SampleFile {
 public:
  // Opens a file that was made for `key` and verifies all of it. `on_piece` is called after each MiB. Errors: NotFound;
  // DataLoss when the file is damaged, truncated, or made for another key; Cancelled; those of reading.
  static absl::StatusOr<std::shared_ptr<const SampleFile>> Open(const std::filesystem::path& path,
                                                                const std::string& key, const std::stop_token& stop,
                                                                const std::function<void()>& on_piece);
  SampleFile(const SampleFile&) = delete;
  SampleFile& operator=(const SampleFile&) = delete;
  ~SampleFile();

  const SampleFacts& facts() const { return facts_; }
  const SampleShape& shape() const { return counts_.shape; }
  bool weights() const { return counts_.weights; }
  BatchView view(RowSet set) const;
  // Samples of a block, whose last one may have fewer: BlockSamples of what a sample takes.
  int64_t block_samples() const { return block_samples_; }
  // Replaces `values`, which has the size of the block's part of the list, by it. Does not map it. Errors: DataLoss
  // when the file has been damaged or truncated since it was opened; those of reading.
  absl::Status ReadBlock(RowSet set, size_t list, int64_t block, std::span<char> values) const;

 private:
  friend class SampleFileWriter;
  explicit SampleFile(BlockFile file) : file_(std::move(file)) {}
  absl::Status Map();
  absl::Status Verify(const std::stop_token& stop, const std::function<void()>& on_piece) const;

  const BlockFile file_;
  SampleFacts facts_;
  SampleCounts counts_;
  SampleLayout layout_;
  int64_t block_samples_ = 0;
  std::vector<uint64_t> checksums_;
  const char* mapped_ = nullptr;
};

// Writes a file. Not thread-safe. Without Finish the file is removed.
class SampleFileWriter {
 public:
  // `folder` exists. Without `named` the file ends with the process and its mappings. Errors: those of BlockFile.
  static absl::StatusOr<std::unique_ptr<SampleFileWriter>> Create(const std::filesystem::path& folder, bool named,
                                                                  const SampleCounts& counts, SampleFacts facts);
  ~SampleFileWriter();
  // The next samples of the set. Errors: those of BlockFile::WriteAt.
  absl::Status Append(RowSet set, const Batch& samples);
  const SampleCounts& counts() const { return counts_; }
  // Bytes of what was appended to a list of the set, from byte `at` of the list on. Errors: those of BlockFile::ReadAt.
  absl::Status Read(RowSet set, size_t list, int64_t at, std::span<char> bytes) const;
  // Replaces the digest of the facts, which has the same length.
  void SetDigest(std::string digest);
  // All samples are appended. Maps the file, and names it `path` instead of another one where that is possible; without
  // a path it has no name any more. Errors: those of BlockFile::WriteAt and of mapping.
  absl::StatusOr<std::shared_ptr<const SampleFile>> Finish(const std::string& key, const std::filesystem::path& path);

 private:
  SampleFileWriter(BlockFile file, bool named, const SampleCounts& counts, SampleFacts facts);

  BlockFile file_;
  bool named_;
  const SampleCounts counts_;
  SampleFacts facts_;
  std::string facts_bytes_;
  const SampleLayout layout_;
  void AddToChecksums(size_t set, size_t list, std::string_view bytes);

  std::array<std::array<int64_t, 4>, 2> written_ = {};
  std::array<std::array<std::string, 4>, 2> begun_;  // the block of each list that is not complete
  std::vector<uint64_t> checksums_;
};

// Removes files that processes which were killed have left in the folder, also those of SampleLock.
void RemoveUnfinished(const std::filesystem::path& folder);

}  // namespace medley::worker
