// Tests Group with many ranks as threads of one process, over real loopback sockets.
#include "worker/collective/group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <set>
#include <thread>

#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"
#include "tests/unit/worker/collective/group_ranks.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using model::AllreduceAlgorithm;

std::vector<float> Values(int rank, size_t count) {
  base::Rng rng(static_cast<uint64_t>(rank) + 17);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng.Uniform(-1, 1));
  return values;
}

class EveryTransport : public testing::TestWithParam<Transport> {};

constexpr auto kEveryTransport = {Transport::kPlain, Transport::kTls, Transport::kSharedMemory,
                                  Transport::kSharedMemoryWithTls};

class AllreduceTest : public testing::TestWithParam<std::tuple<Transport, AllreduceAlgorithm, int, size_t>> {};

TEST_P(AllreduceTest, EveryRankHoldsTheSameSumTwice) {
  const auto [transport, algorithm, size, count] = GetParam();
  std::vector<double> expected(count);
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<float> values = Values(rank, count);
    for (size_t i = 0; i < count; ++i) expected[i] += static_cast<double>(values[i]);
  }
  std::vector<std::vector<float>> first(static_cast<size_t>(size)), second(static_cast<size_t>(size));
  RunRanks(transport, size, [&, algorithm = algorithm, count = count](Group& group) {
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
                         testing::Combine(testing::ValuesIn(kEveryTransport),
                                          testing::Values(AllreduceAlgorithm::kRing, AllreduceAlgorithm::kCentralized,
                                                          AllreduceAlgorithm::kRecursiveDoubling,
                                                          AllreduceAlgorithm::kLinear),
                                          testing::Values(1, 2, 3, 5, 8), testing::Values(1, 7, 100000)));

using model::ReduceLevel;

// Which ranks share a sum, by rank: those that the levels connect.
std::vector<std::set<int>> SharersOf(const std::vector<ReduceLevel>& levels, int size) {
  std::vector<std::set<int>> sharers;
  for (int rank = 0; rank < size; ++rank) sharers.push_back({rank});
  for (const ReduceLevel& level : levels) {
    for (const std::vector<int>& group : level.groups) {
      std::set<int> all;
      for (const int member : group) all.merge(std::set<int>(sharers[static_cast<size_t>(member)]));
      for (const int member : all) sharers[static_cast<size_t>(member)] = all;
    }
  }
  return sharers;
}

// One or two levels over random groups of all ranks; with one level, the groups do not meet.
std::vector<ReduceLevel> RandomLevels(base::Rng& rng, int size) {
  const auto algorithm = [&] {
    constexpr AllreduceAlgorithm kAll[] = {AllreduceAlgorithm::kCentralized, AllreduceAlgorithm::kRing,
                                           AllreduceAlgorithm::kRecursiveDoubling, AllreduceAlgorithm::kLinear};
    return kAll[rng.Below(4)];
  };
  const auto groups = 1 + rng.Below(static_cast<uint64_t>(size));
  std::vector<std::vector<int>> drawn(groups);
  for (int rank = 0; rank < size; ++rank) drawn[rng.Below(groups)].push_back(rank);
  std::erase_if(drawn, [](const std::vector<int>& group) { return group.empty(); });
  std::vector<ReduceLevel> levels = {{drawn, algorithm()}};
  if (rng.Below(3) == 0) return levels;
  ReduceLevel& outer = levels.emplace_back(ReduceLevel{{{}}, algorithm()});
  for (const std::vector<int>& group : drawn) outer.groups[0].push_back(group.front());
  return levels;
}

TEST_P(EveryTransport, GroupsOfRanksHoldTheirSums) {
  constexpr int kRounds = 12;
  for (const int size : {2, 3, 5, 7}) {
    RunRanks(GetParam(), size, [&](Group& group) {
      base::Rng rng(static_cast<uint64_t>(size));  // the same on every rank
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<ReduceLevel> levels = RandomLevels(rng, size);
        const int root = static_cast<int>(rng.Below(static_cast<uint64_t>(size)));
        const size_t count = rng.Below(3000);
        std::vector<float> values = Values(group.rank(), count);
        ASSERT_EQ(group.AllreduceSum(values, levels, root), absl::OkStatus());
        std::vector<double> expected(count);
        const std::set<int> sharers = SharersOf(levels, size)[static_cast<size_t>(group.rank())];
        for (const int rank : sharers) {
          const std::vector<float> theirs = Values(rank, count);
          for (size_t i = 0; i < count; ++i) expected[i] += static_cast<double>(theirs[i]);
        }
        for (size_t i = 0; i < count; ++i) ASSERT_NEAR(values[i], expected[i], 1e-4) << "round " << round;
        // The same bits as the smallest rank that shares the sum.
        std::vector<float> smallest = values;
        for (int rank = 0; rank < size; ++rank) {
          std::vector<float> shown = values;
          ASSERT_EQ(group.Broadcast(std::as_writable_bytes(std::span(shown)), rank), absl::OkStatus());
          if (rank == *sharers.begin()) smallest = shown;
        }
        ASSERT_EQ(values, smallest) << "round " << round;
      }
    });
  }
}

