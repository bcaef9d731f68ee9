// Calls in the background: one of each kind for a job, answers handed over once, cancellation.
#include "operator/controllers/slow_calls.h"

#include <gmock/gmock.h>

#include <atomic>

#include "common/base/clock.h"
#include "operator/lifecycle/actions.h"

namespace medley::ops {
namespace {

using lifecycle::Answer;
using lifecycle::ReadLog;

const kube::Key kJob{"ns", "adult"};

Answer Log(const std::string& text) { return ReadLog::Answer(text); }
std::string TextOf(const std::optional<Answer>& answer) {
  return answer ? **std::get<ReadLog::Answer>(*answer) : "no answer";
}

// Counts the answers that came, and waits for them.
class Answers {
 public:
  void Count(const kube::Key& job) {
    base::MutexLock lock(mutex_);
    jobs_.push_back(job);
    changed_.NotifyAll();
  }
  bool Wait(size_t count) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(30),
                            [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return jobs_.size() >= count; });
  }
  size_t count() {
    base::MutexLock lock(mutex_);
    return jobs_.size();
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<kube::Key> jobs_ ABSL_GUARDED_BY(mutex_);
};

// A call that waits until it is let go or cancelled.
class Gate {
 public:
  void Open() {
    base::MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  SlowCalls::Call Call(std::string text) {
    return [this, text = std::move(text)](std::stop_token stop) {
      base::MutexLock lock(mutex_);
      ++running_;
      changed_.NotifyAll();
      const bool opened = changed_.WaitFor(mutex_, std::move(stop), std::chrono::seconds(30),
                                           [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return open_; });
      cancelled_ += opened ? 0 : 1;
      changed_.NotifyAll();
      return Log(text);
    };
  }
  bool WaitUntilRunning(int count) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(30),
                            [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ >= count; });
  }
  bool WaitUntilCancelled(int count) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(30),
                            [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return cancelled_ >= count; });
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
};

class SlowCallsTest : public testing::Test {
 protected:
  std::optional<Answer> Ask(const std::string& text, const SlowCalls::Call& call, const std::string& kind = "log",
                            const kube::Key& job = kJob) {
    return calls_.Ask(job, {kind, text, nullptr}, SlowCalls::Pool::kCoordinators, call);
  }
  static SlowCalls::Call Says(const std::string& text) {
    return [text](const std::stop_token&) { return Log(text); };
  }

  Answers answers_;
  Gate gate_;  // before calls_, whose threads use it
  SlowCalls calls_{{.planner_threads = 1, .coordinator_threads = 2, .suspension_threads = 1, .log_threads = 1},
                   [this](const kube::Key& job) { answers_.Count(job); }};
};

TEST_F(SlowCallsTest, AnAnswerIsHandedOverOnce) {
  EXPECT_EQ(TextOf(Ask("a", Says("first"))), "no answer");
  ASSERT_TRUE(answers_.Wait(1));
  EXPECT_EQ(TextOf(Ask("a", Says("second"))), "first");
  EXPECT_EQ(TextOf(Ask("a", Says("second"))), "no answer");
  ASSERT_TRUE(answers_.Wait(2));
  EXPECT_EQ(TextOf(Ask("a", Says("third"))), "second");
}

TEST_F(SlowCallsTest, AQuestionThatIsAskedAgainRunsOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(TextOf(Ask("a", gate_.Call(std::to_string(i)))), "no answer");
  gate_.Open();
  ASSERT_TRUE(answers_.Wait(1));
  EXPECT_EQ(TextOf(Ask("a", Says("other"))), "0");
  EXPECT_EQ(answers_.count(), 1u);
}

TEST_F(SlowCallsTest, AnotherQuestionOfTheKindCancelsTheFirst) {
  Ask("a", gate_.Call("a"));
  ASSERT_TRUE(gate_.WaitUntilRunning(1));
  Ask("b", Says("b"));
  ASSERT_TRUE(gate_.WaitUntilCancelled(1));
  ASSERT_TRUE(answers_.Wait(1));
  EXPECT_EQ(TextOf(Ask("b", Says("other"))), "b");
}

