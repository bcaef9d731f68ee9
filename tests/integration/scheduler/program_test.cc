// The programs as a user starts them: exit status and output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/document/parse.h"

namespace medley {
namespace {

using testing::HasSubstr;

struct Ended {
  int status = -1;
  std::string output;  // stdout and stderr
};

Ended Start(const std::string& program, const std::string& arguments) {
  const std::string source = std::getenv("MEDLEY_SOURCE_DIR"), bin = std::getenv("MEDLEY_BIN_DIR");
  const std::string line = "cd '" + source + "' && timeout 60 '" + bin + "/" + program + "' " + arguments + " 2>&1";
  Ended ended;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) ended.output.append(buffer, n);
  const int code = pclose(pipe);
  ended.status = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
  return ended;
}

TEST(ProgramTest, PlanPrintsATable) {
  const Ended ended = Start("medley", "plan examples/plan/ctrdnn-16.yaml");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("lower bound"));
  EXPECT_THAT(ended.output, HasSubstr("gap 0 %"));
  EXPECT_THAT(ended.output, HasSubstr("v100 only"));
}

// The optimum of each example is a mix of types, and it is proven.
TEST(ProgramTest, ExamplesAreMixes) {
  for (const char* name : {"ctrdnn-16", "matchnet-16", "2emb-10", "nce-5"}) {
    SCOPED_TRACE(name);
    const Ended ended = Start("medley", std::string("plan examples/plan/") + name + ".yaml");
    EXPECT_EQ(ended.status, 0) << ended.output;
    const std::string stages = ended.output.substr(0, ended.output.find("throughput  "));
    EXPECT_THAT(stages, HasSubstr("  v100  "));
    EXPECT_THAT(stages, HasSubstr("  cpu   "));
    EXPECT_THAT(ended.output, HasSubstr("gap 0 %"));
  }
}

TEST(ProgramTest, ProfileEstimatesFromDatasheets) {
  const Ended list = Start("medley", "profile --list");
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.output, HasSubstr("NVIDIA Tesla V100 16 GB"));
  const Ended made = Start("medley", "profile --analytic examples/models/nce-5.yaml --types cpu,fast=h100 --batch 512");
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("resourceType: fast"));
  EXPECT_THAT(made.output, HasSubstr("origin: analytic"));
  const Ended unknown = Start("medley", "profile --analytic examples/models/nce-5.yaml --types v1000");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.output, HasSubstr("no datasheet 'v1000' exists; known datasheets: cpu,"));
  EXPECT_EQ(Start("medley", "profile").status, 1);
}

TEST(ProgramTest, PricesOfFiles) {
  const Ended made = Start("medley", "prices examples/prices/catalog.yaml");
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("v100 @ aws/us-east-1//p3.2xlarge/spot     0.5509 "));
  EXPECT_THAT(made.output,
              HasSubstr("cpu @ aws/us-east-1//c5.xlarge/on-demand  0.0383 "));  // 0.17 / 4 - 10 %
  EXPECT_THAT(Start("medley", "prices examples/prices/catalog.yaml --type t4 -o json --since 7d").output,
              HasSubstr("\"pricePerUnitHour\": 0.3204"));
  EXPECT_THAT(Start("medley", "prices examples/prices/aws.csv --type m5.xlarge").output, HasSubstr("static"));
  const Ended none = Start("medley", "prices examples/prices/aws.csv --type m9");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("no price of 'm9' is known"));
  EXPECT_THAT(Start("medley", "prices examples/plan/ctrdnn-16.yaml").output, HasSubstr("unknown field"));
  const Ended nothing = Start("medley", "prices --kubeconfig /nonexistent/kubeconfig");
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.output, HasSubstr("name a price file, or --server HOST:PORT"));
}

