// The calibrator recovers known factors from simulated measurements, rejects invalid observations, and saves its state.
#include "scheduler-service/profile/calibration.h"
#include "common/model/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/profile/calibration_records.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr double kBatch = 512;

model::PlanRequest Request(const std::string& name = "m") {
  model::PlanRequest request;
  request.model.name = name;
  for (int l = 0; l < 4; ++l) {
    model::Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.kind = "FULLY_CONNECTED";
    layer.weight_bytes = 1000 * (l + 1);
    layer.profiles = {{"cpu", 0.010 * (l + 1), 0.9, 0.001, 0.002, 0.6, 0, "measured"},
                      {"gpu", 0.002 * (l + 1), 0.6, 0.001, 0.002, 0.5, 0, "measured"},
                      {"tpu", 0.001 * (l + 1), 0.5, 0.001, 0.002, 0.5, 0, "measured"}};
    request.model.layers.push_back(layer);
  }
  request.training.profile_batch_size = kBatch;
  request.training.samples_per_epoch = 1e6;
  return request;
}

// True factors relative to the profile, by type (0 cpu, 1 gpu), and a factor of whole steps.
struct World {
  double compute[2] = {1, 1};
  double comm[2] = {1, 1};
  double rest = 1;
  double noise = 0.02;
  double outliers = 0.15;
};

double Noise(const World& world, base::Rng& rng) {
  const double factor = std::exp(world.noise * (rng.Uniform() + rng.Uniform() + rng.Uniform() - 1.5) * 2);
  return rng.Uniform() < world.outliers ? factor * rng.Uniform(1.5, 6) : factor;
}

model::JobObservation Measure(const model::PlanRequest& request, const World& world, base::Rng& rng) {
  model::JobObservation o;
  o.request = request;
  o.batch_size = kBatch * (rng.Below(2) == 0 ? 1 : 2);
  const int cut = static_cast<int>(rng.Below(3));
  o.stages = {{0, cut, "cpu", 1 + static_cast<int>(rng.Below(32)), 0, 0},
              {cut + 1, 3, "gpu", 1 + static_cast<int>(rng.Below(8)), 0, 0}};
  double step = 0;
  for (int s = 0; s < 2; ++s) {
    const StageRecord p = PredictStage(request.model, o.stages[static_cast<size_t>(s)], o.batch_size, kBatch);
    const double compute = p.compute.Predicted() * world.compute[s];
    const double comm = p.comm.Predicted() * world.comm[s];
    step = std::max({step, compute, comm});
    o.stages[static_cast<size_t>(s)].compute_seconds = compute * Noise(world, rng);
    o.stages[static_cast<size_t>(s)].comm_seconds = comm * Noise(world, rng);
  }
  o.throughput = o.batch_size / (step * world.rest * Noise(world, rng));
  o.job_uid = "job";
  o.generation = 1;
  return o;
}

model::Prediction Feed(Calibrator& calibrator, const model::PlanRequest& request, const World& world, int count,
                       base::Rng& rng, std::string_view tenant = "", const std::string& job = "job") {
  model::Prediction last;
  for (int i = 0; i < count; ++i) {
    model::JobObservation observation = Measure(request, world, rng);
    observation.job_uid = job;
    const auto prediction = calibrator.Observe(observation, tenant);
    EXPECT_THAT(prediction, IsOk());
    if (prediction.ok()) last = *prediction;
  }
  return last;
}

double Of(const model::Prediction& prediction, const std::string& type, double model::Correction::*field) {
  for (const model::Correction& c : prediction.corrections) {
    if (c.resource_type == type) return c.*field;
  }
  ADD_FAILURE() << "no correction of " << type;
  return 0;
}

