#include "scheduler-service/simulate/rank.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/program/lower.h"

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

// Seconds as a function of bytes.
struct ByBytes {
  double fixed = 0;
  double per_byte = 0;
  double At(double bytes) const { return fixed + per_byte * bytes; }
};

// What messages and reductions take over the links of single devices.
class Communication {
 public:
  Communication(const program::Lowered& lowered, const DeviceLinks& links) : lowered_(lowered), links_(links) {}

  absl::Status FindDevices() {
    for (const program::Device& device : lowered_.devices) {
      const auto found = links_.index.find(device.id);
      if (found == links_.index.end()) return base::InvalidArgument("device '{}' has no links", device.id);
      index_.push_back(found->second);
    }
    return absl::OkStatus();
  }

  // A value of `bytes` for all samples, from the replicas of one layout to those of another.
  double Transfer(int from, int to, double bytes) {
    const auto [known, added] = transfers_.try_emplace({from, to});
    if (added) known->second = Slowest(LayoutAt(from), LayoutAt(to));
    return known->second.At(bytes);
  }

  double Reduction(int layout, int sync, double bytes) {
    const auto [known, added] = reductions_.try_emplace({layout, sync});
    if (added) {
      constexpr double kBytes = 1 << 20;
      const program::Layout& members = LayoutAt(layout);
      const auto link = [&](int a, int b) { return LinkOf(members, a, members, b); };
      const model::Sync& how = lowered_.syncs[static_cast<size_t>(sync)];
      const auto seconds = [&](double size) {
        return model::AllreduceSeconds(how.algorithm, members.replicas(), link, size);
      };
      known->second.fixed = seconds(0);
      known->second.per_byte = (seconds(kBytes) - known->second.fixed) / kBytes;
    }
    return known->second.At(bytes);
  }

 private:
  const program::Layout& LayoutAt(int layout) const { return lowered_.layouts[static_cast<size_t>(layout)]; }
  const model::LinkSpeed& LinkOf(const program::Layout& from, int a, const program::Layout& to, int b) const {
    return links_.table.Between(index_[static_cast<size_t>(from.devices[static_cast<size_t>(a)])],
                                index_[static_cast<size_t>(to.devices[static_cast<size_t>(b)])]);
  }
  ByBytes Slowest(const program::Layout& from, const program::Layout& to) const {
    ByBytes slowest;
    for (int a = 0; a < from.replicas(); ++a) {
      for (int b = 0; b < to.replicas(); ++b) {
        const auto at = static_cast<size_t>(a), other = static_cast<size_t>(b);
        const double part = std::min(from.cuts[at + 1], to.cuts[other + 1]) - std::max(from.cuts[at], to.cuts[other]);
        if (part <= 0 || from.devices[at] == to.devices[other]) continue;
        const model::LinkSpeed& link = LinkOf(from, a, to, b);
        slowest.fixed = std::max(slowest.fixed, link.latency_seconds);
        if (link.bytes_per_second > 0) slowest.per_byte = std::max(slowest.per_byte, part / link.bytes_per_second);
      }
    }
    return slowest;
  }

  const program::Lowered& lowered_;
  const DeviceLinks& links_;
  std::vector<int> index_;  // of the plan's devices in the table
  std::map<std::pair<int, int>, ByBytes> transfers_, reductions_;
};

}  // namespace

absl::StatusOr<std::vector<OrderEntry>> RankOrder(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                  int samples, const DeviceLinks* links) {
  if (profile.profile_batch_size < 1) return base::InvalidArgument("profileBatchSize: must be positive");
  MEDLEY_ASSIGN_OR_RETURN(const program::Lowered lowered, program::Lower(plan, profile.model));
  std::optional<Communication> communication;
  if (links != nullptr) {
    communication.emplace(lowered, *links);
    MEDLEY_RETURN_IF_ERROR(communication->FindDevices());
  }
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
    if (communication && layout.replicas() > 1 && lowered.operations[at(i)].dense_bytes > 0) {
      const program::Operation& operation = lowered.operations[at(i)];
      reduce[at(i)] =
          communication->Reduction(operation.layout, operation.sync, static_cast<double>(operation.dense_bytes));
    }
  }
  const auto between = [&](int producer, int consumer) {
    const int from = lowered.operations[at(producer)].layout, to = lowered.operations[at(consumer)].layout;
    if (from == to) return 0.0;
    if (!communication) return transfer[at(producer)];
    return communication->Transfer(from, to, profile.model.layers[at(producer)].output_bytes * samples);
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
  // Reductions follow one another in a fixed order, so each comes just behind the pass that completes its gradients: in
  // the order of their own ranks, all would wait for a long one that is complete last.
  for (int i = 0; i < count; ++i) all.push_back({backward[at(i)], 3 * count - 2 * i + 1, {i, Phase::kReduce}});
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position < b.position;
  });
  std::vector<OrderEntry> order;
  for (const Ranked& ranked : all) order.push_back(ranked.entry);
  return order;
}

}  // namespace medley::sched
