// Algorithms of an allreduce, the rules that choose one, and how long one was measured to take. Immutable values.
#pragma once

#include <cstdint>
#include <string>

namespace medley::model {

enum class AllreduceAlgorithm { kAuto, kCentralized, kRing, kRecursiveDoubling, kLinear };

// For reductions of at most `max_bytes` among `ranks` replicas.
struct AlgorithmRule {
  int ranks = 0;
  int64_t max_bytes = 0;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kRing;
  bool operator==(const AlgorithmRule&) const = default;
};

// The measured time of one allreduce of `bytes` among `ranks` processes on units of one resource type.
struct AllreduceMeasurement {
  std::string resource_type;
  int ranks = 0;  // at least 2
  int64_t bytes = 0;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kRing;  // never kAuto
  double seconds = 0;
  bool operator==(const AllreduceMeasurement&) const = default;
};

}  // namespace medley::model
