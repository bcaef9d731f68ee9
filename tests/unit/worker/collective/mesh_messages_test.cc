// Messages between two ranks of a mesh: written by who sends them, or half of them by a thread of the group.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/collective/group_ranks.h"
#include "worker/collective/group.h"
#include "worker/collective/mesh_peer.h"

namespace medley::worker {
namespace {

using base::IsOk;

std::vector<std::byte> Pattern(size_t size, size_t seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + seed * 7) % 251);
  return bytes;
}

class MeshMessages : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(All, MeshMessages, testing::Values(Transport::kPlain, Transport::kTls));

// Nobody flushes: what Send wrote itself arrives although its rank leaves at once.
TEST_P(MeshMessages, ASmallMessageHasLeftWhenSendReturns) {
  for (int round = 0; round < 20; ++round) {
    MemoryStore store;
    GroupOptions options{.name = "g", .members = {"a", "b"}, .address = "127.0.0.1", .tls = Tls(GetParam())};
    options.connect_timeout = base::milliseconds(60'000);
    options.timeout = kForever;
    const std::vector<std::byte> sent = Pattern(5000, static_cast<size_t>(round));
    std::jthread sender([&, options] {
      auto group = Group::Connect(options, store, {});
      ASSERT_THAT(group, IsOk());
      EXPECT_THAT((*group)->Send(1, 3, sent), IsOk());
    });
    options.rank = 1;
    auto group = Group::Connect(options, store, {});
    ASSERT_THAT(group, IsOk());
    std::vector<std::byte> received(sent.size());
    EXPECT_THAT((*group)->Recv(0, 3, received), IsOk()) << round;
    EXPECT_EQ(received, sent);
  }
}

// The receiver takes nothing at first, so that connections are full: of every message of up to 256 KiB some part is
// written by Send and the rest by a thread, with sums between the messages and, where encrypted, new keys all the time.
TEST_P(MeshMessages, HalfWrittenMessagesStayWholeAndInOrder) {
  std::optional<GroupTls> tls = Tls(GetParam());
  if (tls) tls->bytes_per_key = 20'000;
  constexpr size_t kMessages = 700;  // more than what is kept for a receiver, fewer than may wait
  const auto size_of = [](size_t i) { return (i * 7919) % (kMaxDirectBytes + 40'000); };
  std::latch all_sent(2);
  RunRanks(
      GetParam(), 2,
      [&](Group& group) {
        const int peer = 1 - group.rank();
        const auto seed = [](int rank, size_t i) { return 1000 * static_cast<size_t>(rank) + i; };
        for (size_t i = 0; i < kMessages; ++i) {
          ASSERT_THAT(group.Send(peer, i % 3, Pattern(size_of(i), seed(group.rank(), i))), IsOk());
        }
        all_sent.arrive_and_wait();
        for (size_t i = 0; i < kMessages; ++i) {
          std::vector<std::byte> received(size_of(i));
          ASSERT_THAT(group.Recv(peer, i % 3, received), IsOk());
          ASSERT_EQ(received, Pattern(size_of(i), seed(peer, i))) << i;
        }
        EXPECT_THAT(group.Flush(), IsOk());
      },
      kForever, tls);
}

// A thread that sends and one that adds, over the same connection.
TEST_P(MeshMessages, SumsAndMessagesAtTheSameTime) {
  RunRanks(GetParam(), 2, [](Group& group) {
    const int peer = 1 - group.rank();
    std::jthread messages([&] {
      for (size_t i = 0; i < 100; ++i) {
        const size_t size = 50'000 + 1999 * i;
        ASSERT_THAT(group.Send(peer, 1, Pattern(size, i)), IsOk());
        std::vector<std::byte> received(size);
        ASSERT_THAT(group.Recv(peer, 1, received), IsOk());
        ASSERT_EQ(received, Pattern(size, i));
      }
    });
    for (int i = 0; i < 100; ++i) {
      std::vector<float> values(10'000 + static_cast<size_t>(i), static_cast<float>(group.rank() + 1));
      ASSERT_THAT(group.AllreduceSum(values, model::AllreduceAlgorithm::kRing), IsOk());
      ASSERT_EQ(values, std::vector<float>(values.size(), 3.0f));
    }
  });
}

}  // namespace
}  // namespace medley::worker
