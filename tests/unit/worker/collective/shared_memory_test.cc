// Sums in shared memory, with ranks that are killed, hostile, or cannot share. group_test.cc has what all groups do.
#include "worker/collective/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <latch>
#include <limits>
#include <thread>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/collective/group.h"
#include "worker/collective/shared_memory_group.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using model::AllreduceAlgorithm;
using testing::HasSubstr;

constexpr size_t kSlot = 256;
constexpr base::milliseconds kSoon{3000};        // for waits that end so; enough to connect on a busy machine
constexpr base::milliseconds kNoEnd{3'600'000};  // a wait that only its timeout would end hangs the test

TEST(SharedMemoryTest, RanksSeeOneMemory) {
  const auto first = SharedMemory::Create(2, kSlot);
  ASSERT_THAT(first, IsOk());
  const auto second = SharedMemory::Open((*first)->key(), 1, 2, kSlot);
  ASSERT_THAT(second, IsOk());
  for (const int rank : {0, 1}) {
    for (const int half : {0, 1}) {
      ASSERT_EQ((*first)->Slot(rank, half).size(), kSlot / sizeof(float));
      std::ranges::fill((*first)->Slot(rank, half), static_cast<float>(10 * rank + half));
    }
  }
  for (const int rank : {0, 1}) {
    for (const int half : {0, 1}) {
      EXPECT_EQ((*second)->Slot(rank, half).front(), static_cast<float>(10 * rank + half));
      EXPECT_EQ((*second)->Slot(rank, half).back(), static_cast<float>(10 * rank + half));
    }
  }
  (*second)->Step(1).store(7);
  (*second)->SetState(SharedMemory::State::kLeft);
  EXPECT_EQ((*first)->Step(1).load(), 7U);
  EXPECT_EQ((*first)->Step(0).load(), 0U);
  EXPECT_EQ((*first)->StateOf(1), SharedMemory::State::kLeft);
  EXPECT_EQ((*first)->StateOf(0), SharedMemory::State::kOpen);
}

TEST(SharedMemoryTest, ARankIsAliveAsLongAsItHasTheMemory) {
  const auto first = SharedMemory::Create(3, kSlot);
  ASSERT_THAT(first, IsOk());
  auto second = SharedMemory::Open((*first)->key(), 1, 3, kSlot);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(SharedMemory::Open((*first)->key(), 1, 3, kSlot), StatusIs(absl::StatusCode::kUnavailable));  // taken
  EXPECT_TRUE((*second)->Alive(0));
  EXPECT_TRUE((*first)->Alive(1));
  EXPECT_FALSE((*first)->Alive(2));
  second->reset();
  EXPECT_FALSE((*first)->Alive(1));
}

TEST(SharedMemoryTest, OpensNothingElse) {
  const auto memory = SharedMemory::Create(2, kSlot);
  ASSERT_THAT(memory, IsOk());
  const auto refusal = [](const SharedMemoryKey& key, size_t slot = kSlot) {
    const auto opened = SharedMemory::Open(key, 1, 2, slot);
    return opened.ok() ? "" : base::Message(opened.status());
  };
  SharedMemoryKey key = (*memory)->key();
  EXPECT_THAT(refusal(key, 2 * kSlot), HasSubstr("another size"));
  key.token[1] ^= 1;
  EXPECT_THAT(refusal(key), HasSubstr("another group"));
  key.process = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(refusal(key), HasSubstr("finding it"));
  key = (*memory)->key();
  key.descriptor = -1;
  EXPECT_THAT(refusal(key), HasSubstr("finding it"));
  key.descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_THAT(refusal(key), HasSubstr("is not it"));
  ::close(static_cast<int>(key.descriptor));
  // One of the right name and size that its owner could truncate.
  key.descriptor = ::memfd_create("medley-group", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(static_cast<int>(key.descriptor),
                        ::lseek(static_cast<int>((*memory)->key().descriptor), 0, SEEK_END)),
            0);
  EXPECT_THAT(refusal(key), HasSubstr("can change its size"));
  ::close(static_cast<int>(key.descriptor));
  EXPECT_EQ(refusal((*memory)->key()), "");
}

