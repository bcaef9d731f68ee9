// Where embedding tables are for trainers that compute on a GPU. proto/medley/plan/v1/plan.proto documents the fields.
// Immutable values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace medley::model {

enum class TablePlace { kUnspecified, kDevice, kCache, kHost };

struct Tables {
  TablePlace place = TablePlace::kUnspecified;
  int64_t cache_bytes = 0;
  double hits = 0;
  // The GPU updates the rows, for which a stage must be of one unit and the plan without shards.
  bool OnDevice() const { return place == TablePlace::kDevice || place == TablePlace::kCache; }
  bool operator==(const Tables&) const = default;
};

// A cache of the most used rows: its share of a table's rows, and the part of a step's rows that it has.
struct CachedRows {
  double share = 0;
  double hits = 0;
  bool operator==(const CachedRows&) const = default;
};

// What a layer with tables takes where a unit's GPU has them (medley.profile.v1.TablesOnDevice).
struct TablesOnDevice {
  double seconds = 0;
  double missed_seconds = 0;
  std::vector<CachedRows> cached;  // with growing shares
  bool operator==(const TablesOnDevice&) const = default;
};

// The part of a step's rows that a cache of `share` of the table's rows has: between measured shares in proportion,
// from 0 for none to 1 for all.
double HitsOf(const std::vector<CachedRows>& cached, double share);

// "Device", "Cache" or "Host"; empty for kUnspecified.
std::string_view NameOf(TablePlace place);

}  // namespace medley::model