// One pool, named as in the profile.
constexpr char kJobFile[] = R"(
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: cpu}
spec: {class: CPU, unit: {resources: {cpu: "1", memory: 4Gi}}, limit: 4, price: {usdPerUnitHour: "0.10"}}
---
apiVersion: medley.dev/v1alpha1
kind: TrainingJob
metadata: {name: adult}
spec:
  model: {name: ctrdnn}
  data:
    train: {uri: file:///data/adult.train.csv, format: csv}
    schema: {label: {column: 14}, categorical: [1], numeric: [0]}
  training: {epochs: 2, batchSize: 2048}
)";

TEST(ProgramTest, AJobFileIsPlannedWithItsPools) {
  const std::string job = "examples/adult.yaml";
  const Ended without = Start("medley", "plan " + job);
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.output, HasSubstr("needs the times of its layers on each pool: name them with --profile"));
  const std::filesystem::path folder = *base::MakeTempDir("medley-program-test");
  EXPECT_THAT(base::WriteFileAtomic(folder / "job.yaml", kJobFile), base::IsOk());
  const std::string line = "plan " + (folder / "job.yaml").string() + " --profile tests/data/profiles/adult-2048.json";
  const Ended made = Start("medley", line);
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, testing::ContainsRegex("embedding\\.\\.loss +cpu"));
  base::RemoveTempDir(folder);
}

TEST(ProgramTest, AWrongCommandIsNamedWithTheOneThatWasMeant) {
  const Ended typo = Start("medley", "tpo");
  EXPECT_GT(typo.status, 100);
  EXPECT_EQ(typo.output, "medley: unknown command 'tpo'; did you mean `top`?\n");
  EXPECT_THAT(Start("medley", "--version").output, testing::StartsWith("medley 0."));
}

TEST(ProgramTest, InfeasibleIsStatusTwo) {
  const Ended ended = Start("medley", "plan examples/plan/infeasible.yaml");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.output, HasSubstr("raise the limit of cpu to 32"));
  EXPECT_EQ(Start("medley", "explain examples/plan/infeasible.yaml").status, 2);
  EXPECT_THAT(Start("medley", "plan examples/plan/infeasible.yaml -o json").output, HasSubstr("\"feasible\": false"));
}

// A plan that was made, read again with its profile, is the same program; the simulator says what it costs.
// The simulation of a plan of operations is over the links of the cluster, as the planner's was.
TEST(ProgramTest, APlanOfOperationsIsSimulatedAsItWasPlanned) {
  const auto after = [](const std::string& text, const std::string& what) {
    const size_t at = text.find(what);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + what.size()));
  };
  const std::filesystem::path folder = *base::MakeTempDir("medley-program-test");
  const std::string svg = folder / "timeline.svg", trace = folder / "trace.json";
  const Ended planned = Start("medley", "plan examples/plan/two-branches.yaml --timeline " + svg + " --trace " + trace);
  const Ended simulated = Start("medley", "simulate examples/plan/two-branches.yaml");
  ASSERT_EQ(planned.status, 0) << planned.output;
  ASSERT_EQ(simulated.status, 0) << simulated.output;
  EXPECT_THAT(planned.output, HasSubstr("EV-AR"));
  EXPECT_THAT(planned.output, HasSubstr("MEMORY MIB"));
  EXPECT_THAT(*base::ReadFile(svg), HasSubstr("</svg>"));
  EXPECT_THAT(nlohmann::json::parse(*base::ReadFile(trace))["traceEvents"], testing::Not(testing::IsEmpty()));
  base::RemoveTempDir(folder);
  EXPECT_GT(after(planned.output, "step "), 0);
  EXPECT_NEAR(after(simulated.output, "step ") / after(planned.output, "step "), 1, 0.005);
}

