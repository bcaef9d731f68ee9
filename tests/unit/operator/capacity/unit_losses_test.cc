#include "operator/capacity/unit_losses.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

constexpr base::WallTime kFirstLook{base::seconds(1'700'000'000)};

kube::Object SpotPool(const PoolLifetimes& stored = {}, const std::string& uid = "u") {
  kube::Json json{{"metadata", {{"name", "a"}, {"uid", uid}}}};
  if (stored.updated != base::WallTime()) json["status"]["interruptions"] = stored.ToJson();
  return kube::Object(json);
}

TEST(UnitLossesTest, CountsHoursStartsAndEachLossOnce) {
  UnitLosses losses;
  losses.See(SpotPool(), {}, kFirstLook);
  losses.See(SpotPool(), {{"1", 40}, {"2", 60}}, kFirstLook);
  const PoolLifetimes hour = losses.See(SpotPool(), {{"1", 40}, {"2", 60}}, kFirstLook + std::chrono::hours(1));
  EXPECT_NEAR(hour.unit_hours, 2, 1e-9);
  EXPECT_EQ(hour.losses, 0);
  EXPECT_NEAR(hour.start_seconds, 44, 1e-9) << "40, and a fifth of what 60 is more";
  for (int i = 0; i < 3; ++i) {
    const PoolLifetimes lost = losses.See(SpotPool(), {{"1", 40}, {"2", 60, true}}, kFirstLook + std::chrono::hours(1));
    EXPECT_EQ(lost.losses, 1);
  }
  const PoolLifetimes later = losses.See(SpotPool(), {{"1", 40}}, kFirstLook + std::chrono::hours(2));
  EXPECT_NEAR(later.unit_hours, 3, 0.02) << "a unit that is lost is no unit";
  EXPECT_NEAR(later.losses, 1, 0.01);
}

TEST(UnitLossesTest, APodThatIsDeletedIsNotLost) {
  UnitLosses losses;
  losses.See(SpotPool(), {{"1", 5}}, kFirstLook);
  EXPECT_EQ(losses.See(SpotPool(), {}, kFirstLook + std::chrono::hours(1)).losses, 0);
}

TEST(UnitLossesTest, AProcessThatStartsGoesOnWithTheStatus) {
  const PoolLifetimes stored{100, 4, 30, kFirstLook};
  UnitLosses losses;
  // The node was taken before; the process before may have counted it.
  const PoolLifetimes now = losses.See(SpotPool(stored), {{"1", 500, true}, {"2", 500}}, kFirstLook);
  EXPECT_EQ(now, stored);
  EXPECT_EQ(losses.See(SpotPool(stored), {{"1", 500, true}, {"2", 500, true}}, kFirstLook).losses, 5);
}

TEST(UnitLossesTest, APoolThatIsMadeAgainBeginsAnew) {
  UnitLosses losses;
  losses.See(SpotPool(), {{"1", 5}}, kFirstLook);
  losses.See(SpotPool(), {{"1", 5, true}}, kFirstLook);
  EXPECT_EQ(losses.See(SpotPool({}, "other"), {}, kFirstLook).losses, 0);
  losses.Forget("a");
  EXPECT_EQ(losses.See(SpotPool(), {}, kFirstLook).losses, 0);
}

}  // namespace
}  // namespace medley::ops