TEST(CalibratorTest, RecoversFactorsUnderNoiseAndOutliers) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const World world{{1.8, 0.6}, {1.4, 2.5}, 1.3};
    Calibrator calibrator;
    Feed(calibrator, Request(), world, 40, rng);
    model::PlanRequest request = Request();
    const auto prediction = calibrator.Correct(request);
    ASSERT_TRUE(prediction);
    EXPECT_EQ(prediction->observations, 40);
    EXPECT_NEAR(Of(*prediction, "cpu", &model::Correction::compute) / (1.8 * 1.3), 1, 0.12);
    EXPECT_NEAR(Of(*prediction, "gpu", &model::Correction::compute) / (0.6 * 1.3), 1, 0.12);
    EXPECT_NEAR(Of(*prediction, "cpu", &model::Correction::comm) / (1.4 * 1.3), 1, 0.12);
    EXPECT_NEAR(Of(*prediction, "gpu", &model::Correction::comm) / (2.5 * 1.3), 1, 0.12);
    EXPECT_EQ(Of(*prediction, "tpu", &model::Correction::comm) > 1, true);
    EXPECT_NEAR(prediction->ratio_corrected, 1, 0.06);
    EXPECT_LT(prediction->relative_error, 0.10);
    EXPECT_GT(std::abs(prediction->ratio_uncorrected - 1), 0.2);
    for (const model::Layer& layer : request.model.layers) {
      for (const model::LayerProfile& p : layer.profiles) EXPECT_EQ(p.origin, "calibrated");
    }
    request.resources = {{.name = "cpu", .limit = 1}, {.name = "gpu", .limit = 1}, {.name = "tpu", .limit = 1}};
    EXPECT_THAT(model::Validate(request), IsOk());
  }
}

// For plans that never ran, corrected predictions of the step time are better than uncorrected ones.
TEST(CalibratorTest, CorrectedPredictionsOfUnseenPlansAreBetter) {
  double with = 0;
  double without = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    World world;
    const bool wrong = seed % 4 != 0;
    for (double* factor : {&world.compute[0], &world.compute[1], &world.comm[0], &world.comm[1], &world.rest}) {
      if (wrong) *factor = std::exp(rng.Uniform(-0.7, 0.7));
    }
    Calibrator calibrator;
    Feed(calibrator, Request(), world, 3 + static_cast<int>(rng.Below(30)), rng);
    model::PlanRequest corrected = Request();
    ASSERT_TRUE(calibrator.Correct(corrected));
    world.noise = 0;
    world.outliers = 0;
    std::vector<double> errors_with;
    std::vector<double> errors_without;
    for (int i = 0; i < 40; ++i) {
      const model::JobObservation o = Measure(Request(), world, rng);
      const double measured = o.batch_size / o.throughput;
      const auto error = [&](const model::PlanRequest& request) {
        double step = 0;
        for (const model::StageMeasurement& stage : o.stages) {
          const StageRecord p = PredictStage(request.model, stage, o.batch_size, kBatch);
          step = std::max({step, p.compute.Predicted(), p.comm.Predicted()});
        }
        return std::abs(std::log(step / measured));
      };
      errors_with.push_back(error(corrected));
      errors_without.push_back(error(Request()));
    }
    const double median_with = MedianOf(errors_with);
    const double median_without = MedianOf(errors_without);
    EXPECT_LE(median_with, median_without + 0.08);
    with += median_with;
    without += median_without;
  }
  EXPECT_LT(with, 0.4 * without);
}

TEST(CalibratorTest, FewObservationsDoNotCorrect) {
  base::Rng rng(1);
  World world{{2, 2}, {2, 2}};
  world.noise = 0.001;
  world.outliers = 0;
  Calibrator calibrator;
  EXPECT_FALSE(calibrator.Find(Request()));
  Feed(calibrator, Request(), world, 2, rng);
  model::PlanRequest request = Request();
  const auto two = calibrator.Correct(request);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->observations, 2);
  EXPECT_EQ(request.model, Request().model);
  Feed(calibrator, Request(), world, 1, rng);
  EXPECT_NEAR(Of(*calibrator.Correct(request), "cpu", &model::Correction::compute), 2, 0.02);
}

TEST(CalibratorTest, TypesWithoutObservationsUseTheMedianFactor) {
  base::Rng rng(3);
  World world{{1.5, 1.5}, {1.5, 1.5}};
  world.noise = 0.001;
  world.outliers = 0;
  Calibrator calibrator;
  const model::Prediction prediction = Feed(calibrator, Request(), world, 8, rng);
  EXPECT_NEAR(Of(prediction, "tpu", &model::Correction::compute), 1.5, 0.02);
  EXPECT_EQ(Of(prediction, "tpu", &model::Correction::compute) > 0, true);
  for (const model::Correction& c : prediction.corrections) EXPECT_EQ(c.observations, c.resource_type == "tpu" ? 0 : 8);
}

