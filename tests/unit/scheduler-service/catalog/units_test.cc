// Uses public price lists; docs/operate/prices.md has their dates.
#include "scheduler-service/catalog/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/rng.h"

namespace medley::sched {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr BasePrices kOpenCost{0.031611, 0.004237, 0};  // OpenCost's default prices, which are GCP's

Shape Machine(double vcpus, double gib, double gpus = 0) { return {vcpus, gib * kGib, "", gpus, 1}; }

double GpuOnDemand(double price, const Shape& shape) { return SplitOnDemand(price, shape, kOpenCost).gpu / shape.gpus; }

TEST(UnitsTest, BasePricesOfAwsUsEast1) {
  const std::vector<PricedShape> fifth = {{Machine(4, 8), 0.17}, {Machine(4, 16), 0.192}, {Machine(4, 32), 0.252}};
  const auto base = FitBasePrices(fifth);
  ASSERT_TRUE(base);
  EXPECT_NEAR(base->vcpu, 0.0352, 5e-5);
  EXPECT_NEAR(base->gib, 0.0034, 5e-5);
  EXPECT_LT(base->rms_error, 0.03);
  const std::vector<PricedShape> seventh = {
      {Machine(4, 8), 0.1785}, {Machine(4, 16), 0.2016}, {Machine(4, 32), 0.2646}};
  EXPECT_NEAR(FitBasePrices(seventh)->vcpu, 0.0370, 5e-5);
  EXPECT_NEAR(FitBasePrices(seventh)->gib, 0.0036, 5e-5);
}

TEST(UnitsTest, TheFitRecoversKnownPrices) {
  std::vector<PricedShape> machines;
  for (const double gib : {2.0, 4.0, 8.0}) {
    for (const double n : {2.0, 4.0, 64.0}) {
      machines.push_back({Machine(n, n * gib), n * 0.03 + n * gib * 0.005});
    }
  }
  machines.push_back({Machine(8, 61, 1), 3.06});  // has a GPU, so it is ignored
  const auto base = FitBasePrices(machines);
  ASSERT_TRUE(base);
  EXPECT_NEAR(base->vcpu, 0.03, 1e-12);
  EXPECT_NEAR(base->gib, 0.005, 1e-12);
  EXPECT_NEAR(base->rms_error, 0, 1e-9);
  EXPECT_FALSE(FitBasePrices({machines.data(), 3}));  // only one ratio of memory to cores
  EXPECT_FALSE(FitBasePrices({}));
  // A negative price of memory becomes 0.
  const std::vector<PricedShape> odd = {{Machine(4, 8), 0.2}, {Machine(4, 16), 0.19}, {Machine(4, 32), 0.18}};
  EXPECT_EQ(FitBasePrices(odd)->gib, 0);
  EXPECT_GT(FitBasePrices(odd)->vcpu, 0);
}

TEST(UnitsTest, GpusOnDemandAreTheRest) {
  EXPECT_NEAR(GpuOnDemand(3.06, Machine(8, 61, 1)), 2.549, 5e-4);       // p3.2xlarge, V100
  EXPECT_NEAR(GpuOnDemand(0.526, Machine(4, 16, 1)), 0.332, 5e-4);      // g4dn.xlarge, T4
  EXPECT_NEAR(GpuOnDemand(3.673385, Machine(12, 85, 1)), 2.934, 5e-4);  // a2-highgpu-1g, A100
  EXPECT_NEAR(GpuOnDemand(55.04, Machine(192, 2048, 8)), 5.04, 5e-3);   // p5.48xlarge, H100
  EXPECT_EQ(SplitOnDemand(0.1, Machine(8, 61, 1), kOpenCost).gpu,
            0);  // cheaper than its cores: 0, not negative
}

TEST(UnitsTest, SpotIsSplitByShares) {
  const auto spot = [](double price, double on_demand, const Shape& shape) {
    return SplitSpot(price, on_demand, shape, kOpenCost).gpu / shape.gpus;
  };
  EXPECT_NEAR(spot(0.551, 3.06, Machine(8, 61, 1)), 0.459, 5e-4);
  EXPECT_NEAR(spot(19.49, 55.04, Machine(192, 2048, 8)), 1.784, 5e-4);
  // The rest of a spot price after subtracting on-demand cores.
  EXPECT_NEAR(GpuOnDemand(0.551, Machine(8, 61, 1)), 0.040, 5e-4);
  EXPECT_NEAR(GpuOnDemand(19.49, Machine(192, 2048, 8)), 0.593, 5e-4);
}

TEST(UnitsTest, PartsAddUp) {
  base::Rng rng(7);
  for (int i = 0; i < 1000; ++i) {
    const Shape shape =
        Machine(1 + static_cast<double>(rng.Below(200)), rng.Uniform(0, 3000), static_cast<double>(rng.Below(9)));
    const BasePrices base{rng.Uniform(0, 0.1), rng.Uniform(0, 0.01), 0};
    const double price = rng.Uniform(0.001, 100);
    const SplitPrice parts = SplitOnDemand(price, shape, base);
    ASSERT_NEAR(parts.Total(), price, 1e-12 * price) << i;
    ASSERT_GE(std::min({parts.cpu, parts.memory, parts.gpu}), -1e-15);
    const SplitPrice spot = SplitSpot(price / 3, price, shape, base);
    ASSERT_NEAR(spot.Total(), price / 3, 1e-12 * price) << i;
    if (shape.gpus == 0) {
      ASSERT_EQ(parts.gpu, 0);
    }
  }
}

TEST(UnitsTest, BaseFamilies) {
  for (const char* type : {"c5.xlarge", "m7i.large", "r6g.metal", "m5.24xlarge"}) {
    EXPECT_TRUE(IsBaseFamily("aws", type)) << type;
  }
  for (const char* type : {"c5n.xlarge", "p3.2xlarge", "mac1.metal", "r5b.large", "x1.32xlarge"}) {
    EXPECT_FALSE(IsBaseFamily("aws", type)) << type;
  }
  EXPECT_TRUE(IsBaseFamily("gcp", "n2-standard-4"));
  EXPECT_FALSE(IsBaseFamily("gcp", "a2-highgpu-1g"));
  EXPECT_TRUE(IsBaseFamily("azure", "Standard_D4s_v5"));
  EXPECT_FALSE(IsBaseFamily("azure", "Standard_NC6s_v3"));
  EXPECT_FALSE(IsBaseFamily("lambda", "m5.large"));
}

}  // namespace
}  // namespace medley::sched
