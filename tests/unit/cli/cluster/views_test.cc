// Compares the output of medley top and medley explain with the files in tests/golden/cli. MEDLEY_GOLDEN_UPDATE=1
// rewrites these files; review the changes.
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "cli/cluster/advice.h"
#include "cli/cluster/bill_view.h"
#include "cli/cluster/story_view.h"
#include "cli/cluster/top_view.h"
#include "cli/format.h"
#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/reasons.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing_objects::Condition;
using testing_objects::Event;
using testing_objects::Job;
using testing_objects::JobWithoutStatus;
using testing_objects::Json;
using testing_objects::Now;
using testing_objects::Pod;
using testing_objects::Pools;
using testing_objects::RunningStatus;
using testing_objects::RunningStory;

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void ExpectGolden(const std::string& name, const std::string& text) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source) + "/tests/golden/cli/" + name;
  if (std::getenv("MEDLEY_GOLDEN_UPDATE") != nullptr) {
    ASSERT_THAT(base::WriteFileAtomic(path, text), base::IsOk());
  }
  const auto golden = base::ReadFile(path);
  ASSERT_THAT(golden, base::IsOk());
  EXPECT_EQ(text, *golden) << name;
}

Json WaitingStatus(const char* reason, const char* message, const char* state = "False") {
  return {{"observedGeneration", 2}, {"conditions", {Condition("Planned", state, reason, message)}}};
}

Json EndedStatus(const char* type, const char* reason, const char* message) {
  Json status = RunningStatus();
  status["conditions"] = {Condition("Planned", "True", "PlanFound", "p"), Condition(type, "True", reason, message),
                          Condition("Running", "False", reason, message)};
  status["replicas"] = 0;
  status["completionTime"] = "2026-11-21T12:09:00Z";
  return status;
}

TEST(TopViewTest, TableAndJson) {
  kube::Object waiting = Job(WaitingStatus("Infeasible", "minThroughput: needed 40000, available 23100"));
  waiting.mutable_json()["metadata"]["name"] = "greedy";
  kube::Object fresh = JobWithoutStatus();
  fresh.mutable_json()["metadata"]["name"] = "fresh";
  kube::Object done = Job(EndedStatus("Complete", "TrainingComplete", "all"));
  done.mutable_json()["metadata"]["name"] = "done";
  std::vector<kube::Object> pools = Pools();
  pools[0].mutable_json()["status"]["conditions"][1] = Condition("Available", "False", "NoNodes", "no ready node");
  const TopView view = TakeTop({Job(RunningStatus()), waiting, fresh, done}, pools, Now());
  ExpectGolden("top.txt", Joined(TopLines(view, false, 0)));
  ExpectGolden("top-all.txt", Joined(TopLines(view, true, 60)));
  ExpectGolden("top.json", TopJson(view));
}

TEST(TopViewTest, APoolThatTheOperatorHasNotSeen) {
  kube::Object pool = Pools()[0];
  pool.mutable_json().erase("status");
  const std::string text = Joined(TopLines(TakeTop({}, {pool}, Now()), false, 0));
  EXPECT_THAT(text, HasSubstr("-         -     -     32     the operator has not processed"));
}

TEST(TopViewTest, NoJobsAndNoPools) {
  TopView view = TakeTop({}, {}, Now());
  EXPECT_THAT(TopLines(view, false, 0), Contains(HasSubstr("-A shows all namespaces")));
  EXPECT_THAT(TopLines(view, true, 0), Contains(HasSubstr("no ResourcePools")));
  view.pools_known = false;
  EXPECT_THAT(TopLines(view, true, 0), Contains(HasSubstr("not allowed to list")));
  EXPECT_EQ(Json::parse(TopJson(view))["jobs"].size(), 0u);
}

TEST(TopViewTest, InvalidStatusesAreHarmless) {
  for (const char* text : {R"({"plan": 7, "observed": "x", "conditions": {}})", R"([1])", R"("s")", "null",
                           R"({"plan": {"stages": [1, null]}, "cost": {"spentUsd": "many"}})"}) {
    const TopView view = TakeTop({Job(Json::parse(text))}, {}, Now());
    EXPECT_EQ(view.jobs.size(), 1u) << text;
    Story story;
    story.job = Job(Json::parse(text));
    EXPECT_FALSE(StoryLines(story, Now()).empty()) << text;
  }
}

TEST(StoryViewTest, Running) {
  ExpectGolden("explain-running.txt", Joined(StoryLines(RunningStory(), Now())));
  EXPECT_EQ(StoryExitStatus(RunningStory()), 0);
}