// One type cannot say whether its error is that of all types.
TEST(CalibratorTest, ASingleTypeSaysLittleOfTheOthers) {
  Calibrator calibrator;
  model::JobObservation observation;
  observation.request = Request();
  const int layers = static_cast<int>(observation.request.model.layers.size());
  double seconds = 0;
  for (const model::Layer& layer : observation.request.model.layers) {
    for (const model::LayerProfile& p : layer.profiles) {
      if (p.resource_type == "cpu") seconds += p.compute_seconds;
    }
  }
  observation.batch_size = observation.request.training.profile_batch_size;
  observation.stages = {{0, layers - 1, "cpu", 1, 2 * seconds, 0}};
  observation.throughput = observation.batch_size / (2 * seconds);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(calibrator.Observe(observation).ok());
  model::PlanRequest request = Request();
  const auto prediction = calibrator.Correct(request);
  ASSERT_TRUE(prediction);
  EXPECT_NEAR(Of(*prediction, "cpu", &model::Correction::compute), 2, 0.02);
  EXPECT_NEAR(Of(*prediction, "tpu", &model::Correction::compute), 1.25, 0.02);
}

TEST(CalibratorTest, ANewProfileStartsANewSeries) {
  base::Rng rng(4);
  World world{{2, 2}, {2, 2}};
  world.noise = 0.001;
  world.outliers = 0;
  Calibrator calibrator;
  Feed(calibrator, Request(), world, 6, rng);
  model::PlanRequest anew = Request();
  for (model::Layer& layer : anew.model.layers) layer.profiles[0].compute_seconds *= 2;
  Feed(calibrator, anew, World{{1, 2}, {1, 2}, 1, 0.001, 0}, 6, rng);
  const auto prediction = calibrator.Correct(anew);
  ASSERT_TRUE(prediction);
  EXPECT_NEAR(Of(*prediction, "cpu", &model::Correction::compute), 1, 0.02);
}

TEST(CalibratorTest, CorrectedProfilesAreNotCorrectedTwiceNorObserved) {
  base::Rng rng(5);
  World world{{2, 2}, {2, 2}};
  Calibrator calibrator;
  Feed(calibrator, Request(), world, 10, rng);
  model::PlanRequest request = Request();
  ASSERT_TRUE(calibrator.Correct(request));
  const model::Model once = request.model;
  ASSERT_TRUE(calibrator.Correct(request));
  EXPECT_EQ(request.model, once);
  EXPECT_THAT(calibrator.Observe(Measure(request, world, rng)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is calibrated already")));
}

TEST(CalibratorTest, InvalidObservationsAreRejectedAndNotStored) {
  base::Rng rng(6);
  Calibrator calibrator;
  const model::JobObservation good = Measure(Request(), {}, rng);
  const auto refused = [&](auto spoil, const std::string& reason) {
    model::JobObservation o = good;
    spoil(o);
    EXPECT_THAT(calibrator.Observe(o), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason)));
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  refused([](auto& o) { o.throughput = 0; }, "throughput");
  refused([](auto& o) { o.throughput = std::numeric_limits<double>::infinity(); }, "throughput");
  refused([](auto& o) { o.stages[0].compute_seconds = kNan; }, "stages[0].computeSeconds");
  refused([](auto& o) { o.stages[1].resource_type = "fpga"; }, "stages[1].resourceType");
  refused([](auto& o) { o.stages.pop_back(); }, "stages: end with layer");
  EXPECT_EQ(calibrator.models(), 0);
  EXPECT_THAT(calibrator.Observe(good), IsOk());
  EXPECT_EQ(calibrator.models(), 1);
}

// A world in which everything takes `factor` times as long as predicted.
World Slower(double factor) { return {{factor, factor}, {factor, factor}, 1}; }

double CpuFactor(const Calibrator& calibrator, std::string_view tenant) {
  const auto prediction = calibrator.Find(Request(), tenant);
  return prediction ? Of(*prediction, "cpu", &model::Correction::compute) : 1;
}

TEST(CalibratorTest, OneTenantsReportsDoNotReachAnother) {
  base::Rng rng(44);
  Calibrator calibrator;
  Feed(calibrator, Request(), Slower(9), 48, rng, "liar");
  model::PlanRequest request = Request();
  EXPECT_FALSE(calibrator.Correct(request, "other"));
  EXPECT_EQ(request.model.layers.front().profiles.front().origin,
            Request().model.layers.front().profiles.front().origin);
  EXPECT_NEAR(CpuFactor(calibrator, "liar"), 9, 1.5);
  Feed(calibrator, Request(), Slower(1.5), 6, rng, "other");
  EXPECT_NEAR(CpuFactor(calibrator, "other"), 1.5, 0.2);
}

TEST(CalibratorTest, HonestReportsOutweighAJobThatLies) {
  for (const double lie : {0.12, 0.3, 4.0, 9.0}) {
    SCOPED_TRACE(lie);
    base::Rng rng(44);
    Calibrator calibrator;
    Feed(calibrator, Request(), Slower(lie), 6, rng, "tenant", "liar");
    Feed(calibrator, Request(), Slower(1), 6, rng, "tenant", "first");
    EXPECT_NEAR(CpuFactor(calibrator, "tenant"), 1, 0.1);
    Feed(calibrator, Request(), Slower(lie), 40, rng, "tenant", "liar");  // however much it reports
    EXPECT_NEAR(CpuFactor(calibrator, "tenant"), 1, 0.1);
    Feed(calibrator, Request(), Slower(1.1), 6, rng, "tenant", "second");
    EXPECT_NEAR(CpuFactor(calibrator, "tenant"), 1.05, 0.12);
  }
}

// However one tenant lies, and in however many jobs, what others get stays between what honest tenants measured.
TEST(CalibratorTest, OneLiarAmongTenantsChangesNothingThatMatters) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    Calibrator calibrator;
    double low = 10, high = 0.1;
    const uint64_t honest = 3 + rng.Below(3);
    for (uint64_t i = 0; i < honest; ++i) {
      const double factor = rng.Uniform(0.7, 1.8);
      low = std::min(low, factor);
      high = std::max(high, factor);
      Feed(calibrator, Request(), Slower(factor), 8, rng, "honest" + std::to_string(i));
    }
    for (uint64_t job = 0; job < 1 + rng.Below(4); ++job) {
      const double lie = rng.Below(2) == 0 ? rng.Uniform(0.1, 0.5) : rng.Uniform(3, 10);
      Feed(calibrator, Request(), Slower(lie), static_cast<int>(3 + rng.Below(20)), rng, "liar", std::to_string(job));
    }
    const double got = CpuFactor(calibrator, "newcomer");
    EXPECT_GE(got, std::min(low, 1.0) * 0.85);
    EXPECT_LE(got, std::max(high, 1.0) * 1.15);
  }
}

