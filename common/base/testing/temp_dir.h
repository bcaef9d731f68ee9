// Removes the folders that tests made with MakeTempDir.
#pragma once

#include <filesystem>
#include <system_error>

namespace medley::base {

// Removes `folder` with all that is in it. Ignores errors: a thread or process that the test abandoned may still write
// to it, which must not fail the test.
inline void RemoveTempDir(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace medley::base
