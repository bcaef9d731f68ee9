#include "worker/profiler/allreduce_table.h"

#include <map>
#include <utility>

#include "common/base/status.h"
#include "worker/profiler/statistics.h"

namespace medley::worker {

absl::StatusOr<std::vector<model::AllreduceMeasurement>> MeasureAllreduces(CommunicationProbe& probe,
                                                                           const base::Clock& clock,
                                                                           const std::string& resource_type,
                                                                           double budget, std::stop_token stop) {
  using enum model::AllreduceAlgorithm;
  constexpr int kReplicas[] = {2, 4}, kRounds = 3;
  constexpr int64_t kSmallest = 4 << 10, kLargest = 16 << 20;
  std::vector<model::AllreduceMeasurement> measured;
  for (const int replicas : kReplicas) {
    const base::SteadyTime begin = clock.Steady();
    for (int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
      if (bytes > kSmallest && base::ToSeconds(clock.Steady() - begin) >= budget / std::size(kReplicas)) break;
      std::map<model::AllreduceAlgorithm, std::vector<double>> seconds;
      for (int round = 0; round < kRounds; ++round) {
        for (const auto algorithm : {kRing, kRecursiveDoubling, kCentralized, kLinear}) {
          if (stop.stop_requested()) return base::Cancelled("profiling was stopped");
          MEDLEY_ASSIGN_OR_RETURN(seconds[algorithm].emplace_back(),
                                  probe.AllreduceSeconds(bytes, replicas, algorithm));
        }
      }
      for (auto& [algorithm, all] : seconds) {
        measured.push_back({resource_type, replicas, bytes, algorithm, Median(std::move(all))});
      }
    }
  }
  return measured;
}

}  // namespace medley::worker
