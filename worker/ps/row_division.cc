#include "worker/ps/row_division.h"

#include <algorithm>

#include "worker/ps/sharding.h"

namespace medley::worker {
namespace {

// Divides the keys of one table among the shards: result[s] has the indices of shard s's keys, ascending.
std::vector<std::vector<uint32_t>> Cut(const TableKeys& table, size_t shards) {
  std::vector<std::vector<uint32_t>> by_shard(shards);
  for (auto& places : by_shard) places.reserve(table.keys.size() / shards + table.keys.size() / 8);
  for (size_t k = 0; k < table.keys.size(); ++k) {
    const int shard = shards == 1 ? 0 : ShardOf(table.operation, table.keys[k], static_cast<int>(shards));
    by_shard[static_cast<size_t>(shard)].push_back(static_cast<uint32_t>(k));
  }
  return by_shard;
}

}  // namespace

RowDivision::RowDivision(std::span<const TableKeys> tables, size_t shards, size_t message_bytes, WireFormat format) {
  for (const TableKeys& table : tables) places_.push_back(Cut(table, shards));
  for (size_t s = 0; s < shards; ++s) {
    std::vector<TableLoad> loads;
    for (size_t t = 0; t < tables.size(); ++t) {
      const size_t row = static_cast<size_t>(tables[t].columns) * WireBytes(format);
      loads.push_back({places_[t][s].size(), sizeof(uint64_t) + row});
    }
    pieces_.push_back(CutPieces(loads, message_bytes));
    rounds_ = std::max(rounds_, pieces_.back().size());
  }
}

}  // namespace medley::worker
