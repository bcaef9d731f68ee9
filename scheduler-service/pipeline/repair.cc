#include "scheduler-service/pipeline/repair.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace medley::sched {
namespace {

// Neighbouring layers of one group.
struct Run {
  int first = 0;
  int end = 0;
  int group = 0;
};

double WorkOfLayers(const DeviceProblem& problem, int first, int end) { return problem.WorkOf(first, end, 0).At(1); }

std::vector<Run> RunsOfPieces(const DeviceProblem& problem, const std::vector<int>& group_of_layer, bool& changed) {
  std::vector<int> bounds = problem.cuts();
  bounds.push_back(problem.layers());
  std::vector<Run> runs;
  int first = 0;
  for (const int end : bounds) {
    std::map<int, double> weight;
    for (int l = first; l < end; ++l) {
      weight[group_of_layer[static_cast<size_t>(l)]] += WorkOfLayers(problem, l, l + 1);
    }
    int best = group_of_layer[static_cast<size_t>(first)];
    for (const auto& [group, work] : weight) {
      if (work > weight[best]) best = group;
    }
    changed = changed || weight.size() > 1;
    if (!runs.empty() && runs.back().group == best) {
      runs.back().end = end;
    } else {
      runs.push_back({first, end, best});
    }
    first = end;
  }
  return runs;
}

// Joins the runs whose group has a larger run elsewhere to the run before, or else after.
std::vector<Run> OneRunEach(const DeviceProblem& problem, const std::vector<Run>& runs, bool& changed) {
  std::map<int, const Run*> largest;
  for (const Run& run : runs) {
    const Run*& best = largest[run.group];
    if (best == nullptr || WorkOfLayers(problem, run.first, run.end) > WorkOfLayers(problem, best->first, best->end)) {
      best = &run;
    }
  }
  std::vector<Run> kept;
  for (const Run& run : runs) {
    if (largest[run.group] == &run) {
      kept.push_back({kept.empty() ? 0 : run.first, run.end, run.group});
      continue;
    }
    changed = true;
    if (!kept.empty()) kept.back().end = run.end;
  }
  return kept;
}

}  // namespace

RepairedPipeline RepairPipeline(const DeviceProblem& problem, const std::vector<int>& group_of_layer,
                                const std::vector<std::vector<int>>& devices_of_group) {
  RepairedPipeline out;
  const std::vector<Run> runs = OneRunEach(problem, RunsOfPieces(problem, group_of_layer, out.changed), out.changed);
  const auto wanted = [&](const Run& run) -> const std::vector<int>& {
    static const std::vector<int> kNone;
    const auto group = static_cast<size_t>(run.group);
    return group < devices_of_group.size() ? devices_of_group[group] : kNone;
  };
  std::set<int> used, reserved;
  for (const Run& run : runs) reserved.insert(wanted(run).begin(), wanted(run).end());
  for (const Run& run : runs) {
    PipelineStage stage{run.first, run.end, {}};
    for (const int d : wanted(run)) {
      if (used.insert(d).second) {
        stage.devices.push_back(d);
      } else {
        out.changed = true;
      }
    }
    for (int d = 0; stage.devices.empty() && d < problem.devices(); ++d) {
      if (reserved.contains(d) || !used.insert(d).second) continue;
      stage.devices.push_back(d);
      out.changed = true;
    }
    if (stage.devices.empty() && !out.stages.empty()) {
      out.stages.back().end = stage.end;
      out.changed = true;
      continue;
    }
    out.stages.push_back(std::move(stage));
  }
  // Only the first stage can still have no device: all were reserved by later ones.
  if (out.stages.size() > 1 && out.stages.front().devices.empty()) {
    out.stages[1].first = 0;
    out.stages.erase(out.stages.begin());
    out.changed = true;
  }
  if (out.stages.front().devices.empty()) out.stages.front().devices.push_back(0);
  for (PipelineStage& stage : out.stages) std::ranges::sort(stage.devices);
  return out;
}

}  // namespace medley::sched
