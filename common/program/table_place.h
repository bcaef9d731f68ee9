// Where a trainer that computes on a device, and is the only replica of its stage, keeps embedding tables. Pure.
//
// Whole tables on the device cost a step nothing but the look-up. With a cache a step also copies the rows that it
// lacks, with their optimizer state, over the bus, and back. From the host it copies all of its rows. So the first that
// fits is the cheapest. The planner decides by it, with what a step takes as measured, and a trainer whose plan does
// not say a place, or whose device has less memory than the plan says.
#pragma once

#include "common/model/table_place.h"

namespace medley::program {

struct PlacedTables {
  model::TablePlace place = model::TablePlace::kHost;
  double cache_bytes = 0;  // of kCache: for rows with their optimizer state
};

// `table_bytes`: of all tables of the stage, with optimizer state. `room`: bytes of the device that nothing else needs.
PlacedTables PlaceTables(double table_bytes, double room);

// The least `room` for which the first function gives these; for a cache half of it, so that who asks again with less
// soon has a smaller one.
double RoomOf(const model::Tables& planned, double table_bytes);

// As the plan says, unless `room` is less than that surely needs.
PlacedTables PlaceTables(const model::Tables& planned, double table_bytes, double room);

}  // namespace medley::program
