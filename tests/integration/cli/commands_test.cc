// Tests medley top, explain JOB, plan --from, completion and errors as a user runs them.
#include <gmock/gmock.h>

#include "operator/api/resources.h"
#include "tests/integration/cli/cluster_harness.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;

using CommandsTest = ClusterTest;

TEST_F(CommandsTest, TopShowsJobsAndPools) {
  PutRunningJob();
  const Ended table = Medley("top --once");
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("emb@4xcpu-spot | fc1..loss@1xv100-spot"));
  EXPECT_THAT(table.output, HasSubstr("20,874"));
  EXPECT_THAT(table.output, HasSubstr("v100-spot"));
  const Ended json = Medley("top -o json -A");
  EXPECT_EQ(json.status, 0) << json.output;
  const Json tree = Json::parse(json.output, nullptr, false);
  ASSERT_TRUE(tree.is_object()) << json.output;
  EXPECT_EQ(tree["jobs"][0]["name"], "adult");
  EXPECT_EQ(tree["pools"].size(), 2u);
  EXPECT_THAT(Medley("top -n elsewhere").output, HasSubstr("no TrainingJobs in this namespace"));
}

TEST_F(CommandsTest, ExplainShowsAllSections) {
  PutRunningJob();
  const Ended story = Medley("explain adult");
  EXPECT_EQ(story.status, 0) << story.output;
  for (const char* part : {"is Running, 41 % done", "limits the throughput", "plans on a single pool",
                           "limit of v100-spot: needed 9", "20,110 samples/s predicted, 20,874 measured: +3.8 %",
                           "saved  0.41 USD", "rescale 3 -> 4", "generation 3 -> 4"}) {
    EXPECT_THAT(story.output, HasSubstr(part));
  }
  EXPECT_EQ(Medley("explain mtj/adult").status, 0);
  EXPECT_THAT(Medley("explain adult --planner greedy").output, HasSubstr("planning options need a file"));
  PutStatus(ops::TrainingJobs(), {server_.ns(), "adult"},
            {{"conditions",
              {testing_objects::Condition("Planned", "False", "Infeasible", "minThroughput: needed 2, available 1")}}});
  const Ended stuck = Medley("explain adult");
  EXPECT_EQ(stuck.status, 2);
  EXPECT_THAT(stuck.output, HasSubstr("to do: lower the goals"));
}

TEST_F(CommandsTest, PlannersAreListedAndTheirOptionsAreChecked) {
  const Ended list = Medley("plan --planners");
  EXPECT_EQ(list.status, 0) << list.output;
  EXPECT_THAT(list.output,
              testing::ContainsRegex("\nexact\n  least cost: .*\n  fewest seconds of a step: .*8 devices"));
  EXPECT_THAT(list.output, HasSubstr("--option rounds=...  integer, 1 to 1000000; default 300 a start: "));
  const Json tree = Json::parse(Medley("plan --planners -o json").output, nullptr, false);
  EXPECT_EQ(tree["planners"][0]["name"], "auto");
  const std::string plan = "plan examples/plan/nce-5.yaml --planner ";
  EXPECT_EQ(Medley(plan + "rl-lstm --option rounds=6 --option learningRate=0.02").status, 0);
  EXPECT_THAT(Medley(plan + "rl-lstm --option round=6").output, HasSubstr("did you mean `rounds`?"));
  EXPECT_THAT(Medley(plan + "rl-lstm --option rounds=many").output, HasSubstr("must be an integer in [1, 1000000]"));
  EXPECT_THAT(Medley(plan + "rl-lstm --option rounds").output, HasSubstr("--option rounds: must be NAME=VALUE"));
  EXPECT_THAT(Medley(plan + "exact --option rounds=6").output, HasSubstr("planner exact has no options"));
  EXPECT_THAT(Medley(plan + "exakt").output, HasSubstr("did you mean `exact`?"));
}

TEST_F(CommandsTest, PlanFromAJobIsComparedWithTheRunningPlan) {
  PutRunningJob();
  const Ended table = Medley("plan --from adult");
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("running plan"));
  EXPECT_THAT(table.output, HasSubstr("new plan"));
  const Ended json = Medley("plan --from adult -o json --planner greedy");
  const Json tree = Json::parse(json.output, nullptr, false);
  ASSERT_TRUE(tree.is_object()) << json.output;
  EXPECT_EQ(tree["plan"]["planner"], "greedy");
  EXPECT_EQ(tree["running"]["generation"], 4);
  EXPECT_THAT(Medley("plan --from adult -o yaml").output,
              testing::ContainsRegex("\nrunning:\n(  [^\n]*\n)*  generation: 4\n"));
  const std::string file = (folder_ / "request.yaml").string();
  EXPECT_EQ(Medley("plan --from adult -o request > " + file).status, 0);
  const Ended again = Medley("plan " + file);
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(Medley("plan --from nobody").output, HasSubstr("TrainingJob 'nobody' does not exist"));
  EXPECT_EQ(Medley("plan").status, 1);
}

