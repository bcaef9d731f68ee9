#include "operator/records/record_keys.h"

#include <gmock/gmock.h>

#include <functional>

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

kube::Object Map() {
  kube::Object map(kube::resources::ConfigMaps(), {"ml", "adult-plan"});
  map.mutable_json()["data"] = {{"plan.json", "{}"}, {"record.json", "{\"a\": 1}"}};
  return map;
}

RecordKeys Keys(char first) { return RecordKeys({std::string(32, first)}); }

kube::Object Signed(const RecordKeys& keys) {
  kube::Object map = Map();
  keys.Sign(RecordKind::kPlan, "uid", map);
  return map;
}

TEST(RecordKeysTest, BelievesWhatItHasSigned) {
  const kube::Object map = Signed(Keys('a'));
  EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", map), IsOk());
  EXPECT_THAT(map.annotation(kSignatureAnnotation), testing::MatchesRegex("v1:[0-9a-f]+"));
  EXPECT_EQ(map.annotation(kSignatureAnnotation).size(), 3u + 64u);
  EXPECT_THAT(RecordKeys().Check(RecordKind::kPlan, "uid", Signed(RecordKeys())), IsOk()) << "one key for a process";
}

TEST(RecordKeysTest, LabelsAnnotationsAndOwnersOfOthersDoNotMatter) {
  kube::Object map = Signed(Keys('a'));
  map.SetLabel("team", "x");
  map.SetAnnotation("note", "y");
  map.mutable_json()["metadata"]["resourceVersion"] = "8";
  EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", map), IsOk());
}

// Whatever a user who may edit ConfigMaps can do to one.
TEST(RecordKeysTest, BelievesNothingElse) {
  using Edit = std::function<void(kube::Object&)>;
  const std::pair<const char*, Edit> edits[] = {
      {"data", [](kube::Object& map) { map.mutable_json()["data"]["plan.json"] = "{ }"; }},
      {"more data", [](kube::Object& map) { map.mutable_json()["data"]["fallback-plan.json"] = "{}"; }},
      {"less data", [](kube::Object& map) { map.mutable_json()["data"].erase("record.json"); }},
      {"no data", [](kube::Object& map) { map.mutable_json().erase("data"); }},
      {"data of another type", [](kube::Object& map) { map.mutable_json()["data"] = "x"; }},
      {"binary data",
       [](kube::Object& map) {
         map.mutable_json()["binaryData"] = map.At("/data");
         map.mutable_json().erase("data");
       }},
      {"copied to another name", [](kube::Object& map) { map.mutable_json()["metadata"]["name"] = "other-plan"; }},
      {"copied to another namespace", [](kube::Object& map) { map.mutable_json()["metadata"]["namespace"] = "evil"; }},
      {"signature removed", [](kube::Object& map) { map.mutable_json()["metadata"].erase("annotations"); }},
      {"empty signature", [](kube::Object& map) { map.SetAnnotation(kSignatureAnnotation, ""); }},
      {"cut signature",
       [](kube::Object& map) {
         map.SetAnnotation(kSignatureAnnotation, map.annotation(kSignatureAnnotation).substr(0, 40));
       }},
      {"signature of another form", [](kube::Object& map) { map.SetAnnotation(kSignatureAnnotation, "v2:00"); }},
      {"signed by another", [](kube::Object& map) { Keys('b').Sign(RecordKind::kPlan, "uid", map); }},
      {"signed as a profile", [](kube::Object& map) { Keys('a').Sign(RecordKind::kProfile, "uid", map); }},
      {"of another job", [](kube::Object& map) { Keys('a').Sign(RecordKind::kPlan, "uid2", map); }},
      {"parts moved", [](kube::Object& map) { Keys('a').Sign(RecordKind::kPlan, "", map); }},
  };
  for (const auto& [what, edit] : edits) {
    kube::Object map = Signed(Keys('a'));
    edit(map);
    EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", map), StatusIs(kDenied)) << what;
  }
}

TEST(RecordKeysTest, SaysWhatIsWrong) {
  EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", Map()),
              StatusIs(kDenied, HasSubstr("ConfigMap adult-plan has no signature")));
  EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", Signed(Keys('b'))),
              StatusIs(kDenied, HasSubstr("ConfigMap adult-plan was changed by another client")));
}

TEST(RecordKeysTest, AnEarlierKeyIsBelievedUntilItIsRemoved) {
  const RecordKeys rotated({std::string(32, 'b'), std::string(32, 'a')});
  kube::Object map = Signed(Keys('a'));
  EXPECT_THAT(rotated.Check(RecordKind::kPlan, "uid", map), IsOk());
  EXPECT_FALSE(rotated.IsCurrent(RecordKind::kPlan, "uid", map));
  rotated.Sign(RecordKind::kPlan, "uid", map);
  EXPECT_TRUE(rotated.IsCurrent(RecordKind::kPlan, "uid", map));
  EXPECT_THAT(Keys('b').Check(RecordKind::kPlan, "uid", map), IsOk());
  EXPECT_THAT(Keys('a').Check(RecordKind::kPlan, "uid", map), StatusIs(kDenied));
}

TEST(RecordKeysTest, SecretsFollowFromTheKeyAndThePurpose) {
  const auto secret = [](const RecordKeys& keys, const std::vector<std::string>& purpose) {
    return keys.Derive(purpose).front();
  };
  const std::string first = secret(Keys('a'), {"token", "ml", "adult", "uid"});
  EXPECT_THAT(first, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(first, secret(Keys('a'), {"token", "ml", "adult", "uid"}));
  EXPECT_NE(first, secret(Keys('b'), {"token", "ml", "adult", "uid"}));
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{
           {"CA", "ml", "adult", "uid"}, {"token", "m", "ladult", "uid"}, {"token", "ml", "adult", "uid2"}}) {
    EXPECT_NE(first, secret(Keys('a'), other));
  }
  const RecordKeys rotated({std::string(32, 'b'), std::string(32, 'a')});
  EXPECT_EQ(rotated.Derive({"token", "ml", "adult", "uid"})[1], first);
}

}  // namespace
}  // namespace medley::ops
