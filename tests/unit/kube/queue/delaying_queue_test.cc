#include "kube/queue/delaying_queue.h"

#include <gtest/gtest.h>

#include <atomic>

#include "common/base/testing/fake_clock.h"

namespace medley::kube {
namespace {

using base::milliseconds;
using base::nanoseconds;
using base::seconds;

Key K(const char* name) { return {"ns", name}; }

class DelayingQueueTest : public testing::Test {
 protected:
  // Waits for a bounded time: if no key arrives, the test fails.
  std::optional<Key> Get() {
    std::stop_source stop;
    std::jthread guard([&](std::stop_token mine) {
      base::SystemClock().SleepFor(seconds(60), mine);
      stop.request_stop();
    });
    return queue_.Get(stop.get_token());
  }
  void Advance(nanoseconds by) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(by);
  }

  base::FakeClock clock_;
  DelayingQueue queue_{clock_};
};

TEST_F(DelayingQueueTest, TestSimpleQueue) {
  queue_.AddAfter(K("foo"), milliseconds(50));
  EXPECT_EQ(queue_.Length(), 0u);
  Advance(milliseconds(60));
  EXPECT_EQ(Get(), K("foo"));
}

TEST_F(DelayingQueueTest, D3_NotPositiveAddsNow) {
  queue_.AddAfter(K("a"), nanoseconds(0));
  queue_.AddAfter(K("b"), seconds(-1));
  EXPECT_EQ(queue_.Length(), 2u);
  EXPECT_EQ(queue_.Delayed(), 0u);
}

TEST_F(DelayingQueueTest, TestDeduping) {
  queue_.AddAfter(K("foo"), milliseconds(50));
  queue_.AddAfter(K("foo"), milliseconds(70));  // later: no change
  EXPECT_EQ(queue_.Delayed(), 1u);
  Advance(milliseconds(60));
  ASSERT_EQ(Get(), K("foo"));
  queue_.Done(K("foo"));
  Advance(milliseconds(20));
  EXPECT_EQ(queue_.Delayed(), 0u);
  EXPECT_EQ(queue_.Length(), 0u);

  queue_.AddAfter(K("foo"), milliseconds(50));
  queue_.AddAfter(K("foo"), milliseconds(30));  // earlier: moves
  Advance(milliseconds(40));
  ASSERT_EQ(Get(), K("foo"));
  queue_.Done(K("foo"));
  Advance(milliseconds(20));  // the outdated heap entry has no effect
  Advance(milliseconds(1));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(DelayingQueueTest, TestAddTwoFireEarly) {
  queue_.AddAfter(K("foo"), seconds(1));
  queue_.AddAfter(K("bar"), milliseconds(50));
  queue_.AddAfter(K("baz"), seconds(2));
  Advance(milliseconds(60));
  ASSERT_EQ(Get(), K("bar"));
  EXPECT_EQ(queue_.Length(), 0u);
  Advance(seconds(1));
  ASSERT_EQ(Get(), K("foo"));
  Advance(seconds(1));
  ASSERT_EQ(Get(), K("baz"));
}

TEST_F(DelayingQueueTest, TestCopyShifting) {
  queue_.AddAfter(K("first"), seconds(1));
  queue_.AddAfter(K("second"), milliseconds(500));
  queue_.AddAfter(K("third"), milliseconds(250));
  Advance(seconds(2));
  EXPECT_EQ(Get(), K("third"));
  EXPECT_EQ(Get(), K("second"));
  EXPECT_EQ(Get(), K("first"));
}

// Records the deadline of its first sleep; sleeps until stopped.
class FirstSleep final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override { return base::SteadyTime(seconds(1000)); }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    base::MutexLock lock(mutex_);
    sleeps_.push_back(deadline - Steady());
    changed_.NotifyAll();
    changed_.Wait(mutex_, stop, [] { return false; });
    return false;
  }
  nanoseconds Wait() {
    base::MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, {}, seconds(60), [&] { return !sleeps_.empty(); });
    return sleeps_.empty() ? nanoseconds(0) : sleeps_.front();
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<nanoseconds> sleeps_ ABSL_GUARDED_BY(mutex_);
};

TEST(DelayingQueueHeartbeatTest, D3_LooksEvery10SecondsAndD5_EveryHalfSecondWithMetrics) {
  FirstSleep plain;
  DelayingQueue queue(plain);
  EXPECT_EQ(plain.Wait(), seconds(10));
  FirstSleep measured;
  QueueMetrics metrics;
  DelayingQueue watched(measured, &metrics);
  EXPECT_EQ(measured.Wait(), milliseconds(500));
}

TEST_F(DelayingQueueTest, D3_IgnoredAfterShutDown) {
  queue_.AddAfter(K("a"), milliseconds(1));
  queue_.ShutDown();
  queue_.AddAfter(K("b"), milliseconds(1));
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(DelayingQueueTest, D4_AddRateLimitedGrowsAndForgetClears) {
  RateLimitingQueue queue(clock_, std::make_unique<ExponentialRateLimiter>(milliseconds(5), seconds(1)));
  queue.AddRateLimited(K("a"));
  EXPECT_EQ(queue.Requeues(K("a")), 1);
  EXPECT_EQ(queue.Delayed(), 1u);
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.Advance(milliseconds(5));
  std::stop_source stop;
  ASSERT_EQ(queue.Get(stop.get_token()), K("a"));
  queue.Forget(K("a"));  // not Done
  EXPECT_EQ(queue.Requeues(K("a")), 0);
  queue.Add(K("a"));
  EXPECT_EQ(queue.Length(), 0u);
  queue.Done(K("a"));
  EXPECT_EQ(queue.Length(), 1u);
}

class UnfinishedMetrics : public QueueMetrics {
 public:
  void SetUnfinished(nanoseconds value) override { unfinished = value.count(); }
  void OnRetry() override { ++retries; }
  std::atomic<int64_t> unfinished = 0;
  std::atomic<int> retries = 0;
};

TEST_F(DelayingQueueTest, D5_UnfinishedWorkIsReportedEveryHalfSecond) {
  UnfinishedMetrics metrics;
  RateLimitingQueue queue(clock_, nullptr, &metrics);
  queue.AddRateLimited(K("z"));
  EXPECT_EQ(metrics.retries, 1);
  queue.Add(K("a"));
  std::stop_source stop;
  ASSERT_TRUE(queue.Get(stop.get_token()));
  const auto deadline = base::SystemClock().Steady() + seconds(60);
  while (metrics.unfinished == 0 && base::SystemClock().Steady() < deadline) {
    Advance(milliseconds(500));
    std::this_thread::yield();
  }
  EXPECT_GT(metrics.unfinished, 0);
}

}  // namespace
}  // namespace medley::kube
