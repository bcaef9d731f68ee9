// Whole tables in the memory of a device, and tables of which it has a cache, against those in the host's: after steps
// of every optimizer, an undo, a copy to the host and back, and for steps that compute with older rows. In the build
// with CUDA the device is a GPU.
#include "worker/aten/resident_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/needs_gpu.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr double kMostApart = 1e-5;

std::vector<ParameterSpec> TwoTables() {
  std::vector<ParameterSpec> tables(2);
  for (size_t t = 0; t < 2; ++t) {
    tables[t] = {.operation = static_cast<int>(3 * t), .name = "table", .rows = 50, .columns = 3 + static_cast<int>(t)};
    tables[t].sparse = true;
    tables[t].initializer = Initializer::kUniform;
    tables[t].scale = 0.5F;
  }
  return tables;
}

struct TableRule {
  std::string name;
  Optimizer optimizer;
  double cached = 0;  // the part of the tables that a cache has; 0: they are on the device
};

std::vector<TableRule> TableRules() {
  std::vector<TableRule> rules;
  for (const char* name : {"sgd", "adagrad", "adam", "adamw", "rmsprop", "ftrl"}) {
    rules.push_back({name, *MakeOptimizer(name, 0.05)});
  }
  Optimizer momentum = *MakeOptimizer("sgd", 0.05);
  momentum.kind = OptimizerKind::kMomentum;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 0.01F;
  rules.push_back({"momentum", momentum});
  for (size_t i = 0, whole = rules.size(); i < whole; ++i) {
    rules.push_back({rules[i].name + "_cached", rules[i].optimizer, 0.6});
  }
  // A cache that is too small for a step grows.
  rules.push_back({"adam_tiny", *MakeOptimizer("adam", 0.05), 0.02});
  return rules;
}

// The same tables of the host and of the device.
class TablePair {
 public:
  TablePair(const TableRule& rule, int kept)
      : place_(*OpenTestedDevice()),
        host_(TwoTables(), rule.optimizer, 7, kept),
        device_(*ResidentTables::Create(TwoTables(), rule.optimizer, 7, kept, place_,
                                        rule.cached * ResidentTables::Bytes(TwoTables(), rule.optimizer))) {}

  static std::vector<TableKeys> KeysOf(int64_t step) {
    base::Rng rng(static_cast<uint64_t>(step));
    std::vector<TableKeys> all;
    for (const ParameterSpec& spec : TwoTables()) {
      std::set<uint64_t> keys;
      const uint64_t count = step % 5 == 0 ? 0 : 12;  // some steps have none
      while (keys.size() < count) keys.insert(rng.Below(static_cast<uint64_t>(spec.rows)));
      all.push_back({spec.operation, static_cast<int>(spec.columns), {keys.begin(), keys.end()}});
    }
    return all;
  }

  // A step, whose gradients depend on its number alone.
  void Step(int64_t step) {
    const std::vector<TableKeys> keys = KeysOf(step);
    base::Rng rng(static_cast<uint64_t>(100 + step));
    std::vector<Floats> gradients;
    std::vector<std::span<const float>> spans;
    for (size_t t = 0; t < keys.size(); ++t) {
      Floats& values = gradients.emplace_back(keys[t].keys.size() * static_cast<size_t>(keys[t].columns));
      for (float& x : values) x = static_cast<float>(rng.Uniform(-1, 1));
      const at::Tensor sums = Over(values, {std::ssize(keys[t].keys), keys[t].columns});
      const auto gathered = device_->Gather(t, keys[t].keys, step - 1, step);
      ASSERT_THAT(gathered, IsOk());
      device_->SetGradients(step, t, gathered->places, values.empty() ? at::Tensor() : *place_.ToPlace(sums));
    }
    for (const Floats& values : gradients) spans.push_back(values);
    // The next step's rows are asked for before this one is applied.
    std::vector<std::vector<float>> none;
    const WaitLimit now{{}, base::SteadyTime{}};
    EXPECT_THAT(device_->Pull(step + 1, KeysOf(step + 1), none, now), StatusIs(absl::StatusCode::kDeadlineExceeded));
    ASSERT_THAT(host_.Push(step, keys, spans, 1, {}), IsOk());
    ASSERT_THAT(device_->Push(step, keys, {}, 1, {}), IsOk());
  }