TEST(ProgramTest, ProgramsArePrintedAndSimulated) {
  const std::string folder = base::MakeTempDir("medley-program").value();
  const std::string plan = folder + "/plan.yaml", profile = folder + "/profile.yaml";
  ASSERT_EQ(Start("medley", "plan examples/plan/ctrdnn-16.yaml -o yaml > " + plan).status, 0);
  const Ended made = Start("medley", "program examples/plan/ctrdnn-16.yaml");
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, testing::StartsWith("program "));
  EXPECT_THAT(made.output, HasSubstr("\nv100/0\n  host: LoadBatch, Report\n  compute: F concat..loss m0"));
  EXPECT_THAT(Start("medley", "program " + plan).output, HasSubstr("name its profile with --profile"));
  // The request has the model and its times; a profile file has the same.
  const auto request =
      document::Parse(*base::ReadFile(std::getenv("MEDLEY_SOURCE_DIR") + std::string("/examples/plan/ctrdnn-16.yaml")));
  ASSERT_THAT(request, base::IsOk());
  const nlohmann::json file = {{"model", (*request)["model"]},
                               {"profileBatchSize", (*request)["training"]["profileBatchSize"]}};
  ASSERT_THAT(base::WriteFileAtomic(profile, file.dump()), base::IsOk());
  EXPECT_EQ(Start("medley", "program " + plan + " --profile " + profile).output, made.output);
  const Ended simulated = Start("medley", "simulate " + plan + " --profile " + profile + " -o json --trace " + folder +
                                              "/trace.json --svg " + folder + "/timeline.svg");
  ASSERT_EQ(simulated.status, 0) << simulated.output;
  const auto result = nlohmann::json::parse(simulated.output, nullptr, false);
  ASSERT_TRUE(result.is_object()) << simulated.output;
  EXPECT_THAT(made.output, HasSubstr(result["program"].get<std::string>()));
  EXPECT_GT(result["secondsPerStep"], 0);
  const double samples = result["samples"], step = result["secondsPerStep"];
  EXPECT_NEAR(result["throughput"].get<double>() * step, samples, 1e-6 * samples);
  const auto trace = nlohmann::json::parse(*base::ReadFile(folder + "/trace.json"), nullptr, false);
  EXPECT_GT(trace["traceEvents"].size(), 100U);
  EXPECT_THAT(*base::ReadFile(folder + "/timeline.svg"), HasSubstr("F concat..loss m0"));
  EXPECT_EQ(Start("medley", "simulate examples/plan/infeasible.yaml").status, 2);
  EXPECT_EQ(Start("medley", "simulate nothing.yaml").status, 1);
  base::RemoveTempDir(folder);
}

TEST(ProgramTest, BadInputIsStatusOne) {
  const Ended missing = Start("medley", "plan nothing.yaml");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.output, HasSubstr("nothing.yaml: No such file"));
  const Ended bad = Start("medley", "plan tests/golden/plan/limit.yaml");
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.output, HasSubstr("expect: unknown field"));
  EXPECT_THAT(Start("medley", "completion bash").output, HasSubstr("complete -o filenames -F _medley medley"));
  EXPECT_THAT(Start("medley", "completion zsh").output, HasSubstr("compdef _medley medley"));
  EXPECT_THAT(Start("medley", "completion fish").output, HasSubstr("complete -c medley -f -a '(__medley_complete)'"));
  EXPECT_THAT(Start("medley", "explain examples/plan/ctrdnn-16.yaml").output, HasSubstr("proof: no plan"));
}

TEST(ProgramTest, SchedulerRejectsAnInvalidAddress) {
  const Ended ended = Start("medley-scheduler", "--grpc-listen nowhere");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("--grpc-listen: 'nowhere' must have the form HOST:PORT"));
  EXPECT_THAT(Start("medley-scheduler", "--grpc-listen ::1:7100").output, HasSubstr("an IPv6 address needs brackets"));
  EXPECT_THAT(Start("medley-scheduler", "--grpc-listen 127.0.0.1:0 --rest-listen 127.0.0.1:0:0").output,
              HasSubstr("--rest-listen: "));
  EXPECT_THAT(Start("medley-scheduler", "--grpc-listen [fd00::1]:0").output,
              HasSubstr("--grpc-listen: fd00::1 is not a loopback address"));
}

}  // namespace
}  // namespace medley
