// A copy of a trainer's state at one step, which is written to a checkpoint while training goes on. Immutable.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/checkpoint/writer.h"

namespace medley::worker {

struct TrainerSnapshot {
  struct Dense {
    int operation = 0;
    std::string name;
    std::vector<float> weights;
    std::vector<float> state;
  };
  // A table that this trainer keeps itself, with all its rows.
  struct Table {
    int operation = 0;
    size_t columns = 0;
    std::vector<float> weights;  // row-major
    std::vector<float> state;    // row-major: no, one or two floats for each weight
  };
  std::vector<Dense> dense;
  std::vector<Table> tables;

  // Adds the whole state to a checkpoint file.
  absl::Status Write(CheckpointWriter& writer) const;
};

}  // namespace medley::worker
