// What the status of a job says of the rows of its embedding tables. Immutable values.
#pragma once

#include <cstdint>
#include <string>

namespace medley::ops {

// Rows of embedding tables, where not all are in memory.
struct EmbeddingStatus {
  int64_t rows_in_memory = 0;
  int64_t rows_on_disk = 0;
  double hit_rate = 0;  // part of the rows that steps used which did not have to be read from the disk
  bool operator==(const EmbeddingStatus&) const = default;
};

// Embedding tables of trainers that compute on GPUs.
struct TablesStatus {
  std::string place;    // Device, Cache or Host
  double hit_rate = 0;  // part of the rows that steps used which were in the GPU's memory
  std::string message;  // why the place is not that of the plan; empty: it is
  bool operator==(const TablesStatus&) const = default;
};

}  // namespace medley::ops
