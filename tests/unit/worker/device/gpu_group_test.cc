// Groups that add over devices: who joins, who does not, and how they end. The ranks are threads with devices of the
// host; gpu_test.cc has real ones.
#include "worker/device/gpu_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "worker/collective/key_value_store.h"
#include "worker/device/testing/host_device.h"

namespace medley::worker::device {
namespace {

using base::IsOk;
using base::StatusIs;
using model::AllreduceAlgorithm;
using worker::Group;
using worker::GroupOptions;

constexpr base::milliseconds kNoEnd{3'600'000};  // a wait that only its timeout would end hangs the test

// Runs `body` on every rank, with a group over what the ranks bring.
void OnRanks(const std::vector<GpuRank>& brought, const std::function<void(int, Group&)>& body) {
  worker::MemoryStore store;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < static_cast<int>(brought.size()); ++rank) {
    ranks.emplace_back([&, rank] {
      GroupOptions options{.name = "sums", .rank = rank, .address = "127.0.0.1", .timeout = kNoEnd};
      for (size_t i = 0; i < brought.size(); ++i) options.members.push_back("rank-" + std::to_string(i));
      auto base = Group::Connect(options, store, {});
      ASSERT_THAT(base, IsOk());
      auto group = JoinGpus(*std::move(base), options, brought[static_cast<size_t>(rank)], {});
      ASSERT_THAT(group, IsOk());
      body(rank, **group);
    });
  }
}

// What a sum over devices with the numbers 1, 2 and 3 gives, computed with both kinds of reduction.
void ExpectSums(int rank, Group& group) {
  const model::ReduceLevel level{.groups = {{0, 1, 2}}, .algorithm = AllreduceAlgorithm::kLinear};
  for (const size_t count : {size_t{1}, size_t{1000}}) {
    std::vector<float> values(count, static_cast<float>(rank + 1)), by_levels = values;
    ASSERT_THAT(group.AllreduceSum(values, AllreduceAlgorithm::kAuto), IsOk());
    ASSERT_THAT(group.AllreduceSum(by_levels, std::span(&level, 1), 0), IsOk());
    EXPECT_THAT(values, ::testing::Each(6.0F));
    EXPECT_EQ(by_levels, values);
  }
}

GpuRank WithDevice(int number) { return {.gpu = std::make_shared<HostDevice>(number)}; }

TEST(GpuGroupTest, AddsOverDevices) { OnRanks({WithDevice(1), WithDevice(2), WithDevice(3)}, ExpectSums); }

// A rank without a device, or two with the same one: all add over the network.
TEST(GpuGroupTest, AddsOverTheNetworkUnlessEachHasADeviceOfItsOwn) {
  OnRanks({WithDevice(1), GpuRank(), WithDevice(3)}, ExpectSums);
  OnRanks({GpuRank(), GpuRank(), GpuRank()}, ExpectSums);
  OnRanks({WithDevice(1), WithDevice(2), WithDevice(1)}, ExpectSums);
}

TEST(GpuGroupTest, NcclEncryptsNothingSoItStaysOnAMachine) {
  const auto card = [](int gpu, char machine, bool may_be_plain) {
    return GpuCard{.gpu = {std::byte{static_cast<unsigned char>(gpu)}},
                   .machine = {machine},
                   .has_gpu = true,
                   .may_be_plain = may_be_plain};
  };
  EXPECT_EQ(WhyNotOverGpus({card(1, 'a', true), card(2, 'b', true)}), "");
  EXPECT_EQ(WhyNotOverGpus({card(1, 'a', false), card(2, 'a', false)}), "");
  EXPECT_THAT(WhyNotOverGpus({card(1, 'a', false), card(2, 'b', true)}), ::testing::HasSubstr("MEDLEY_PLAIN_NCCL"));
  EXPECT_THAT(WhyNotOverGpus({card(1, '\0', false), card(2, '\0', false)}), ::testing::HasSubstr("not encrypt"))
      << "the machines are not known";
  EXPECT_THAT(WhyNotOverGpus({card(1, 'a', true), card(1, 'a', true)}), ::testing::HasSubstr("the same GPU"));
  EXPECT_THAT(WhyNotOverGpus({card(1, 'a', true), GpuCard{}}), ::testing::HasSubstr("not every trainer"));
}

TEST(GpuGroupTest, ClosingWakesARankThatWaitsForOthers) {
  OnRanks({WithDevice(1), WithDevice(2)}, [](int rank, Group& group) {
    if (rank == 1) return;  // it never adds
    std::jthread closer([&group] { group.Close("the job has changed its plan"); });
    float value = 1;
    EXPECT_THAT(group.AllreduceSum({&value, 1}, AllreduceAlgorithm::kAuto),
                StatusIs(absl::StatusCode::kAborted, ::testing::HasSubstr("the job has changed its plan")));
    EXPECT_THAT(group.Barrier(), StatusIs(absl::StatusCode::kAborted));
  });
}

}  // namespace
}  // namespace medley::worker::device
