#include "scheduler-service/simulate/rank.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/execution_plan.h"
#include "common/model/link_speed.h"
#include "common/model/model.h"
#include "common/model/order_entry.h"
#include "common/model/profile.h"
#include "common/model/sync.h"
#include "common/program/lower.h"
#include "scheduler-service/simulate/list_schedule.h"
#include "scheduler-service/simulate/profile_quotas.h"

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
      int root = -1;
      for (int r = 0; r < members.replicas(); ++r) {
        if (lowered_.devices[static_cast<size_t>(members.devices[static_cast<size_t>(r)])].id == how.root) root = r;
      }
      const auto seconds = [&](double size) {
        const bool served =
            root >= 0 && how.hierarchy.empty() && how.algorithm == model::AllreduceAlgorithm::kCentralized;
        if (served) return model::ServedSeconds(members.replicas(), link, size, root);
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

// The passes of all operations as tasks on their devices: forward passes as in the model, then backward passes the
// other way round.
class PassTasks {
 public:
  PassTasks(const program::Lowered& lowered, const model::Profile& profile, int samples, Communication* communication)
      : lowered_(lowered), profile_(profile), samples_(samples), communication_(communication) {}

  absl::Status Make() {
    const std::map<std::string, double> parts = QuotaParts(profile_);
    graph_.resources = static_cast<int>(lowered_.devices.size());
    const auto count = static_cast<int>(lowered_.operations.size());
    first_.resize(2 * lowered_.operations.size());
    for (int pass = 0; pass < 2 * count; ++pass) {
      const int i = OperationOf(pass);
      const program::Layout& layout = LayoutOf(i);
      first_[static_cast<size_t>(pass)] = static_cast<int>(graph_.tasks.size());
      for (int r = 0; r < layout.replicas(); ++r) {
        const auto at = static_cast<size_t>(r);
        const int device = layout.devices[at];
        MEDLEY_ASSIGN_OR_RETURN(const double seconds,
                                ComputeSeconds(profile_, parts, i, lowered_.devices[static_cast<size_t>(device)].pool,
                                               layout.cuts[at + 1] - layout.cuts[at], samples_));
        graph_.tasks.push_back({device, pass < count ? seconds / 3 : seconds * 2 / 3, {}});
        pass_of_.push_back(pass);
      }
    }
    for (int i = 0; i < count; ++i) {
      Connect(i, Backward(i));
      for (const int consumer : lowered_.operations[static_cast<size_t>(i)].consumers) {
        Connect(i, consumer);
        Connect(Backward(consumer), Backward(i));
      }
    }
    return absl::OkStatus();
  }

  std::vector<OrderEntry> AsReady() const { return EntriesOf(OrderAsReady(graph_)); }

  std::vector<OrderEntry> Repaired() const {
    constexpr size_t kMostTasks = 100'000;  // timed for each of the two, about 10 ms
    const auto evaluations = static_cast<int64_t>(kMostTasks / std::max<size_t>(1, graph_.tasks.size()));
    TaskOrder best = RepairOrder(graph_, OrderByRank(graph_), evaluations);
    TaskOrder other = RepairOrder(graph_, OrderAsReady(graph_), evaluations);
    if (TimeTasks(graph_, other).seconds < TimeTasks(graph_, best).seconds) best = std::move(other);
    const std::vector<double> start = TimeTasks(graph_, best).start;
    std::ranges::stable_sort(best, {}, [&](int task) { return start[static_cast<size_t>(task)]; });
    return EntriesOf(best);
  }

 private:
  // Passes by their first replica.
  std::vector<OrderEntry> EntriesOf(const TaskOrder& tasks) const {
    const auto count = static_cast<int>(lowered_.operations.size());
    std::vector<bool> listed(first_.size(), false);
    std::vector<OrderEntry> order;
    for (const int task : tasks) {
      const int pass = pass_of_[static_cast<size_t>(task)];
      if (listed[static_cast<size_t>(pass)]) continue;
      listed[static_cast<size_t>(pass)] = true;
      order.push_back({OperationOf(pass), pass < count ? Phase::kForward : Phase::kBackward});
      if (pass >= count) order.push_back({OperationOf(pass), Phase::kReduce});
    }
    return order;
  }

  int OperationOf(int pass) const {
    const auto count = static_cast<int>(lowered_.operations.size());
    return pass < count ? pass : 2 * count - 1 - pass;
  }
  int Backward(int operation) const { return 2 * static_cast<int>(lowered_.operations.size()) - 1 - operation; }
  const program::Layout& LayoutOf(int operation) const {
    return lowered_.layouts[static_cast<size_t>(lowered_.operations[static_cast<size_t>(operation)].layout)];
  }

  // What replicas of one pass give to those of another that have samples of theirs.
  void Connect(int pass, int next) {
    const int operation = OperationOf(pass), other = OperationOf(next);
    const program::Layout& from = LayoutOf(operation);
    const program::Layout& to = LayoutOf(other);
    const auto add = [&](int a, int b, double delay) {
      const int task = first_[static_cast<size_t>(pass)] + a;
      graph_.tasks[static_cast<size_t>(task)].next.push_back({first_[static_cast<size_t>(next)] + b, delay});
    };
    if (&from == &to) {  // every replica goes on with its own samples
      for (int r = 0; r < from.replicas(); ++r) add(r, r, 0);
      return;
    }
    double delay = 0;
    if (communication_ != nullptr) {
      const auto producer = static_cast<size_t>(std::min(operation, other));
      delay = communication_->Transfer(lowered_.operations[static_cast<size_t>(operation)].layout,
                                       lowered_.operations[static_cast<size_t>(other)].layout,
                                       profile_.model.layers[producer].output_bytes * samples_);
    }
    for (int a = 0; a < from.replicas(); ++a) {
      for (int b = 0; b < to.replicas(); ++b) {
        const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
        if (std::min(from.cuts[x + 1], to.cuts[y + 1]) <= std::max(from.cuts[x], to.cuts[y])) continue;
        add(a, b, from.devices[x] == to.devices[y] ? 0 : delay);
      }
    }
  }

  const program::Lowered& lowered_;
  const model::Profile& profile_;
  const int samples_;
  Communication* const communication_;
  TaskGraph graph_;
  std::vector<int> first_;    // by pass: task of its first replica
  std::vector<int> pass_of_;  // by task
};

// The plan as the program has it, and with links what its messages take.
struct Placed {
  program::Lowered lowered;
  std::optional<Communication> communication;  // refers to `lowered`
};

absl::StatusOr<std::unique_ptr<Placed>> Place(const model::ExecutionPlan& plan, const model::Profile& profile,
                                              const DeviceLinks* links) {
  if (profile.profile_batch_size < 1) return base::InvalidArgument("profileBatchSize: must be positive");
  auto placed = std::make_unique<Placed>();
  MEDLEY_ASSIGN_OR_RETURN(placed->lowered, program::Lower(plan, profile.model));
  if (links != nullptr) {
    placed->communication.emplace(placed->lowered, *links);
    MEDLEY_RETURN_IF_ERROR(placed->communication->FindDevices());
  }
  return placed;
}

absl::StatusOr<std::vector<OrderEntry>> OrderOfTasks(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                     int samples, const DeviceLinks* links, bool repaired) {
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Placed> placed, Place(plan, profile, links));
  int64_t passes = 0;
  for (const program::Operation& operation : placed->lowered.operations) {
    passes += 2 * placed->lowered.layouts[static_cast<size_t>(operation.layout)].replicas();
  }
  if (passes > kMostOrderedPasses) {
    return base::InvalidArgument("ordering {} passes of operations: at most {} are ordered", passes,
                                 kMostOrderedPasses);
  }
  PassTasks tasks(placed->lowered, profile, samples, placed->communication ? &*placed->communication : nullptr);
  MEDLEY_RETURN_IF_ERROR(tasks.Make());
  return repaired ? tasks.Repaired() : tasks.AsReady();
}

}  // namespace

absl::StatusOr<std::vector<OrderEntry>> FifoOrder(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                  int samples, const DeviceLinks* links) {
  return OrderOfTasks(plan, profile, samples, links, false);
}

absl::StatusOr<std::vector<OrderEntry>> RepairedOrder(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                      int samples, const DeviceLinks* links) {
  return OrderOfTasks(plan, profile, samples, links, true);
}

absl::StatusOr<std::vector<OrderEntry>> RankOrder(const model::ExecutionPlan& plan, const model::Profile& profile,
                                                  int samples, const DeviceLinks* links) {
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Placed> placed, Place(plan, profile, links));
  const program::Lowered& lowered = placed->lowered;
  std::optional<Communication>& communication = placed->communication;
  const std::map<std::string, double> parts = QuotaParts(profile);
  const int count = static_cast<int>(lowered.operations.size());
  const auto at = [](int i) { return static_cast<size_t>(i); };
  // For each operation: seconds of both passes on its slowest replica, of a transfer of its output, of its reduction.
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
