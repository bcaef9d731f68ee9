// A question of operation-level plans and what one run of a search needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "scheduler-service/graph/search.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::reproductions::heterog {

struct Asked {
  Asked(const sched::DeviceProblem& problem, int most_groups, uint64_t seed, int64_t calls)
      : groups(sched::GroupOperations(problem, most_groups)),
        limits(clock, base::SteadyTime::max(), {}),
        judge(problem),
        timer(*judge, groups, limits, calls),
        rng(seed),
        q{problem, groups, timer, rng} {}
  const base::SystemClock clock;
  const sched::OperationGroups groups;
  const sched::Budget limits;
  const sched::JudgeOf judge;
  sched::GraphTimer timer;
  base::Rng rng;
  const sched::GraphQuestion q;
};

inline double Middle(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  if (values.empty()) return 0;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace medley::reproductions::heterog