TEST_P(EveryTransport, ARankThatDoesNotExistIsRefused) {
  RunRanks(GetParam(), 2, [](Group& group) {
    std::vector<float> values = {1};
    const std::vector<ReduceLevel> levels = {{{{0, 2}}, AllreduceAlgorithm::kRing}};
    EXPECT_EQ(base::Message(group.AllreduceSum(values, levels, 0)), "allreduce with rank 2, but the group has 2 ranks");
  });
}

TEST_P(EveryTransport, TheHalvesOfARingAreItsWhole) {
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t count : {0, 1, 4, 1001}) {
      RunRanks(GetParam(), size, [&, count = count](Group& group) {
        std::vector<float> whole = Values(group.rank(), count), halves = whole;
        ASSERT_EQ(group.AllreduceSum(whole, AllreduceAlgorithm::kLinear), absl::OkStatus());
        ASSERT_EQ(group.ReduceScatterSum(halves), absl::OkStatus());
        const Part own = PartOf(count, group.rank(), size);
        for (size_t i = own.first; i < own.first + own.count; ++i) ASSERT_NEAR(halves[i], whole[i], 1e-4);
        ASSERT_EQ(group.AllGather(halves), absl::OkStatus());
        for (size_t i = 0; i < count; ++i) ASSERT_NEAR(halves[i], whole[i], 1e-4);
      });
    }
  }
}

