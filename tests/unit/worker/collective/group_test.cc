// Tests Group with many ranks as threads of one process, over real loopback sockets.
#include "worker/collective/group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <latch>
#include <thread>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using model::AllreduceAlgorithm;

// Longer than any test may last: a wait that only its timeout would end is reported as a test that hangs.
constexpr base::milliseconds kForever{3'600'000};

void RunRanks(int size, const std::function<void(Group&)>& body, base::milliseconds timeout = kForever) {
  MemoryStore store;
  GroupOptions options{
      .name = "test", .address = "127.0.0.1", .connect_timeout = base::milliseconds(60'000), .timeout = timeout};
  for (int rank = 0; rank < size; ++rank) options.members.push_back("member-" + std::to_string(rank));
  std::latch end(size);  // destroying a group makes the others fail, so all ranks wait for each other
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      GroupOptions mine = options;
      mine.rank = rank;
      auto group = Group::Connect(mine, store, {});
      EXPECT_TRUE(group.ok()) << group.status();
      if (group.ok()) body(**group);
      end.arrive_and_wait();
    });
  }
}

std::vector<float> Values(int rank, size_t count) {
  base::Rng rng(static_cast<uint64_t>(rank) + 17);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng.Uniform(-1, 1));
  return values;
}

class AllreduceTest : public testing::TestWithParam<std::tuple<AllreduceAlgorithm, int, size_t>> {};

TEST_P(AllreduceTest, EveryRankHoldsTheSameSumTwice) {
  const auto [algorithm, size, count] = GetParam();
  std::vector<double> expected(count);
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<float> values = Values(rank, count);
    for (size_t i = 0; i < count; ++i) expected[i] += static_cast<double>(values[i]);
  }
  std::vector<std::vector<float>> first(static_cast<size_t>(size)), second(static_cast<size_t>(size));
  RunRanks(size, [&, algorithm = algorithm, count = count](Group& group) {
    for (auto* result : {&first, &second}) {
      std::vector<float> values = Values(group.rank(), count);
      EXPECT_EQ(group.AllreduceSum(values, algorithm), absl::OkStatus());
      (*result)[static_cast<size_t>(group.rank())] = values;
    }
  });
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(first[0], first[static_cast<size_t>(rank)]);
    EXPECT_EQ(first[0], second[static_cast<size_t>(rank)]);
  }
  for (size_t i = 0; i < count; ++i) ASSERT_NEAR(first[0][i], expected[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(All, AllreduceTest,
                         testing::Combine(testing::Values(AllreduceAlgorithm::kRing, AllreduceAlgorithm::kCentralized,
                                                          AllreduceAlgorithm::kRecursiveDoubling,
                                                          AllreduceAlgorithm::kLinear),
                                          testing::Values(1, 2, 3, 5), testing::Values(1, 7, 100000)));

TEST(GroupTest, BroadcastReachesAll) {
  RunRanks(4, [](Group& group) {
    std::vector<float> values(1000, group.rank() == 2 ? 3.5f : 0.0f);
    EXPECT_EQ(group.Broadcast(std::as_writable_bytes(std::span(values)), 2), absl::OkStatus());
    EXPECT_EQ(values, std::vector<float>(1000, 3.5f));
  });
}

TEST(GroupTest, MessagesWithOneTagKeepTheirOrderAndSendDoesNotWaitForTheReceiver) {
  RunRanks(2, [](Group& group) {
    const int peer = 1 - group.rank();
    for (int i = 0; i < 20; ++i) {  // both ranks send before either receives
      const std::array<int, 2> message{group.rank(), i};
      EXPECT_EQ(group.Send(peer, 7 + static_cast<uint64_t>(i % 2), std::as_bytes(std::span(message))),
                absl::OkStatus());
    }
    for (int i = 0; i < 20; ++i) {
      std::array<int, 2> message{};
      EXPECT_EQ(group.Recv(peer, 7 + static_cast<uint64_t>(i % 2), std::as_writable_bytes(std::span(message))),
                absl::OkStatus());
      EXPECT_EQ(message, (std::array<int, 2>{peer, i}));
    }
    EXPECT_EQ(group.Flush(), absl::OkStatus());
  });
}

TEST(GroupTest, AClosedRankFailsTheOthersAtOnce) {
  std::latch trained(5);
  RunRanks(5, [&](Group& group) {
    std::vector<float> values(100000, 1.0f);
    EXPECT_EQ(group.AllreduceSum(values, AllreduceAlgorithm::kRing), absl::OkStatus());
    trained.arrive_and_wait();
    if (group.rank() == 3) return group.Close("killed by the test");
    const absl::Status status = group.AllreduceSum(values, AllreduceAlgorithm::kRing);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(group.AllreduceSum(values, AllreduceAlgorithm::kRing).code(), absl::StatusCode::kAborted);
  });
}

TEST(GroupTest, CloseWakesALocalReceiver) {
  RunRanks(2, [](Group& group) {
    if (group.rank() == 1) return;
    std::jthread closer([&] { group.Close("halt"); });
    float value = 0;
    const absl::Status status = group.Recv(1, 1, std::as_writable_bytes(std::span(&value, 1)));
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(base::Message(status), testing::HasSubstr("halt"));
  });
}

TEST(GroupTest, AWaitForAPeerEndsAtItsTimeout) {
  RunRanks(
      2,
      [](Group& group) {
        if (group.rank() == 1) return;
        float value = 0;
        const absl::Status status = group.Recv(1, 1, std::as_writable_bytes(std::span(&value, 1)));
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        EXPECT_THAT(base::Message(status), testing::HasSubstr("member-1"));
      },
      base::milliseconds(100));
}

TEST(GroupTest, ConnectIsBoundedAndStoppable) {
  MemoryStore store;
  GroupOptions options{.name = "lonely", .members = {"a", "b"}, .address = "127.0.0.1"};
  options.rendezvous_timeout = base::milliseconds(50);
  EXPECT_EQ(Group::Connect(options, store, {}).status().code(), absl::StatusCode::kDeadlineExceeded);
  std::stop_source source;
  source.request_stop();
  options.name = "stopped";
  EXPECT_EQ(Group::Connect(options, store, source.get_token()).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace medley::worker
