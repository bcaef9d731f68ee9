// Which fields of a job's spec make another fingerprint: the tests walk the schema, so that no field can be forgotten.
#include "common/model/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <set>
#include <vector>

#include "common/model/job_schema.h"

namespace medley::model {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::IsEmpty;

constexpr Purpose kPurposes[] = {Purpose::kModel, Purpose::kJob, Purpose::kProfile};

struct Leaf {
  std::string path;       // "data.inputs[].scale"
  json::json_pointer at;  // in a spec that has every field once
  json values[2];         // two, of which none is a default
};

// Two values of a type.
std::array<json, 2> ValuesOf(const json& schema) {
  const std::string type = schema.value("type", "");
  if (type == "boolean") return {true, false};
  if (type == "integer" || schema.contains("x-kubernetes-int-or-string")) return {1007, 1009};
  if (type == "number") return {0.12345, 0.123450000001};
  if (type == "object") return {json{{"a", 1}}, json{{"a", 2}}};
  return {"one", "two"};
}

void AddLeaves(const json& schema, const std::string& path, const json::json_pointer& at, std::vector<Leaf>& leaves) {
  if (schema.contains("properties")) {
    for (const auto& [name, field] : schema["properties"].items()) {
      AddLeaves(field, path.empty() ? name : path + "." + name, at / name, leaves);
    }
  } else if (schema.contains("items")) {
    AddLeaves(schema["items"], path + "[]", at / 0, leaves);
  } else if (schema.contains("additionalProperties")) {
    AddLeaves(schema["additionalProperties"], path + "{}", at / "key", leaves);
  } else {
    const auto [first, second] = ValuesOf(schema);
    leaves.push_back({path, at, {first, second}});
  }
}

const std::vector<Leaf>& Leaves() {
  static const std::vector<Leaf> leaves = [] {
    std::vector<Leaf> all;
    AddLeaves(JobSchema(), "", json::json_pointer(), all);
    return all;
  }();
  return leaves;
}

json WholeSpec() {
  json spec = json::object();
  for (const Leaf& leaf : Leaves()) spec[leaf.at] = leaf.values[0];
  return spec;
}

// The rule by which a field does not count, or null. `spec` decides about those that count beside another field.
const Uncounted* RuleFor(const std::string& path, Purpose purpose, const json& spec) {
  for (const Uncounted& rule : UncountedFields()) {
    const std::string field = rule.field;
    const bool covers = path.starts_with(field) &&
                        (path.size() == field.size() || path.find_first_of(".[{", field.size()) == field.size());
    if (!covers || (rule.purposes & static_cast<unsigned>(purpose)) == 0) continue;
    json::json_pointer with;
    for (std::string_view rest = rule.unless; !rest.empty();) {
      const size_t dot = std::min(rest.find('.'), rest.size());
      with /= std::string(rest.substr(0, dot));
      rest.remove_prefix(std::min(rest.size(), dot + 1));
    }
    if (purpose == Purpose::kJob && *rule.unless != '\0' && spec.contains(with)) continue;
    return &rule;
  }
  return nullptr;
}

TEST(FingerprintTest, EveryFieldOfTheSchemaCountsUnlessItIsListed) {
  const json whole = WholeSpec();
  ASSERT_GT(Leaves().size(), 150U);
  for (const Purpose purpose : kPurposes) {
    for (const Leaf& leaf : Leaves()) {
      json other = whole;
      other[leaf.at] = leaf.values[1];
      EXPECT_EQ(Fingerprint(other, purpose) == Fingerprint(whole, purpose),
                RuleFor(leaf.path, purpose, whole) != nullptr)
          << "spec." << leaf.path << " for purpose " << static_cast<int>(purpose)
          << ": a field counts, or UncountedFields says why it does not";
    }
  }
}

TEST(FingerprintTest, AFieldThatIsSetIsAnotherThanNone) {
  for (const Purpose purpose : kPurposes) {
    for (const Leaf& leaf : Leaves()) {
      json spec = json::object();
      spec[leaf.at] = leaf.values[0];
      // The one without the field: a list of as many objects.
      json without = spec;
      json::json_pointer parent = leaf.at;
      const std::string last = parent.back();
      parent.pop_back();
      if (without[parent].is_array()) {
        without[parent] = json::array();
      } else {
        without[parent].erase(last);
      }
      // A boolean's first value may be what its absence means.
      bool differs = Fingerprint(spec, purpose) != Fingerprint(without, purpose);
      if (leaf.values[0].is_boolean() && !differs) {
        spec[leaf.at] = leaf.values[1];
        differs = Fingerprint(spec, purpose) != Fingerprint(without, purpose);
      }
      const Uncounted* const rule = RuleFor(leaf.path, purpose, spec);
      EXPECT_EQ(differs, rule == nullptr || rule->presence)
          << "spec." << leaf.path << " for purpose " << static_cast<int>(purpose);
    }
  }
}

TEST(FingerprintTest, AListedFieldExistsAndHasAReason) {
  std::set<std::string> paths;
  for (const Leaf& leaf : Leaves()) {
    for (size_t end = leaf.path.find_first_of(".[{"); end != std::string::npos;
         end = leaf.path.find_first_of(".[{", end + 1)) {
      paths.insert(leaf.path.substr(0, end));
    }
    paths.insert(leaf.path);
  }
  for (const Uncounted& rule : UncountedFields()) {
    EXPECT_THAT(paths, Contains(rule.field));
    EXPECT_THAT(rule.reason, testing::Not(testing::StrEq("")));
    if (*rule.unless != '\0') {
      EXPECT_THAT(paths, Contains(rule.unless));
    }
  }
}

// Two ways to write one spec.
struct Same {
  const char* what;
  json first, second;
};

TEST(FingerprintTest, TheSameInOtherWordsIsTheSame) {
  const auto optimizer = [](json fields) { return json{{"training", {{"optimizer", std::move(fields)}}}}; };
  for (const Same& same : std::vector<Same>{
           {"a whole number", optimizer({{"learningRate", 1}}), optimizer({{"learningRate", 1.0}})},
           {"a default", {{"training", {{"batchSize", 512}}}}, json::object()},
           {"a default of an absent object", {{"data", {{"schema", {{"numericBuckets", 0}}}}}}, json::object()},
           {"what absence means", optimizer({{"beta1", 0.9}}), optimizer({{"name", "adagrad"}})},
           {"a default in a list",
            {{"data", {{"inputs", {{{"name", "x"}, {"scale", 1.0}}}}}}},
            {{"data", {{"inputs", {{{"name", "x"}}}}}}}},
           {"null", {{"model", {{"loss", nullptr}}}}, json::object()},
           {"mse", {{"model", {{"task", "regression"}, {"loss", "mse"}}}}, {{"model", {{"task", "regression"}}}}},
           {"an empty object", {{"model", {{"cut", json::object()}}}}, json::object()}}) {
    for (const Purpose purpose : kPurposes) {
      EXPECT_EQ(Fingerprint(same.first, purpose), Fingerprint(same.second, purpose)) << same.what;
    }
  }
}

TEST(FingerprintTest, NumbersAreExact) {
  const auto rate = [](double value) {
    return Fingerprint({{"training", {{"optimizer", {{"learningRate", value}}}}}}, Purpose::kModel);
  };
  EXPECT_NE(rate(1e-7), rate(3e-7));
  EXPECT_NE(rate(0.1), rate(std::nextafter(0.1, 1)));
  const auto seed = [](uint64_t value) { return Fingerprint({{"training", {{"seed", value}}}}, Purpose::kModel); };
  EXPECT_NE(seed(18446744073709551615U), seed(18446744073709551614U));
}

TEST(FingerprintTest, ListsAndTextsAreNotMixedUp) {
  const auto classes = [](json names) {
    return Fingerprint({{"data", {{"schema", {{"label", {{"classes", std::move(names)}}}}}}}}, Purpose::kModel);
  };
  EXPECT_NE(classes({"a|b", "c"}), classes({"a", "b|c"}));
  EXPECT_NE(classes({"a\",\"b"}), classes({"a", "b"}));
  const auto column = [](json value) {
    return Fingerprint({{"data", {{"schema", {{"label", {{"column", std::move(value)}}}}}}}}, Purpose::kModel);
  };
  EXPECT_NE(column(3), column("3")) << "the number of a column, and a name";
}

TEST(FingerprintTest, CountedFieldsHaveTheFingerprintOfTheirSpec) {
  for (const json& spec : {WholeSpec(), json::object(), json(nullptr), json::array()}) {
    for (const Purpose purpose : kPurposes) {
      EXPECT_EQ(Fingerprint(CountedFields(spec, purpose), purpose), Fingerprint(spec, purpose));
    }
  }
  const json counted = CountedFields(json::object(), Purpose::kModel);
  EXPECT_EQ(counted["training"]["batchSize"], 512) << "the defaults, for messages";
  EXPECT_FALSE(counted.contains("elasticity"));
}

TEST(FingerprintTest, WhenItIsEvaluatedCountsOnlyIfTheTrainingMayEndThen) {
  json spec = {{"training", {{"evaluation", {{"everySteps", 5}}}}}};
  EXPECT_EQ(Fingerprint(spec, Purpose::kJob), Fingerprint(json::object(), Purpose::kJob));
  spec["training"]["earlyStopping"] = {{"metric", "auc"}, {"patience", 3}};
  json other = spec;
  other["training"]["evaluation"]["everySteps"] = 6;
  EXPECT_NE(Fingerprint(spec, Purpose::kJob), Fingerprint(other, Purpose::kJob));
  EXPECT_EQ(Fingerprint(spec, Purpose::kModel), Fingerprint(other, Purpose::kModel));
}

TEST(FingerprintTest, AProfileIsOfWhatCostsTheSame) {
  const auto momentum = [](json value) {
    return ProfileHash({{"training", {{"optimizer", {{"name", "sgd"}, {"momentum", std::move(value)}}}}}});
  };
  EXPECT_EQ(momentum(0.9), momentum(0.5));
  EXPECT_NE(momentum(0.9), momentum(0)) << "it has more state";
  EXPECT_EQ(momentum(0), momentum(nullptr));
  EXPECT_EQ(ProfileHash(json::object()).size(), 16U);
}

TEST(FingerprintTest, OnlyThoseOfOneVersionAreComparable) {
  const std::string now = Fingerprint(json::object(), Purpose::kJob);
  EXPECT_TRUE(Comparable(now, Fingerprint(WholeSpec(), Purpose::kJob)));
  EXPECT_FALSE(Comparable(now, "0123456789abcdef"));
  EXPECT_FALSE(Comparable(now, "3-0123456789abcdef"));
  EXPECT_TRUE(Comparable("aaaa", "bbbb"));
}

// The form is stored with checkpoints and in the names of profiles: another one needs another version (fingerprint.cc).
TEST(FingerprintTest, TheFormIsThatOfItsVersion) {
  const json spec = {{"model", {{"name", "mlp"}}},
                     {"training", {{"optimizer", {{"learningRate", 1e-7}}}, {"epochs", 3}}}};
  EXPECT_EQ(Fingerprint(spec, Purpose::kModel), "2-02b6f89dbf88da81");
  EXPECT_EQ(Fingerprint(spec, Purpose::kJob), "2-3822ee29a40d1582");
  EXPECT_EQ(ProfileHash(spec), "d981d6e7bcc34ff6");
}

// A profile of four micro-batches was used for jobs with sixteen, whose plans then promised a third too much.
TEST(FingerprintTest, ProfilesAreOfANumberOfMicroBatches) {
  const json four = {{"training", {{"microBatches", 4}}}}, sixteen = {{"training", {{"microBatches", 16}}}};
  EXPECT_NE(ProfileHash(four), ProfileHash(sixteen));
  EXPECT_EQ(ProfileHash(four), ProfileHash(json::object())) << "four is the default";
  EXPECT_EQ(Fingerprint(four, Purpose::kJob), Fingerprint(sixteen, Purpose::kJob)) << "they train the same";
}

}  // namespace
}  // namespace medley::model