  // Whole tables, by what the host sees.
  void ExpectEqual(const std::string& when) {
    EXPECT_EQ(device_->AppliedStep(), host_.AppliedStep());
    EXPECT_EQ(device_->UndoLimit(), host_.UndoLimit());
    for (const ParameterSpec& spec : TwoTables()) {
      EXPECT_LE(Difference(device_->Weights(spec.operation), host_.Weights(spec.operation)), kMostApart) << when;
      EXPECT_LE(Difference(device_->State(spec.operation), host_.State(spec.operation)), kMostApart) << when;
    }
    EXPECT_THAT(device_->Failure(), IsOk());
  }

  // Rows of the keys of a step, with an older version.
  void ExpectRows(int64_t step, int64_t version) {
    const std::vector<TableKeys> keys = KeysOf(step);
    std::vector<std::vector<float>> expected;
    ASSERT_THAT(host_.Pull(version + 1, keys, expected, {}), IsOk());
    for (size_t t = 0; t < keys.size(); ++t) {
      const auto gathered = device_->Gather(t, keys[t].keys, version, 0);
      ASSERT_THAT(gathered, IsOk());
      Floats found(expected[t].size());
      if (found.empty()) continue;
      ASSERT_THAT(place_.CopyOut(gathered->rows.contiguous(), found), IsOk());
      EXPECT_LE(Difference(found, expected[t]), kMostApart) << "version " << version;
    }
  }

  LocalTables& host() { return host_; }
  ResidentTables& device() { return *device_; }

 private:
  const Place place_;
  LocalTables host_;
  std::unique_ptr<ResidentTables> device_;
};

class ResidentTablesTest : public ::testing::TestWithParam<TableRule> {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  }
};

TEST_P(ResidentTablesTest, TwentyStepsAreTheHosts) {
  TablePair pair(GetParam(), 1);
  pair.ExpectEqual("at first");
  for (int64_t step = 1; step <= 20; ++step) pair.Step(step);
  pair.ExpectEqual("after 20 steps");
}

