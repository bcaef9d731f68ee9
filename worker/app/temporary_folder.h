// A folder for temporary files of this process alone: with the usual one, it could write those of others.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <utility>

namespace medley::worker {

// Removed with all that is in it when this object ends. Not thread-safe.
class TemporaryFolder {
 public:
  // TMPDIR of this process names it from then on. Errors: those of base::MakeTempDir.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path path_;
};

}  // namespace medley::worker
