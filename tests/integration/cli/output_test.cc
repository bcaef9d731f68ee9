// Tests what commands print for programs: -o json, and - for standard output, as a user runs them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/cli/cluster_harness.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::StartsWith;

class OutputTest : public ClusterTest {
 protected:
  Ended Quiet(const std::string& arguments) { return Medley(arguments + " 2> /dev/null"); }
  Json Parsed(const std::string& arguments, int status) {
    const Ended ended = Quiet(arguments);
    EXPECT_EQ(ended.status, status) << arguments << ": " << ended.output;
    Json json = Json::parse(ended.output, nullptr, false);
    EXPECT_TRUE(json.is_object()) << arguments << ": " << ended.output;
    return json;
  }
};

TEST_F(OutputTest, JsonIsOneObjectAlsoOfAnError) {
  PutRunningJob();
  const Json story = Parsed("explain adult -o json", 0);
  for (const char* key : {"namespace", "name", "uid", "status", "layerNames", "usdPerUnitHour", "events", "explain"}) {
    EXPECT_TRUE(story.contains(key)) << key;
  }
  const Json plan = Parsed("explain examples/plan/ctrdnn-16.yaml -o json", 0);
  EXPECT_TRUE(plan["answer"]["feasible"]);
  EXPECT_GT(plan["explain"].size(), 3u);
  EXPECT_FALSE(Parsed("explain examples/plan/infeasible.yaml -o json", 2)["explain"].empty());
  EXPECT_EQ(Parsed("data head examples/data/adult.train.csv -o json -n 2", 0)["head"].size(), 2u);
  for (const char* wrong : {"explain nobody -o json", "explain missing.yaml -o json", "logs nobody -o json",
                            "data head missing.csv -o json", "explain adult --planner greedy -o json"}) {
    const Json error = Parsed(wrong, 1);
    EXPECT_FALSE(error.value("error", "").empty()) << wrong;
  }
}

TEST_F(OutputTest, ARunThatIsRefusedEndsWithAResult) {
  const Json result = Parsed("run missing.yaml -o json", 2);
  EXPECT_EQ(result["event"], "result");
  EXPECT_EQ(result["exitStatus"], 2);
  EXPECT_THAT(result["error"].get<std::string>(), HasSubstr("missing.yaml"));
}

// `medley model inspect` reads jobs that no API server has seen.
TEST_F(OutputTest, InspectRefusesAModelThatNoServerWouldTake) {
  const std::filesystem::path file = folder_ / "two.yaml";
  std::ofstream(file)
      << "kind: TrainingJob\nspec:\n  model: {name: mlp, layers: [{name: l, kind: Loss}]}\n"
         "  data: {train: {uri: file:///d.csv, format: csv}, schema: {label: {column: 0}, numeric: [1]}}\n";
  const Ended ended = Medley("model inspect " + file.string());
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("spec.model must have exactly one of name, layers, exported and torchScript"));
}

TEST_F(OutputTest, ADashIsStandardOutputWhereverAFileIsWritten) {
  const std::string plan = "examples/plan/ctrdnn-16.yaml";
  const struct {
    std::string arguments;
    const char* begins;
  } kCases[] = {{"simulate " + plan + " --svg -", "<svg"},
                {"simulate " + plan + " --trace -", "{"},
                {"plan " + plan + " --timeline -", "<svg"},
                {"plan " + plan + " --trace -", "{"},
                {"plan " + plan + " --pareto --points 4 --svg -", "<svg"},
                {"plan " + plan + " --planner rl-lstm --option rounds=60 --save-policy -", ""},
                {"model inspect examples/lenet/lenet.pt2 --svg -", "<svg"},
                {"model inspect examples/lenet/lenet.pt2 --table -", ""},
                {"profile --analytic examples/models/ctrdnn-16.yaml --types cpu --batch 512 -o -", ""},
                {"init examples/data/adult.train.csv --label 14 -o -", "#"}};
  for (const auto& each : kCases) {
    const Ended ended = Quiet(each.arguments);
    EXPECT_EQ(ended.status, 0) << each.arguments;
    EXPECT_THAT(ended.output, StartsWith(each.begins)) << each.arguments;
    EXPECT_GT(ended.output.size(), 100u) << each.arguments;
    if (std::string_view(each.begins) == "{") {
      EXPECT_FALSE(Json::parse(ended.output, nullptr, false).is_discarded()) << each.arguments;
    }
  }
  // What is printed besides is on standard error.
  EXPECT_THAT(Medley("simulate " + plan + " --svg - > /dev/null").output, HasSubstr("samples/s"));
  EXPECT_THAT(Medley("simulate " + plan + " --svg - --trace -").output, HasSubstr("only one can be standard output"));
  // Also what the shell calls so, and a pipe of the user's.
  EXPECT_THAT(Quiet("simulate " + plan + " --svg /dev/stderr 2>&1 > /dev/null | head -c 4").output, HasSubstr("<svg"));
  EXPECT_EQ(Shell("ls -- - 2> /dev/null").output, "") << "no file of this name was made";
}

}  // namespace
}  // namespace medley::cli
