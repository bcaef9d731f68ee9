// How many rows of an embedding table the training data use, which is what parameter servers need memory for.
#pragma once

#include <cstdint>

#include "worker/data/batch.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

// Exact for tables of up to 2^24 rows; for larger ones within a few per cent, by linear counting (Whang et al. 1990) in
// 2 MiB, up to 100 million used rows. At least 1 where there is an id. Pure, thread-safe.
int64_t CountUsedRows(const BatchView& data, const SampleShape& shape, const ParameterSpec& table);
inline int64_t CountUsedRows(const Batch& data, const ParameterSpec& table) {
  return CountUsedRows(data.View(0, data.samples), data.shape, table);
}

}  // namespace medley::worker
