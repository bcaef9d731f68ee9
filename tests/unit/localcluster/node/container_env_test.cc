#include "localcluster/node/container_env.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "localcluster/node/env_expansion.h"

namespace medley::localcluster {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::HasSubstr;

const kube::Object& Pod() {
  static const kube::Object pod(kube::Json::parse(R"({
    "metadata": {"name": "p", "namespace": "n", "uid": "u-1",
                 "labels": {"medley.dev/role": "trainer"}, "annotations": {"note": "x"}},
    "spec": {"nodeName": "node-a", "containers": [{"name": "c"}]}})"));
  return pod;
}

absl::StatusOr<std::map<std::string, std::string>> Source(DataKind kind, const std::string& name) {
  if (kind == DataKind::kConfigMap && name == "cm") return std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}};
  if (kind == DataKind::kSecret && name == "sec") return std::map<std::string, std::string>{{"token", "t0"}};
  return base::NotFound("'{}' not found", name);
}

TEST(EnvExpansionTest, AsKubernetesDoesIt) {
  const auto lookup = [](std::string_view name) -> std::optional<std::string> {
    if (name == "A") return "x";
    if (name == "B") return "$(A)";
    return std::nullopt;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"$(A)", "x"},      {"a$(A)b$(A)", "axbx"}, {"$$(A)", "$(A)"},     {"$$$(A)", "$x"},
      {"$(NO)", "$(NO)"}, {"$A", "$A"},           {"$(A", "$(A"},        {"$", "$"},
      {"a$", "a$"},       {"$(B)", "$(A)"},       {"$()", "$()"},        {"", ""},
      {"$$", "$"},        {"$(A)$", "x$"},        {"cost $5", "cost $5"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(ExpandVariables(text, lookup), expected) << text;
}

TEST(ContainerEnvTest, FieldsKeysAndExpansionInOrder) {
  const kube::Json container = kube::Json::parse(R"json({
    "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}},
    "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "cm"}},
                {"secretRef": {"name": "absent", "optional": true}}],
    "env": [
      {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
      {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
      {"name": "ROLE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['medley.dev/role']"}}},
      {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['note']"}}},
      {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
      {"name": "T", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "token"}}},
      {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "no", "optional": true}}},
      {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
      {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
      {"name": "URL", "value": "http://$(IP):80/$(NAME)/$(LATER)"},
      {"name": "LATER", "value": "z"}]})json");
  const auto env = ContainerEnv(Pod(), container, {"127.1.2.3", "127.0.0.1"}, Source);
  ASSERT_THAT(env, base::IsOk());
  const std::map<std::string, std::string> expected = {{"CM_a", "1"},
                                                       {"CM_b", "2"},
                                                       {"NAME", "p"},
                                                       {"IP", "127.1.2.3"},
                                                       {"ROLE", "trainer"},
                                                       {"NOTE", "x"},
                                                       {"A", "1"},
                                                       {"T", "t0"},
                                                       {"CPU", "2"},
                                                       {"MEM", "64"},
                                                       {"URL", "http://127.1.2.3:80/p/$(LATER)"},
                                                       {"LATER", "z"}};
  EXPECT_EQ(*env, expected);
}

TEST(ContainerEnvTest, MissingThingsAreNamed) {
  const auto env = [](const char* from) {
    const kube::Json entry = {{"name", "X"}, {"valueFrom", kube::Json::parse(from)}};
    return ContainerEnv(Pod(), {{"env", kube::Json::array({entry})}}, {}, Source);
  };
  EXPECT_THAT(env(R"({"configMapKeyRef": {"name": "missing", "key": "k"}})"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("configmap 'missing'")));
  EXPECT_THAT(env(R"({"secretKeyRef": {"name": "sec", "key": "k"}})"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("couldn't find key 'k' in secret 'sec'")));
  EXPECT_THAT(env(R"({"fieldRef": {"fieldPath": "spec.bogus"}})"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(env(R"({"other": {}})"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ContainerEnvTest, SecretsAreDecoded) {
  const kube::Object secret(kube::Json{{"data", {{"k", "aGVsbG8="}}}});
  EXPECT_THAT(DecodeData(DataKind::kSecret, secret), IsOkAndHolds(std::map<std::string, std::string>{{"k", "hello"}}));
  const kube::Object bad(kube::Json{{"data", {{"k", "%%%"}}}});
  EXPECT_THAT(DecodeData(DataKind::kSecret, bad), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::localcluster
