#include "common/program/table_place.h"

namespace medley::program {
namespace {

using model::TablePlace;

constexpr double kSpare = 1.25;       // room for a byte of whole tables: a step needs some beside them
constexpr double kCacheShare = 0.5;   // of the room: rows of open steps, their gradients and activations need the rest
constexpr double kLeastShare = 0.01;  // of the tables: a smaller cache has few of the rows that a step uses
// What a trainer must find for a byte of what is planned. The planner has counted more beside it, of which a part is on
// the device when tables are made.
constexpr double kObeyed = 1.05;

}  // namespace

PlacedTables PlaceTables(double table_bytes, double room) {
  if (table_bytes * kSpare <= room) return {TablePlace::kDevice, 0};
  const double cache = room * kCacheShare;
  if (cache >= table_bytes * kLeastShare && cache > 0) return {TablePlace::kCache, cache};
  return {};
}

double RoomOf(const model::Tables& planned, double table_bytes) {
  if (planned.place == TablePlace::kDevice) return table_bytes * kSpare;
  return planned.place == TablePlace::kCache ? static_cast<double>(planned.cache_bytes) : 0;
}

PlacedTables PlaceTables(const model::Tables& planned, double table_bytes, double room) {
  switch (planned.place) {
    case TablePlace::kUnspecified:
      break;
    case TablePlace::kHost:
      return {};
    case TablePlace::kDevice:
      if (table_bytes * kObeyed <= room) return {TablePlace::kDevice, 0};
      break;
    case TablePlace::kCache: {
      const auto bytes = static_cast<double>(planned.cache_bytes);
      if (bytes * kObeyed <= room) return {TablePlace::kCache, bytes};
      break;
    }
  }
  return PlaceTables(table_bytes, room);
}

}  // namespace medley::program
