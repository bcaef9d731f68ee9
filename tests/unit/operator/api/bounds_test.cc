// Every bound of the CRDs' schemas is one of the operator's own parser as well: the test walks the schemas, and makes a
// manifest for each bound that breaks nothing else. Statuses have no bounds, because only the operator writes them.
#include "operator/api/bounds.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <regex>

#include "common/base/testing/status_matchers.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using base::StatusIs;
using kube::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

Json JobJson() { return LoadYaml("tests/data/manifests/good/job-full.yaml"); }
Json PoolJson() { return LoadYaml("tests/data/manifests/good/pool-full.yaml"); }

absl::Status JobStatusOf(const Json& json) { return TrainingJob::FromObject(kube::Object(json)).status(); }
absl::Status PoolStatusOf(const Json& json) { return ResourcePool::FromObject(kube::Object(json)).status(); }

std::string Xs(size_t length) { return std::string(length, 'x'); }

// A value that breaks one bound of a schema, and the bound.
struct Breach {
  std::string path;       // "spec.unit.env[].value"
  Json::json_pointer at;  // with 0 for items, and "key" for values of a map
  std::string bound;
  Json value;
};

void AddBreaches(const Json& schema, const std::string& path, const Json::json_pointer& at,
                 std::vector<Breach>& breaches) {
  const auto add = [&](const char* bound, Json value) {
    if (schema.contains(bound)) breaches.push_back({path, at, bound, std::move(value)});
  };
  const std::string type = schema.value("type", "");
  if (type == "integer" || (schema.contains("x-kubernetes-int-or-string") && schema.contains("minimum"))) {
    if (schema.contains("minimum")) add("minimum", schema["minimum"].get<int64_t>() - 1);
    if (schema.contains("maximum")) add("maximum", schema["maximum"].get<int64_t>() + 1);
    if (schema.contains("maximum")) add("maximum", uint64_t{1} << 63);
  }
  if (type == "number") {
    if (schema.value("minimum", 0.0) >= 0) add("minimum", -1);
    add("minimum", -1e308);
    add("maximum", 1e308);
    add("maximum", std::numeric_limits<double>::quiet_NaN());
  }
  if (schema.contains("maxLength")) add("maxLength", Xs(schema["maxLength"].get<size_t>() + 1));
  if (schema.contains("minLength")) add("minLength", "");
  if (type == "string" || schema.contains("x-kubernetes-int-or-string")) {
    breaches.push_back({path, at, "type", Json::object()});
    for (const std::string text : {"-1", "1e308x", "NaN", " ?"}) {
      if (!std::regex_search(text, std::regex(schema.value("pattern", "^$")))) add("pattern", text);
    }
  }
  if (schema.contains("maxItems")) add("maxItems", Json(schema["maxItems"].get<size_t>() + 1, 1));
  if (schema.contains("maxProperties")) {
    Json many = Json::object();
    for (size_t i = 0; i <= schema["maxProperties"].get<size_t>(); ++i) many["k" + std::to_string(i)] = "1";
    add("maxProperties", std::move(many));
  }
  const Json fields = schema.value("properties", Json::object());
  for (const auto& [name, field] : fields.items()) {
    AddBreaches(field, path + "." + name, at / name, breaches);
  }
  if (schema.contains("items")) AddBreaches(schema["items"], path + "[]", at / 0, breaches);
  if (schema.contains("additionalProperties")) {
    AddBreaches(schema["additionalProperties"], path + "{}", at / "key", breaches);
  }
}

std::vector<Breach> BreachesOf(const std::string& crd) {
  std::vector<Breach> breaches;
  const Json schema = LoadYaml("deploy/crds/" + crd);
  AddBreaches(schema.at(nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")),
              "spec", Json::json_pointer("/spec"), breaches);
  return breaches;
}

void ExpectRefused(const std::string& crd, const Json& good, const std::function<absl::Status(const Json&)>& read) {
  const std::vector<Breach> breaches = BreachesOf(crd);
  EXPECT_GT(breaches.size(), 50u);
  for (const Breach& breach : breaches) {
    Json json = good;
    json[breach.at] = breach.value;
    const std::string field = breach.path.substr(0, breach.path.find_first_of("[{"));
    EXPECT_THAT(read(json), StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(field)))
        << breach.bound << " of " << breach.path;
  }
}

