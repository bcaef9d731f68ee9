#include "cli/run/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/once.h"
#include "cli/run/messages.h"
#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kCause = "/data/a.csv:17: expected 3 columns, found 4 (2 rows cannot be parsed).";
constexpr const char* kPlace = "Profiler pod default/adult-profile-a of pool a failed with exit code 2.";

TEST(OnceTest, SentencesEndBeforeACapitalLetter) {
  EXPECT_THAT(SentencesOf("/data/a.csv:17: no number. Profiler pod p failed. A retry will not help."),
              ElementsAre("/data/a.csv:17: no number.", "Profiler pod p failed.", "A retry will not help."));
  EXPECT_THAT(SentencesOf("0.5 of 1. and more"), ElementsAre("0.5 of 1. and more"));
  EXPECT_THAT(SentencesOf(""), IsEmpty());
}

TEST(OnceTest, OnlyAReasonIsCutOff) {
  EXPECT_EQ(WithoutReason("ProfileFailed: no such column"), "no such column");
  EXPECT_EQ(WithoutReason("no such column: x"), "no such column: x");
  EXPECT_EQ(WithoutReason("Pod a: is late"), "Pod a: is late");
  EXPECT_EQ(WithoutReason(""), "");
}

TEST(OnceTest, ASentenceIsSaidOnceUnderWhateverReason) {
  Once once;
  const std::string message = std::string(kCause) + " " + kPlace;
  EXPECT_EQ(once.Rest("ProfileFailed: " + message), "ProfileFailed: " + message);
  EXPECT_EQ(once.Rest(message), "");
  EXPECT_EQ(once.Rest("Failed: ProfileFailed: " + message), "");
  EXPECT_EQ(once.Rest("Restarting: " + std::string(kCause) + " Restart 2 of at most 3 without progress."),
            "Restarting: Restart 2 of at most 3 without progress.");
}

TEST(MessagesTest, AWarningIsHeldUntilTheFailureThatRepeatsItIsKnown) {
  Messages messages;
  messages.Add(0.2, "Profiling: The job waits.");
  messages.Warn(1.8, std::string("ProfileFailed: ") + kCause + " " + kPlace);
  messages.Add(1.9, "after it");
  EXPECT_THAT(messages.Take(2, false), ElementsAre("   0.2 s  Profiling: The job waits."));
  messages.SaidElsewhere(std::string("ProfileFailed: ") + kCause + " " + kPlace);
  messages.Warn(2.1, std::string("Failed: ProfileFailed: ") + kCause + " " + kPlace);
  EXPECT_THAT(messages.Take(2.1, true), ElementsAre("   1.9 s  after it"));
}

TEST(MessagesTest, AWarningOfARunThatGoesOnIsShown) {
  Messages messages;
  messages.Warn(1, std::string("ProfilerFailed: ") + kCause);
  messages.AddRaw("          a table");
  EXPECT_THAT(messages.Take(1 + Messages::kHold / 2, false), IsEmpty());
  EXPECT_THAT(messages.Take(1 + Messages::kHold, false),
              ElementsAre(std::string("   1.0 s  ProfilerFailed: ") + kCause, "          a table"));
}

TEST(FailureTest, TheCauseIsFirstAndStandsOnce) {
  const std::string message = std::string(kCause) + " " + kPlace + " A retry will not help.";
  EXPECT_THAT(FailureLines({message, message}, {"/run/0.log"}),
              ElementsAre(std::string("medley: ") + kCause, std::string("  ") + kPlace, "  A retry will not help.",
                          "  log: /run/0.log"));
  EXPECT_THAT(FailureLines({}, {"/run/0.log"}), IsEmpty());
}

class LogsOfTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = base::MakeTempDir("failure-test").value(); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  std::filesystem::path Log(const std::string& pod, const std::string& uid) {
    const auto logs = folder_ / "node" / "pods" / ("default_" + pod + "_" + uid) / "logs" / "worker";
    std::filesystem::create_directories(logs);
    EXPECT_TRUE(base::WriteFileAtomic(logs / "0.log", "x").ok());
    return logs / "0.log";
  }
  std::filesystem::path folder_;
};

TEST_F(LogsOfTest, ThoseOfThePodsThatTheMessageNames) {
  const auto coordinator = Log("adult-coordinator", "1");
  const auto profiler = Log("adult-profile-a", "2");
  Log("adult-profile-a-1", "3");
  EXPECT_THAT(LogsOf(folder_, kPlace), ElementsAre(profiler));
  EXPECT_THAT(LogsOf(folder_, "the loss is not a number"), ElementsAre(coordinator));
  EXPECT_THAT(LogsOf(folder_ / "missing", kPlace), IsEmpty());
}

}  // namespace
}  // namespace medley::cli
