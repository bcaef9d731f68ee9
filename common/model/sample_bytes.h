// What the samples of a job take in the memory of a process that keeps them. Pure.
#pragma once

#include <cstdint>

#include "common/model/data_spec.h"

namespace medley::model {

// Numbers of one sample, by the lists that hold them (worker/data/schema.h).
struct SampleNumbers {
  int fields = 0;  // categories, and buckets of numeric columns
  int numerics = 0;
  int labels = 1;
};
SampleNumbers NumbersOf(const SchemaSpec& schema);

// For a sample that is read: 4 for each number.
int64_t SampleBytes(const SchemaSpec& schema);

// Rows of tables that take more than this while they are read are in a file that is mapped, where there is a disk for
// it (worker/data/sample_place.h).
inline constexpr int64_t kMostRowsInMemory = int64_t{64} << 20;

}  // namespace medley::model
