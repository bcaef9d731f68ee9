// All cold rows of a table at one moment, also those that waited to be written. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "worker/ps/row_tiers.h"

namespace medley::worker {

class ColdScan {
 public:
  // `moment` must outlive this.
  ColdScan(const RowTiers::Moment& moment, size_t table)
      : moment_(moment),
        table_(static_cast<uint32_t>(table)),
        cursor_(moment.view->Open(table_)),
        waiting_(moment.waiting.begin()) {}

  // False: there are no more, or status() is an error.
  bool Next(uint64_t& key, RowTiers::Bytes& bytes) {
    while (cursor_->Next(key, bytes)) {
      if (!moment_.waiting.contains(RowTiers::TableKey(table_, key))) return true;
    }
    if (!cursor_->status().ok()) return false;
    while (waiting_ != moment_.waiting.end()) {
      const auto& [of, text] = *waiting_++;
      if (of.first != table_) continue;
      key = of.second;
      bytes = text;
      return true;
    }
    return false;
  }
  absl::Status status() const { return cursor_->status(); }

 private:
  const RowTiers::Moment& moment_;
  const uint32_t table_;
  const std::unique_ptr<ColdRows::Cursor> cursor_;
  decltype(RowTiers::Moment::waiting)::const_iterator waiting_;
};

}  // namespace medley::worker
