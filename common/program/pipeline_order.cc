#include "common/program/pipeline_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <set>

#include "common/base/status.h"

namespace medley::program {
namespace {

// A pass of a whole segment.
struct Pass {
  bool backward = false;
  int micro = 0;
  int shift = 0;
};

std::deque<Pass> Sequence(int micros, int ahead, bool across_steps) {
  std::deque<Pass> passes;
  if (across_steps) {  // one iteration of a sequence that never ends
    for (int micro = 0; micro < micros; ++micro) {
      passes.push_back({false, micro, 0});
      const int behind = ahead - micro;  // > 0: of an earlier step
      const int shift = behind > 0 ? (behind + micros - 1) / micros : 0;
      passes.push_back({true, micro - ahead + shift * micros, shift});
    }
    return passes;
  }
  ahead = std::min(ahead, micros);
  for (int micro = 0; micro < ahead; ++micro) passes.push_back({false, micro, 0});
  for (int micro = ahead; micro < micros; ++micro) {
    passes.push_back({false, micro, 0});
    passes.push_back({true, micro - ahead, 0});
  }
  for (int micro = micros - ahead; micro < micros; ++micro) passes.push_back({true, micro, 0});
  return passes;
}

class Merger {
 public:
  Merger(const Shape& shape, const WarmUp& warm_up, bool across_steps) : shape_(shape), plan_(*shape.plan) {
    const size_t segments = plan_.segments.size();
    for (const Segment& segment : plan_.segments) {
      left_.push_back(Sequence(shape.micro_batches, warm_up(segment.depth), across_steps));
    }
    producers_.resize(segments);
    consumers_.resize(segments);
    std::vector<size_t> segment_of(plan_.operations.size());
    for (size_t s = 0; s < segments; ++s) {
      const model::OperationRange& range = plan_.segments[s].operations;
      for (int i = range.first; i < range.end; ++i) segment_of[static_cast<size_t>(i)] = s;
    }
    for (size_t i = 0; i < plan_.operations.size(); ++i) {
      for (const int input : plan_.operations[i].inputs) {
        const size_t from = segment_of[static_cast<size_t>(input)], to = segment_of[i];
        if (from == to || std::count(producers_[to].begin(), producers_[to].end(), from) > 0) continue;
        producers_[to].push_back(from);
        consumers_[from].push_back(to);
      }
    }
    blocks_.resize(segments);
    for (size_t b = 0; b < shape.blocks->size(); ++b) {
      blocks_[static_cast<size_t>((*shape.blocks)[b].segment)].push_back(static_cast<int>(b));
    }
    done_.assign(segments * static_cast<size_t>(shape.micro_batches) * 2, kNever);
    shift_.assign(segments * static_cast<size_t>(shape.micro_batches), 0);
    for (size_t s = 0; s < segments; ++s) {
      for (const Pass& pass : left_[s]) {
        if (pass.backward)
          shift_[s * static_cast<size_t>(shape.micro_batches) + static_cast<size_t>(pass.micro)] = pass.shift;
      }
    }
  }

  // In each round every device starts at most one pass, which needs only passes of earlier rounds.
  std::vector<Action> Merge() {
    std::vector<Action> order;
    std::set<size_t, std::greater<>> ready;  // the last segments first: their backward passes free the others
    const auto look = [&](size_t segment, int round) {
      if (!left_[segment].empty() && Ready(segment, left_[segment].front(), round)) ready.insert(segment);
    };
    for (size_t i = 0; i < left_.size(); ++i) look(i, 0);
    std::vector<size_t> changed;
    for (int round = 0; !ready.empty(); ++round) {
      std::vector<bool> busy(plan_.devices.size(), false);
      changed.clear();
      for (auto it = ready.begin(); it != ready.end();) {
        const size_t segment = *it;
        if (Busy(segment, busy)) {
          ++it;
          continue;
        }
        it = ready.erase(it);
        const std::vector<size_t>& after = left_[segment].front().backward ? producers_[segment] : consumers_[segment];
        changed.insert(changed.end(), after.begin(), after.end());
        changed.push_back(segment);
        Start(segment, round, busy, order);
      }
      for (const size_t segment : changed) look(segment, round + 1);
    }
    const bool all = std::all_of(left_.begin(), left_.end(), [](const auto& passes) { return passes.empty(); });
    MEDLEY_CHECK(all, "the sequences of a pipeline wait for one another");
    return order;
  }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();

  int& Done(size_t segment, int micro, bool backward) {
    return done_[(segment * static_cast<size_t>(shape_.micro_batches) + static_cast<size_t>(micro)) * 2 +
                 (backward ? 1 : 0)];
  }
  bool Busy(size_t segment, const std::vector<bool>& busy) const {
    const Layout& layout = plan_.layouts[static_cast<size_t>(plan_.segments[segment].layout)];
    return std::any_of(layout.devices.begin(), layout.devices.end(),
                       [&](int device) { return busy[static_cast<size_t>(device)]; });
  }
  bool Ready(size_t segment, const Pass& pass, int round) {
    if (!pass.backward) {
      return std::all_of(producers_[segment].begin(), producers_[segment].end(),
                         [&](size_t from) { return Done(from, pass.micro, false) < round; });
    }
    // With a smaller shift, the consumer's pass of this step is of an iteration before. The sequence ensures that the
    // segment's own forward pass comes before.
    return std::all_of(consumers_[segment].begin(), consumers_[segment].end(), [&](size_t to) {
      return shift_[to * static_cast<size_t>(shape_.micro_batches) + static_cast<size_t>(pass.micro)] < pass.shift ||
             Done(to, pass.micro, true) < round;
    });
  }
  void Start(size_t segment, int round, std::vector<bool>& busy, std::vector<Action>& order) {
    const Pass pass = left_[segment].front();
    left_[segment].pop_front();
    Done(segment, pass.micro, pass.backward) = round;
    for (const int device : plan_.layouts[static_cast<size_t>(plan_.segments[segment].layout)].devices) {
      busy[static_cast<size_t>(device)] = true;
    }
    std::vector<int> blocks = blocks_[segment];
    if (pass.backward) std::reverse(blocks.begin(), blocks.end());
    for (const int block : blocks) order.push_back({pass.backward, block, pass.micro, pass.shift});
  }

  const Shape& shape_;
  const Lowered& plan_;
  std::vector<std::deque<Pass>> left_;
  std::vector<std::vector<size_t>> producers_, consumers_;  // of segments
  std::vector<std::vector<int>> blocks_;                    // of segments
  std::vector<int> done_;                                   // round of (segment, micro-batch, pass)
  std::vector<int> shift_;                                  // of the backward pass of (segment, micro-batch)
};

}  // namespace

std::vector<Action> PipelineOrder(const Shape& shape, const WarmUp& warm_up, bool across_steps) {
  return Merger(shape, warm_up, across_steps).Merge();
}

}  // namespace medley::program
