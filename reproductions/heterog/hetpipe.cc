#include "reproductions/heterog/hetpipe.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/pipeline/closed_form.h"

namespace medley::reproductions::heterog {
namespace {

using sched::Budget;
using sched::DeviceProblem;
using sched::kForever;
using sched::PipelineStage;

// The devices of each stage, one of each virtual worker; the stages of one pool are neighbours, in the order of
// `pools`.
std::vector<std::vector<int>> StagesOf(const std::vector<std::vector<int>>& pools, size_t workers) {
  std::vector<std::vector<int>> stages;
  for (const std::vector<int>& members : pools) {
    const size_t each = members.size() / workers;
    for (size_t stage = 0; stage < each; ++stage) {
      std::vector<int>& devices = stages.emplace_back();
      for (size_t worker = 0; worker < workers; ++worker) devices.push_back(members[worker * each + stage]);
    }
  }
  return stages;
}

// The division into one piece for each of `on` whose slowest stage or transfer is the fastest. Where the model has
// fewer pieces, the last of `on` are not used.
std::vector<PipelineStage> Divide(const DeviceProblem& problem, std::vector<std::vector<int>> on, double& slowest) {
  std::vector<int> bounds = {0};
  bounds.insert(bounds.end(), problem.cuts().begin(), problem.cuts().end());
  bounds.push_back(problem.layers());
  on.resize(std::min(on.size(), bounds.size() - 1));
  const auto work = [&](size_t stage, size_t i, size_t j) {
    double seconds = 0;
    for (const int d : on[stage]) {
      const double share = 1.0 / static_cast<double>(on[stage].size());
      seconds = std::max(seconds, problem.WorkOf(bounds[i], bounds[j], d).At(share));
    }
    return seconds;
  };
  // best[s][j]: the slowest of the first s stages up to boundary j.
  struct Entry {
    double seconds = kForever;
    size_t first = 0;
  };
  std::vector<std::vector<Entry>> best(on.size() + 1, std::vector<Entry>(bounds.size()));
  for (size_t j = 1; j < bounds.size(); ++j) best[1][j] = {work(0, 0, j), 0};
  for (size_t s = 2; s <= on.size(); ++s) {
    for (size_t i = s - 1; i + 1 < bounds.size(); ++i) {
      const double moves = sched::TransferSeconds(problem, on[s - 2], on[s - 1], bounds[i]);
      for (size_t j = i + 1; j < bounds.size(); ++j) {
        const double seconds = std::max({best[s - 1][i].seconds, moves, work(s - 1, i, j)});
        if (seconds < best[s][j].seconds) best[s][j] = {seconds, i};
      }
    }
  }
  slowest = best[on.size()].back().seconds;
  std::vector<PipelineStage> stages;
  size_t j = bounds.size() - 1;
  for (size_t s = on.size(); s > 0; --s) {
    const size_t i = best[s][j].first;
    stages.push_back({bounds[i], bounds[j], on[s - 1]});
    j = i;
  }
  std::ranges::reverse(stages);
  return stages;
}

}  // namespace

std::vector<std::vector<PipelineStage>> HetPipe(const DeviceProblem& problem, const Budget& limits) {
  std::map<std::string, std::vector<int>> by_name;
  for (int d = 0; d < problem.devices(); ++d) by_name[problem.device(d).pool].push_back(d);
  std::vector<std::vector<int>> pools;
  for (auto& [name, members] : by_name) pools.push_back(std::move(members));
  std::ranges::sort(pools);
  const size_t fewest = std::ranges::min_element(pools, {}, &std::vector<int>::size)->size();
  std::vector<std::vector<PipelineStage>> found;
  for (size_t workers = 1; workers <= fewest; ++workers) {
    if (std::ranges::any_of(pools, [&](const auto& members) { return members.size() % workers != 0; })) continue;
    constexpr int kMostOrders = 120;
    std::vector<PipelineStage> best;
    double least = kForever;
    std::vector<std::vector<int>> order = pools;
    for (int tried = 0; tried < kMostOrders && !limits.Spent(); ++tried) {
      double seconds = kForever;
      std::vector<PipelineStage> stages = Divide(problem, StagesOf(order, workers), seconds);
      if (seconds < least) {
        least = seconds;
        best = std::move(stages);
      }
      if (!std::ranges::next_permutation(order).found) break;
    }
    if (!best.empty()) found.push_back(std::move(best));
  }
  return found;
}

}  // namespace medley::reproductions::heterog