TEST(PartOfTest, PartsAreNeighboursAndEqualButForOne) {
  for (const int size : {1, 2, 3, 7, 16}) {
    for (const size_t count : {0, 1, 6, 7, 8, 1000}) {
      size_t next = 0, least = count, most = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Part part = PartOf(count, rank, size);
        EXPECT_EQ(part.first, next);
        next += part.count;
        least = std::min(least, part.count);
        most = std::max(most, part.count);
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(most - least, 1U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryTransport, testing::ValuesIn(kEveryTransport));

class EveryMesh : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(All, EveryMesh, testing::Values(Transport::kPlain, Transport::kTls));

TEST_P(EveryTransport, BroadcastReachesAll) {
  for (int size = 2; size <= 7; ++size) {
    for (int root = 0; root < size; ++root) {
      RunRanks(GetParam(), size, [&](Group& group) {
        std::vector<float> values(1000, group.rank() == root ? 3.5f : 0.0f);
        EXPECT_EQ(group.Broadcast(std::as_writable_bytes(std::span(values)), root), absl::OkStatus());
        EXPECT_EQ(values, std::vector<float>(1000, 3.5f));
        EXPECT_EQ(group.Barrier(), absl::OkStatus());
      });
    }
  }
}

TEST_P(EveryTransport, MessagesWithOneTagKeepTheirOrderAndSendDoesNotWaitForTheReceiver) {
  RunRanks(GetParam(), 2, [](Group& group) {
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

TEST_P(EveryTransport, AClosedRankFailsTheOthersAtOnce) {
  std::latch trained(5);
  RunRanks(GetParam(), 5, [&](Group& group) {
    std::vector<float> values(100000, 1.0f);
    EXPECT_EQ(group.AllreduceSum(values, AllreduceAlgorithm::kRing), absl::OkStatus());
    trained.arrive_and_wait();
    if (group.rank() == 3) return group.Close("killed by the test");
    const absl::Status status = group.AllreduceSum(values, AllreduceAlgorithm::kRing);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(group.AllreduceSum(values, AllreduceAlgorithm::kRing).code(), absl::StatusCode::kAborted);
  });
}

TEST_P(EveryTransport, CloseWakesALocalReceiver) {
  RunRanks(GetParam(), 2, [](Group& group) {
    if (group.rank() == 1) return;
    std::jthread closer([&] { group.Close("halt"); });
    float value = 0;
    const absl::Status status = group.Recv(1, 1, std::as_writable_bytes(std::span(&value, 1)));
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(base::Message(status), testing::HasSubstr("halt"));
  });
}

TEST_P(EveryTransport, AWaitForAPeerEndsAtItsTimeout) {
  RunRanks(
      GetParam(), 2,
      [](Group& group) {
        if (group.rank() == 1) return;
        float value = 0;
        const absl::Status status = group.Recv(1, 1, std::as_writable_bytes(std::span(&value, 1)));
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        EXPECT_THAT(base::Message(status), testing::HasSubstr("member-1"));
      },
      base::milliseconds(SharesMemory(GetParam()) ? 3000 : 100));  // which also bounds the agreement to share
}

TEST_P(EveryTransport, ConnectIsBoundedAndStoppable) {
  MemoryStore store;
  GroupOptions options{.name = "lonely", .members = {"a", "b"}, .address = "127.0.0.1", .tls = Tls(GetParam())};
  options.share_memory = SharesMemory(GetParam());
  options.rendezvous_timeout = base::milliseconds(50);
  EXPECT_EQ(Group::Connect(options, store, {}).status().code(), absl::StatusCode::kDeadlineExceeded);
  std::stop_source source;
  source.request_stop();
  options.name = "stopped";
  EXPECT_EQ(Group::Connect(options, store, source.get_token()).status().code(), absl::StatusCode::kCancelled);
}

// Large messages in both directions at once fill every buffer of the system.
TEST_P(EveryTransport, LargeMessagesInBothDirections) {
  constexpr size_t kBytes = size_t{48} << 20;
  RunRanks(GetParam(), 2, [](Group& group) {
    const int peer = 1 - group.rank();
    const std::vector<std::byte> sent(kBytes, static_cast<std::byte>(group.rank() + 1));
    std::vector<std::byte> received(kBytes);
    EXPECT_EQ(group.Send(peer, 1, sent), absl::OkStatus());
    EXPECT_EQ(group.Recv(peer, 1, received), absl::OkStatus());
    EXPECT_EQ(received, std::vector<std::byte>(kBytes, static_cast<std::byte>(peer + 1)));
    std::vector<float> values(kBytes / 4, 1.0f);
    EXPECT_EQ(group.AllreduceSum(values, AllreduceAlgorithm::kRing), absl::OkStatus());
    EXPECT_EQ(values.back(), 2.0f);
  });
}

TEST_P(EveryMesh, AMessageOfAnotherSizeIsAnError) {
  RunRanks(GetParam(), 2, [](Group& group) {
    std::array<std::byte, 4> bytes{};
    if (group.rank() == 0) {
      EXPECT_EQ(group.Send(1, 1, bytes), absl::OkStatus());
      return;
    }
    const absl::Status status = group.Recv(0, 1, std::span(bytes).first(3));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(base::Message(status), testing::HasSubstr("4 bytes, expected 3"));
  });
}

// While the first message is on its way, the second is copied; then the connection breaks. What arrived whole is given,
// and the wait for the rest ends then, not at its timeout of an hour.
TEST_P(EveryMesh, AMessageThatBreaksOffWakesItsReceiver) {
  for (int round = 0; round < 4; ++round) {
    RunRanks(GetParam(), 2, [&](Group& group) {
      std::vector<std::byte> bytes(size_t{8} << (20 + round));
      if (group.rank() == 1) {
        EXPECT_THAT(group.Send(0, 1, bytes), IsOk());
        EXPECT_THAT(group.Send(0, 1, bytes), IsOk());
        return group.Close("killed by the test");
      }
      absl::Status status = group.Recv(1, 1, bytes);
      if (status.ok()) status = group.Recv(1, 1, bytes);
      if (status.ok()) status = group.Recv(1, 1, bytes);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    });
  }
}

// The ranks of a generation end it at different times.
TEST_P(EveryMesh, ARankThatLeavesInOrderFailsOnlyCallsThatNeedIt) {
  MemoryStore store;
  GroupOptions options{.name = "g", .members = {"a", "b", "c"}, .address = "127.0.0.1", .tls = Tls(GetParam())};
  options.connect_timeout = base::milliseconds(60'000);
  std::vector<absl::StatusOr<std::unique_ptr<Group>>> groups(3);
  {
    std::vector<std::jthread> connecting;
    for (int rank = 0; rank < 3; ++rank) {
      connecting.emplace_back([&, rank] {
        GroupOptions mine = options;
        mine.rank = rank;
        groups[static_cast<size_t>(rank)] = Group::Connect(mine, store, {});
      });
    }
  }
  for (const auto& group : groups) ASSERT_THAT(group, IsOk());
  std::vector<std::byte> bytes(3'000'000, std::byte{7});
  ASSERT_THAT((*groups[2])->Send(0, 1, bytes), IsOk());
  ASSERT_THAT((*groups[2])->Flush(), IsOk());
  groups[2] = nullptr;
  for (int i = 0; i < 100; ++i) {  // the loss of a rank has reached the others after some of them
    ASSERT_THAT((*groups[0])->Send(1, 1, bytes), IsOk()) << i;
    ASSERT_THAT((*groups[1])->Recv(0, 1, bytes), IsOk()) << i;
  }
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  EXPECT_THAT((*groups[0])->Recv(2, 1, bytes), IsOk());  // sent before
  EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size(), std::byte{7}));
  EXPECT_THAT((*groups[0])->Recv(2, 1, bytes), StatusIs(absl::StatusCode::kUnavailable));
}

// More than a rank keeps of what is not received: the sender must not wait without end.
TEST_P(EveryMesh, ACollectiveWithARankThatTakesNothingEndsAtItsTimeout) {
  std::latch ended(1);
  RunRanks(
      GetParam(), 2,
      [&](Group& group) {
        if (group.rank() == 1) return ended.wait();
        std::vector<std::byte> bytes(64 << 20);
        EXPECT_THAT(group.Broadcast(std::span(bytes).first(1), 0), IsOk());  // kept until it is received
        EXPECT_THAT(group.Broadcast(bytes, 0), StatusIs(absl::StatusCode::kUnavailable));
        ended.count_down();
      },
      base::milliseconds(2000));
}

TEST(EncryptedMeshTest, KeysChangeAndMessagesStayTheSame) {
  MemoryStore store;
  GroupOptions options{.name = "g", .members = {"a", "b"}, .address = "127.0.0.1", .tls = Tls(Transport::kTls)};
  options.connect_timeout = base::milliseconds(60'000);
  options.tls->bytes_per_key = 1000;
  const auto run = [&](int rank) {
    GroupOptions mine = options;
    mine.rank = rank;
    const auto group = Group::Connect(mine, store, {});
    ASSERT_THAT(group, IsOk());
    for (int i = 0; i < 50; ++i) {
      std::vector<float> values(1000 + static_cast<size_t>(i), static_cast<float>(rank + 1));
      ASSERT_THAT((*group)->AllreduceSum(values, AllreduceAlgorithm::kRing), IsOk());
      EXPECT_EQ(values, std::vector<float>(values.size(), 3.0f));
    }
    ASSERT_THAT((*group)->Barrier(), IsOk());
  };
  std::jthread other([&] { run(1); });
  run(0);
}

// Calls `between` when the rank that has it has registered and not yet connected.
class StoreWithPause final : public KeyValueStore {
 public:
  StoreWithPause(KeyValueStore& store, std::function<void()> between) : store_(store), between_(std::move(between)) {}
  absl::Status Put(const std::string& key, const std::string& value) override { return store_.Put(key, value); }
  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds timeout,
                                               std::stop_token stop) override {
    between_();
    return store_.Get(keys, timeout, std::move(stop));
  }

 private:
  KeyValueStore& store_;
  const std::function<void()> between_;
};

// Only a process of the same job takes part: not one in plain text, nor one of another job or another CA of this job.
TEST(EncryptedMeshTest, StrangersAreIgnoredAndTheMembersFindOneAnother) {
  const Certificates other("4f1c0a9e-58a3-4c52-9d4e-0c6a7c1f2b3d"), job("another-job");
  MemoryStore store;
  GroupOptions options{.name = "g", .members = {"a", "b"}, .address = "127.0.0.1", .tls = Tls(Transport::kTls)};
  options.connect_timeout = base::milliseconds(60'000);
  std::vector<int> sockets;
  StoreWithPause paused(store, [&] {
    const std::string address = store.Get({"g/tls/0"}, base::seconds(60), {}).value().front();
    for (const GroupTls& tls : {other.tls(), job.tls()}) {
      MemoryStore forged;  // the stranger knows where rank 0 listens
      ASSERT_THAT(forged.Put("g/tls/0", address), IsOk());
      GroupOptions stranger = options;
      stranger.rank = 1;
      stranger.tls = tls;
      EXPECT_THAT(Group::Connect(stranger, forged, {}), StatusIs(absl::StatusCode::kUnavailable));
    }
    sockaddr_in to{
        .sin_family = AF_INET,
        .sin_port = htons(static_cast<uint16_t>(base::SplitHostPort(address.substr(0, address.find(' ')))->port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // From the members' own address, and from another: half of them say nothing, the others no TLS.
    for (int i = 0; i < 240; ++i) {
      sockaddr_in from{.sin_family = AF_INET};
      from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i < 40 ? 0 : 1));
      sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      ASSERT_EQ(::bind(sockets.back(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0) << std::strerror(errno);
      ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
      const std::string_view request = i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : "";
      ::send(sockets.back(), request.data(), request.size(), MSG_NOSIGNAL);  // some are closed at once
    }
  });
  absl::StatusOr<std::unique_ptr<Group>> a, b;
  std::jthread listening([&] { a = Group::Connect(options, store, {}); });
  GroupOptions mine = options;
  mine.rank = 1;
  b = Group::Connect(mine, paused, {});
  listening.join();
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  std::array<std::byte, 3> bytes{};
  EXPECT_EQ((*a)->Send(1, 1, bytes), absl::OkStatus());
  EXPECT_EQ((*b)->Recv(0, 1, bytes), absl::OkStatus());
  for (const int stranger : sockets) ::close(stranger);
}

// In plain text a process takes part if it knows what the listener has published.
TEST(PlainMeshTest, WhoDoesNotKnowTheNonceOrIsNobodyTakesNoPart) {
  MemoryStore store;
  GroupOptions options{.name = "g", .members = {"a", "b"}, .address = "127.0.0.1"};
  options.connect_timeout = base::milliseconds(60'000);
  std::vector<int> sockets;
  StoreWithPause paused(store, [&] {
    const std::string address = store.Get({"g/plain/0"}, base::seconds(60), {}).value().front();
    const size_t space = address.find(' ');
    const uint64_t nonce = std::stoull(address.substr(space + 1), nullptr, 16);
    sockaddr_in to{.sin_family = AF_INET,
                   .sin_port = htons(static_cast<uint16_t>(base::SplitHostPort(address.substr(0, space))->port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Another number; the own rank of the listener; ranks that do not exist; half a greeting; nothing.
    const std::vector<std::array<uint64_t, 2>> greetings = {
        {nonce + 1, 1}, {nonce, 0}, {nonce, 2}, {nonce, ~uint64_t{0}}};
    for (size_t i = 0; i < greetings.size() + 2; ++i) {
      sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
      const auto& greeting = greetings[std::min(i, greetings.size() - 1)];
      const size_t size = i < greetings.size() ? sizeof greeting : i == greetings.size() ? 8 : 0;
      ASSERT_EQ(::send(sockets.back(), greeting.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    }
  });
  absl::StatusOr<std::unique_ptr<Group>> a, b;
  std::jthread listening([&] { a = Group::Connect(options, store, {}); });
  GroupOptions mine = options;
  mine.rank = 1;
  b = Group::Connect(mine, paused, {});
  listening.join();
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  std::array<std::byte, 3> bytes{};
  EXPECT_EQ((*a)->Send(1, 1, bytes), absl::OkStatus());
  EXPECT_EQ((*b)->Recv(0, 1, bytes), absl::OkStatus());
  for (const int stranger : sockets) ::close(stranger);
}

// Also if another rank's end has come first.
TEST_P(EveryMesh, AfterAnOwnCloseEveryCallSaysThatTheGroupIsClosed) {
  std::latch closed(2);
  RunRanks(GetParam(), 2, [&](Group& group) {
    group.Close("own reason");
    closed.arrive_and_wait();
    EXPECT_THAT(group.Barrier(), StatusIs(absl::StatusCode::kAborted));
  });
}

// A member that dies closes its connections without a farewell.
TEST_P(EveryMesh, AConnectionThatEndsWithoutAFarewellClosesTheGroup) {
  RunRanks(GetParam(), 3, [](Group& group) {
    if (group.rank() == 2) return group.Close("killed by the test");
    std::array<std::byte, 3> bytes{};
    const absl::Status lost = group.Recv(2, 1, bytes);
    EXPECT_THAT(lost, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(group.Send(1 - group.rank(), 1, bytes), StatusIs(absl::StatusCode::kAborted));
  });
}

}  // namespace
}  // namespace medley::worker
