#include "worker/params/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace medley::worker {
namespace {

ParameterSpec Weight(int operation = 1) {
  return {.operation = operation,
          .name = "weight",
          .rows = 200,
          .columns = 100,
          .initializer = Initializer::kXavierUniform};
}

std::vector<float> Values(const ParameterSpec& spec, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(spec.Size()));
  Initialize(spec, seed, values);
  return values;
}

TEST(InitializeTest, RowsAreTheSameAloneAndTogether) {
  const ParameterSpec spec = Weight();
  const std::vector<float> all = Values(spec, 7);
  std::vector<float> row(100);
  for (int64_t index : {0, 1, 57, 199}) {
    InitializeRow(spec, 7, index, row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + index * 100)) << index;
  }
}

TEST(InitializeTest, DependsOnSeedOperationAndName) {
  const std::vector<float> values = Values(Weight(), 7);
  EXPECT_EQ(values, Values(Weight(), 7));
  EXPECT_NE(values, Values(Weight(), 8));
  EXPECT_NE(values, Values(Weight(2), 7));
  ParameterSpec other = Weight();
  other.name = "table";
  EXPECT_NE(values, Values(other, 7));
}

TEST(InitializeTest, IsUniformInTheRangeOfXavier) {
  const std::vector<float> values = Values(Weight(), 3);
  const float amplitude = std::sqrt(6.0F / 300.0F);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -amplitude);
  EXPECT_LE(*high, amplitude);
  EXPECT_LT(*low, -0.99F * amplitude);
  EXPECT_GT(*high, 0.99F * amplitude);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 20000;
  EXPECT_NEAR(mean, 0, 3 * amplitude / std::sqrt(3.0 * 20000));
  double squares = 0;
  for (float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(squares / 20000, static_cast<double>(amplitude * amplitude) / 3, 1e-4);
}

TEST(InitializeTest, Constants) {
  ParameterSpec bias{.operation = 0, .name = "bias", .rows = 1, .columns = 5};
  EXPECT_EQ(Values(bias, 1), std::vector<float>(5, 0));
  bias.initializer = Initializer::kOne;
  EXPECT_EQ(Values(bias, 1), std::vector<float>(5, 1));
}

// Processes of different releases in one job must compute the same values, so they must not change.
TEST(InitializeTest, ValuesAreFixed) {
  const ParameterSpec spec{.operation = 0,
                           .name = "table",
                           .rows = 10,
                           .columns = 2,
                           .sparse = true,
                           .initializer = Initializer::kUniform,
                           .scale = 1};
  std::vector<float> row(2);
  InitializeRow(spec, 1, 3, row);
  EXPECT_FLOAT_EQ(row[0], 0.81038928F);
  EXPECT_FLOAT_EQ(row[1], 0.59321785F);
}

}  // namespace
}  // namespace medley::worker