TEST(CalibratorTest, TenantsThatLieTogetherChangeOthersWithinBounds) {
  base::Rng rng(44);
  Calibrator calibrator;
  for (int i = 0; i < 2; ++i) Feed(calibrator, Request(), Slower(9), 6, rng, "liar" + std::to_string(i));
  EXPECT_EQ(CpuFactor(calibrator, "newcomer"), 1);  // two are too few
  for (int i = 2; i < 9; ++i) Feed(calibrator, Request(), Slower(9), 6, rng, "liar" + std::to_string(i));
  EXPECT_NEAR(CpuFactor(calibrator, "newcomer"), 2, 1e-9);
  Feed(calibrator, Request(), Slower(1), 6, rng, "newcomer");  // its own reports count alone
  EXPECT_NEAR(CpuFactor(calibrator, "newcomer"), 1, 0.1);
}

TEST(CalibratorTest, ATenantCannotDropWhatOthersHaveLearned) {
  base::Rng rng(44);
  Calibrator calibrator({.max_models = 8, .max_jobs = 4});
  Feed(calibrator, Request(), Slower(1.5), 6, rng, "honest");
  for (int i = 0; i < 40; ++i) {
    Feed(calibrator, Request("m" + std::to_string(i)), Slower(9), 1, rng, "liar", std::to_string(i));
    Feed(calibrator, Request(), Slower(9), 1, rng, "liar", std::to_string(i));
  }
  EXPECT_LE(calibrator.models(), 8);
  EXPECT_NEAR(CpuFactor(calibrator, "honest"), 1.5, 0.2);
}

TEST(CalibratorTest, TenantsAreSavedApart) {
  base::Rng rng(44);
  Calibrator saved;
  Feed(saved, Request(), Slower(9), 6, rng, "liar");
  Feed(saved, Request(), Slower(1.5), 6, rng, "honest", "a");
  Feed(saved, Request(), Slower(1.5), 6, rng, "honest", "b");
  Calibrator loaded;
  ASSERT_THAT(loaded.Load(saved.Save()), IsOk());
  EXPECT_EQ(loaded.models(), 3);
  for (const char* tenant : {"liar", "honest", "other"}) {
    EXPECT_EQ(CpuFactor(loaded, tenant), CpuFactor(saved, tenant)) << tenant;
  }
}