TEST_F(SlowCallsTest, QuestionsAboutDifferentObjectsDiffer) {
  const auto one = std::make_shared<const int>(1);
  const auto two = std::make_shared<const int>(1);
  const auto ask = [&](const std::shared_ptr<const int>& object, const std::string& says) {
    return TextOf(calls_.Ask(kJob, {"plan", "", object}, SlowCalls::Pool::kPlanner, Says(says)));
  };
  EXPECT_EQ(ask(one, "one"), "no answer");
  ASSERT_TRUE(answers_.Wait(1));
  EXPECT_EQ(ask(two, "two"), "no answer");
  ASSERT_TRUE(answers_.Wait(2));
  EXPECT_EQ(ask(two, "other"), "two");
}

TEST_F(SlowCallsTest, KindsAndJobsDoNotDisturbEachOther) {
  Ask("a", gate_.Call("a"), "log");
  ASSERT_TRUE(gate_.WaitUntilRunning(1));
  Ask("a", Says("of suspend"), "suspend");
  Ask("a", Says("of the other"), "log", {"ns", "other"});
  ASSERT_TRUE(answers_.Wait(2));
  EXPECT_EQ(TextOf(Ask("a", Says("x"), "suspend")), "of suspend");
  EXPECT_EQ(TextOf(Ask("a", Says("x"), "log", {"ns", "other"})), "of the other");
}

TEST_F(SlowCallsTest, AnAnswerThatAWholePassDidNotAskForIsDropped) {
  Ask("a", Says("old"));
  ASSERT_TRUE(answers_.Wait(1));
  calls_.EndPass(kJob);  // the answer may have come in the middle of this pass
  EXPECT_EQ(TextOf(Ask("a", Says("x"))), "old");
  Ask("a", Says("old"));
  ASSERT_TRUE(answers_.Wait(2));
  calls_.EndPass(kJob);
  calls_.EndPass(kJob);
  EXPECT_EQ(TextOf(Ask("a", Says("new"))), "no answer");
  ASSERT_TRUE(answers_.Wait(3));
  EXPECT_EQ(TextOf(Ask("a", Says("x"))), "new");
}

TEST_F(SlowCallsTest, AmongWaitingCallsTheMostUrgentIsMadeFirst) {
  base::Mutex mutex;
  std::vector<std::string> order;
  const auto ask = [&](const std::string& job, int urgency) {
    calls_.Ask({"ns", job}, {"plan", "", nullptr, urgency}, SlowCalls::Pool::kPlanner,
               [&, job](const std::stop_token&) {
                 base::MutexLock lock(mutex);
                 order.push_back(job);
                 return Log(job);
               });
  };
  calls_.Ask(kJob, {"plan", "", nullptr}, SlowCalls::Pool::kPlanner, gate_.Call("holds the only thread"));
  ASSERT_TRUE(gate_.WaitUntilRunning(1));
  ask("replan", 0);
  ask("evacuation", 2);
  ask("first", 1);
  ask("second", 1);
  gate_.Open();
  ASSERT_TRUE(answers_.Wait(5));
  base::MutexLock lock(mutex);
  EXPECT_THAT(order, testing::ElementsAre("evacuation", "first", "second", "replan"));
}

TEST_F(SlowCallsTest, ADeletedJobCancelsItsCalls) {
  Ask("a", gate_.Call("a"));
  ASSERT_TRUE(gate_.WaitUntilRunning(1));
  calls_.Drop(kJob);
  ASSERT_TRUE(gate_.WaitUntilCancelled(1));
  EXPECT_EQ(TextOf(Ask("a", Says("of the next job"))), "no answer");
  ASSERT_TRUE(answers_.Wait(1));
  EXPECT_EQ(TextOf(Ask("a", Says("x"))), "of the next job");
}

TEST_F(SlowCallsTest, StopCancelsWhatRunsAndDropsWhatWaits) {
  std::atomic<int> begun = 0;
  for (const char* job : {"1", "2", "3", "4"}) {
    Ask("a",
        [&, call = gate_.Call("a")](std::stop_token stop) {
          ++begun;
          return call(std::move(stop));
        },
        "log", {"ns", job});
  }
  ASSERT_TRUE(gate_.WaitUntilRunning(2));
  calls_.Stop();
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(answers_.count(), 0u);
  EXPECT_EQ(TextOf(Ask("a", Says("x"))), "no answer");
}

}  // namespace
}  // namespace medley::ops
