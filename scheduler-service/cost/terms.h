// What stages take, as functions of their units. Values.
#pragma once

#include <array>
#include <limits>
#include <span>

namespace medley::sched {

// The cost or time of something impossible.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Seconds that a stage needs for one batch, with its part of filling and draining. The serial parts do not depend on
// the number of units; the parallel parts are divided by it.
struct StageTerms {
  double compute_serial = 0;
  double compute_parallel = 0;
  double comm_serial = 0;
  double comm_parallel = 0;
  // More units are no faster: the stage keeps embedding tables on the GPU of one trainer.
  int most_units = std::numeric_limits<int>::max();
  double ComputeSeconds(int units) const { return compute_serial + compute_parallel / units; }
  double CommSeconds(int units) const { return comm_serial + comm_parallel / units; }
};

// The terms of a stage between its neighbours: those with its boundary before, and those with the one after it. The
// larger time counts. One, if they do not differ.
struct PlacedTerms {
  std::array<StageTerms, 2> ends;
  int count = 1;
  std::span<const StageTerms> all() const { return std::span(ends).first(static_cast<size_t>(count)); }
  double ComputeSeconds(int units) const;
  double CommSeconds(int units) const;
};

// Both directions of the links between units of two types together.
struct Hop {
  bool known = false;
  double latency = 0;           // seconds, of a message there and one back
  double seconds_per_byte = 0;  // of a byte there and one back
  bool operator==(const Hop&) const = default;
};

// A chosen stage: layers first..last (inclusive) on type `type` with `units` units.
struct StageChoice {
  int first = 0;
  int last = 0;
  int type = 0;
  int units = 0;
  bool operator==(const StageChoice&) const = default;
};

// The load of some layers on the parameter servers.
struct ServerLoad {
  double seconds = 0;  // sum of the layers' server_seconds for one batch, over the cores of a unit that serves
  double bytes = 0;    // stateFactor * sum of weight_bytes, over the layers with server_seconds > 0
  bool any = false;    // true if any layer has server_seconds > 0
  void Add(const ServerLoad& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    any = any || other.any;
  }
};

}  // namespace medley::sched
