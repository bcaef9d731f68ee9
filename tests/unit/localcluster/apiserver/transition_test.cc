#include "localcluster/apiserver/transition.h"

#include <gmock/gmock.h>

namespace medley::kube::apiserver {
namespace {

std::optional<bool> On(const char* rule, const char* self, const char* old) {
  return Holds(rule, Json::parse(self), Json::parse(old));
}

TEST(TransitionTest, RulesOfTheSubset) {
  EXPECT_EQ(On("self == oldSelf", R"({"a": 1})", R"({"a": 1.0})"), true);
  EXPECT_EQ(On("self == oldSelf", R"({"a": 1})", R"({"a": 2})"), false);
  EXPECT_EQ(On("!(self.a == oldSelf.a)", R"({"a": 1})", R"({"a": 2})"), true);
  EXPECT_EQ(
      On("self.a == oldSelf.a || self.b == oldSelf.b && has(self.c)", R"({"a": 1, "b": 1})", R"({"a": 2, "b": 1})"),
      false);
  EXPECT_EQ(On("self.a == oldSelf.a", "{}", "{}"), true);
}

TEST(TransitionTest, AFieldMayNeitherComeNorGoNorChange) {
  const char* rule = "has(self.test) == has(oldSelf.test) && (!has(self.test) || self.test == oldSelf.test)";
  const char* one = R"({"test": {"uri": "a"}})";
  EXPECT_EQ(On(rule, one, one), true);
  EXPECT_EQ(On(rule, "{}", "{}"), true);
  EXPECT_EQ(On(rule, "{}", one), false);
  EXPECT_EQ(On(rule, one, "{}"), false);
  EXPECT_EQ(On(rule, R"({"test": {"uri": "b"}})", one), false);
}

TEST(TransitionTest, OtherRulesAreNotEvaluated) {
  for (const char* rule : {"size(self) == size(oldSelf)", "self.startsWith('/') && self == oldSelf",
                           "self == oldSelf + 1", "self[0] == oldSelf", "self >= oldSelf",
                           "self == 'x' || self == oldSelf", "(self == oldSelf", "self ==", "", "&&", "has(self"}) {
    EXPECT_EQ(On(rule, "{}", "{}"), std::nullopt) << rule;
  }
  EXPECT_EQ(Holds(std::string(10000, '('), Json(), Json()), std::nullopt);
  EXPECT_EQ(Holds(std::string(10000, '!'), Json(), Json()), std::nullopt);
}

TEST(TransitionTest, ASchemaWithRulesMakesFieldsImmutable) {
  const Json document = Json::parse(R"({"type": "object", "properties": {"spec": {"type": "object", "properties": {
      "model": {"type": "object", "x-kubernetes-validations": [
        {"rule": "self == oldSelf", "message": "spec.model is immutable"}, {"rule": "size(self) > 9"}]},
      "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}}})");
  const Definitions definitions;
  const auto errors = [&](const char* old, const char* now) {
    FieldErrors found;
    CheckTransitions(Json::parse(old), Json::parse(now), Schema(&document, &definitions), "", &found);
    std::vector<std::string> texts;
    for (const FieldError& error : found) texts.push_back(error.field + ": " + error.what);
    return texts;
  };
  const char* old = R"({"spec": {"model": {"a": 1}, "name": "x", "other": 1}})";
  EXPECT_THAT(errors(old, R"({"spec": {"model": {"a": 1}, "name": "x", "other": 2}})"), testing::IsEmpty());
  EXPECT_THAT(errors(old, R"({"spec": {"model": {"a": 2}, "name": "y"}})"),
              testing::ElementsAre("spec.model: Invalid value: \"object\": spec.model is immutable",
                                   "spec.name: Invalid value: \"y\": failed rule: self == oldSelf"));
  EXPECT_THAT(errors(R"({"spec": {}})", old), testing::IsEmpty()) << "a rule counts only where both values exist";
}

}  // namespace
}  // namespace medley::kube::apiserver
