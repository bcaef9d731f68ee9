#include "cli/run/json_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace medley::cli {
namespace {

nlohmann::json Parsed(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line: " << line;
  return nlohmann::json::parse(line);
}

TEST(JsonLinesTest, EveryLineIsAnObjectThatSaysItsKind) {
  EXPECT_EQ(Parsed(AddressJson("operator", "http://127.0.0.1:1/metrics"))["event"], "address");
  EXPECT_EQ(Parsed(MessageJson("a \"quoted\"\n\xff line"))["event"], "message");
  Snapshot view;
  view.observed.samples = 12;
  view.observed.samples_total = 60;
  EXPECT_EQ(Parsed(ProgressJson(view, 1.5))["samplesTotal"], 60);
}

TEST(JsonLinesTest, TheResultHasTheSameKeysWhateverHappened) {
  RunResult failed;
  failed.exit_status = 2;
  failed.failures = {"job.yaml: no such file"};
  RunResult done;
  done.last.complete = true;
  done.last.observed.metrics = {{"auc", 0.9}, {"logLoss", 0.3}};
  done.model = "adult-model";
  const nlohmann::json a = Parsed(ResultJson(failed)), b = Parsed(ResultJson(done));
  for (const auto& [key, value] : a.items()) EXPECT_EQ(value.type(), b.at(key).type()) << key;
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(a["error"], "job.yaml: no such file");
  EXPECT_EQ(a["exitStatus"], 2);
  EXPECT_EQ(b["phase"], "Complete");
  EXPECT_EQ(b["metrics"]["logLoss"], 0.3);
  EXPECT_EQ(b["error"], "");
}

}  // namespace
}  // namespace medley::cli