TEST_F(CommandsTest, NothingIsWritten) {
  PutRunningJob();
  const auto before = server_.client().Get(ops::TrainingJobs(), {server_.ns(), "adult"});
  for (const char* verb : {"create", "update", "patch", "delete"}) {
    server_.embedded()->faults().Add({.verb = verb, .code = 500});
  }
  Medley("top --once");
  Medley("explain adult");
  Medley("plan --from adult");
  Medley("logs adult");
  EXPECT_EQ(server_.embedded()->faults().left(), 4u) << "a command wrote to the API";
  server_.embedded()->faults().Clear();
  const auto after = server_.client().Get(ops::TrainingJobs(), {server_.ns(), "adult"});
  EXPECT_EQ(before->resource_version(), after->resource_version());
}

TEST_F(CommandsTest, ErrorsAreSentences) {
  PutRunningJob();
  const Ended none = Medley("explain nobody");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("TrainingJob 'nobody' does not exist in namespace '" + server_.ns() +
                                     "'; TrainingJobs in this namespace: adult"));
  EXPECT_THAT(Medley("logs adult --context x").output, HasSubstr("the kubeconfig has no context 'x'; it has medley"));
  EXPECT_THAT(Shell("KUBECONFIG= HOME=/nonexistent medley top").output, HasSubstr("which cluster? no kubeconfig"));
  EXPECT_THAT(Shell("medley top --kubeconfig /nonexistent").output, HasSubstr("/nonexistent"));
  EXPECT_EQ(Shell("medley top --kubeconfig /nonexistent").status, 1);
  server_.embedded()->faults().Add({.verb = "list", .plural = "trainingjobs", .code = 403, .reason = "Forbidden"});
  EXPECT_THAT(Medley("top").output, HasSubstr("the API server forbids this request"));
  server_.embedded()->faults().Add(
      {.verb = "get", .plural = "trainingjobs", .code = 401, .reason = "Unauthorized", .times = 2});
  EXPECT_THAT(Medley("explain adult").output, HasSubstr("does not accept the kubeconfig's credentials"));
  server_.embedded()->faults().Clear();
  // A user of one namespace may not be allowed to list pools; everything else is shown.
  server_.embedded()->faults().Add({.verb = "list", .plural = "resourcepools", .code = 403, .reason = "Forbidden"});
  const Ended partly = Medley("top --once");
  EXPECT_EQ(partly.status, 0);
  EXPECT_THAT(partly.output, HasSubstr("this user is not allowed to list them"));
  server_.embedded()->faults().Add({.verb = "list", .plural = "events", .code = 403, .reason = "Forbidden"});
  const Ended story = Medley("explain adult");
  EXPECT_EQ(story.status, 0);
  EXPECT_THAT(story.output, HasSubstr("events: this user is not allowed to read them (needs ClusterRole view)"));
  server_.embedded()->Stop();
  const Ended away = Medley("top");
  EXPECT_EQ(away.status, 1);
  EXPECT_THAT(away.output, HasSubstr("no answer from the API server at"));
}

class NotInstalledTest : public ClusterTest {
 protected:
  NotInstalledTest() : ClusterTest(false) {}
};

TEST_F(NotInstalledTest, IsReported) {
  for (const char* command : {"top", "explain adult", "logs adult", "plan --from adult"}) {
    const Ended ended = Medley(command);
    EXPECT_EQ(ended.status, 1) << command;
    EXPECT_THAT(ended.output, HasSubstr("Medley is not installed in the cluster at")) << command;
  }
}

TEST_F(CommandsTest, IsAPluginOfKubectl) {
  PutRunningJob();
  const std::string in_env = "KUBECONFIG=" + kubeconfig() + " ";
  const Ended top = Shell(in_env + "kubectl medley top --once");
  EXPECT_EQ(top.status, 0) << top.output;
  EXPECT_THAT(top.output, HasSubstr("adult"));
  EXPECT_THAT(Shell("kubectl medley --help").output, HasSubstr("kubectl medley [OPTIONS] SUBCOMMAND"));
  EXPECT_EQ(Shell(in_env + "kubectl_complete-medley logs a").output, "adult\n:4\n");
  EXPECT_EQ(Shell(in_env + "kubectl medley explain nobody").status, 1) << "kubectl passes the exit status on";
}

TEST_F(CommandsTest, CompletionAsksTheCluster) {
  PutRunningJob();
  EXPECT_EQ(Medley("__complete explain ad").output, "adult\n:4\n");
  EXPECT_EQ(Medley("__complete plan --from ''").output, "adult\n:4\n");
  EXPECT_EQ(Medley("__complete logs -n elsewhere ''").output, ":4\n");
  EXPECT_EQ(Medley("__complete logs --namespace=elsewhere ''").output, ":4\n");
  const Ended bash = Medley("completion bash > " + (folder_ / "c").string() + "; source " + (folder_ / "c").string() +
                            "; export KUBECONFIG=" + kubeconfig() +
                            "; COMP_WORDS=(medley logs ad); COMP_CWORD=2; _medley; echo \"got ${COMPREPLY[*]}\"");
  EXPECT_THAT(bash.output, HasSubstr("got adult"));
}

}  // namespace
}  // namespace medley::cli
