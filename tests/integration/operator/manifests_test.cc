// The CRDs of deploy/crds in API servers: which manifests they take, and in which words they refuse
// the others (tests/data/manifests). They must say what the operator's own validation says; answers_test.cc compares
// the bytes.
#include <gmock/gmock.h>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"
#include "tests/integration/kube/test_server.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFiles[] = {"trainingjobs.yaml", "resourcepools.yaml"};

class ManifestsTest : public testing::TestWithParam<kube::ServerKind> {
 protected:
  ManifestsTest() : server_(GetParam(), clock_), client_(server_.client()) {}
  void SetUp() override { Install(""); }
  void TearDown() override {
    for (const kube::Object& made : made_) {
      const absl::Status gone = client_.Delete(ResourceOf(made), made.key());
      EXPECT_TRUE(gone.ok() || kube::IsNotFound(gone)) << base::ToString(gone);
    }
  }
  void Install(const std::string& version) {
    for (const char* file : kFiles) server_.InstallCrd(CrdText(file, version));
  }
  static kube::Resource ResourceOf(const kube::Object& object) {
    return object.kind() == "ResourcePool" ? ResourcePools() : TrainingJobs();
  }
  absl::StatusOr<kube::Object> Create(kube::Object object) {
    if (ResourceOf(object).namespaced) object.mutable_json()["metadata"]["namespace"] = server_.ns();
    auto made = client_.Create(ResourceOf(object), object);
    if (made.ok()) made_.push_back(*made);
    return made;
  }
  void Delete(const kube::Object& object) {
    ASSERT_THAT(client_.Delete(ResourceOf(object), object.key()), base::IsOk());
    std::erase_if(made_, [&](const kube::Object& o) { return o.uid() == object.uid(); });
  }
  // Creates the case's object and makes its update; the status of what is to be refused.
  absl::Status Try(const ManifestCase& bad) {
    const auto made = Create(bad.manifest);
    if (!made.ok() || !bad.update.is_object()) return made.status();
    return client_.Patch(ResourceOf(*made), made->key(), kube::PatchType::kMerge, bad.update).status();
  }
  void CleanUp() {
    while (!made_.empty()) Delete(made_.back());
  }
  base::SystemClock clock_;
  kube::TestServer server_;
  kube::HttpClient& client_;
  std::vector<kube::Object> made_;
};
INSTANTIATE_TEST_SUITE_P(On, ManifestsTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(ManifestsTest, GoodOnesAreTakenAndDefaultedAsTheOperatorDoes) {
  for (const kube::Object& manifest : GoodManifests()) {
    const auto made = Create(manifest);
    ASSERT_THAT(made, base::IsOk()) << manifest.key().name;
    if (manifest.kind() != "TrainingJob") continue;
    Json spec = manifest.At("/spec");
    ApplyJobDefaults(spec);
    Json stored = made->At("/spec");
    ApplyJobDefaults(stored);  // defaults of absent parents, which a schema does not reach
    EXPECT_EQ(stored, spec) << manifest.key().name;
  }
}

TEST_P(ManifestsTest, SchemaErrorsAreRefusedInTheServersWords) {
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.schema.empty()) continue;
    const absl::Status refused = Try(bad);
    EXPECT_EQ(kube::HttpCode(refused), 422) << bad.name;
    EXPECT_THAT(base::ToString(refused), HasSubstr(bad.schema)) << bad.name;
    CleanUp();
  }
}

TEST_P(ManifestsTest, WhatOnlyTheOperatorCanKnowIsTaken) {
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.condition.is_null()) continue;
    EXPECT_THAT(Try(bad), base::IsOk()) << bad.name;
    CleanUp();
  }
}

TEST_P(ManifestsTest, ContradictionsAreRefusedWithTheRulesSentence) {
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.rule.empty()) continue;
    const absl::Status refused = Try(bad);
    EXPECT_EQ(kube::HttpCode(refused), 422) << bad.name;
    EXPECT_THAT(base::ToString(refused), HasSubstr(bad.rule)) << bad.name;
    CleanUp();
  }
}

