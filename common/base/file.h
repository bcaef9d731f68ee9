// Files: whole reads, and writes that are atomic against a crash at any instruction. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace medley::base {

// The whole file. Errors: NotFound, PermissionDenied; ResourceExhausted when larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 32);

// Writes to a temporary neighbour, fsyncs it, renames it over `path`, fsyncs the folder.
absl::Status WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes);

// A new private folder under the system's temporary folder (or $TMPDIR); the caller removes it.
absl::StatusOr<std::filesystem::path> MakeTempDir(std::string_view prefix);

}  // namespace medley::base
