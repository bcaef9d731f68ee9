// The logs of the pods of a local run, as the process node keeps them below the run folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace medley::cli {

struct PodLog {
  std::string pod;
  std::filesystem::path file;
  std::filesystem::file_time_type written;
};

// The oldest first. Empty: there is none, or the folder cannot be read.
std::vector<PodLog> AllLogs(const std::filesystem::path& run_folder);

// "shop-profile-cpu: reading the training data: 345 of 1,500 MB (23 %), 0 rows": the newest such line among the ends of
// the newest logs (worker/data/read_progress.h writes them); "": no pod reads, or the newest has read everything. Reads
// at most 16 times 4 KiB.
std::string ReadingLine(const std::filesystem::path& run_folder);

// The message of the last line of `text` when it says that data are being read; "" otherwise. `text` is the end of a
// log of JSON lines, and may begin within a line. Pure.
std::string ReadingMessage(const std::string& text);

}  // namespace medley::cli
