#include "cli/run/schema_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "cli/run/manifest_check.h"
#include "common/base/testing/status_matchers.h"
#include "common/document/parse.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "operator/api/crds.h"

namespace medley::cli {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Wrong(const Json& spec) {
  const Json job = {
      {"apiVersion", "medley.dev/v1alpha1"}, {"kind", "TrainingJob"}, {"metadata", {{"name", "j"}}}, {"spec", spec}};
  const absl::Status status = CheckFields(kube::Object(job));
  return status.ok() ? "" : base::Message(status).substr(std::string("TrainingJob j: ").size());
}

TEST(SchemaWordsTest, AValueThatIsNotOfferedComesWithWhatWasMeant) {
  EXPECT_EQ(Wrong({{"model", {{"task", "multiclass"}}}}),
            "spec.model.task: `multiclass` is not one of binary, regression, multiClass, multiLabel, ownLoss; did you "
            "mean `multiClass`?");
  EXPECT_THAT(Wrong({{"training", {{"earlyStopping", {{"metric", "log_loss"}, {"patience", 1}}}}}}),
              HasSubstr("did you mean `logLoss`?"));
  EXPECT_THAT(Wrong({{"training", {{"optimizer", {{"name", "Adm"}}}}}}), HasSubstr("did you mean `adam`?"));
}

TEST(SchemaWordsTest, TypesAndRangesAreWords) {
  EXPECT_EQ(Wrong({{"training", {{"epochs", "ten"}}}}),
            "spec.training.epochs: must be a whole number, is the text `ten`");
  EXPECT_EQ(Wrong({{"training", {{"epochs", "10"}}}}),
            "spec.training.epochs: must be a whole number, is the text `10`; write 10 without quotes");
  EXPECT_EQ(Wrong({{"training", {{"epochs", 2.5}}}}), "spec.training.epochs: must be a whole number, is `2.5`");
  EXPECT_EQ(Wrong({{"training", {{"epochs", 0}}}}), "spec.training.epochs: must be at least 1, is 0");
  EXPECT_EQ(Wrong({{"runPolicy", {{"suspend", "yes"}}}}),
            "spec.runPolicy.suspend: must be true or false, is the text `yes`; did you mean `true`?");
  EXPECT_THAT(Wrong({{"training", Json::array({1})}}), HasSubstr("spec.training: must be a group of fields"));
  EXPECT_THAT(Wrong({{"data", {{"schema", {{"numeric", "age"}}}}}}), HasSubstr("; write [\"age\"]"));
}

TEST(SchemaWordsTest, AllThatIsWrongIsNamedWithItsPath) {
  EXPECT_EQ(
      Wrong({{"objective", {{"deadline", "5 min"}, {"maxUsdPerHour", "$2"}}}, {"trainig", Json::object()}}),
      "spec.trainig: unknown field; did you mean `training`?\n"
      "  spec.objective.deadline: the text `5 min` must be written as in 90s, 5m or 1h30m; did you mean `5m`?\n"
      "  spec.objective.maxUsdPerHour: the text `$2` must be written as in \"12\" or \"0.35\"; did you mean `2`?");
}

TEST(SchemaWordsTest, UnitsAreRead) {
  const std::string duration = R"(^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$)";
  const std::string quantity = R"(^([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$)";
  const std::string percent = R"(^[0-9]+(\.[0-9]+)?%$)";
  const struct {
    const char* text;
    const std::string& pattern;
    const char* meant;
  } kCases[] = {
      {"5 min", duration, "5m"},       {"5 minutes", duration, "5m"},  {"30sec", duration, "30s"},
      {"1 hour", duration, "1h"},      {"2d", duration, "48h"},        {"1.5 days", duration, "36h"},
      {"100 msec", duration, "100ms"}, {"90", duration, "90s"},        {"1,5h", duration, "1.5h"},
      {"5M", duration, "5m"},          {"90s", duration, ""},          {"soon", duration, ""},
      {"16GB", quantity, "16G"},       {"16 GiB", quantity, "16Gi"},   {"512mb", quantity, "512M"},
      {"16 Gi", quantity, "16Gi"},     {"0,5", quantity, "0.5"},       {"lots", quantity, ""},
      {"10", percent, "10%"},          {"10 percent", percent, "10%"}, {"", percent, ""},
  };
  for (const auto& each : kCases) EXPECT_EQ(MeantByUnit(each.text, each.pattern), each.meant) << each.text;
}

// The kind, not the example: every value that a CRD offers, as people misspell it.
void CheckEnums(const Json& node, const std::string& path, int& checked) {
  const kube::Definitions definitions = localcluster::apiserver::BuiltinDefinitions();
  if (const auto allowed = node.find("enum"); allowed != node.end()) {
    for (const Json& one : *allowed) {
      const auto value = one.get<std::string>();
      std::string lower = value;
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      std::string upper = value;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
      for (const std::string& typo : {lower, upper, value + "x"}) {
        if (std::find(allowed->begin(), allowed->end(), Json(typo)) != allowed->end()) continue;
        const auto wrong = WrongValues(Json(typo), kube::Schema(&node, &definitions), path, 10);
        ASSERT_EQ(wrong.size(), 1u) << path << " " << typo;
        EXPECT_THAT(wrong[0], HasSubstr("is not one of ")) << path;
        if (value.size() >= 3) {
          EXPECT_THAT(wrong[0], HasSubstr("; did you mean `" + value + "`?")) << path;
        }
        ++checked;
      }
    }
  }
  if (!node.is_structured()) return;
  for (const auto& [name, part] : node.items()) {
    if (part.is_structured()) CheckEnums(part, path + "/" + name, checked);
  }
}

TEST(SchemaWordsTest, EveryOfferedValueIsSuggestedForItsMisspellings) {
  int checked = 0;
  for (const auto& [name, text] : ops::BundledCrds()) {
    const auto crd = document::Parse(text);
    ASSERT_THAT(crd, base::IsOk());
    CheckEnums(crd->at(nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")),
               std::string(name), checked);
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace medley::cli