// Several contradictions at once: both worlds find the same ones.
TEST_P(ManifestsTest, TheServersRulesAndTheOperatorsValidationAgree) {
  std::vector<ManifestCase> cases = BadManifests();
  std::erase_if(cases, [](const ManifestCase& c) { return c.rule.empty() || c.update.is_object(); });
  std::set<std::string> sentences = RuleSentences("trainingjobs.yaml");
  sentences.merge(RuleSentences("resourcepools.yaml"));
  constexpr uint64_t kSeed = 7;
  base::Rng rng(kSeed);
  int accepted = 0;
  for (int i = 0; i < 300; ++i) {
    const ManifestCase& first = cases[rng.Below(cases.size())];
    ManifestCase mixed = first;
    std::string names = first.name;
    const auto more = rng.Below(4);
    for (uint64_t k = 0; k < more; ++k) {
      const ManifestCase& other = cases[rng.Below(cases.size())];
      if (other.is_pool() != first.is_pool()) continue;
      Json json = mixed.manifest.json();
      kube::MergePatch(json, other.manifest.json());
      mixed.manifest = kube::Object(json);
      names += " + " + other.name;
    }
    const auto made = Create(mixed.manifest);
    std::set<std::string> said;
    for (const std::string& sentence : sentences) {
      if (base::ToString(made.status()).find(sentence) != std::string::npos) said.insert(sentence);
    }
    const std::vector<std::string> ours = mixed.Validate();
    EXPECT_EQ(said, std::set<std::string>(ours.begin(), ours.end())) << names << " (seed " << kSeed << ")\n"
                                                                     << base::ToString(made.status());
    EXPECT_EQ(made.ok(), ours.empty()) << names;
    accepted += made.ok() ? 1 : 0;
    CleanUp();
  }
  EXPECT_LT(accepted, 150);  // most mixtures are still bad: the test tests something
}

// An upgrade: objects stored under the first version of the CRDs, then today's CRDs over them.
TEST_P(ManifestsTest, AnOlderObjectLivesOnUnderTheNewCrd) {
  Install("0.1");
  Json manifest = GoodManifests().front().json();
  for (const kube::Object& good : GoodManifests()) {
    if (good.key().name == "adult") manifest = good.json();
  }
  // A value that was allowed once, in an object that never ran.
  manifest["spec"]["data"]["train"]["format"] = "libsvm";
  manifest["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "q";
  // The server takes a schema a moment after it says so, also an older one.
  absl::StatusOr<kube::Object> old = absl::UnknownError("not created yet");
  const auto created = [&] {
    old = Create(kube::Object(manifest));
    return old.ok();
  };
  ASSERT_TRUE(server_.Eventually(created)) << old.status();
  EXPECT_TRUE(old->At("/spec/runPolicy/disruptionBudget").is_null());
  Install("");
  const kube::Key key = old->key();
  // The embedded server, which keeps nothing beyond its process, fills defaults in when it writes.
  const auto defaulted = [&] {
    const auto now = client_.Get(TrainingJobs(), key);
    return now.ok() && now->At("/spec/runPolicy/disruptionBudget/maxUnavailable") == 1;
  };
  if (!server_.real()) {
    const Json touched = {{"metadata", {{"labels", {{"touched", "yes"}}}}}};
    ASSERT_THAT(client_.Patch(TrainingJobs(), key, kube::PatchType::kMerge, touched), base::IsOk());
  }
  ASSERT_TRUE(server_.Eventually(defaulted));
  const auto now = client_.Get(TrainingJobs(), key);
  ASSERT_THAT(now, base::IsOk());
  if (server_.real()) {
    EXPECT_EQ(now->generation(), old->generation());
  }
  EXPECT_EQ(now->At("/spec/data"), old->At("/spec/data"));
  EXPECT_EQ(now->At("/spec/runPolicy/schedulingPolicy"), (Json{{"queue", "q"}, {"podGroup", "Auto"}}));
  // The operator writes its status and finalizer, and people scale and suspend.
  const auto patch = [&](const Json& body, const char* subresource) {
    return client_.Patch(TrainingJobs(), key, kube::PatchType::kMerge, body, {}, subresource);
  };
  EXPECT_THAT(patch({{"status", {{"phase", "Failed"}}}}, "status"), base::IsOk());
  EXPECT_THAT(patch({{"metadata", {{"finalizers", {kFinalizer}}}}}, ""), base::IsOk());
  EXPECT_THAT(patch({{"spec", {{"elasticity", {{"maxUnits", 3}}}}}}, ""), base::IsOk());
  EXPECT_THAT(patch({{"metadata", {{"finalizers", nullptr}}}}, ""), base::IsOk());
  EXPECT_FALSE(patch({{"spec", {{"elasticity", {{"minUnits", 0}}}}}}, "").ok());
  // The old CRD again, as in a rollback: nothing is lost but what it does not know.
  Install("0.1");
  EXPECT_THAT(client_.Get(TrainingJobs(), key), base::IsOk());
  Install("");
}

}  // namespace
}  // namespace medley::ops
