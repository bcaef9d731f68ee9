// A file of samples, which processes of one machine map into their memory: the pages are read when they are first used,
// shared, and dropped by the kernel when it needs the memory. The file says what it has been made from and has
// checksums of everything in it.
//
//   header | what else is known of the data | for each set: ids, numerics, labels, weights
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

#include "common/base/hasher.h"
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

// Where the lists of a file are, in bytes from its beginning.
struct SampleLayout {
  std::array<std::array<int64_t, 4>, 2> begin = {};  // by RowSet; ids, numerics, labels, weights
  std::array<std::array<int64_t, 4>, 2> bytes = {};
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
  BatchView view(RowSet set) const;

 private:
  friend class SampleFileWriter;
  SampleFile() = default;
  absl::Status Map(const BlockFile& file);

  SampleFacts facts_;
  SampleCounts counts_;
  SampleLayout layout_;
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
  std::array<std::array<int64_t, 4>, 2> written_ = {};
  std::array<std::array<base::Hasher, 4>, 2> hashes_;
};

// Removes files that processes which were killed have left in the folder, also those of SampleLock.
void RemoveUnfinished(const std::filesystem::path& folder);

}  // namespace medley::worker
