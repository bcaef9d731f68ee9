#include "localcluster/node/gpu_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(GpuPoolTest, EachKeyHasGpusOfItsOwnUntilItReleasesThem) {
  GpuPool pool({"0", "1", "2"});
  EXPECT_THAT(pool.Take("ns/a/worker", 1), IsOkAndHolds("0"));
  EXPECT_THAT(pool.Take("ns/b/worker", 2), IsOkAndHolds("1,2"));
  EXPECT_THAT(pool.Take("ns/a/worker", 1), IsOkAndHolds("0")) << "a restart of the container";
  EXPECT_THAT(pool.Take("ns/c/worker", 0), IsOkAndHolds(""));
  EXPECT_THAT(pool.Take("ns/c/worker", 1), StatusIs(absl::StatusCode::kResourceExhausted,
                                                    "1 GPUs were requested, and 0 of the machine's 3 are free"));
  pool.Release("ns/a/worker");
  pool.Release("ns/a/worker");
  EXPECT_THAT(pool.Take("ns/c/worker", 1), IsOkAndHolds("0"));
  EXPECT_THAT(GpuPool({}).Take("ns/a/worker", 1), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(GpuPoolTest, ARequestThatFailsTakesNothing) {
  GpuPool pool({"0", "1"});
  EXPECT_THAT(pool.Take("big", 3), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(pool.Take("a", 2), IsOkAndHolds("0,1"));
}

TEST(UsableGpusTest, AreThoseOfTheVariableIfItIsSet) {
  EXPECT_THAT(UsableGpus(2, nullptr), ElementsAre("0", "1"));
  EXPECT_THAT(UsableGpus(0, nullptr), IsEmpty());
  EXPECT_THAT(UsableGpus(4, "3, 1"), ElementsAre("3", "1"));
  EXPECT_THAT(UsableGpus(4, "GPU-8f1e,MIG-77"), ElementsAre("GPU-8f1e", "MIG-77"));
  for (const char* none : {"", "-1", "NoDevFiles", "4", "4,0"}) EXPECT_THAT(UsableGpus(4, none), IsEmpty()) << none;
  EXPECT_THAT(UsableGpus(4, "0,-1,2"), ElementsAre("0"));
  EXPECT_THAT(UsableGpus(4, "0,0"), ElementsAre("0"));
}

}  // namespace
}  // namespace medley::localcluster