TEST(BoundsTest, EveryBoundOfAJobIsHeldByTheParser) { ExpectRefused("trainingjobs.yaml", JobJson(), JobStatusOf); }

TEST(BoundsTest, EveryBoundOfAPoolIsHeldByTheParser) { ExpectRefused("resourcepools.yaml", PoolJson(), PoolStatusOf); }

TEST(BoundsTest, TheMessageSaysWhatIsAllowed) {
  Json pool = PoolJson();
  pool["spec"]["limit"] = 1000001;
  EXPECT_EQ(PoolStatusOf(pool).message(), "spec.limit: must be at least 0 and at most 1000000, is 1000001");
  pool = PoolJson();
  pool["spec"]["namespaces"] = Json(257, "ns");
  EXPECT_EQ(PoolStatusOf(pool).message(), "spec.namespaces: must have at most 256 items, has 257");
}

TEST(BoundsTest, CharactersCountNotBytes) {
  Json pool = PoolJson();
  std::string value;
  for (int i = 0; i < 4096; ++i) value += "\xC3\xA9";
  pool["spec"]["unit"]["env"] = {{{"name", "A"}, {"value", value}}};
  EXPECT_THAT(PoolStatusOf(pool), base::IsOk());
}

TEST(BoundsTest, AnObjectOfAnySizeIsRefusedWithAShortSentence) {
  Json job = JobJson();
  job["spec"]["unknown"] = Xs(100'000'000);
  EXPECT_THAT(JobStatusOf(job), StatusIs(absl::StatusCode::kInvalidArgument, "spec: is larger than 512 KiB"));
  job["spec"] = JobJson()["spec"];
  job["spec"]["template"]["spec"]["x"] = Json(200'000, 1);
  EXPECT_THAT(JobStatusOf(job), StatusIs(absl::StatusCode::kInvalidArgument, "spec: is larger than 512 KiB"));
  Json pool = PoolJson();
  pool["spec"]["unknown"] = Xs(100'000'000);
  EXPECT_THAT(PoolStatusOf(pool), StatusIs(absl::StatusCode::kInvalidArgument, "spec: is larger than 512 KiB"));
}

TEST(BoundsTest, NestingIsBounded) {
  // As deep as the decoder of an API server allows.
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  Json job = JobJson();
  job["spec"]["template"]["spec"]["x"] = Json::parse(deep);
  EXPECT_THAT(JobStatusOf(job), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested more than 32 deep")));
  Json pool = PoolJson();
  pool["spec"]["tolerations"] = Json::parse(deep);
  EXPECT_THAT(PoolStatusOf(pool), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested more than 32 deep")));
}

TEST(BoundsTest, DurationsDoNotOverflow) {
  for (const char* huge : {"99999999999999999999999999999h", "1e300h", "2562047h", "87600.1h", "-1h", "NaN"}) {
    for (const char* field : {"/objective/deadline", "/elasticity/replan/cooldown", "/planner/timeBudget",
                              "/profiling/wait", "/checkpoint/interval"}) {
      Json job = JobJson();
      job["spec"][Json::json_pointer(field)] = huge;
      const auto read = TrainingJob::FromObject(kube::Object(job));
      const bool refused = !read.ok() || !ValidateTrainingJob(kube::Object(job)).empty();
      EXPECT_TRUE(refused) << field << " " << huge;
    }
    Json pool = PoolJson();
    pool["spec"]["provisionTimeout"] = huge;
    EXPECT_FALSE(PoolStatusOf(pool).ok()) << huge;
  }
}

}  // namespace
}  // namespace medley::ops
