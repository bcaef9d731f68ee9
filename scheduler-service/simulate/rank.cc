#include "scheduler-service/simulate/rank.h"

#include <algorithm>
#include <map>
#include <string>

#include "common/base/status.h"
#include "common/program/lower.h"
#include "scheduler-service/simulate/from_profile.h"

namespace medley::sched {
namespace {

using model::OrderEntry;
using model::Phase;

const model::LayerProfile* TimesOf(const model::Profile& profile, int operation, const std::string& pool) {
  for (const model::LayerProfile& times : profile.model.layers[static_cast<size_t>(operation)].profiles) {
    if (times.resource_type == pool) return &times;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<OrderEntry>> RankOrder(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                  int samples) {
  if (profile.profile_batch_size < 1) return base::InvalidArgument("profileBatchSize: must be positive");
  MEDLEY_ASSIGN_OR_RETURN(const program::Lowered lowered, program::Lower(plan, profile.model));
  const std::map<std::string, double> parts = QuotaParts(profile);
  const int count = static_cast<int>(lowered.operations.size());
  const auto at = [](int i) { return static_cast<size_t>(i); };
  // Of each operation: seconds of both passes on its slowest replica, of a transfer of its output, of its reduction.
  std::vector<double> compute(at(count), 0), transfer(at(count), 0), reduce(at(count), 0);
  for (int i = 0; i < count; ++i) {
    const program::Layout& layout = lowered.layouts[at(lowered.operations[at(i)].layout)];
    for (int r = 0; r < layout.replicas(); ++r) {
      const std::string& pool = lowered.devices[at(layout.devices[at(r)])].pool;
      const double share = layout.cuts[at(r) + 1] - layout.cuts[at(r)];
      MEDLEY_ASSIGN_OR_RETURN(const double seconds, ComputeSeconds(profile, parts, i, pool, share, samples));
      compute[at(i)] = std::max(compute[at(i)], seconds);
      const model::LayerProfile& times = *TimesOf(profile, i, pool);  // ComputeSeconds has found it
      transfer[at(i)] = std::max(transfer[at(i)], times.transfer_seconds / 2 * samples / profile.profile_batch_size);
      if (layout.replicas() > 1 && lowered.operations[at(i)].dense_bytes > 0) {
        reduce[at(i)] = std::max(reduce[at(i)], times.sync_seconds);
      }
    }
  }
  const auto between = [&](int producer, int consumer) {
    return lowered.operations[at(producer)].layout == lowered.operations[at(consumer)].layout ? 0
                                                                                              : transfer[at(producer)];
  };
  std::vector<double> backward(at(count), 0), forward(at(count), 0);
  for (int i = 0; i < count; ++i) {  // a backward pass is followed by those of its inputs
    double after = reduce[at(i)];
    for (const int input : lowered.operations[at(i)].inputs) {
      after = std::max(after, between(input, i) + backward[at(input)]);
    }
    backward[at(i)] = compute[at(i)] * 2 / 3 + after;
  }
  for (int i = count; i-- > 0;) {
    double after = backward[at(i)];
    for (const int consumer : lowered.operations[at(i)].consumers) {
      after = std::max(after, between(i, consumer) + forward[at(consumer)]);
    }
    forward[at(i)] = compute[at(i)] / 3 + after;
  }
  struct Ranked {
    double rank = 0;
    int position = 0;  // in the default order
    OrderEntry entry;
  };
  std::vector<Ranked> all;
  for (int i = 0; i < count; ++i) all.push_back({forward[at(i)], i, {i, Phase::kForward}});
  for (int i = 0; i < count; ++i) all.push_back({backward[at(i)], 3 * count - 2 * i, {i, Phase::kBackward}});
  for (int i = 0; i < count; ++i) {
    all.push_back({reduce[at(i)], 3 * count - 2 * i + 1, {i, Phase::kReduce}});
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position < b.position;
  });
  std::vector<OrderEntry> order;
  for (const Ranked& ranked : all) order.push_back(ranked.entry);
  return order;
}

}  // namespace medley::sched
