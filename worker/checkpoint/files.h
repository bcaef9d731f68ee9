// The calls by which a job's folder on its volume is read and written: the system's, or those of an object store
// (worker/object_files). Tests let them fail or block.
//
// Thread-safe; a descriptor belongs to one thread. Every call may block for as long as the volume does not answer:
// VolumeThread bounds the wait. Errors are those of errno, with the path.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::worker {

// Changes when a file is written again, except with the same length at the same time.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_nanos = 0;  // since the epoch, by the volume's clock
  bool operator==(const FileStamp&) const = default;
};

class Files {
 public:
  virtual ~Files() = default;

  // Returns the names in a folder, in no particular order. Errors: NotFound.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::filesystem::path& folder);
  // Errors: NotFound; DataLoss (a part of the path is no folder, or a circle of links).
  virtual absl::StatusOr<FileStamp> Stat(const std::filesystem::path& path);
  // Never blocks on a pipe. Errors: those of Stat; also DataLoss (not a regular file).
  virtual absl::StatusOr<int> OpenToRead(const std::filesystem::path& path);
  // Reads up to `bytes`; returns 0 only at the end of the file.
  virtual absl::StatusOr<size_t> Read(int fd, void* out, size_t bytes);
  virtual absl::StatusOr<int64_t> Length(int fd);
  virtual absl::Status Skip(int fd, int64_t bytes);  // also beyond the end
  virtual void Close(int fd);                        // of every call that returns a descriptor

  // Creates the folder and its parents, and fsyncs the folder's parent.
  virtual absl::Status CreateFolder(const std::filesystem::path& folder);
  // Creates a file whose name is `pattern` with its last six characters, XXXXXX, replaced.
  virtual absl::StatusOr<int> CreateTemporary(std::string& pattern);
  // Creates a file, or empties it.
  virtual absl::StatusOr<int> Create(const std::filesystem::path& path);
  virtual absl::StatusOr<int> OpenToAppend(const std::filesystem::path& path);
  virtual absl::Status Write(int fd, std::string_view bytes);
  virtual absl::Status WriteAt(int fd, int64_t offset, std::string_view bytes);
  virtual absl::Status Sync(int fd);          // the content and the length
  virtual absl::Status MakeReadable(int fd);  // for everybody
  // Renames a file and fsyncs the folder of `to`.
  virtual absl::Status Rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual absl::Status Remove(const std::filesystem::path& path);  // OK when it does not exist
  virtual absl::Status RemoveFolder(const std::filesystem::path& folder);
  // Writes a temporary file, fsyncs it and renames it, so that a crash leaves the old or the new content.
  virtual absl::Status WriteAtomic(const std::filesystem::path& path, std::string_view bytes);

  // Whether `path` is an object: it is written as a whole, so nothing is appended to it; who took its bytes checked
  // them; a new one is listed at once; and a request for it costs money.
  virtual bool IsObject(const std::filesystem::path& path) const;
  // For objects: the names in a folder that only uploads have which were never completed, because their process ended.
  virtual absl::StatusOr<std::vector<std::string>> Unfinished(const std::filesystem::path& folder);
  // Ends such uploads below a folder, also those that still run: they fail then. Removes no object.
  virtual absl::Status RemoveUnfinished(const std::filesystem::path& folder);

  // Uses the calls above. Errors: NotFound; ResourceExhausted if the file is larger than `max_bytes`.
  absl::StatusOr<std::string> ReadWhole(const std::filesystem::path& path, int64_t max_bytes);
};

// The operating system's files.
Files& SystemFiles();

// Copies a file through memory, and gives the copy its name when it is whole and on disk. Errors: those of both files.
absl::Status CopyFile(Files& files, const std::filesystem::path& from, const std::filesystem::path& to);

// A job's folder on its volume or in an object store, and the files by which it is accessed. A value.
class Volume {
 public:
  Volume() : Volume(std::filesystem::path()) {}
  // `files` must outlive it.
  Volume(std::filesystem::path root, Files& files = SystemFiles())
      : root_(std::move(root)), files_(std::shared_ptr<void>(), &files) {}
  // Owns `files` together with its copies, some of which threads have that a store holds up.
  Volume(std::filesystem::path root, std::shared_ptr<Files> files) : root_(std::move(root)), files_(std::move(files)) {}

  const std::filesystem::path& root() const { return root_; }
  Files& files() const { return *files_; }
  bool empty() const { return root_.empty(); }  // the job has no volume
  bool of_objects() const { return files_->IsObject(root_); }
  std::filesystem::path operator/(std::string_view name) const { return root_ / name; }

 private:
  std::filesystem::path root_;
  std::shared_ptr<Files> files_;
};

}  // namespace medley::worker
