#include "worker/data/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::worker {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(TransformTest, StandardizesAndTakesTheMeanForMissing) {
  const NumericTransform transform = FitNumeric(std::vector<double>{1, 2, 3, 4, 5, kMissing}, 0);
  EXPECT_FALSE(transform.log);
  EXPECT_NEAR(transform.Standardize(3), 0, 1e-6);
  EXPECT_NEAR(transform.Standardize(5), 2 / std::sqrt(2.0), 1e-6);
  EXPECT_EQ(transform.Standardize(kMissing), 0);
  EXPECT_TRUE(transform.edges.empty());
}

TEST(TransformTest, TakesTheLogarithmOfSkewedColumns) {
  std::vector<double> values(1000, 0);
  for (size_t i = 0; i < 50; ++i) values[i] = 10000;
  EXPECT_TRUE(FitNumeric(values, 0).log);
  EXPECT_LT(FitNumeric(values, 0).Standardize(-5), 0);
}

TEST(TransformTest, ConstantColumnsAreZero) {
  const NumericTransform transform = FitNumeric(std::vector<double>(9, 7), 8);
  EXPECT_EQ(transform.Standardize(7), 0);
  EXPECT_EQ(transform.Standardize(100), 0);
  EXPECT_TRUE(transform.edges.empty());
}

TEST(TransformTest, BucketsHaveEqualWeight) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<double>(i % 100) * static_cast<double>(i % 100));
  const NumericTransform transform = FitNumeric(values, 10);
  std::vector<int> counts(12);
  for (const double x : values) ++counts[static_cast<size_t>(transform.Bucket(x))];
  for (int bucket = 0; bucket < 10; ++bucket) EXPECT_EQ(counts[static_cast<size_t>(bucket)], 100) << bucket;
  EXPECT_EQ(transform.Bucket(-1e9F), 0);
  EXPECT_EQ(transform.Bucket(1e9F), 9);
  EXPECT_EQ(transform.Bucket(kMissing), 10);
}

TEST(TransformTest, ColumnsOfMostlyOneValueGetBucketsAboveIt) {
  std::vector<double> values(900, 0);
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<double>(1000 + i));
  const NumericTransform transform = FitNumeric(values, 16);
  EXPECT_GE(transform.edges.size(), 8U);
  EXPECT_EQ(transform.Bucket(0), 0);
  EXPECT_GT(transform.Bucket(1099), transform.Bucket(1000));
  EXPECT_TRUE(std::is_sorted(transform.edges.begin(), transform.edges.end()));
}

TEST(TransformTest, NothingButMissing) {
  const NumericTransform transform = FitNumeric(std::vector<double>(4, kMissing), 8);
  EXPECT_EQ(transform.Standardize(kMissing), 0);
  EXPECT_EQ(transform.Standardize(1), 0);
}

}  // namespace
}  // namespace medley::worker
