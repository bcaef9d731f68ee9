// Where the rows of tables are while a job trains: in the memory of the process, or in a file that is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/model/sample_bytes.h"

namespace medley::worker {

struct SamplePlace {
  std::filesystem::path folder;                       // for files of samples; empty: all rows are in memory
  bool shared = true;                                 // with other processes; false: files have no names
  int64_t most_in_memory = model::kMostRowsInMemory;  // rows that take less while they are read are in memory
};

// For a process that may use so many bytes of memory.
SamplePlace PlaceIn(const std::filesystem::path& folder, bool shared, int64_t memory_limit);

// Why the folder cannot hold `bytes` more, as the end of a sentence: "/tmp is in memory (tmpfs)". Empty: it can.
// Creates the folder.
std::string WhyNoPlace(const std::filesystem::path& folder, int64_t bytes);

// Removes files of samples but the `most` that were used last. Processes that have mapped a removed one keep it.
void RemoveOldSamples(const std::filesystem::path& folder, size_t most);
// Says that the file is used now.
void TouchSamples(const std::filesystem::path& path);

// "samples-0123...": what the names of such files begin with.
inline constexpr char kSamplesPrefix[] = "samples-";
inline constexpr char kSampleLockPrefix[] = "making-";  // sample_lock.h

}  // namespace medley::worker
