#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "common/model/order_entry.h"
#include "common/program/order.h"

namespace medley::program {
namespace {

using model::OrderEntry;
using model::Phase;

// The first position of each block's operations in the order, by phase.
std::vector<int> Positions(const Shape& shape, const std::vector<OrderEntry>& order, Phase phase) {
  std::vector<size_t> block_of(shape.plan->operations.size());
  for (size_t b = 0; b < shape.blocks->size(); ++b) {
    const model::OperationRange& range = (*shape.blocks)[b].operations;
    for (int i = range.first; i < range.end; ++i) block_of[static_cast<size_t>(i)] = b;
  }
  std::vector<int> positions(shape.blocks->size(), std::numeric_limits<int>::max());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].phase != phase) continue;
    int& position = positions[block_of[static_cast<size_t>(order[i].operation)]];
    position = std::min(position, static_cast<int>(i));
  }
  return positions;
}

// Among the passes whose needs are met, always the one that the order names first.
class Sorter {
 public:
  Sorter(const Shape& shape, const std::vector<OrderEntry>& order)
      : blocks_(*shape.blocks),
        micros_(shape.micro_batches),
        forward_(Positions(shape, order, Phase::kForward)),
        backward_(Positions(shape, order, Phase::kBackward)) {
    consumers_.resize(blocks_.size());
    producers_.resize(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const model::OperationRange& range = blocks_[b].operations;
      for (int i = range.first; i < range.end; ++i) {
        for (const int input : shape.plan->operations[static_cast<size_t>(i)].inputs) {
          if (range.Contains(input)) continue;
          const size_t from = BlockOf(input);
          if (std::count(producers_[b].begin(), producers_[b].end(), from) > 0) continue;
          producers_[b].push_back(from);
          consumers_[from].push_back(b);
        }
      }
    }
  }

  std::vector<Action> Sort() {
    std::vector<Action> sorted;
    std::vector<int> missing(blocks_.size() * static_cast<size_t>(micros_) * 2);
    const auto at = [&](bool backward, size_t block, int micro) -> int& {
      return missing[(block * static_cast<size_t>(micros_) + static_cast<size_t>(micro)) * 2 + (backward ? 1 : 0)];
    };
    const auto push = [&](bool backward, size_t block, int micro) {
      ready_.emplace(micro, backward ? backward_[block] : forward_[block], backward, block);
    };
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (int m = 0; m < micros_; ++m) {
        at(false, b, m) = static_cast<int>(producers_[b].size());
        at(true, b, m) = static_cast<int>(consumers_[b].size()) + 1;  // and its own forward pass
        if (producers_[b].empty()) push(false, b, m);
      }
    }
    while (!ready_.empty()) {
      const auto [micro, position, backward, block] = ready_.top();
      ready_.pop();
      sorted.push_back({backward, static_cast<int>(block), micro, 0});
      if (!backward && --at(true, block, micro) == 0) push(true, block, micro);
      for (const size_t other : backward ? producers_[block] : consumers_[block]) {
        if (--at(backward, other, micro) == 0) push(backward, other, micro);
      }
    }
    return sorted;
  }

 private:
  size_t BlockOf(int operation) const {
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), operation,
                                        [](int op, const Block& block) { return op < block.operations.first; });
    return static_cast<size_t>(after - blocks_.begin()) - 1;
  }

  const std::vector<Block>& blocks_;
  const int micros_;
  const std::vector<int> forward_, backward_;  // positions
  std::vector<std::vector<size_t>> producers_, consumers_;
  using Ready = std::tuple<int, int, bool, size_t>;  // micro-batch, position, backward, block
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
};

}  // namespace

Order Ordered(const Shape& shape, const std::vector<OrderEntry>& order) {
  Order out;
  out.actions = Sorter(shape, order).Sort();
  out.lag.assign(shape.blocks->size(), 1);
  return out;
}

std::vector<int> ReductionOrder(const Shape& shape, const std::vector<OrderEntry>& order) {
  if (std::ranges::none_of(order, [](const OrderEntry& entry) { return entry.phase == Phase::kReduce; })) return {};
  const std::vector<int> positions = Positions(shape, order, Phase::kReduce);
  std::vector<int> reductions(shape.blocks->size());
  std::iota(reductions.begin(), reductions.end(), 0);
  std::ranges::stable_sort(reductions, {}, [&](int block) { return positions[static_cast<size_t>(block)]; });
  return reductions;
}

}  // namespace medley::program
