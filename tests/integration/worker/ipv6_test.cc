// A job whose processes have only IPv6 addresses: coordinator, trainers of two stages, parameter servers. Calls between
// them go by gRPC to "[::1]:PORT", tensors over plain connections.
#include <gmock/gmock.h>
#include <unistd.h>

#include <iostream>

#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

TEST(Ipv6Test, AJobTrainsAndSwitchesGenerationsOverIpv6) {
  if (FreeIpv6Port() == 0) {
    std::cerr << "[   NOTE   ] NOT RUN: this machine has no IPv6 loopback address\n";
    return;
  }
  const std::filesystem::path data =
      std::filesystem::temp_directory_path() / ("medley-ipv6-" + std::to_string(getpid()) + ".csv");
  constexpr int kRows = 1600;
  constexpr int kEpochs = 12;  // enough that the job does not end before it has moved
  CopyLines(ExampleData("adult.train.csv"), data, kRows);
  JobOptions options;
  options.train = data;
  options.hidden = {8};
  options.epochs = kEpochs;
  options.batch_size = 16;
  options.embedding_rows = 512;
  options.ipv6 = true;
  {
    JobHarness job(options);
    const JobShape moved{.stages = {{0, 2, 2}, {2, 4, 1}}, .servers = 1, .micro_batches = 2};
    job.StartCoordinator();
    job.StartMembers(moved);
    job.Apply({.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2}, "start");
    job.WaitFor([](const pb::Observation& seen) { return seen.step() >= 20; }, base::seconds(60));
    job.Apply(moved, "moved");
    const pb::Observation end = job.WaitForEnd(base::seconds(120));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_EQ(end.samples_done(), int64_t{kRows} * kEpochs);
    ASSERT_EQ(end.switches_size(), 1) << "the move";
    EXPECT_FALSE(end.switches(0).recovery()) << end.switches(0).reason();
    EXPECT_THAT(job.Log("coordinator"), testing::HasSubstr("[::1]:"));
  }
  std::filesystem::remove(data);
}

}  // namespace
}  // namespace medley::worker
