#include "worker/data/block_order.h"

#include <algorithm>

#include "common/model/sample_bytes.h"

namespace medley::worker {

int64_t BlockSamples(int64_t sample_bytes) { return std::max<int64_t>(1, kBlockBytes / sample_bytes); }

BlockOrder BlockOrderOf(const model::DataSpec& data, int64_t samples) {
  const int64_t bytes = model::SampleBytes(data.schema);
  if (!data.shuffle_window && samples <= kMostShuffled / bytes) return {};
  const int64_t window = data.shuffle_window.value_or(std::max<int64_t>(1, kWindowBytes / bytes));
  if (window <= 0 || window >= samples) return {};
  const int64_t block = BlockSamples(bytes);
  return {.block = block, .window = (window - 1) / block + 1};
}

}  // namespace medley::worker
