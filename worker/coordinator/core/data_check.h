// All members must read the same data, from the job's start to its end (docs/adr/0020-true-files.md).
#pragma once

#include <cstdint>
#include <string>

namespace medley::worker {

struct DataState {
  int64_t bad_rows = 0;
  std::string train_digest;  // of the data that the job trains on; empty: not known yet
  std::string test_digest;
  std::string validation_digest;
};

}  // namespace medley::worker
