#include "worker/pipeline/reduced_samples.h"

#include <algorithm>
#include <vector>

namespace medley::worker {

int ReducedSamples(const program::Program& program, const program::Binding& binding, int index, int replica,
                   int count) {
  const program::Block& block = program.blocks[static_cast<size_t>(index)];
  if (block.average < 0) return count;
  std::vector<int> replicas = {replica};
  if (block.group >= 0) {
    const auto& groups = program.groups[static_cast<size_t>(block.group)].levels.front().groups;
    const auto own = std::ranges::find_if(
        groups, [&](const std::vector<int>& group) { return std::ranges::find(group, replica) != group.end(); });
    if (own != groups.end()) replicas = *own;
  }
  int samples = 0;
  for (const int member : replicas) {
    for (int micro = 0; micro < program.micro_batches; ++micro) {
      samples += binding.Replica(block.layout, member, micro).count;
    }
  }
  return samples;
}

}  // namespace medley::worker
