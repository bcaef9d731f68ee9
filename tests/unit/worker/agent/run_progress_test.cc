#include "worker/agent/run_progress.h"

#include <gmock/gmock.h>

#include <deque>

#include "worker/agent/exit_words.h"

namespace medley::worker {
namespace {

using testing::HasSubstr;

const base::SteadyTime kStart = base::SteadyTime() + base::seconds(1000);

TEST(RunProgressTest, CountsForwardsOnly) {
  RunProgress progress(0, kStart);
  progress.Report({3, 0.5}, kStart + base::seconds(1));
  progress.Report({2, 0.1}, kStart + base::seconds(2));
  progress.Report({3, 0.1}, kStart + base::seconds(2));
  EXPECT_EQ(progress.reached(), 3);
  EXPECT_EQ(progress.backwards(), 1);
  EXPECT_EQ(progress.TakeLoss(3), 0.5);
  progress.Report({4, std::nullopt}, kStart + base::seconds(5));
  EXPECT_EQ(progress.reached(), 4);
  EXPECT_EQ(progress.MedianSeconds(), 4);
  EXPECT_EQ(progress.TakeLoss(4), std::nullopt);
  EXPECT_EQ(progress.TakeLoss(3), std::nullopt);  // forgotten
}

TEST(RunProgressTest, StepsBetweenReportsShareTheTime) {
  RunProgress progress(0, kStart);
  progress.Report({100, std::nullopt}, kStart);  // it continues
  progress.Report({110, std::nullopt}, kStart + base::seconds(20));
  EXPECT_EQ(progress.MedianSeconds(), 2);
  EXPECT_EQ(progress.measured(), 1);
  EXPECT_TRUE(progress.MayHaveFinished(120));
  EXPECT_FALSE(progress.MayHaveFinished(121));
  EXPECT_FALSE(RunProgress(0, kStart).MayHaveFinished(1));
}

TEST(RunProgressTest, TheFirstReportSaysFromWhereItContinues) {
  RunProgress each(0, kStart);
  EXPECT_EQ(each.ResumedFrom(0), std::nullopt);
  each.Report({8, std::nullopt}, kStart);
  EXPECT_EQ(each.ResumedFrom(0), 7);
  EXPECT_EQ(each.ResumedFrom(10), 0) << "the run before has reported each ten steps";
  each.Report({9, std::nullopt}, kStart);
  EXPECT_EQ(each.ResumedFrom(0), 7);
  each.Report({14, std::nullopt}, kStart);
  EXPECT_EQ(each.widest(), 5);
  EXPECT_EQ(each.ResumedFrom(0), 3) << "it may have made steps before its first report";
}

TEST(RunProgressTest, WithoutANewStepItHangs) {
  RunProgress progress(0, kStart);
  EXPECT_EQ(progress.Hang(kStart + base::seconds(599)), "");
  EXPECT_THAT(progress.Hang(kStart + base::seconds(601)), HasSubstr("no step for 601 s"));
  base::SteadyTime now = kStart;
  for (int step = 1; step <= 20; ++step) progress.Report({step, std::nullopt}, now += base::seconds(10));
  EXPECT_EQ(progress.Hang(now + base::seconds(100)), "");
  EXPECT_THAT(progress.Hang(now + base::seconds(101)), HasSubstr("the last one is 20"));
  // The same step again is no progress.
  progress.Report({20, std::nullopt}, now + base::seconds(90));
  EXPECT_NE(progress.Hang(now + base::seconds(101)), "");
}

TEST(RunProgressTest, ShortStepsHaveAMinuteAndTheJobMaySayOtherwise) {
  RunProgress progress(0, kStart), impatient(5, kStart);
  for (int step = 1; step <= 3; ++step) {
    for (RunProgress* each : {&progress, &impatient})
      each->Report({step, std::nullopt}, kStart + step * base::milliseconds(10));
  }
  EXPECT_EQ(progress.Hang(kStart + base::seconds(60)), "");
  EXPECT_NE(progress.Hang(kStart + base::seconds(61)), "");
  EXPECT_EQ(impatient.Hang(kStart + base::seconds(5)), "");
  EXPECT_NE(impatient.Hang(kStart + base::seconds(6)), "");
}

TEST(ExitWordsTest, TheLastTracebackSaysWhatHappened) {
  const std::deque<std::string> lines = {"Traceback (most recent call last):",
                                         "KeyError: 1",
                                         "step 1",
                                         "Traceback (most recent call last):",
                                         "  File \"t.py\", line 3",
                                         "ValueError: bad"};
  EXPECT_EQ(LastWords(lines), "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: bad");
  EXPECT_EQ(LastWords({"a", "b", "c", "d", "e", "f"}), "b\nc\nd\ne\nf");
  EXPECT_EQ(LastWords({}), "");
  EXPECT_EQ(LastWords({std::string(5000, 'x')}).size(), 1503u);
}

TEST(ExitWordsTest, SaysHowAProcessEnded) {
  EXPECT_EQ(HowItEnded(3 << 8), "exited with 3");
  EXPECT_EQ(HowItEnded(11), "was killed by SIGSEGV");
  EXPECT_THAT(HowItEnded(9), HasSubstr("was killed by SIGKILL, perhaps because"));
}

}  // namespace
}  // namespace medley::worker
