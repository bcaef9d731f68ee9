#include "localcluster/node/cpu_budget.h"

#include <gtest/gtest.h>

namespace medley::localcluster {
namespace {

using base::milliseconds;
using base::nanoseconds;

TEST(CpuBudgetTest, DebtIsPaidAtTheRateOfTheLimit) {
  CpuBudget budget(0.5, milliseconds(100));
  // 20 ms of work in 20 ms at a limit of half a core is 10 ms too much, so the process stops for 20 ms.
  EXPECT_NEAR(base::ToSeconds(budget.Charge(milliseconds(20), milliseconds(20))), 0.020, 1e-9);
  EXPECT_EQ(budget.Charge(nanoseconds(0), milliseconds(20)), nanoseconds(0));
}

TEST(CpuBudgetTest, IdleTimeIsSavedOnlyUpToTheBurst) {
  CpuBudget budget(2, milliseconds(100));
  EXPECT_EQ(budget.Charge(nanoseconds(0), base::seconds(60)), nanoseconds(0));
  // The idle minute saved only 0.2 CPU seconds and 0.02 were added since: using 0.32 leaves a debt of 0.1.
  EXPECT_NEAR(base::ToSeconds(budget.Charge(milliseconds(320), milliseconds(10))), 0.050, 1e-9);
}

TEST(CpuBudgetTest, LongRunAverageIsTheLimit) {
  for (const double cores : {0.1, 0.3, 0.75, 1.5}) {
    CpuBudget budget(cores, milliseconds(100));
    // The process uses two cores whenever it runs, and is measured every 20 ms.
    double used = 0, stop = 0;
    constexpr int kTicks = 5000;
    for (int i = 0; i < kTicks; ++i) {
      const double work = 2 * std::max(0.0, 0.020 - stop);
      used += work;
      stop = base::ToSeconds(budget.Charge(base::FromSeconds(work), milliseconds(20)));
    }
    EXPECT_NEAR(used / (kTicks * 0.020), cores, 0.05 * cores + 0.01) << cores;
  }
}

}  // namespace
}  // namespace medley::localcluster