TEST(SharedMemoryTest, ItsSizeCannotChange) {
  const auto memory = SharedMemory::Create(2, kSlot);
  ASSERT_THAT(memory, IsOk());
  const int descriptor = static_cast<int>((*memory)->key().descriptor);
  EXPECT_NE(::ftruncate(descriptor, 0), 0);
  EXPECT_NE(::ftruncate(descriptor, 1 << 30), 0);
}

GroupOptions Options(int rank, int size, base::milliseconds timeout = kNoEnd) {
  GroupOptions options{.name = "shared", .rank = rank, .address = "127.0.0.1"};
  for (int i = 0; i < size; ++i) options.members.push_back(fmt::format("member-{}", i));
  options.connect_timeout = base::milliseconds(60'000);
  options.timeout = timeout;
  options.share_memory = true;
  return options;
}

// Runs `body` on every rank; all groups live until all have ended.
void RunSharing(int size, const std::function<void(std::unique_ptr<Group>&)>& body,
                base::milliseconds timeout = kNoEnd) {
  MemoryStore store;
  std::latch end(size);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      auto group = Group::Connect(Options(rank, size, timeout), store, {});
      EXPECT_THAT(group, IsOk());
      if (group.ok()) body(*group);
      end.arrive_and_wait();
    });
  }
}

// Rank 0 has a whole group. Rank 1 has its connections and its part of the memory and does what `other` does with them.
void RunWithOther(const std::function<void(Group&)>& real,
                  const std::function<void(Group& connections, const SharedMemoryKey& key)>& other,
                  base::milliseconds timeout = kNoEnd) {
  MemoryStore store;
  std::latch end(2);
  std::jthread thread([&] {
    GroupOptions options = Options(1, 2);
    options.share_memory = false;
    auto connections = Group::Connect(options, store, {});
    EXPECT_THAT(connections, IsOk());
    SharedMemoryKey key;
    EXPECT_THAT((*connections)->Broadcast(std::as_writable_bytes(std::span(&key, 1)), 0), IsOk());
    other(**connections, key);
    end.arrive_and_wait();
  });
  auto group = Group::Connect(Options(0, 2, timeout), store, {});
  ASSERT_THAT(group, IsOk());
  real(**group);
  end.arrive_and_wait();
}

void Vote(Group& connections, float able) {
  EXPECT_THAT(connections.AllreduceSum({&able, 1}, AllreduceAlgorithm::kLinear), IsOk());
}

// Each rank may keep the others from it, whichever it is: recursive doubling over connections adds in pairs.
TEST(SharedMemoryGroupTest, OneRankThatMayNotShareKeepsAllFromIt) {
  for (const int unwilling : {0, 2}) {
    MemoryStore store;
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&store, rank, unwilling] {
        constexpr float kAddends[] = {1e8F, 1, -1e8F, 1};
        GroupOptions options = Options(rank, 4);
        options.may_share_memory = rank != unwilling;
        const auto group = Group::Connect(options, store, {});
        ASSERT_THAT(group, IsOk());
        float value = kAddends[rank];
        EXPECT_THAT((*group)->AllreduceSum({&value, 1}, AllreduceAlgorithm::kRecursiveDoubling), IsOk());
        EXPECT_EQ(value, 0) << unwilling;
        EXPECT_THAT((*group)->Barrier(), IsOk());
      });
    }
  }
}

