// How data are read. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "worker/data/read_progress.h"
#include "worker/data/sample_place.h"

namespace medley::worker {

struct LoadOptions {
  int64_t embedding_rows = 65536;               // categorical values are hashed into [0, embedding_rows)
  int threads = 1;                              // number of parser threads
  std::string root;                             // prefix for the paths of file:// URIs
  std::stop_token stop;                         // ends the load with Cancelled
  std::function<void()> on_piece;               // called by the parser threads after each MiB of the file
  ReadProgress* progress = nullptr;             // which the load tells how far it is; may be null
  SamplePlace place;                            // of the rows of large tables
  std::function<void(const std::string&)> say;  // a sentence about where the rows are; may be empty
  base::Clock* clock = nullptr;                 // for waiting until another process has read them; null: the system's
};

}  // namespace medley::worker
