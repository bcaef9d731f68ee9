// The rows of some tables, divided among shards, and for each shard among messages. Internal to worker/ps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/pipeline/sparse_parameters.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/message_pieces.h"

namespace medley::worker {

class RowDivision {
 public:
  // By ShardOf. A message has at most `message_bytes` of keys and rows in `format`, but at least one row.
  RowDivision(std::span<const TableKeys> tables, size_t shards, size_t message_bytes, WireFormat format);

  // Piece r of each shard is sent in round r. So few messages exist at a time.
  size_t rounds() const { return rounds_; }
  const std::vector<MessagePiece>& pieces(size_t shard) const { return pieces_[shard]; }
  std::span<const uint32_t> All(size_t table, size_t shard) const { return places_[table][shard]; }
  // The places in the table's keys.
  std::span<const uint32_t> Places(size_t shard, const RowRange& range) const {
    return std::span(places_[range.table][shard]).subspan(range.first, range.count);
  }

 private:
  std::vector<std::vector<std::vector<uint32_t>>> places_;  // [table][shard]
  std::vector<std::vector<MessagePiece>> pieces_;           // [shard]
  size_t rounds_ = 0;
};

}  // namespace medley::worker