// Which tells shared memory from recursive doubling over connections.
TEST(SharedMemoryGroupTest, AddsInTheOrderOfRanksByEveryAlgorithm) {
  RunSharing(4, [](std::unique_ptr<Group>& group) {
    constexpr float kAddends[] = {1e8F, 1, -1e8F, 1};  // in this order: 1; in pairs: 0
    for (const size_t count : {size_t{1}, size_t{300'000}}) {
      for (const auto algorithm : {AllreduceAlgorithm::kRecursiveDoubling, AllreduceAlgorithm::kRing}) {
        std::vector<float> values(count, kAddends[group->rank()]);
        ASSERT_THAT(group->AllreduceSum(values, algorithm), IsOk());
        ASSERT_EQ(values, std::vector<float>(count, 1.0F));
      }
    }
  });
}

TEST(SharedMemoryGroupTest, RandomSizesOneAfterTheOther) {
  RunSharing(3, [](std::unique_ptr<Group>& group) {
    base::Rng sizes(5);  // the same on all ranks
    for (int i = 0; i < 300; ++i) {
      const size_t count = sizes.Below(4) == 0 ? 60'000 + sizes.Below(100'000) : 1 + sizes.Below(20'000);
      std::vector<float> values(count, static_cast<float>(group->rank() + i));
      ASSERT_THAT(group->AllreduceSum(values, AllreduceAlgorithm::kRing), IsOk());
      ASSERT_EQ(values, std::vector<float>(count, static_cast<float>(3 + 3 * i))) << i;
    }
  });
}

TEST(SharedMemoryGroupTest, IsLeftOutIfOneCannotShare) {
  RunWithOther(
      [](Group& group) {
        std::vector<float> values = {1, 2};
        EXPECT_THAT(group.AllreduceSum(values, AllreduceAlgorithm::kLinear), IsOk());
        EXPECT_EQ(values, (std::vector<float>{4, 6}));
      },
      [](Group& connections, const SharedMemoryKey&) {
        Vote(connections, 0);
        std::vector<float> values = {3, 4};
        EXPECT_THAT(connections.AllreduceSum(values, AllreduceAlgorithm::kLinear), IsOk());
        EXPECT_EQ(values, (std::vector<float>{4, 6}));
      });
}

TEST(SharedMemoryGroupTest, TheWaitForARankThatDoesNotAnswerCanBeStopped) {
  MemoryStore store;
  std::stop_source stop;
  std::latch ended(1);
  std::jthread other([&] {
    GroupOptions options = Options(1, 2);
    options.share_memory = false;
    const auto connections = Group::Connect(options, store, {});
    stop.request_stop();
    ended.wait();
  });
  EXPECT_THAT(Group::Connect(Options(0, 2), store, stop.get_token()), StatusIs(absl::StatusCode::kCancelled));
  ended.count_down();
}

TEST(SharedMemoryGroupTest, AnotherNumberOfValuesIsAnError) {
  RunSharing(2, [](std::unique_ptr<Group>& group) {
    std::vector<float> values(static_cast<size_t>(5 + group->rank()));
    const absl::Status status = group->AllreduceSum(values, AllreduceAlgorithm::kRing);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(group->AllreduceSum(values, AllreduceAlgorithm::kRing), StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(group->Barrier(), StatusIs(absl::StatusCode::kAborted));
  });
}

TEST(SharedMemoryGroupTest, CloseWakesALocalSum) {
  RunSharing(2, [](std::unique_ptr<Group>& group) {
    if (group->rank() == 1) return;
    std::jthread closer([&] { group->Close("halt"); });
    float value = 0;
    const absl::Status status = group->AllreduceSum({&value, 1}, AllreduceAlgorithm::kRing);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(base::Message(status), HasSubstr("halt"));
  });
}

TEST(SharedMemoryGroupTest, ASumEndsAtItsTimeout) {
  RunSharing(
      2,
      [](std::unique_ptr<Group>& group) {
        if (group->rank() == 1) return;
        float value = 0;
        const absl::Status status = group->AllreduceSum({&value, 1}, AllreduceAlgorithm::kRing);
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
        EXPECT_THAT(base::Message(status), HasSubstr("member-1"));
      },
      kSoon);
}

TEST(SharedMemoryGroupTest, ASumWithoutARankThatHasLeftFails) {
  RunSharing(3, [](std::unique_ptr<Group>& group) {
    std::vector<float> values(100);
    ASSERT_THAT(group->AllreduceSum(values, AllreduceAlgorithm::kRing), IsOk());
    if (group->rank() == 2) return group.reset();
    const absl::Status status = group->AllreduceSum(values, AllreduceAlgorithm::kRing);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  });
}

// A rank that writes anything anywhere, at any time, can spoil the sums, but calls end and touch no other memory.
TEST(SharedMemoryGroupTest, HostileContentsDoNoHarm) {
  std::atomic<bool> done = false;
  RunWithOther(
      [&](Group& group) {
        std::vector<float> values(400'000, 1.0F);
        for (int i = 0; i < 200; ++i) {
          const absl::Status status = group.AllreduceSum(values, AllreduceAlgorithm::kRing);
          EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status)) << status;
        }
        done = true;
      },
      [&](Group& connections, const SharedMemoryKey& key) {
        const auto memory = SharedMemory::Open(key, 1, 2, SharedSlotBytes(2));
        ASSERT_THAT(memory, IsOk());
        Vote(connections, 1);
        base::Rng rng(3);
        while (!done) {
          const int rank = static_cast<int>(rng.Below(2));
          (*memory)->Step(rank).store(rng.Next());
          (*memory)->Count(rank, static_cast<int>(rng.Below(2))).store(rng.Below(3) == 0 ? 400'000 : rng.Next());
          (*memory)->SetState(static_cast<SharedMemory::State>(rng.Below(1000) == 0 ? rng.Next() : 0));
          (*memory)->Slot(rank, 0)[rng.Below(1000)] = std::numeric_limits<float>::quiet_NaN();
          (*memory)->WakeAll();
        }
      },
      kSoon);
}

TEST(SharedMemoryGroupTest, ALengthInTheMemoryIsOnlyCompared) {
  RunWithOther(
      [&](Group& group) {
        std::vector<float> values(5);
        const absl::Status status = group.AllreduceSum(values, AllreduceAlgorithm::kRing);
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
        EXPECT_THAT(base::Message(status), HasSubstr("member-1 has 18446744073709551615 values to add, expected 5"));
      },
      [&](Group& connections, const SharedMemoryKey& key) {
        const auto memory = SharedMemory::Open(key, 1, 2, SharedSlotBytes(2));
        ASSERT_THAT(memory, IsOk());
        (*memory)->Count(1, 0).store(std::numeric_limits<uint64_t>::max());
        (*memory)->Step(1).store(std::numeric_limits<uint64_t>::max());
        Vote(connections, 1);
      });
}

// One file a key, for processes.
class FileStore final : public KeyValueStore {
 public:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  absl::Status Put(const std::string& key, const std::string& value) override {
    return base::WriteFileAtomic(Path(key), value);
  }
  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds,
                                               std::stop_token stop) override {
    base::SystemClock clock;
    std::vector<std::string> values;
    while (values.size() < keys.size()) {
      if (auto value = base::ReadFile(Path(keys[values.size()])); value.ok()) {
        values.push_back(*std::move(value));
      } else if (!clock.SleepFor(base::milliseconds(1), stop)) {
        return base::Cancelled("stopped");
      }
    }
    return values;
  }

 private:
  std::filesystem::path Path(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '_');
    return folder_ / key;
  }
  const std::filesystem::path folder_;
};

// A process that is killed during sums ends those of the others, at whatever instant.
TEST(SharedMemoryGroupTest, AKilledProcessFailsTheOthers) {
  base::Rng rng(11);
  for (int round = 0; round < 8; ++round) {
    const auto folder = base::MakeTempDir("medley-shared");
    ASSERT_THAT(folder, IsOk());
    std::array<pid_t, 2> others{};
    for (size_t i = 0; i < others.size(); ++i) {
      others[i] = ::fork();
      if (others[i] != 0) continue;
      FileStore store(*folder);  // in the child: until it is killed or its group fails
      const auto group = Group::Connect(Options(static_cast<int>(i) + 1, 3), store, {});
      std::vector<float> values(70'000, 1.0F);
      while (group.ok() && (*group)->AllreduceSum(values, AllreduceAlgorithm::kRing).ok()) continue;
      ::_exit(group.ok() ? 0 : 1);
    }
    FileStore store(*folder);
    const auto group = Group::Connect(Options(0, 3), store, {});
    ASSERT_THAT(group, IsOk());
    const auto sums = rng.Below(20);
    std::vector<float> values(70'000, 1.0F);
    absl::Status status;
    for (uint64_t i = 0; status.ok(); ++i) {
      if (i == sums) ::kill(others[1], SIGKILL);
      status = (*group)->AllreduceSum(values, AllreduceAlgorithm::kRing);
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    int ended = 0;
    ASSERT_EQ(::waitpid(others[0], &ended, 0), others[0]);  // it learns it too
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    ASSERT_EQ(::waitpid(others[1], &ended, 0), others[1]);
    base::RemoveTempDir(*folder);
  }
}

}  // namespace
}  // namespace medley::worker