TEST(CalibratorTest, DropsTheLeastRecentlyUsedModel) {
  base::Rng rng(7);
  Calibrator calibrator({.max_models = 3});
  for (const char* name : {"a", "b", "c"}) ASSERT_THAT(calibrator.Observe(Measure(Request(name), {}, rng)), IsOk());
  EXPECT_TRUE(calibrator.Find(Request("a")));  // counts as a use
  ASSERT_THAT(calibrator.Observe(Measure(Request("d"), {}, rng)), IsOk());
  EXPECT_EQ(calibrator.models(), 3);
  EXPECT_TRUE(calibrator.Find(Request("a")));
  EXPECT_FALSE(calibrator.Find(Request("b")));
}

TEST(CalibratorTest, MemoryOfAModelIsBounded) {
  base::Rng rng(8);
  Calibrator calibrator({.max_types = 4});
  for (int i = 0; i < 300; ++i) {
    model::PlanRequest request = Request();
    request.model.layers[0].profiles[0].compute_seconds = 0.01 + i / 20 * 1e-4;  // a new series every 20 observations
    ASSERT_THAT(calibrator.Observe(Measure(request, {}, rng)), IsOk());
  }
  EXPECT_LT(calibrator.Save().size(), 20'000u);
  EXPECT_TRUE(calibrator.Find(Request()));
  Calibrator one_series;
  for (int i = 0; i < 530; ++i) ASSERT_THAT(one_series.Observe(Measure(Request(), {}, rng)), IsOk());
  EXPECT_EQ(one_series.Find(Request())->observations, 512);  // with two stages each
}

TEST(CalibratorTest, SaveAndLoad) {
  base::Rng rng(9);
  Calibrator calibrator;
  Feed(calibrator, Request("a"), World{{2, 1.5}, {1, 1}}, 12, rng);
  Feed(calibrator, Request("b"), {}, 5, rng);
  const std::string bytes = calibrator.Save();
  Calibrator other;
  ASSERT_THAT(other.Load(bytes), IsOk());
  EXPECT_EQ(other.Find(Request("a")), calibrator.Find(Request("a")));
  EXPECT_EQ(other.Find(Request("b")), calibrator.Find(Request("b")));
  const auto before = other.Find(Request("a"));
  // Every changed byte and every truncation is detected, and the state stays unchanged.
  for (int i = 0; i < 300; ++i) {
    std::string broken = bytes;
    if (i % 2 == 0) {
      broken[rng.Below(broken.size())] ^= static_cast<char>(1 + rng.Below(255));
    } else {
      broken.resize(rng.Below(broken.size()));
    }
    EXPECT_THAT(other.Load(broken), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_EQ(other.Find(Request("a")), before);
}

TEST(CalibrationRecordsTest, InvalidBytesAreRejected) {
  base::Rng rng(10);
  ModelRecords records;
  records.series = {{"cpu", 1}};
  records.steps = {{0.1, {{0, {0.1, 0.2, 0.3}, {0, 0, 0}}}}};
  const std::string bytes = ToBytes("f", records);
  std::string_view rest = bytes;
  EXPECT_THAT(TakeRecords(rest), IsOk());
  EXPECT_TRUE(rest.empty());
  for (int i = 0; i < 2000; ++i) {  // bypasses the checksum
    std::string broken = bytes;
    broken[rng.Below(broken.size())] = static_cast<char>(rng.Below(256));
    rest = broken;
    const auto taken = TakeRecords(rest);
    if (!taken.ok()) continue;
    for (const StepRecord& step : taken->records.steps) {
      for (const StageRecord& stage : step.stages) ASSERT_LT(stage.series, taken->records.series.size());
    }
  }
}

TEST(CalibratorTest, ThreadsMayShareIt) {
  Calibrator calibrator({.max_models = 4});
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&calibrator, t] {
      base::Rng rng(100 + t);
      for (int i = 0; i < 30; ++i) {
        model::PlanRequest request = Request("m" + std::to_string(rng.Below(6)));
        EXPECT_THAT(calibrator.Observe(Measure(request, {}, rng)), IsOk());
        calibrator.Correct(request);
        if (i % 10 == 0) {
          EXPECT_THAT(calibrator.Load(calibrator.Save()), IsOk());
        }
      }
    });
  }
  threads.clear();
  EXPECT_LE(calibrator.models(), 5);
}

}  // namespace
}  // namespace medley::sched
