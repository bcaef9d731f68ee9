// A real GPU: copies, and NCCL with one rank, which needs no second GPU. Without a GPU these tests say so and test the
// answer that asks for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "worker/device/device.h"
#include "worker/device/testing/needs_gpu.h"

namespace medley::worker::device {
namespace {

using base::IsOk;
using base::StatusIs;

TEST(GpuTest, AsksForAGpuAndGetsOneOrASentence) {
  const auto gpu = OpenGpu();
  if (gpu.ok()) {
    EXPECT_TRUE(BuiltForGpus());
    EXPECT_NE((*gpu)->name(), "");
    EXPECT_EQ((*gpu)->index(), 0);
    EXPECT_EQ((*gpu)->id(), (*OpenGpu())->id());
  } else if (BuiltForGpus()) {
    EXPECT_THAT(gpu, StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("no GPU: ")));
  } else {
    EXPECT_THAT(gpu, StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("cmake --preset cuda")));
  }
}

class OnAGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MEDLEY_NEEDS_GPU();
    gpu_ = *OpenGpu();
  }
  std::shared_ptr<Device> gpu_;
};

TEST_F(OnAGpuTest, ARankAloneAddsToItself) {
  const auto key = gpu_->NewGroupKey();
  ASSERT_THAT(key, IsOk());
  const auto group = gpu_->JoinGroup(*key, 0, 1, base::seconds(60), {});
  ASSERT_THAT(group, IsOk());
  for (const size_t count : {size_t{1}, size_t{3'000'001}}) {  // more than two chunks
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    const std::vector<float> before = values;
    ASSERT_THAT((*group)->Sum(values, base::seconds(60)), IsOk());
    EXPECT_EQ(values, before);
  }
  (*group)->Abort();
  float value = 1;
  EXPECT_THAT((*group)->Sum({&value, 1}, base::seconds(60)), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(OnAGpuTest, JoiningEndsWithoutTheOtherRank) {
  const auto key = gpu_->NewGroupKey();
  ASSERT_THAT(key, IsOk());
  EXPECT_THAT(gpu_->JoinGroup(*key, 0, 2, base::milliseconds(500), {}), StatusIs(absl::StatusCode::kDeadlineExceeded));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(gpu_->JoinGroup(*key, 0, 2, base::seconds(60), stop.get_token()), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace medley::worker::device
