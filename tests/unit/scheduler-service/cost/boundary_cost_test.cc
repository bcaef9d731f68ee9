// Tests what boundaries between two types cost, and one more group that sums, with numbers computed by hand.
//
// Three layers of 1 s of computation that divides and outputs of 1,000 bytes, 64 samples: 64,000 bytes pass each
// boundary in either direction. x is 0.25 s.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"

namespace medley::sched {
namespace {

constexpr double kNear = 1e-12, kBytes = 64'000;
constexpr std::array kNames = {"a", "b", "c"};

model::PlanRequest ThreeLayers() {
  model::PlanRequest request;
  for (int l = 0; l < 3; ++l) {
    model::Layer& layer = request.model.layers.emplace_back();
    layer.name = fmt::format("l{}", l);
    layer.output_bytes = 1000;
    for (const char* type : kNames) {
      layer.profiles.push_back({.resource_type = type,
                                .compute_seconds = 1,
                                .compute_parallel = 1,
                                .transfer_seconds = 0.25,
                                .comm_parallel = 0.5});
    }
  }
  request.training = {.profile_batch_size = 64, .samples_per_epoch = 1e6};
  for (const char* type : kNames) {
    request.resources.push_back({.name = type, .price_per_unit_hour = 1, .limit = 100});
  }
  return request;
}

model::Link LinkOf(const std::string& from, const std::string& to, double latency, double speed) {
  return {.from = from, .to = to, .latency_seconds = latency, .bytes_per_second = speed};
}

// A layer on each of the types.
std::vector<StageChoice> OneLayerEachOn(const std::array<int, 3>& types) {
  return {{0, 0, types[0], 1}, {1, 1, types[1], 1}, {2, 2, types[2], 1}};
}

PlacedTerms TermsOf(const model::PlanRequest& request, const std::array<int, 3>& types, size_t stage) {
  const auto problem = Problem::Compile(request);
  EXPECT_THAT(problem, base::IsOk());
  return problem->ForStages(3).TermsIn(OneLayerEachOn(types), stage);
}

TEST(BoundaryCostTest, BothSidesCarryWhatPassesInBothDirections) {
  model::PlanRequest request = ThreeLayers();
  request.links = {LinkOf("a", "b", 0, 64'000), LinkOf("b", "a", 0, 128'000), LinkOf("b", "c", 0, 32'000)};
  // a to b and back: 1 + 0.5 s. b to c and back, of which one direction is known: 2 + 2 s. Units divide it.
  for (const int units : {1, 4}) {
    EXPECT_NEAR(TermsOf(request, {0, 1, 2}, 0).CommSeconds(units), 1.5 / units, kNear);
    EXPECT_NEAR(TermsOf(request, {0, 1, 2}, 1).CommSeconds(units), 4.0 / units, kNear) << "the larger boundary";
    EXPECT_NEAR(TermsOf(request, {0, 1, 2}, 2).CommSeconds(units), 4.0 / units, kNear);
    EXPECT_NEAR(TermsOf(request, {0, 1, 2}, 1).ComputeSeconds(units), 1.0 / units, kNear);
  }
}

TEST(BoundaryCostTest, UnknownLinksCostTheCopyOfTheProfile) {
  model::PlanRequest request = ThreeLayers();
  const double x = 0.5 * 0.25 + 0.5 * 0.25 / 2;
  EXPECT_NEAR(TermsOf(request, {0, 2, 1}, 0).CommSeconds(2), x, kNear);
  request.links = {LinkOf("a", "b", 0, 64'000)};
  EXPECT_NEAR(TermsOf(request, {0, 1, 2}, 0).CommSeconds(1), 2, kNear);
  EXPECT_NEAR(TermsOf(request, {0, 2, 1}, 0).CommSeconds(2), x, kNear) << "a to c is unknown";
  EXPECT_NEAR(TermsOf(request, {0, 2, 1}, 1).CommSeconds(2), x, kNear) << "only the sender is known to pay";
  EXPECT_NEAR(TermsOf(request, {0, 2, 1}, 2).CommSeconds(2), 0, kNear);
  EXPECT_NEAR(TermsOf(request, {0, 0, 1}, 0).CommSeconds(2), x, kNear) << "neighbours of one type, too";
}

TEST(BoundaryCostTest, NeighboursOfOneTypeHaveTheLinkWithinIt) {
  model::PlanRequest request = ThreeLayers();
  request.links = {LinkOf("a", "a", 0, 64'000), LinkOf("b", "b", 0, 16'000)};
  EXPECT_NEAR(TermsOf(request, {0, 0, 1}, 0).CommSeconds(1), 2, kNear);
  EXPECT_NEAR(TermsOf(request, {0, 0, 1}, 1).CommSeconds(1), 8, kNear) << "between both, the slower of the two";
}

TEST(BoundaryCostTest, StagesWaitForCopiesThatOneMicroBatchNeeds) {
  model::PlanRequest request = ThreeLayers();
  request.links = {LinkOf("a", "b", 0.01, 640'000), LinkOf("b", "a", 0.03, 640'000)};
  constexpr int kMicro = 8;
  request.training.micro_batches = kMicro;
  const double fill = (kMicro + 2.0) / kMicro, copy = 0.2, latency = kMicro * 0.04;
  const auto seconds = [&](model::ScheduleKind schedule) {
    request.planner.schedule = schedule;
    return TermsOf(request, {0, 1, 0}, 0).ComputeSeconds(2);
  };
  EXPECT_NEAR(seconds(model::ScheduleKind::kGpipe), fill / 2 + 2.0 / kMicro * (latency + copy / 2), kNear);
  EXPECT_NEAR(seconds(model::ScheduleKind::kSync1F1B), fill / 2 + (2.0 / 3 + 1.0 / kMicro) * (latency + copy / 2),
              kNear);
  EXPECT_NEAR(seconds(model::ScheduleKind::kAsync1F1B), 1.0 / 2 + 2.0 / 3 * (latency + copy / 2), kNear);
  request.training.micro_batches = 0;
  EXPECT_NEAR(seconds(model::ScheduleKind::kSync1F1B), 1.0 / 2, kNear) << "unknown: nothing fills";
}

TEST(BoundaryCostTest, PlansAreAsFastAsTheirSlowestBoundary) {
  model::PlanRequest request = ThreeLayers();
  request.links = {LinkOf("a", "b", 0, kBytes / 2), LinkOf("b", "c", 0, kBytes * 100)};
  const Problem problem = Problem::Compile(request).value();
  const Evaluation evaluation = Evaluate(problem, OneLayerEachOn({0, 1, 2}));
  EXPECT_NEAR(evaluation.plan.throughput, 64 / 4.0, 1e-9);
  EXPECT_NEAR(evaluation.plan.stages[2].throughput, 64.0, 1e-9);
  EXPECT_NEAR(evaluation.plan.stages[1].comm_seconds, 4, kNear);
  EXPECT_NEAR(Evaluate(problem, OneLayerEachOn({1, 2, 1})).plan.throughput, 64.0, 1e-9);
}

TEST(BoundaryCostTest, HostileLinksGiveFiniteCosts) {
  model::PlanRequest request = ThreeLayers();
  request.training.micro_batches = 4;
  for (const double bytes : {0.0, 1e3, 1e18}) {
    for (model::Layer& layer : request.model.layers) layer.output_bytes = bytes;
    for (const double latency : {0.0, 1e18}) {
      for (const double speed : {5e-324, 1e-300, 1e18}) {
        request.links = {LinkOf("a", "b", latency, speed)};
        const Score score = ScoreOf(Problem::Compile(request).value(), OneLayerEachOn({0, 1, 0}));
        EXPECT_GE(score.throughput, 0);
        EXPECT_LE(score.throughput, 64);
      }
    }
  }
}

// y is 0.4 s for each of two layers that sum, of which an allreduce takes 0.1 s whatever its size.
TEST(BoundaryCostTest, EachStageThatSumsPaysForOneGroup) {
  model::PlanRequest request = ThreeLayers();
  for (model::Layer& layer : request.model.layers) {
    for (model::LayerProfile& p : layer.profiles) p.sync_seconds = 0.4;
  }
  request.model.layers[0].weight_bytes = request.model.layers[1].weight_bytes = 1e6;
  request.model.layers[2].weight_bytes = 0;
  const auto measured = [](int ranks, int64_t bytes, double seconds) {
    return model::AllreduceMeasurement{.resource_type = "a", .ranks = ranks, .bytes = bytes, .seconds = seconds};
  };
  const auto seconds = [&](int first, int last) {
    return Problem::Compile(request)->LeastTerms(first, last, 0).CommSeconds(1);
  };
  request.links = {LinkOf("b", "c", 0, 1e9)};
  EXPECT_NEAR(seconds(0, 2), 1.2, kNear) << "nothing was measured";
  request.allreduces = {measured(4, 1024, 0.001), measured(2, 1 << 20, 0.3), measured(2, 4096, 0.2),
                        measured(2, 4096, 0.1)};
  EXPECT_NEAR(seconds(0, 2), 1.1, kNear) << "two layers are summed together";
  EXPECT_NEAR(seconds(0, 0), 0.4, kNear);
  EXPECT_NEAR(seconds(1, 2), 0.8, kNear);
  EXPECT_NEAR(seconds(2, 2), 0.4, kNear) << "nothing to sum";
  request.allreduces = {measured(2, 4096, 7)};
  EXPECT_NEAR(seconds(0, 2), 0.8, kNear) << "no more than what the layers take";
  request.model.layers[1].sparse = true;
  EXPECT_NEAR(seconds(0, 2), 1.2, kNear) << "rows are not summed";
}

}  // namespace
}  // namespace medley::sched
