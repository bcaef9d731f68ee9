#include "cli/cluster/log_lines.h"

#include <gmock/gmock.h>

#include "cli/cluster/kept_log.h"
#include "cli/cluster/log_follower.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using testing::ElementsAre;

std::vector<std::string> Texts(const std::vector<LogLine>& lines) {
  std::vector<std::string> texts;
  for (const LogLine& line : lines) texts.push_back(line.text);
  return texts;
}

TEST(LogLinesTest, TimestampsOfEveryFormAreRead) {
  const LogLine line = ParseLogLine("p", "2026-11-21T07:15:00.1Z a line");
  EXPECT_EQ(line.text, "a line");
  EXPECT_EQ(line.timestamp, "2026-11-21T07:15:00.1Z");
  EXPECT_LT(line.time, ParseLogLine("p", "2026-11-21T07:15:00.12Z x").time);
  EXPECT_LT(ParseLogLine("p", "2026-11-21T07:15:00Z x").time, line.time);
  EXPECT_EQ(ParseLogLine("p", "2026-11-21T08:15:00.1+01:00 x").time, line.time);
  EXPECT_EQ(ParseLogLine("p", "2026-11-21T07:15:00Z").text, "");
  EXPECT_EQ(ParseLogLine("p", "no time here").text, "no time here");
  EXPECT_EQ(ParseLogLine("p", "").text, "");
  EXPECT_EQ(ParseLogLine("p", "unable to retrieve container logs").time, base::WallTime());
}

TEST(LogLinesTest, MergedByTimeAndInOrderWithinAPod) {
  const auto line = [](const char* pod, const char* text) { return ParseLogLine(pod, text); };
  const auto merged = MergeByTime({{line("a", "2026-11-21T07:15:01Z a1"), line("a", "2026-11-21T07:15:00Z a2"),
                                    line("a", "a3 without a time"), line("a", "2026-11-21T07:15:05Z a4")},
                                   {line("b", "2026-11-21T07:15:00.5Z b1"), line("b", "2026-11-21T07:15:03Z b2")}});
  EXPECT_THAT(Texts(merged), ElementsAre("b1", "a1", "a2", "a3 without a time", "b2", "a4"));
}

TEST(LogLinesTest, JsonIsMadeReadable) {
  EXPECT_EQ(Readable(R"({"time":"2026-11-21T07:15:00.123456Z","level":"info","component":"w",)"
                     R"("msg":"generation 1 trains","step":"7","why":"a b"})"),
            R"(07:15:00.123 generation 1 trains  step=7  why="a b")");
  EXPECT_EQ(Readable(R"({"time":"2026-11-21T07:15:00.123456Z","level":"warn","msg":"lost"})"),
            "07:15:00.123 WARN lost");
  for (const char* other : {R"({"profile": 1})", "{ no json", "text", "", R"({"level": 3})"}) {
    EXPECT_EQ(Readable(other), other);
  }
  const std::string line = R"({"time":"2026-11-21T07:15:00.123456Z","level":"info","msg":"m"})";
  const std::string with_many = line.substr(0, line.size() - 1) + R"(,"a":[0)" + std::string(300'000, ' ') + "]}";
  EXPECT_EQ(Readable(with_many), with_many);
  EXPECT_EQ(LogPrinter({.raw = true}).Line({"a", {}, "", line}), "a | " + line + "\n");
}

TEST(LogPrinterTest, PrefixesArePaddedAndColoured) {
  LogPrinter plain({});
  plain.Expect("adult-coordinator");
  EXPECT_EQ(plain.Line(ParseLogLine("a", "2026-11-21T07:15:00Z x")), "a                 | x\n");
  LogPrinter timed({.timestamps = true});
  EXPECT_EQ(timed.Line(ParseLogLine("a", "2026-11-21T07:15:00Z x")), "a | 2026-11-21T07:15:00Z x\n");
  LogPrinter coloured({.colours = true});
  EXPECT_EQ(coloured.Line({"a", {}, "", "x"}), "\x1b[36ma |\x1b[0m x\n");
  EXPECT_EQ(coloured.Line({"b", {}, "", "x"}), "\x1b[33mb |\x1b[0m x\n");
  EXPECT_EQ(coloured.Line({"a", {}, "", "y"}), "\x1b[36ma |\x1b[0m y\n");
}

TEST(KeptLogTest, SaysWhereTheLogOfAFinishedJobIs) {
  kube::Object job = testing_objects::JobWithoutStatus();
  EXPECT_EQ(KeptLog(job), "the job has no checkpoint volume, so no log outlives its pods");
  job.mutable_json()["spec"]["checkpoint"]["volume"] = {{"persistentVolumeClaim", {{"claimName", "ck"}}},
                                                        {"mountPath", "/checkpoints"}};
  EXPECT_EQ(KeptLog(job),
            "the coordinator's log is kept in the folder team-adult-u-1/logs of the checkpoint volume "
            "(persistentVolumeClaim ck), and in the finished model as training.log");
  job.mutable_json()["spec"]["checkpoint"] = {{"uri", "gs://bucket/jobs"}};
  EXPECT_EQ(KeptLog(job),
            "the coordinator's log is kept in gs://bucket/jobs/team-adult-u-1/logs, and in the finished model as "
            "training.log");
}

TEST(ChoosePodsTest, ByRoleAndByWhatTheyDoNow) {
  using testing_objects::Pod;
  // The pod was created for stage 0 but is now in stage 1: the plan in force decides.
  const std::vector<kube::Object> pods = {Pod("adult-coordinator", "coordinator", "", "", {}),
                                          Pod("adult-0-v100-spot-0", "trainer", "v100-spot", "0", {}),
                                          Pod("adult-0-cpu-spot-0", "trainer", "cpu-spot", "0", {})};
  const auto names = [&](const LogChoice& choice, const kube::Object* plan) {
    std::vector<std::string> chosen;
    for (const kube::Object& pod : ChoosePods(pods, choice, plan)) chosen.push_back(pod.key().name);
    return chosen;
  };
  const auto job = ops::TrainingJob::FromObject(testing_objects::JobWithoutStatus());
  const kube::Object plan = ops::PlanConfigMap(*job, testing_objects::Record());
  EXPECT_EQ(names({}, nullptr).size(), 3u);
  EXPECT_THAT(names({.role = "coordinator"}, nullptr), ElementsAre("adult-coordinator"));
  EXPECT_THAT(names({.stage = 1}, &plan), ElementsAre("adult-0-v100-spot-0"));
  EXPECT_THAT(names({.stage = 0}, &plan), ElementsAre("adult-0-cpu-spot-0"));
  EXPECT_THAT(names({.stage = 0}, nullptr), ElementsAre("adult-0-v100-spot-0", "adult-0-cpu-spot-0"));
}

TEST(LogJsonTest, ALineIsAnObjectAndItsOwnJsonAPartOfIt) {
  const auto parsed = [](const LogLine& line) { return kube::Json::parse(LogJson(line)); };
  const kube::Json own = parsed({"p", {}, "2026-11-21T07:15:00Z", R"({"level":"warn","msg":"lost"})"});
  EXPECT_EQ(own["pod"], "p");
  EXPECT_EQ(own["time"], "2026-11-21T07:15:00Z");
  EXPECT_EQ(own["log"]["msg"], "lost");
  const kube::Json text = parsed({"p", {}, "", "{broken \xff"});
  EXPECT_FALSE(text.contains("log"));
  EXPECT_FALSE(text.contains("time"));
}

}  // namespace
}  // namespace medley::cli
