#include "common/program/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/status.h"

namespace medley::program {

SampleRange MicroBatch(int count, int micro, int micros) {
  const auto cut = [&](int i) { return static_cast<int>(static_cast<int64_t>(count) * i / micros); };
  return {cut(micro), cut(micro + 1) - cut(micro)};
}

std::vector<double> Cuts(std::span<const double> shares) {
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  MEDLEY_CHECK(total > 0, "shares must have a positive sum");
  std::vector<double> cuts = {0};
  double sum = 0;
  for (size_t i = 0; i + 1 < shares.size(); ++i) {
    sum += shares[i];
    cuts.push_back(std::min(1.0, sum / total));
  }
  cuts.push_back(1);
  return cuts;
}

SampleRange ShareOf(int count, std::span<const double> cuts, int replica) {
  const auto cut = [&](int i) { return static_cast<int>(std::lround(count * cuts[static_cast<size_t>(i)])); };
  return {cut(replica), cut(replica + 1) - cut(replica)};
}

SampleRange Intersect(SampleRange a, SampleRange b) {
  const int first = std::max(a.first, b.first);
  return {first, std::max(0, std::min(a.end(), b.end()) - first)};
}

Binding::Binding(const Program& program, int count) : program_(program), count_(count) {
  for (int m = 0; m < program.micro_batches; ++m) micros_.push_back(MicroBatch(count, m, program.micro_batches));
  for (const Layout& layout : program.layouts) {
    offset_.push_back(replicas_.size());
    for (const SampleRange& micro : micros_) {
      for (int r = 0; r < layout.replicas(); ++r) replicas_.push_back(ShareOf(micro.count, layout.cuts, r));
    }
  }
}

SampleRange Binding::Replica(int layout, int replica, int micro) const {
  const auto replicas = static_cast<size_t>(program_.layouts[static_cast<size_t>(layout)].replicas());
  return replicas_[offset_[static_cast<size_t>(layout)] + static_cast<size_t>(micro) * replicas +
                   static_cast<size_t>(replica)];
}

SampleRange Binding::Moved(const Flow& flow, const Pair& pair, int micro) const {
  return Intersect(Replica(flow.from_layout, pair.from, micro), Replica(flow.to_layout, pair.to, micro));
}

}  // namespace medley::program
