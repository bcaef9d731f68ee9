// How much memory the data of a job take, estimated from the lengths of the files and some of their rows, before they
// are read. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "common/model/job_spec.h"
#include "worker/data/sample_place.h"

namespace medley::worker {

// In bytes. The estimate is low rather than high, so that data that fit are never refused: what Dataset::Load really
// takes is 1 to kMostAboveEstimate times as much (tests/unit/worker/data/memory_estimate_test.cc).
struct DataMemory {
  int64_t rows = 0;
  int64_t text = 0;  // the longest file, decompressed; 0 for arrays, which are read in pieces
  int64_t kept = 0;  // while the job trains
  int64_t peak = 0;  // while the files are read
  // For samples that are in a file instead:
  int64_t disk = 0;            // while the files are read
  int64_t peak_with_file = 0;  // of memory that is no page of a file
};

inline constexpr double kMostAboveEstimate = 2.5;

// Errors: those of FileOf, FindFiles and of opening the files.
absl::StatusOr<DataMemory> EstimateMemory(const model::SourceSpec& source, const model::DataSpec& spec,
                                          const std::string& root);

// What a process may use of memory, and uses already.
struct MemoryRoom {
  int64_t limit = 0;
  int64_t used = 0;
};
MemoryRoom CurrentMemoryRoom();

// Refuses training and test data that cannot fit together. OK where the estimate is impossible: reading the data says
// what is wrong with them. Errors: OutOfRange with what the data need, what the process has and what to do.
absl::Status CheckDataFit(const model::DataSpec& spec, const std::string& root, const MemoryRoom& room,
                          const SamplePlace& place = {});

// Refuses one source of rows that cannot be in memory. Errors: as CheckDataFit.
absl::Status CheckFitInMemory(const DataMemory& memory, const std::string& path, const MemoryRoom& room);

}  // namespace medley::worker
