// A job whose processes have only IPv6 addresses: coordinator, trainers of two stages, parameter servers. Calls between
// them go by gRPC to "[::1]:PORT", tensors over plain connections.
#include <gmock/gmock.h>

#include <iostream>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::ipv6_test {
namespace {

namespace pb = ::medley::job::v1;

TEST(Ipv6Test, AJobTrainsAndSwitchesGenerationsOverIpv6) {
  if (FreeIpv6Port() == 0) {
    std::cerr << "[   NOTE   ] NOT RUN: this machine has no IPv6 loopback address\n";
    return;
  }
  const SmallTable table;
  constexpr int kEpochs = 3;
  JobOptions options = SmallJob(table.file(), kEpochs);
  options.ipv6 = true;
  JobHarness job(options);
  const JobShape moved{.stages = {{0, 2, 2}, {2, 4, 1}}, .servers = 1, .micro_batches = 2};
  job.StartCoordinator();
  job.StartMembers(moved);
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2}, "start");
  job.WaitFor(Reached(20), base::seconds(60));
  Switch(job, moved, "moved");
  const pb::Observation end = ExpectComplete(job, int64_t{SmallTable::kRows} * kEpochs);
  ASSERT_EQ(end.switches_size(), 1) << "the move";
  EXPECT_FALSE(end.switches(0).recovery()) << end.switches(0).reason();
  EXPECT_THAT(job.Log("coordinator"), testing::HasSubstr("[::1]:"));
}

}  // namespace
}  // namespace medley::worker::ipv6_test
