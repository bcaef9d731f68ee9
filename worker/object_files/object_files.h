// The Files of a job whose folder lies in an object store: paths that begin with s3:// or gs:// are objects, all others
// are files of the operating system. So checkpoints, exports, the journal and logs need no other code.
//
// An object appears as a whole or not at all. A temporary file NAME.tmp.XXXXXX is an upload of NAME in parts, which its
// renaming completes: whenever the process is killed, no NAME exists, and the upload is one of Unfinished. A file that
// Create made is in memory, and becomes an object at each Sync. What is read comes in pieces, the first ones small, of
// the object as it was when it was opened. A folder is a prefix of keys: it exists while it has objects, or since this
// process created it. Nothing is appended, truncated or written at a place, and only temporary files are renamed.
//
// A descriptor is one of the system without content, so that it is unique. Thread-safe as Files says. Memory: two parts
// of 8 MiB for each file that is open; for one that is written, more after 8 GiB (ObjectWriter).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/object_store/object_store.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

class ObjectFiles final : public Files {
 public:
  // `quick` is for what others wait for: small objects, listings, removals. `bulk` is for the parts of large ones, with
  // the patience that these need. They may be the same.
  ObjectFiles(std::shared_ptr<object_store::ObjectStore> quick, std::shared_ptr<object_store::ObjectStore> bulk)
      : quick_(std::move(quick)), bulk_(std::move(bulk)) {}
  ~ObjectFiles() override;

  absl::StatusOr<std::vector<std::string>> List(const std::filesystem::path& folder) override;
  absl::StatusOr<FileStamp> Stat(const std::filesystem::path& path) override;  // the time is a hash of the ETag
  absl::StatusOr<int> OpenToRead(const std::filesystem::path& path) override;
  absl::StatusOr<size_t> Read(int fd, void* out, size_t bytes) override;
  absl::StatusOr<int64_t> Length(int fd) override;
  absl::Status Skip(int fd, int64_t bytes) override;
  void Close(int fd) override;
  absl::Status CreateFolder(const std::filesystem::path& folder) override;
  absl::StatusOr<int> CreateTemporary(std::string& pattern) override;
  absl::StatusOr<int> Create(const std::filesystem::path& path) override;
  absl::StatusOr<int> OpenToAppend(const std::filesystem::path& path) override;  // Unimplemented for objects
  absl::Status Write(int fd, std::string_view bytes) override;
  absl::Status WriteAt(int fd, int64_t offset, std::string_view bytes) override;  // Unimplemented for objects
  absl::Status Sync(int fd) override;
  absl::Status MakeReadable(int fd) override;
  absl::Status Rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  absl::Status Remove(const std::filesystem::path& path) override;
  // What makes a folder complete is removed first: manifest.json, model.json.
  absl::Status RemoveFolder(const std::filesystem::path& folder) override;
  absl::Status WriteAtomic(const std::filesystem::path& path, std::string_view bytes) override;
  bool IsObject(const std::filesystem::path& path) const override;
  // Empty after the error that the store lists no uploads to these keys, which is returned once.
  absl::StatusOr<std::vector<std::string>> Unfinished(const std::filesystem::path& folder) override;
  absl::Status RemoveUnfinished(const std::filesystem::path& folder) override;

 private:
  struct OpenFile;
  absl::StatusOr<int> Add(std::shared_ptr<OpenFile> file);
  std::shared_ptr<OpenFile> Find(int fd);  // null: a file of the system
  absl::Status Fill(OpenFile& file);
  absl::StatusOr<std::vector<object_store::ListedUpload>> Uploads(const object_store::Location& folder);

  const std::shared_ptr<object_store::ObjectStore> quick_;
  const std::shared_ptr<object_store::ObjectStore> bulk_;
  base::Mutex mutex_;
  std::map<int, std::shared_ptr<OpenFile>> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<OpenFile>> temporary_ ABSL_GUARDED_BY(mutex_);  // by name, until it is renamed
  std::set<std::string> created_ ABSL_GUARDED_BY(mutex_);                               // folders
  int64_t next_temporary_ ABSL_GUARDED_BY(mutex_) = 0;
  bool lists_uploads_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace medley::worker
