#include "worker/app/runtime_probe.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "common/base/status.h"

namespace medley::worker {
namespace {

TEST(RuntimeProbeTest, LargerMessagesCostMore) {
  base::SystemClock clock;
  const absl::StatusOr<std::unique_ptr<RuntimeProbe>> probe = RuntimeProbe::Create({.micro_batches = 2}, clock);
  ASSERT_TRUE(probe.ok()) << base::ToString(probe.status());
  const absl::StatusOr<Traffic> small = (*probe)->Exchange(1024);
  const absl::StatusOr<Traffic> large = (*probe)->Exchange(32 << 20);
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_GT(small->seconds, 0);
  // Processor time, because on a busy machine either exchange may wait for a processor for any time.
  EXPECT_GT(large->processor_seconds, small->processor_seconds);
  EXPECT_GT(large->seconds, 0);

  const absl::StatusOr<double> amid = (*probe)->ExchangeAmidComputation(32 << 20, 1 << 20);
  ASSERT_TRUE(amid.ok()) << base::ToString(amid.status());
  EXPECT_GT(*amid, 0.2 * large->processor_seconds) << "without the computation, and not without the messages";

  const absl::StatusOr<Traffic> sum = (*probe)->Allreduce(1 << 16, 2);
  ASSERT_TRUE(sum.ok()) << base::ToString(sum.status());
  EXPECT_GT(sum->seconds, 0);
  for (const int replicas : {2, 3, 4}) {
    const auto linear = (*probe)->AllreduceSeconds(1 << 16, replicas, model::AllreduceAlgorithm::kLinear);
    ASSERT_TRUE(linear.ok()) << base::ToString(linear.status());
    EXPECT_GT(*linear, 0);
  }
  const absl::StatusOr<CommunicationProbe::ServerCost> cost = (*probe)->PullPushCost(5000, 16);
  ASSERT_TRUE(cost.ok()) << base::ToString(cost.status());
  EXPECT_GT(cost->client.seconds, 0);
  EXPECT_GT(cost->server_seconds, 0);
}

// Its ranks run on chosen processors meanwhile.
TEST(RuntimeProbeTest, LeavesTheThreadOnTheProcessorsThatItMayUse) {
  base::SystemClock clock;
  const absl::StatusOr<std::unique_ptr<RuntimeProbe>> probe = RuntimeProbe::Create({.micro_batches = 4}, clock);
  ASSERT_TRUE(probe.ok()) << base::ToString(probe.status());
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const absl::StatusOr<double> in_a_row = (*probe)->ExchangeAmidComputation(1024, 0);
  ASSERT_TRUE(in_a_row.ok()) << base::ToString(in_a_row.status());
  EXPECT_GT(*in_a_row, 0);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(RuntimeProbeTest, NothingToExchangeCostsNothing) {
  base::SystemClock clock;
  const absl::StatusOr<std::unique_ptr<RuntimeProbe>> probe = RuntimeProbe::Create({}, clock);
  ASSERT_TRUE(probe.ok()) << base::ToString(probe.status());
  EXPECT_EQ((*probe)->Allreduce(0, 2).value().seconds, 0);
  EXPECT_EQ((*probe)->PullPushCost(0, 16).value().client.seconds, 0);
  EXPECT_EQ((*probe)->Allreduce(1024, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*probe)->AllreduceSeconds(1024, 9, model::AllreduceAlgorithm::kRing).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RuntimeProbe::Create({.micro_batches = 0}, clock).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace medley::worker