TEST_P(ResidentTablesTest, OlderRowsAreKept) {
  TablePair pair(GetParam(), 3);
  for (int64_t step = 1; step <= 9; ++step) pair.Step(step);
  for (int64_t version = 6; version <= 9; ++version) pair.ExpectRows(7, version);
  const std::vector<TableKeys> keys = TablePair::KeysOf(7);
  EXPECT_THAT(pair.device().Gather(0, keys[0].keys, 5, 0), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_P(ResidentTablesTest, StepsAreUndone) {
  TablePair pair(GetParam(), 3);
  for (int64_t step = 1; step <= 6; ++step) pair.Step(step);
  ASSERT_THAT(pair.host().UndoTo(4), IsOk());
  ASSERT_THAT(pair.device().UndoTo(4), IsOk());
  pair.ExpectEqual("after an undo");
  EXPECT_THAT(pair.device().UndoTo(2), StatusIs(absl::StatusCode::kFailedPrecondition));
  for (int64_t step = 5; step <= 8; ++step) pair.Step(step);
  pair.ExpectEqual("after the steps were repeated");
}

// As a checkpoint or another trainer writes them.
TEST_P(ResidentTablesTest, ValuesComeFromOutside) {
  TablePair from(GetParam(), 1), to(GetParam(), 1);
  for (int64_t step = 1; step <= 6; ++step) from.Step(step);
  for (const ParameterSpec& spec : TwoTables()) {
    std::ranges::copy(from.device().Weights(spec.operation), to.device().Weights(spec.operation).begin());
    std::ranges::copy(from.device().State(spec.operation), to.device().State(spec.operation).begin());
    std::ranges::copy(from.host().Weights(spec.operation), to.host().Weights(spec.operation).begin());
    std::ranges::copy(from.host().State(spec.operation), to.host().State(spec.operation).begin());
  }
  to.device().SetAppliedStep(6);
  to.host().SetAppliedStep(6);
  for (int64_t step = 7; step <= 10; ++step) to.Step(step);
  to.ExpectEqual("after they were copied");
}

INSTANTIATE_TEST_SUITE_P(Rules, ResidentTablesTest, ::testing::ValuesIn(TableRules()),
                         [](const auto& tested) { return tested.param.name; });

// What is cached changes no bit of what the device computes.
TEST(ResidentTables, ACacheHasTheBitsOfWholeTables) {
  if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  const Optimizer adam = *MakeOptimizer("adam", 0.05);
  for (const double cached : {0.02, 0.3, 0.5, 0.9}) {
    TablePair whole({"whole", adam}, 2), some({"some", adam, cached}, 2);
    const auto equal = [&](const std::string& when) {
      for (const ParameterSpec& spec : TwoTables()) {
        EXPECT_TRUE(std::ranges::equal(some.device().Weights(spec.operation), whole.device().Weights(spec.operation)))
            << when << ", " << cached << " cached";
        EXPECT_TRUE(std::ranges::equal(some.device().State(spec.operation), whole.device().State(spec.operation)))
            << when << ", " << cached << " cached";
      }
    };
    for (int64_t step = 1; step <= 60; ++step) {
      for (TablePair* pair : {&whole, &some}) pair->Step(step);
      if (step % 20 == 0) equal("step " + std::to_string(step));
      if (step % 14 != 0) continue;
      if (step % 28 == 0) equal("before an undo");  // as a checkpoint reads them
      for (TablePair* pair : {&whole, &some}) {
        ASSERT_THAT(pair->device().UndoTo(step - 2), IsOk());
        ASSERT_THAT(pair->host().UndoTo(step - 2), IsOk());
      }
      equal("after an undo");
      for (TablePair* pair : {&whole, &some}) {
        pair->Step(step - 1);
        pair->Step(step);
      }
    }
    equal("at the end");
    const ResidentTables::CacheCounts counts = some.device().Cached();
    EXPECT_GT(counts.hits, 0);
    EXPECT_GT(counts.misses, 0);
    std::printf("%.2f of the rows cached: %.0f %% hits\n", cached,
                100.0 * static_cast<double>(counts.hits) / static_cast<double>(counts.hits + counts.misses));
    EXPECT_EQ(whole.device().Cached().misses, 0);
  }
}

// Many samples are scored between two steps: their rows take no place for longer than they are needed.
TEST(ResidentTables, ScoringDoesNotGrowTheCache) {
  if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  TablePair pair({"cached", *MakeOptimizer("sgd", 0.1), 0.6}, 1);
  for (int64_t step = 1; step <= 4; ++step) pair.Step(step);
  const double before = pair.device().Cached().bytes;
  for (int64_t chunk = 11; chunk < 40; ++chunk) pair.ExpectRows(chunk, 4);
  EXPECT_EQ(pair.device().Cached().bytes, before);
  pair.Step(5);
  pair.ExpectEqual("after scoring");
}

TEST(ResidentTables, RefusesRowsAndStepsThatItLacks) {
  if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  TablePair pair({"sgd", *MakeOptimizer("sgd", 0.1)}, 1);
  std::vector<std::vector<float>> rows;
  const std::vector<TableKeys> outside = {{0, 3, {50}}};
  EXPECT_THAT(pair.device().Pull(1, outside, rows, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(pair.device().Push(2, {}, {}, 1, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace medley::worker::aten
