#include "common/program/table_place.h"

namespace medley::program {
namespace {

constexpr double kSpare = 1.25;       // room for a byte of whole tables: a step needs some beside them
constexpr double kCacheShare = 0.5;   // of the room: rows of open steps, their gradients and activations need the rest
constexpr double kLeastShare = 0.01;  // of the tables: a smaller cache has few of the rows that a step uses

}  // namespace

PlacedTables PlaceTables(double table_bytes, double room) {
  if (table_bytes * kSpare <= room) return {TablePlace::kDevice, 0};
  const double cache = room * kCacheShare;
  if (cache >= table_bytes * kLeastShare && cache > 0) return {TablePlace::kCache, cache};
  return {};
}

}  // namespace medley::program
