// Reads whole files; writes files atomically, so that a crash leaves the old or the new content. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace medley::base {

// Reads the whole file. Errors: NotFound, PermissionDenied; ResourceExhausted if it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 32);

// Opens a file to read it, and never blocks. The caller closes the descriptor. Errors: NotFound, PermissionDenied;
// InvalidArgument "opening x.csv: it is a named pipe (FIFO), not a regular file" for a pipe, a device, a socket or a
// folder, whose reader could wait without end.
absl::StatusOr<int> OpenRegularFile(const std::filesystem::path& path);
// The errors of OpenRegularFile.
absl::Status CheckRegularFile(const std::filesystem::path& path);

// Writes a temporary file in the same folder, fsyncs it, renames it to `path` and fsyncs the folder.
absl::Status WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes);

// Copies the first `bytes` bytes of a file in blocks, as WriteFileAtomic writes; `to` may be the same path. Also fails
// with NotFound, and with DataLoss if the file is shorter.
absl::Status CopyFileAtomic(const std::filesystem::path& from, int64_t bytes, const std::filesystem::path& to);

// Creates a private folder under $TMPDIR or the system's temporary folder. The caller removes it.
absl::StatusOr<std::filesystem::path> MakeTempDir(std::string_view prefix);

}  // namespace medley::base
