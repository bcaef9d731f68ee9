#include "scheduler-service/pipeline/closed_form.h"

#include <algorithm>

#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/link_speed.h"
#include "scheduler-service/devices/shares.h"

namespace medley::sched {

double TransferSeconds(const DeviceProblem& problem, const std::vector<int>& from, const std::vector<int>& to,
                       int cut) {
  const double bytes = problem.CutBytes(cut);
  const double part = bytes / static_cast<double>(std::max(from.size(), to.size()));
  double seconds = 0, latency = 0;
  for (const int a : from) {
    for (const int b : to) {
      for (const model::LinkSpeed& link : {problem.Link(a, b), problem.Link(b, a)}) {
        latency = std::max(latency, link.latency_seconds);
        if (link.bytes_per_second > 0) seconds = std::max(seconds, part / link.bytes_per_second);
      }
    }
  }
  for (const std::vector<int>* side : {&from, &to}) {
    for (const int d : *side) {
      seconds = std::max(seconds, bytes / static_cast<double>(side->size()) * problem.CardSecondsPerByte(d));
    }
  }
  return seconds + latency;
}

double StageReductionSeconds(const DeviceProblem& problem, const PipelineStage& stage) {
  const double bytes = problem.WeightBytes(stage.first, stage.end);
  if (stage.devices.size() < 2 || bytes <= 0) return 0;
  const auto link = [&](int a, int b) {
    return problem.Link(stage.devices[static_cast<size_t>(a)], stage.devices[static_cast<size_t>(b)]);
  };
  const auto count = static_cast<int>(stage.devices.size());
  return std::min(model::AllreduceSeconds(model::AllreduceAlgorithm::kRing, count, link, bytes),
                  model::AllreduceSeconds(model::AllreduceAlgorithm::kRecursiveDoubling, count, link, bytes));
}

StageSeconds SecondsOfStage(const DeviceProblem& problem, const PipelineStage& stage) {
  std::vector<DeviceProblem::Work> work;
  for (const int d : stage.devices) work.push_back(problem.WorkOf(stage.first, stage.end, d));
  const Shares shares = BalancedSamples(work, problem.samples());
  const double bytes = (stage.first > 0 ? problem.CutBytes(stage.first) : 0) +
                       (stage.end < problem.layers() ? problem.CutBytes(stage.end) : 0);
  StageSeconds out{shares.seconds, 0};
  for (size_t i = 0; i < stage.devices.size(); ++i) {
    out.sends = std::max(out.sends, shares.shares[i] * bytes * problem.CardSecondsPerByte(stage.devices[i]));
  }
  return out;
}

double SecondsOfPipeline(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  const size_t depth = stages.size();
  std::vector<double> computes, moves, reduces;
  double sends = 0, longest = 0, fill = 0;
  for (size_t i = 0; i < depth; ++i) {
    const StageSeconds own = SecondsOfStage(problem, stages[i]);
    computes.push_back(own.computes);
    sends = std::max(sends, own.sends);
    reduces.push_back(StageReductionSeconds(problem, stages[i]));
    longest = std::max(longest, reduces.back());
    moves.push_back(
        i + 1 < depth ? TransferSeconds(problem, stages[i].devices, stages[i + 1].devices, stages[i + 1].first) : 0);
    fill += computes[i] + 2 * moves[i];
  }
  double cycle = sends, with_reduction = sends;
  for (size_t i = 0; i < depth; ++i) {
    double loop = 0;
    for (size_t j = i; j < depth; ++j) {
      loop += computes[j] + (j > i ? 2 * moves[j - 1] : 0);
      const auto rounds = static_cast<double>(j - i + 1);
      cycle = std::max(cycle, loop / rounds);
      with_reduction = std::max(with_reduction, (loop + reduces[i]) / rounds);
    }
  }
  const double micros = problem.micro_batches();
  return problem.asynchronous() ? with_reduction : (fill + (micros - 1) * cycle) / micros + longest;
}

}  // namespace medley::sched
