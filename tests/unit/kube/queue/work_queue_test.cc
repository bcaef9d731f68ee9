// Section D of docs/design/kube-client.md; tests ported from client-go keep their names.
#include "kube/queue/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/testing/fake_clock.h"

namespace medley::kube {
namespace {

Key Named(const char* name) { return {"ns", name}; }

class WorkQueueTest : public testing::Test {
 protected:
  std::optional<Key> Get() { return queue_.Get(stop_.get_token()); }

  base::FakeClock clock_;
  std::stop_source stop_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, D1_FirstInFirstOutWithoutDuplicates) {
  for (const char* name : {"b", "a", "b", "c", "a"}) queue_.Add(Named(name));
  EXPECT_EQ(queue_.Length(), 3u);
  EXPECT_EQ(Get(), Named("b"));
  EXPECT_EQ(Get(), Named("a"));
  EXPECT_EQ(Get(), Named("c"));
}

TEST_F(WorkQueueTest, TestAddWhileProcessing) {
  queue_.Add(Named("a"));
  ASSERT_EQ(Get(), Named("a"));
  queue_.Add(Named("a"));
  queue_.Add(Named("a"));
  EXPECT_EQ(queue_.Length(), 0u);  // never on two workers
  queue_.Done(Named("a"));
  EXPECT_EQ(queue_.Length(), 1u);
  ASSERT_EQ(Get(), Named("a"));
  queue_.Done(Named("a"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestReinsert) {
  queue_.Add(Named("foo"));
  ASSERT_EQ(Get(), Named("foo"));
  queue_.Add(Named("foo"));
  queue_.Done(Named("foo"));
  ASSERT_EQ(Get(), Named("foo"));
  queue_.Done(Named("foo"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestCollapse) {
  queue_.Add(Named("bar"));
  queue_.Add(Named("bar"));
  ASSERT_EQ(Get(), Named("bar"));
  queue_.Done(Named("bar"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestCollapseWhileProcessing) {
  queue_.Add(Named("bar"));
  ASSERT_EQ(Get(), Named("bar"));
  for (int i = 0; i < 3; ++i) queue_.Add(Named("bar"));
  std::jthread waiter([&] {
    const auto key = Get();
    EXPECT_EQ(key, Named("bar"));
    queue_.Done(*key);
  });
  queue_.Done(Named("bar"));
  waiter.join();
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, D1_OneKeyIsNeverOnTwoWorkers) {
  std::atomic<int> running = 0;
  std::atomic<int> done = 0;
  std::atomic<bool> twice = false;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = Get()) {
        if (++running > 1) twice = true;
        --running;
        ++done;
        queue_.Done(*key);
      }
    });
  }
  for (int i = 0; i < 2000; ++i) queue_.Add(Named("only"));
  queue_.ShutDown();
  workers.clear();
  EXPECT_FALSE(twice);
  EXPECT_GE(done, 1);
}

TEST_F(WorkQueueTest, D2_ShutDownRefusesAddsAndLetsQueuedItemsDrain) {
  queue_.Add(Named("a"));
  queue_.Add(Named("b"));
  queue_.ShutDown();
  queue_.Add(Named("c"));
  EXPECT_EQ(Get(), Named("a"));
  EXPECT_EQ(Get(), Named("b"));
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(WorkQueueTest, D2_StopEndsGet) {
  std::jthread waiter([&] { EXPECT_EQ(Get(), std::nullopt); });
  stop_.request_stop();
}

TEST_F(WorkQueueTest, TestQueueDrainageUsingShutDownWithDrain) {
  queue_.Add(Named("foo"));
  queue_.Add(Named("bar"));
  const auto first = Get();
  const auto second = Get();
  std::atomic<bool> drained = false;
  std::jthread drain([&] {
    queue_.ShutDownWithDrain(stop_.get_token());
    drained = true;
  });
  while (!queue_.ShuttingDown()) std::this_thread::yield();
  EXPECT_FALSE(drained);
  queue_.Done(*first);
  EXPECT_FALSE(drained);
  queue_.Done(*second);
  drain.join();
  EXPECT_TRUE(drained);
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(WorkQueueTest, TestForceQueueShutdownUsingShutDown) {
  queue_.Add(Named("foo"));
  ASSERT_TRUE(Get());
  std::jthread drain([&] { queue_.ShutDownWithDrain(stop_.get_token()); });
  while (!queue_.ShuttingDown()) std::this_thread::yield();
  queue_.ShutDown();  // ends the wait although "foo" is never done
  drain.join();
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(WorkQueueTest, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem) {
  queue_.Add(Named("foo"));
  ASSERT_TRUE(Get());
  queue_.Add(Named("foo"));
  std::jthread drain([&] { queue_.ShutDownWithDrain(stop_.get_token()); });
  while (!queue_.ShuttingDown()) std::this_thread::yield();
  queue_.Done(Named("foo"));
  ASSERT_EQ(Get(), Named("foo"));  // added again before the shutdown: processed once more
  queue_.Done(Named("foo"));
  drain.join();
}

TEST_F(WorkQueueTest, D4_PrioritiesAndReAddTakesTheMaximum) {
  queue_.Add(Named("low"), WorkQueue::kLowPriority);
  queue_.Add(Named("lifted"), WorkQueue::kLowPriority);
  queue_.Add(Named("a"));
  queue_.Add(Named("b"));
  queue_.Add(Named("lifted"), 1);
  queue_.Add(Named("a"), WorkQueue::kLowPriority);  // the priority is not lowered
  EXPECT_EQ(Get(), Named("lifted"));
  EXPECT_EQ(Get(), Named("a"));
  EXPECT_EQ(Get(), Named("b"));
  EXPECT_EQ(Get(), Named("low"));
}

class RecordingMetrics : public QueueMetrics {
 public:
  void OnAdd() override { ++adds; }
  void SetDepth(size_t value) override { depth = value; }
  void ObserveLatency(std::chrono::nanoseconds value) override { latency = value; }
  void ObserveWorkDuration(std::chrono::nanoseconds value) override { work = value; }
  void SetUnfinished(std::chrono::nanoseconds value) override { unfinished = value; }
  void SetLongestRunning(std::chrono::nanoseconds value) override { longest = value; }
  int adds = 0;
  size_t depth = 0;
  std::chrono::nanoseconds latency{0}, work{0}, unfinished{0}, longest{0};
};

TEST_F(WorkQueueTest, D5_Metrics) {
  RecordingMetrics metrics;
  WorkQueue queue(clock_, &metrics);
  queue.Add(Named("a"));
  queue.Add(Named("a"));
  queue.Add(Named("b"));
  EXPECT_EQ(metrics.adds, 2);
  EXPECT_EQ(metrics.depth, 2u);
  clock_.Advance(base::milliseconds(50));
  ASSERT_TRUE(queue.Get(stop_.get_token()));
  EXPECT_EQ(metrics.latency, base::milliseconds(50));
  EXPECT_EQ(metrics.depth, 1u);
  clock_.Advance(base::milliseconds(25));
  ASSERT_TRUE(queue.Get(stop_.get_token()));
  clock_.Advance(base::milliseconds(5));
  queue.ReportUnfinished();
  EXPECT_EQ(metrics.unfinished, base::milliseconds(35));
  EXPECT_EQ(metrics.longest, base::milliseconds(30));
  queue.Done(Named("a"));
  EXPECT_EQ(metrics.work, base::milliseconds(30));
}

}  // namespace
}  // namespace medley::kube