TEST(StoryViewTest, Infeasible) {
  Story story = RunningStory();
  story.job = Job(WaitingStatus("Infeasible", "minThroughput: needed 40000, available 23100"));
  story.record.reset();
  story.pods.clear();
  story.events = {Event("2026-11-21T12:00:00Z", "Infeasible", "minThroughput: needed 40000, available 23100")};
  ExpectGolden("explain-infeasible.txt", Joined(StoryLines(story, Now())));
  EXPECT_EQ(StoryExitStatus(story), 2);
}

TEST(StoryViewTest, ARunningJobsStoryNamesUnavailablePools) {
  Story story = RunningStory();
  EXPECT_THAT(Joined(StoryLines(story, Now())), Not(HasSubstr("pools\n")));
  story.pools = Pools();
  story.pools[0].mutable_json()["status"]["conditions"][1] =
      Condition("Available", "False", "OfferingUnavailable", "No offering since 2026-11-21T11:00:00Z.");
  EXPECT_THAT(Joined(StoryLines(story, Now())),
              HasSubstr("pools\n  " + story.pools[0].key().name + ": No offering since 2026-11-21T11:00:00Z.\n"));
}

TEST(StoryViewTest, OfTheFastestPlan) {
  Story story = RunningStory();
  Json& job = story.job.mutable_json();
  job["spec"]["objective"] = {{"fastest", true}};
  job["status"]["plan"]["alternatives"] = Json::parse(R"([{"label": "one device: gpu/0", "throughput": 4200}])");
  const std::string text = Joined(StoryLines(story, Now()));
  EXPECT_THAT(text, HasSubstr("fastest: the fewest seconds of a step, whatever the units cost"));
  EXPECT_THAT(text, HasSubstr("other plans\n"));
  EXPECT_THAT(text, testing::ContainsRegex("one device: gpu/0 +4,200 +- +- +-[0-9]"));
}

TEST(StoryViewTest, OfTheFastestPlanWithinBounds) {
  Story story = RunningStory();
  Json& job = story.job.mutable_json();
  job["spec"]["objective"] = {{"minimize", "Seconds"}, {"maxUsdPerHour", "0.5"}};
  const std::string text = Joined(StoryLines(story, Now()));
  EXPECT_THAT(text, HasSubstr("fastest: the fewest seconds of a step within these bounds"));
  EXPECT_THAT(text, testing::ContainsRegex("maxUsdPerHour +0.5[0]* USD/h"));
  job["spec"]["objective"] = {{"minimize", "UsdPerHour"}};
  EXPECT_THAT(Joined(StoryLines(story, Now())), HasSubstr("the plan that costs the least USD per hour"));
}

TEST(StoryViewTest, Failed) {
  Story story = RunningStory();
  story.job = Job(EndedStatus("Failed", "TrainingFailed", "/data/a.csv:17: column 2 is 'x', no number"));
  ExpectGolden("explain-failed.txt", Joined(StoryLines(story, Now())));
  EXPECT_EQ(StoryExitStatus(story), 3);
}

TEST(StoryViewTest, Complete) {
  Story story = RunningStory();
  Json status = EndedStatus("Complete", "TrainingComplete", "2930400 samples trained in 5724 steps");
  status["observed"]["metrics"] = {{"auc", 0.9021}};
  status["observed"]["progressPercent"] = 100;
  story.job = Job(status);
  const std::string text = Joined(StoryLines(story, Now()));
  EXPECT_THAT(text, HasSubstr("auc 0.9021"));
  EXPECT_THAT(text, Not(HasSubstr("to do")));
  EXPECT_EQ(StoryExitStatus(story), 0);
}

TEST(StoryViewTest, SaysHowManyRowsWereInMemory) {
  Story story = RunningStory();
  EXPECT_THAT(Joined(StoryLines(story, Now())), Not(HasSubstr("rows of embedding tables")));
  Json status = RunningStatus();
  status["observed"]["embeddings"] = {{"rowsInMemory", 4096}, {"rowsOnDisk", 12288}, {"hitRate", 0.81}};
  story.job = Job(status);
  EXPECT_THAT(Joined(StoryLines(story, Now())),
              HasSubstr("rows of embedding tables\n  81.0 % of the rows that steps used were in memory; 4,096 rows are "
                        "in memory, 12,288 only on the disk\n"));
}

