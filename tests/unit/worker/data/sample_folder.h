// What tests of files of decoded samples share.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace medley::worker {

// Files that are changed at nearly the time at which they are read are not shared: waits until that time is over.
// Writes into the folder, because file systems have clocks of their own.
inline void WaitForTheClock(const std::filesystem::path& folder) {
  struct stat written = {}, now = {};
  const std::filesystem::path probe = folder / "probe";
  std::ofstream(probe) << "1";
  ASSERT_EQ(stat(probe.c_str(), &written), 0);
  do {
    std::filesystem::remove(probe);
    std::ofstream(probe) << "2";
    ASSERT_EQ(stat(probe.c_str(), &now), 0);
  } while ((now.st_ctim.tv_sec - written.st_ctim.tv_sec) * 1'000'000'000 + now.st_ctim.tv_nsec -
               written.st_ctim.tv_nsec <
           80'000'000);
}

// None if there is no such folder.
inline std::vector<std::filesystem::path> FilesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) files.push_back(entry.path());
  return files;
}

}  // namespace medley::worker
