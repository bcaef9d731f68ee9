#include "reproductions/heterog/bench/graph/virtual_workers.h"

#include <algorithm>
#include <set>
#include <stop_token>

#include "reproductions/heterog/hetpipe.h"
#include "scheduler-service/pipeline/timer.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::reproductions::heterog {
namespace {

using base::IsOk;
using sched::ClusterRequest;
using sched::DeviceProblem;
using sched::kForever;
using sched::NoLimits;
using sched::ProblemOf;

// Seconds of planner `hetpipe` on all devices.
double TogetherOn(const DeviceProblem& problem) {
  const sched::Budget limits = NoLimits();
  const sched::JudgeOf judge(problem);
  sched::PipelineTimer timer(*judge, limits);
  for (const auto& stages : reproductions::heterog::HetPipe(problem, limits)) timer.Seconds(stages);
  return timer.best_seconds();
}

// What a worker of these devices takes, by a request of its own.
double SecondsOf(model::PlanRequest request, const std::vector<size_t>& devices) {
  const std::vector<model::Device> all = request.cluster.devices;
  request.cluster.devices.clear();
  for (const size_t d : devices) request.cluster.devices.push_back(all[d]);
  std::erase_if(request.cluster.links, [&](const model::ClusterLink& link) {
    return link.from != "*" && std::ranges::none_of(request.cluster.devices, [&](const model::Device& device) {
             return device.location == link.from;
           });
  });
  return TogetherOn(ProblemOf(std::move(request)));
}

// The most samples a second of all ways to add the devices from `next` on to these workers, by enumeration.
double MostOf(const model::PlanRequest& request, std::vector<std::vector<size_t>> workers, size_t next,
              size_t devices) {
  if (next == devices) {
    double rate = 0;
    for (const auto& worker : workers) rate += 1 / SecondsOf(request, worker);
    return rate;
  }
  double most = 0;
  for (size_t w = 0; w <= workers.size(); ++w) {
    std::vector<std::vector<size_t>> more = workers;
    if (w == workers.size()) more.emplace_back();
    more[w].push_back(next);
    most = std::max(most, MostOf(request, more, next + 1, devices));
  }
  return most;
}

TEST(VirtualWorkersTest, FarMachinesWorkAloneAndTheirRatesAddUp) {
  model::PlanRequest request = ClusterRequest({1, 1}, {1, 3}, 12);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.cluster.links = {{"*", "*", 1, 1e3}};
  const auto found = BestVirtualWorkers(ProblemOf(request), NoLimits());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->workers.size(), 2u);
  EXPECT_NEAR(1 / found->seconds, 1 / SecondsOf(request, {0}) + 1 / SecondsOf(request, {1}), 1e-9);
}

TEST(VirtualWorkersTest, MachinesTooSmallForTheModelShareIt) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 8, 1, 4e6);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const double alone = SecondsOf(request, {0});
  ASSERT_LT(alone, kForever);
  double together = kForever;
  // The least memory in which two of them can train it.
  for (double bytes = 1e6; together == kForever; bytes *= 1.1) {
    ASSERT_LT(bytes, 1e12);
    request.resources[0].memory_bytes = bytes;
    together = SecondsOf(request, {0, 1});
  }
  ASSERT_EQ(SecondsOf(request, {0}), kForever);
  const auto found = BestVirtualWorkers(ProblemOf(request), NoLimits());
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->workers.size(), 1u);
  EXPECT_EQ(found->workers[0].size(), 2u);
  EXPECT_EQ(found->seconds, together);
}

TEST(VirtualWorkersTest, NoPartitionIsBetter) {
  size_t several = 0, alone = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    model::PlanRequest request = sched::RandomClusterRequest(rng, 4, 6);
    request.planner.schedule = model::ScheduleKind::kAsync1F1B;
    // From what all together need on: some machines hold the model alone, some only with others.
    const auto limit = [&](double bytes) {
      for (model::Resource& resource : request.resources) resource.memory_bytes = bytes;
    };
    double bytes = 1e6;
    for (limit(bytes); SecondsOf(request, {0, 1, 2, 3}) == kForever; limit(bytes)) {
      ASSERT_LT(bytes, 1e13);
      bytes *= 1.1;
    }
    limit(bytes * sched::LogUniform(rng, 1, 4));
    const auto found = BestVirtualWorkers(ProblemOf(request), NoLimits());
    ASSERT_THAT(found, IsOk());
    const double most = MostOf(request, {}, 0, 4);
    EXPECT_NEAR(1 / found->seconds, most, 1e-6 * most) << "seed " << seed;
    std::set<std::string> used;
    double rate = 0;
    for (const auto& worker : found->workers) {
      std::vector<size_t> devices;
      for (const std::string& name : worker) {
        EXPECT_TRUE(used.insert(name).second) << name;
        devices.push_back(static_cast<size_t>(name.back() - '0'));  // d0 to d3
      }
      rate += 1 / SecondsOf(request, devices);
      (worker.size() > 1 ? several : alone) += 1;
    }
    EXPECT_NEAR(rate, most, 1e-6 * most) << "seed " << seed;
  }
  EXPECT_GT(several, 0u);
  EXPECT_GT(alone, 0u);
}

TEST(VirtualWorkersTest, MachinesAreBoundedAndLimitsKept) {
  model::PlanRequest request = ClusterRequest({static_cast<int>(kMostMachines) + 1}, {1}, 4);
  EXPECT_THAT(BestVirtualWorkers(ProblemOf(request), NoLimits()).status(),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("at most 8 machines, not 9")));
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  const auto found = BestVirtualWorkers(ProblemOf(ClusterRequest({2}, {1}, 4)),
                                        sched::Budget(clock, base::SteadyTime::max(), stop.get_token()));
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->seconds, kForever);
  EXPECT_TRUE(found->workers.empty());
}

}  // namespace
}  // namespace medley::reproductions::heterog