TEST(StoryViewTest, SaysWhereTablesOfGpusAre) {
  Story story = RunningStory();
  EXPECT_THAT(Joined(StoryLines(story, Now())), Not(HasSubstr("embedding tables")));
  Json status = RunningStatus();
  status["plan"]["stages"][0]["tables"] = "Device";
  status["observed"]["tables"] = {{"place", "Device"}, {"hitRate", 1}};
  story.job = Job(status);
  const std::string text = Joined(StoryLines(story, Now()));
  EXPECT_THAT(text, HasSubstr("0      embedding tables   (in the GPU's memory)"));
  EXPECT_THAT(text, HasSubstr("embedding tables of GPUs\n  whole tables are in the GPU's memory\n"));
}

TEST(StoryViewTest, PodsThatDoNotRunAreNamedWithTheirCause) {
  Story story = RunningStory();
  Json status = RunningStatus();
  status["conditions"] = {Condition("Planned", "True", "PlanFound", "p"),
                          Condition("PodsReady", "False", "PodsStarting", "3 of 7 pods of the plan run")};
  story.job = Job(status);
  story.pods = {
      Pod("a", "trainer", "cpu-spot", "0",
          {{"phase", "Pending"},
           {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/3 nodes are available"}}}}}),
      Pod("b", "trainer", "cpu-spot", "0",
          {{"phase", "Pending"},
           {"containerStatuses", {{{"name", "worker"}, {"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}}}}),
      Pod("c", "trainer", "cpu-spot", "0", {{"phase", "Running"}})};
  const std::string text = Joined(StoryLines(story, Now()));
  EXPECT_THAT(text, HasSubstr("pod a is not scheduled: 0/3 nodes are available"));
  EXPECT_THAT(text, HasSubstr("pod b is waiting: ImagePullBackOff"));
  EXPECT_THAT(text, Not(HasSubstr("pod c")));
  EXPECT_THAT(text, HasSubstr("to do: "));
}

TEST(StoryViewTest, EveryStateHasASentence) {
  const auto text = [](Json status) {
    Story story;
    story.job = Job(std::move(status));
    return Joined(StoryLines(story, Now()));
  };
  EXPECT_THAT(text(Json::object()), HasSubstr("the operator has not processed the job yet"));
  EXPECT_THAT(text(WaitingStatus("Profiling", "the layers are being measured on: cpu", "Unknown")),
              HasSubstr("Planned=Unknown, Profiling"));
  EXPECT_THAT(text(WaitingStatus("SchedulerUnavailable", "no answer", "Unknown")), HasSubstr("medley-scheduler"));
  Json starting = RunningStatus();
  starting["conditions"] = {Condition("Planned", "True", "PlanFound", "p")};
  EXPECT_THAT(text(starting), HasSubstr("medley logs adult -f"));
  Json suspended = RunningStatus();
  suspended["conditions"] = {Condition("Suspended", "True", "Suspended", "checkpoint at step 7"),
                             Condition("Planned", "True", "PlanFound", "p")};
  EXPECT_THAT(text(suspended), HasSubstr("set spec.runPolicy.suspend to false"));
  Json moving = RunningStatus();
  moving["conditions"].push_back(Condition("Rescaling", "True", "PriceChanged", "from generation 4 to generation 5"));
  EXPECT_THAT(text(moving), HasSubstr("Rescaling=True, PriceChanged"));
  EXPECT_THAT(text(moving), HasSubstr("the job is moving"));
  Json restarting = RunningStatus();
  restarting["conditions"].push_back(Condition("Restarting", "True", "CoordinatorLost", "the pod was lost"));
  EXPECT_THAT(text(restarting), HasSubstr("Restarting=True, CoordinatorLost"));
  Story foreign;
  foreign.job = JobWithoutStatus();
  foreign.job.mutable_json()["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(Joined(StoryLines(foreign, Now())), HasSubstr("leaves the job to that controller"));
}

// What to do is a switch, which the compiler checks; the page is read here.
TEST(AdviceTest, PageOfTroubleshootingHasASectionForEachReason) {
  const std::string page =
      *base::ReadFile(std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/docs/use/troubleshooting.md");
  std::set<std::string> sections;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("### ") && line.find(' ', 4) == std::string::npos) sections.insert(line.substr(4));
  }
  std::set<std::string> reasons;
  for (int i = 0; i < ops::kReasons; ++i) reasons.insert(std::string(ToString(static_cast<ops::Reason>(i))));
  EXPECT_EQ(sections, reasons);
}

TEST(AdviceTest, EachReasonHasItsOwnName) {
  for (int i = 0; i < ops::kReasons; ++i) {
    EXPECT_EQ(ops::ReasonNamed(ToString(static_cast<ops::Reason>(i))), static_cast<ops::Reason>(i));
  }
  EXPECT_EQ(ops::ReasonNamed("NoSuchReason"), std::nullopt);
  EXPECT_EQ(Advice("NoSuchReason", "adult"), "");
}

TEST(AdviceTest, JobIsNamed) {
  EXPECT_THAT(Advice("Infeasible", "adult"), HasSubstr("medley plan --from adult"));
  EXPECT_EQ(Advice("PlanFound", "adult"), "");
}

TEST(FormatTest, NumbersAndTimes) {
  EXPECT_EQ(Span(0), "0s");
  EXPECT_EQ(Span(119), "119s");
  EXPECT_EQ(Span(1720), "29m");
  EXPECT_EQ(Span(11100), "3h05m");
  EXPECT_EQ(Span(200000), "2d07h");
  EXPECT_EQ(Ago("", Now()), "-");
  EXPECT_EQ(Ago("2026-11-21T12:05:00Z", Now()), "5m");
  EXPECT_EQ(Percent(20, 25), "+25.0 %");
  EXPECT_EQ(Percent(0, 25), "");
  EXPECT_EQ(Usd(0.00042), "0.00042");
  EXPECT_EQ(Usd(4.1), "4.10");
  EXPECT_EQ(Usd(0), "0.00");
  EXPECT_EQ(Usd(-0.0000001), "0.00");
  EXPECT_EQ(Usd(12.34567), "12.3457");
  EXPECT_EQ(Counted(1, "restart"), "1 restart");
  EXPECT_EQ(Counted(0, "restart"), "0 restarts");
  EXPECT_EQ(Wrapped("one two three", 8), (std::vector<std::string>{"one two", "  three"}));
  EXPECT_EQ(Wrapped("", 8), (std::vector<std::string>{""}));
  EXPECT_EQ(Wrapped("unbreakable", 4), (std::vector<std::string>{"unbreakable"}));
  EXPECT_EQ(Lines("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
}

TEST(BillViewTest, CategoriesBesideThePromise) {
  Json status = RunningStatus();
  EXPECT_EQ(Joined(BillLines(Job(status))), "job team/adult has paid for nothing yet\n");
  ops::GoodputStatus goodput;
  const auto add = [&](const char* name, goodput::Category category, double seconds, double usd) {
    goodput.bill.pools[name].seconds[category] += seconds;
    goodput.bill.pools[name].usd[category] += usd;
  };
  add("cpu-spot", goodput::Category::kWaiting, 12, 0.002);
  add("cpu-spot", goodput::Category::kStartUp, 240, 0.05);
  add("v100-spot", goodput::Category::kTraining, 3600, 0.65);
  add("v100-spot", goodput::Category::kMove, 4.1, 0.001);
  add("v100-spot", goodput::Category::kRecovery, 9, 0.002);
  add("v100-spot", goodput::Category::kLost, 30, 0.006);
  add("v100-spot", goodput::Category::kEvaluation, 60, 0.012);
  add(goodput::kCoordinatorPool, goodput::Category::kTraining, 350, 0.07);
  status["goodput"] = goodput.ToJson();
  ExpectGolden("bill-unpromised.txt", Joined(BillLines(Job(status))));
  goodput.promised = ops::PromiseStatus{1.9, 2.58, 20110};
  status["goodput"] = goodput.ToJson();
  ExpectGolden("bill.txt", Joined(BillLines(Job(status))));
  EXPECT_EQ(BillSentence(goodput.bill),
            "90.8 % useful training; start-up 6.3 %, evaluation 1.5 %, trained again 0.8 %");
  EXPECT_EQ(BillSentence({}), "");
}

TEST(StoryTest, ADeletedPoolOfThePlanIsNamedAtOnce) {
  Story story = RunningStory();
  const auto text = [&] { return Joined(StoryLines(story, Now())); };
  EXPECT_THAT(text(), Not(HasSubstr("was deleted")));
  story.pools[1].mutable_json()["metadata"]["deletionTimestamp"] = "2026-11-21T12:09:00Z";
  EXPECT_THAT(text(), HasSubstr("ResourcePool cpu-spot of the plan was deleted"));
  story.pools.pop_back();
  EXPECT_THAT(text(), HasSubstr("ResourcePool cpu-spot of the plan was deleted"));
  story.pools.clear();
  EXPECT_THAT(text(), Not(HasSubstr("was deleted"))) << "this user may not see pools";
}

}  // namespace
}  // namespace medley::cli
