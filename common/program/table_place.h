// Where a trainer that computes on a device, and is the only replica of its stage, keeps embedding tables. Pure.
//
// Whole tables on the device cost a step nothing but the look-up. With a cache a step also copies the rows that it
// lacks, with their optimizer state, over the bus, and back. From the host it copies all of its rows. So the first that
// fits is the cheapest; what fits are shares that were not measured on a GPU yet.
#pragma once

namespace medley::program {

enum class TablePlace {
  kDevice,  // whole tables in the device's memory
  kCache,   // in the host's memory, and rows that are used often in the device's
  kHost,    // in the host's memory
};

struct PlacedTables {
  TablePlace place = TablePlace::kHost;
  double cache_bytes = 0;  // of kCache: for rows with their optimizer state
};

// `table_bytes`: of all tables of the stage, with optimizer state. `room`: bytes of the device that nothing else needs.
PlacedTables PlaceTables(double table_bytes, double room);

}  // namespace medley::program
