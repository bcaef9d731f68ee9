// Section D of docs/kube-client.md; tests ported from client-go keep their names.
#include "kube/queue/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/testing/fake_clock.h"

namespace medley::kube {
namespace {

Key K(const char* name) { return {"ns", name}; }

class WorkQueueTest : public testing::Test {
 protected:
  std::optional<Key> Get() { return queue_.Get(stop_.get_token()); }

  base::FakeClock clock_;
  std::stop_source stop_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, D1_FirstInFirstOutWithoutDuplicates) {
  for (const char* name : {"b", "a", "b", "c", "a"}) queue_.Add(K(name));
  EXPECT_EQ(queue_.Length(), 3u);
  EXPECT_EQ(Get(), K("b"));
  EXPECT_EQ(Get(), K("a"));
  EXPECT_EQ(Get(), K("c"));
}

TEST_F(WorkQueueTest, TestAddWhileProcessing) {
  queue_.Add(K("a"));
  ASSERT_EQ(Get(), K("a"));
  queue_.Add(K("a"));
  queue_.Add(K("a"));
  EXPECT_EQ(queue_.Length(), 0u);  // never on two workers
  queue_.Done(K("a"));
  EXPECT_EQ(queue_.Length(), 1u);
  ASSERT_EQ(Get(), K("a"));
  queue_.Done(K("a"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestReinsert) {
  queue_.Add(K("foo"));
  ASSERT_EQ(Get(), K("foo"));
  queue_.Add(K("foo"));
  queue_.Done(K("foo"));
  ASSERT_EQ(Get(), K("foo"));
  queue_.Done(K("foo"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestCollapse) {
  queue_.Add(K("bar"));
  queue_.Add(K("bar"));
  ASSERT_EQ(Get(), K("bar"));
  queue_.Done(K("bar"));
  EXPECT_EQ(queue_.Length(), 0u);
}

TEST_F(WorkQueueTest, TestCollapseWhileProcessing) {
  queue_.Add(K("bar"));
  ASSERT_EQ(Get(), K("bar"));
  for (int i = 0; i < 3; ++i) queue_.Add(K("bar"));
  std::jthread waiter([&] {
    const auto key = Get();
    EXPECT_EQ(key, K("bar"));
    queue_.Done(*key);
  });
  queue_.Done(K("bar"));
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
  for (int i = 0; i < 2000; ++i) queue_.Add(K("only"));
  queue_.ShutDown();
  workers.clear();
  EXPECT_FALSE(twice);
  EXPECT_GE(done, 1);
}

TEST_F(WorkQueueTest, D2_ShutDownRefusesAddsAndLetsQueuedItemsDrain) {
  queue_.Add(K("a"));
  queue_.Add(K("b"));
  queue_.ShutDown();
  queue_.Add(K("c"));
  EXPECT_EQ(Get(), K("a"));
  EXPECT_EQ(Get(), K("b"));
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(WorkQueueTest, D2_StopEndsGet) {
  std::jthread waiter([&] { EXPECT_EQ(Get(), std::nullopt); });
  stop_.request_stop();
}

TEST_F(WorkQueueTest, TestQueueDrainageUsingShutDownWithDrain) {
  queue_.Add(K("foo"));
  queue_.Add(K("bar"));
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
  queue_.Add(K("foo"));
  ASSERT_TRUE(Get());
  std::jthread drain([&] { queue_.ShutDownWithDrain(stop_.get_token()); });
  while (!queue_.ShuttingDown()) std::this_thread::yield();
  queue_.ShutDown();  // ends the wait although "foo" is never done
  drain.join();
  EXPECT_EQ(Get(), std::nullopt);
}

TEST_F(WorkQueueTest, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem) {
  queue_.Add(K("foo"));
  ASSERT_TRUE(Get());
  queue_.Add(K("foo"));
  std::jthread drain([&] { queue_.ShutDownWithDrain(stop_.get_token()); });
  while (!queue_.ShuttingDown()) std::this_thread::yield();
  queue_.Done(K("foo"));
  ASSERT_EQ(Get(), K("foo"));  // added again before the shutdown: processed once more
  queue_.Done(K("foo"));
  drain.join();
}

TEST_F(WorkQueueTest, D4_PrioritiesAndReAddTakesTheMaximum) {
  queue_.Add(K("low"), WorkQueue::kLowPriority);
  queue_.Add(K("lifted"), WorkQueue::kLowPriority);
  queue_.Add(K("a"));
  queue_.Add(K("b"));
  queue_.Add(K("lifted"), 1);
  queue_.Add(K("a"), WorkQueue::kLowPriority);  // the priority is not lowered
  EXPECT_EQ(Get(), K("lifted"));
  EXPECT_EQ(Get(), K("a"));
  EXPECT_EQ(Get(), K("b"));
  EXPECT_EQ(Get(), K("low"));
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
  queue.Add(K("a"));
  queue.Add(K("a"));
  queue.Add(K("b"));
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
  queue.Done(K("a"));
  EXPECT_EQ(metrics.work, base::milliseconds(30));
}

}  // namespace
}  // namespace medley::kube
