#include "scheduler-service/simulate/agreeing_part.h"

#include <algorithm>
#include <vector>

#include "common/program/samples.h"

namespace medley::sched {

using program::Program;

double AgreeingPart(const Program& program, const Durations& durations, int samples) {
  const model::Sync& sync = program.sync;
  switch (sync.mode) {
    case model::SyncMode::kFull:
      return 1;
    case model::SyncMode::kNone:
      return 0;
    case model::SyncMode::kPercentage:
      return std::clamp(sync.fraction, 0.0, 1.0);
    case model::SyncMode::kFlexible:
      break;
  }
  // As many as take target_ratio of the time of computation, as the coordinator steers it.
  const program::Binding binding(program, samples);
  std::vector<double> computes(program.devices.size(), 0);
  double averages = 0;
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    averages += durations.averages[b];
    const int layout = program.blocks[b].layout;
    const program::Layout& replicas = program.layouts[static_cast<size_t>(layout)];
    for (int r = 0; r < replicas.replicas(); ++r) {
      const Durations::Passes& passes = durations.passes[b][static_cast<size_t>(r)];
      double& own = computes[static_cast<size_t>(replicas.devices[static_cast<size_t>(r)])];
      own += passes.update;
      for (int m = 0; m < program.micro_batches; ++m) {
        const int count = binding.Replica(layout, r, m).count;
        own += passes.forward.At(count) + passes.backward.At(count);
      }
    }
  }
  double sum = 0;
  for (const double own : computes) sum += own;
  if (averages <= 0) return 1;
  constexpr double kLeast = 0.01;  // as the coordinator
  return std::clamp(sync.target_ratio * sum / static_cast<double>(computes.size()) / averages, kLeast, 1.0);
}

}  // namespace medley::sched
