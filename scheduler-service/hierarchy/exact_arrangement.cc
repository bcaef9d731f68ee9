// The exact search over partitions of few devices.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "common/model/allreduce.h"
#include "scheduler-service/hierarchy/arrange.h"
#include "scheduler-service/hierarchy/ring_order.h"

namespace medley::sched {
namespace {

// What a group costs, for each subset of the devices and each leader in it.
struct GroupCost {
  std::vector<int> order;  // positions of devices; the leader first
  std::array<double, model::kAllreduceAlgorithms.size()> adds{};
  double tells = 0;
};

class Search {
 public:
  Search(const DeviceProblem& problem, const std::vector<int>& devices, double bytes)
      : problem_(problem), devices_(devices), bytes_(bytes), costs_(size_t{1} << devices.size()) {
    for (size_t set = 1; set < costs_.size(); ++set) {
      for (size_t leader = 0; leader < devices.size(); ++leader) {
        costs_[set].push_back((set >> leader & 1) != 0 ? CostOf(set, leader) : GroupCost{});
      }
    }
  }

  Arrangement Run() {
    const size_t all = costs_.size() - 1;
    for (size_t leader = 0; leader < devices_.size(); ++leader) {  // one group of all
      for (size_t a = 0; a < model::kAllreduceAlgorithms.size(); ++a) {
        Offer(costs_[all][leader].adds[a], {{all, leader}}, 0, a, leader);
      }
    }
    Divide(all);
    return Result();
  }

 private:
  struct Part {
    size_t set = 0;
    size_t leader = 0;
  };

  GroupCost CostOf(size_t set, size_t leader) const {
    std::vector<int> members = {static_cast<int>(leader)};
    for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
      if ((set >> d & 1) != 0 && d != static_cast<int>(leader)) members.push_back(d);
    }
    const double part = bytes_ / static_cast<double>(members.size());
    const auto message = [&](int a, int b) {
      const model::LinkSpeed link = LinkOf(a, b);
      return link.latency_seconds + (link.bytes_per_second > 0 ? part / link.bytes_per_second : 0);
    };
    GroupCost cost{.order = RingOrder(members, message)};
    const auto link = [&](int a, int b) {
      return LinkOf(cost.order[static_cast<size_t>(a)], cost.order[static_cast<size_t>(b)]);
    };
    const auto count = static_cast<int>(members.size());
    for (size_t a = 0; a < model::kAllreduceAlgorithms.size(); ++a) {
      cost.adds[a] = model::AllreduceSeconds(model::kAllreduceAlgorithms[a], count, link, bytes_);
    }
    cost.tells = model::BroadcastSeconds(count, link, bytes_);
    return cost;
  }
  model::LinkSpeed LinkOf(int a, int b) const {
    return problem_.Link(devices_[static_cast<size_t>(a)], devices_[static_cast<size_t>(b)]);
  }

  // All partitions of `left`, whose lowest device is in the first part.
  void Divide(size_t left) {
    if (left == 0) {
      if (parts_.size() > 1 && parts_.size() < devices_.size()) Lead(0, 0);
      return;
    }
    const size_t lowest = left & (~left + 1), others = left & ~lowest;
    for (size_t with = others;; with = (with - 1) & others) {
      parts_.push_back({lowest | with, 0});
      Divide(left & ~(lowest | with));
      parts_.pop_back();
      if (with == 0) break;
    }
  }

  // All leaders of the parts from `part` on.
  void Lead(size_t part, size_t leaders) {
    if (part == parts_.size()) {
      Score(leaders);
      return;
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      if ((parts_[part].set >> d & 1) == 0) continue;
      parts_[part].leader = d;
      Lead(part + 1, leaders | size_t{1} << d);
    }
  }

  void Score(size_t leaders) {
    std::array<double, model::kAllreduceAlgorithms.size()> adds{};
    double tells = 0;
    for (const Part& part : parts_) {
      const GroupCost& cost = costs_[part.set][part.leader];
      tells = std::max(tells, cost.tells);
      for (size_t a = 0; a < adds.size(); ++a) adds[a] = std::max(adds[a], cost.adds[a]);
    }
    const auto inner = static_cast<size_t>(std::ranges::min_element(adds) - adds.begin());
    for (const Part& part : parts_) {  // whose leader is the first among the leaders
      const GroupCost& cost = costs_[leaders][part.leader];
      for (size_t a = 0; a < model::kAllreduceAlgorithms.size(); ++a) {
        Offer(adds[inner] + tells + cost.adds[a], parts_, inner, a, part.leader);
      }
    }
  }

  void Offer(double seconds, const std::vector<Part>& parts, size_t inner, size_t outer, size_t first) {
    if (seconds >= best_) return;
    best_ = seconds;
    best_parts_ = parts;
    inner_ = inner;
    outer_ = outer;
    first_ = first;
  }

  Arrangement Result() const {
    Arrangement out;
    out.seconds = best_;
    const auto device = [&](int position) { return devices_[static_cast<size_t>(position)]; };
    if (best_parts_.size() == 1) {
      for (const int d : costs_[best_parts_.front().set][first_].order) out.order.push_back(device(d));
      out.algorithms = {model::kAllreduceAlgorithms[outer_]};
      return out;
    }
    size_t leaders = 0;
    for (const Part& part : best_parts_) leaders |= size_t{1} << part.leader;
    Grouping& level = out.levels.emplace_back();
    for (const int leader : costs_[leaders][first_].order) {
      const auto part = std::ranges::find(best_parts_, static_cast<size_t>(leader), &Part::leader);
      std::vector<int>& group = level.emplace_back();
      for (const int d : costs_[part->set][part->leader].order) group.push_back(device(d));
      out.order.insert(out.order.end(), group.begin(), group.end());
    }
    out.algorithms = {model::kAllreduceAlgorithms[inner_], model::kAllreduceAlgorithms[outer_]};
    return out;
  }

  const DeviceProblem& problem_;
  const std::vector<int>& devices_;
  const double bytes_;
  std::vector<std::vector<GroupCost>> costs_;  // by subset and leader
  std::vector<Part> parts_;
  double best_ = kForever;
  std::vector<Part> best_parts_;
  size_t inner_ = 0, outer_ = 0, first_ = 0;
};

}  // namespace

Arrangement ExactArrangement(const DeviceProblem& problem, const std::vector<int>& devices, double bytes) {
  return Search(problem, devices, bytes).Run();
}

}  // namespace medley::sched
