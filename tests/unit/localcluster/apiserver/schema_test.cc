// Validation, pruning, defaulting, and the JSON and YAML readers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "kube/schema/formats.h"
#include "kube/schema/shape.h"
#include "kube/schema/validate.h"
#include "localcluster/apiserver/builtin_schemas.h"

namespace medley::localcluster::apiserver {
namespace {

using testing::HasSubstr;

class SchemaTest : public testing::Test {
 protected:
  // The first error as "field: message", or "".
  std::string First(const char* schema, const char* value) {
    const kube::Json document = kube::Json::parse(schema);
    kube::FieldErrors errors;
    const kube::Json parsed = kube::Json::parse(value);
    kube::ValidateSchema(parsed, kube::Schema(&document, &definitions_), nullptr, "spec", &errors);
    kube::CheckListTypes(parsed, kube::Schema(&document, &definitions_), "spec", &errors);
    return errors.empty() ? "" : errors[0].field + ": " + errors[0].what;
  }
  kube::Definitions definitions_ = BuiltinDefinitions();
};

TEST_F(SchemaTest, HasTheMessagesOfTheRealServer) {
  EXPECT_EQ(First(R"({"type":"integer","minimum":1})", "0"),
            "spec: Invalid value: 0: spec in body should be greater than or equal to 1");
  EXPECT_EQ(First(R"({"type":"integer","maximum":3,"exclusiveMaximum":true})", "3"),
            "spec: Invalid value: 3: spec in body should be less than 3");
  EXPECT_EQ(First(R"({"type":"integer"})", "\"x\""),
            "spec: Invalid value: \"string\": spec in body must be of type integer: \"string\"");
  EXPECT_EQ(First(R"({"type":"object","required":["a"]})", "{}"), "spec.a: Required value");
  EXPECT_EQ(First(R"({"type":"string","enum":["a","b"]})", "\"c\""),
            "spec: Unsupported value: \"c\": supported values: \"a\", \"b\"");
  EXPECT_EQ(First(R"({"type":"string","pattern":"^a+$"})", "\"b\""),
            "spec: Invalid value: \"b\": spec in body should match '^a+$'");
  EXPECT_EQ(First(R"({"type":"string","minLength":2})", "\"b\""),
            "spec: Invalid value: \"b\": spec in body should be at least 2 chars long");
  EXPECT_EQ(First(R"({"type":"array","minItems":1,"items":{"type":"string"}})", "[]"),
            "spec: Invalid value: 0: spec in body should have at least 1 items");
  EXPECT_THAT(First(R"({"type":"string","format":"date-time"})", "\"x\""), HasSubstr("must be of type date-time"));
}

TEST_F(SchemaTest, CombinatorsNullableAndIntOrString) {
  const char* one_of = R"({"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]})";
  EXPECT_EQ(First(one_of, R"({"a":1})"), "");
  EXPECT_THAT(First(one_of, R"({"a":1,"b":2})"), HasSubstr("Found 2 valid alternatives"));
  EXPECT_THAT(First(one_of, "{}"), HasSubstr("Found none valid"));
  EXPECT_THAT(First(R"({"not":{"required":["a"]}})", R"({"a":1})"), HasSubstr("(not)"));
  EXPECT_THAT(First(R"({"anyOf":[{"type":"string"},{"type":"boolean"}]})", "1"), HasSubstr("anyOf"));
  EXPECT_EQ(First(R"({"type":"string","nullable":true})", "null"), "");
  EXPECT_THAT(First(R"({"type":"string"})", "null"), HasSubstr("must be of type string"));
  const char* either = R"({"x-kubernetes-int-or-string":true})";
  EXPECT_EQ(First(either, "3"), "");
  EXPECT_EQ(First(either, "\"10%\""), "");
  EXPECT_THAT(First(either, "true"), HasSubstr("integer,string"));
  EXPECT_THAT(First(R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
      "items":{"type":"object"}})",
                    R"([{"n":1},{"n":1}])"),
              HasSubstr("Duplicate value: {\"n\":1}"));
}

TEST_F(SchemaTest, PrunesAndDefaults) {
  const kube::Json document = kube::Json::parse(R"({"type":"object","properties":{
      "a":{"type":"object","default":{},"properties":{"b":{"type":"integer","default":3}}},
      "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
      "map":{"type":"object","additionalProperties":{"type":"string"}}}})");
  const kube::Schema schema(&document, &definitions_);
  kube::Json value = kube::Json::parse(R"({"maps":1,"a":{"y":2},"any":{"z":3},"map":{"k":"v"}})");
  std::vector<kube::UnknownField> unknown;
  kube::Prune(&value, schema, "", &unknown);
  EXPECT_THAT(unknown,
              testing::ElementsAre(testing::FieldsAre("a.y", ""), testing::FieldsAre("maps", "; did you mean `map`?")));
  kube::ApplyDefaults(&value, schema);
  EXPECT_EQ(value, kube::Json::parse(R"({"a":{"b":3},"any":{"z":3},"map":{"k":"v"}})"));
  kube::Json empty = kube::Json::object();
  kube::ApplyDefaults(&empty, schema);
  EXPECT_EQ(empty, kube::Json::parse(R"({"a":{"b":3}})"));
}

TEST_F(SchemaTest, BuiltInQuantitiesTakeNumbers) {
  kube::Json pod = kube::Json::parse(R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":2}}}]}})");
  kube::Normalize(&pod, definitions_.Find("io.k8s.api.core.v1.Pod"));
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], "2");
}

}  // namespace
}  // namespace medley::localcluster::apiserver
