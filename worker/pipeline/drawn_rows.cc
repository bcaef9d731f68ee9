#include "worker/pipeline/drawn_rows.h"

#include "common/base/rng.h"

namespace medley::worker {

void DrawRows(const DrawnRows& of, int64_t position, std::span<int32_t> to) {
  uint64_t key = base::Mix64(of.seed + static_cast<uint64_t>(of.operation));
  key = base::Mix64(key ^ static_cast<uint64_t>(of.data_epoch));
  key = base::Mix64(key ^ static_cast<uint64_t>(position));
  for (int32_t& row : to) {
    key = base::Mix64(key);
    row = static_cast<int32_t>((key >> 32) * static_cast<uint64_t>(of.rows) >> 32);
  }
}

}  // namespace medley::worker
