// The bytes with which API servers refuse manifests. tests/golden/apiserver/answers.json has the answers of a real one
// to the manifests of tests/data/manifests/bad; both servers must give them. MEDLEY_GOLDEN_UPDATE=1 with
// MEDLEY_TEST_KUBECONFIG (tests/cluster/README.md) writes the file.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/document/parse.h"
#include "common/http_client/connection.h"
#include "kube/json_access.h"
#include "operator/api/resources.h"
#include "tests/integration/kube/test_server.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;

// Sends requests and keeps nothing.
class Caller {
 public:
  explicit Caller(kube::TestServer& server) : server_(server), connection_(OptionsOf(server.config())) {}

  // Creates the case's manifest, or creates it and then sends its update; the last answer. Deletes what was created.
  Json Answer(const kube::Object& manifest, const Json& update) {
    Json body = manifest.json();
    const bool pool = manifest.kind() == "ResourcePool";
    const kube::Resource resource = pool ? ResourcePools() : TrainingJobs();
    if (!pool) body["metadata"]["namespace"] = server_.ns();
    const std::string ns = pool ? "" : server_.ns();
    Json answer = Send("POST", resource.Path(ns), body, "application/json");
    if (answer.value("kind", "") == "Status") return answer;
    const std::string path = resource.Path(ns, manifest.key().name);
    if (update.is_object()) answer = Send("PATCH", path, update, "application/merge-patch+json");
    Send("DELETE", path, Json::object(), "application/json");
    return answer;
  }

 private:
  static http_client::Options OptionsOf(const kube::ClientConfig& config) {
    http_client::Options options;
    options.authorities = config.ca_data;
    options.certificate = config.client_certificate_data;
    options.key = config.client_key_data;
    options.authorities_file = config.ca_file;
    return options;
  }

  Json Send(const std::string& method, const std::string& path, const Json& body, const char* type) {
    http_client::Request request{.method = method, .url = server_.config().server + path + "?fieldValidation=Strict"};
    request.headers = {{"Content-Type", type}, {"Accept", "application/json"}};
    if (const std::string& token = server_.config().token; !token.empty()) {
      request.headers.emplace_back("Authorization", "Bearer " + token);
    }
    request.body = kube::Dump(body);
    const http_client::Result result = connection_.Run(request, method + " " + path, {});
    EXPECT_THAT(result.status, base::IsOk());
    return Json::parse(result.response.body, nullptr, false);
  }

  kube::TestServer& server_;
  http_client::Connection connection_;
};

// An answer with its causes in order: a real server visits the fields of an object in random order. What else it says
// stays as it is, to the byte. Empty: the manifest was taken.
std::string Comparable(Json answer) {
  if (answer.value("kind", "") != "Status" || answer.value("status", "") == "Success") return "";
  Json& details = answer["details"];
  if (!details.is_object() || !details.contains("causes")) return answer.dump(1);
  std::string joined;
  std::vector<std::string> sentences;
  for (const Json& cause : details["causes"]) {
    const std::string sentence = cause.value("field", "") + ": " + cause.value("message", "");
    if (std::ranges::find(sentences, sentence) != sentences.end()) continue;
    joined += (sentences.empty() ? "" : ", ") + sentence;
    sentences.push_back(sentence);
  }
  if (sentences.size() > 1) joined = "[" + joined + "]";
  std::string message = answer.value("message", "");
  EXPECT_TRUE(message.ends_with("is invalid: " + joined)) << message << "\nhas not its causes " << joined;
  std::sort(details["causes"].begin(), details["causes"].end());
  if (sentences.size() > 1) answer["message"] = message.substr(0, message.size() - joined.size()) + "[...]";
  return answer.dump(1);
}

const std::string& GoldenPath() {
  static const std::string path = [] {
    const char* source = std::getenv("MEDLEY_SOURCE_DIR");
    return std::string(source == nullptr ? "." : source) + "/tests/golden/apiserver/answers.json";
  }();
  return path;
}

class AnswersTest : public testing::TestWithParam<kube::ServerKind> {
 protected:
  AnswersTest() : server_(GetParam(), clock_) { Install(server_); }
  static void Install(kube::TestServer& server) {
    for (const char* file : {"trainingjobs.yaml", "resourcepools.yaml"}) server.InstallCrd(CrdText(file));
  }
  base::SystemClock clock_;
  kube::TestServer server_;
};
INSTANTIATE_TEST_SUITE_P(On, AnswersTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(AnswersTest, ToBadManifestsAreThoseOfARealServer) {
  Caller caller(server_);
  std::map<std::string, std::string> answers;
  for (const ManifestCase& bad : BadManifests()) {
    const Json update = bad.update;
    answers[bad.name] = Comparable(caller.Answer(bad.manifest, update));
    EXPECT_EQ(answers[bad.name].empty(), !bad.condition.is_null()) << bad.name;
  }
  if (server_.real() && std::getenv("MEDLEY_GOLDEN_UPDATE") != nullptr) {
    Json golden = Json::object();
    for (const auto& [name, answer] : answers) golden[name] = answer.empty() ? Json() : Json::parse(answer);
    ASSERT_THAT(base::WriteFileAtomic(GoldenPath(), golden.dump(1) + "\n"), base::IsOk());
  }
  const auto text = base::ReadFile(GoldenPath());
  ASSERT_THAT(text, base::IsOk());
  const Json golden = Json::parse(*text, nullptr, false);
  EXPECT_EQ(golden.size(), answers.size()) << "run with MEDLEY_GOLDEN_UPDATE=1 on a real server";
  for (const auto& [name, answer] : answers) {
    ASSERT_TRUE(golden.contains(name)) << name << " has no golden answer";
    EXPECT_EQ(answer, golden[name].is_null() ? "" : golden[name].dump(1)) << name;
  }
}

// A manifest for each thing that a field may not be.
class WrongFields {
 public:
  WrongFields(const Json& schema, const Json& good) : good_(good) { Walk(schema, {"spec"}); }
  const std::vector<std::pair<std::string, Json>>& all() const { return all_; }

 private:
  using Path = std::vector<std::string>;

  void Add(const Path& path, const char* what, Json value) {
    Json manifest = good_;
    Json* at = &manifest;
    std::string name;
    for (const std::string& step : path) {
      name += "/" + step;
      if (step == "0") {
        if (!at->is_array()) *at = Json::array();
        if (at->empty()) at->push_back(Json::object());
        at = &(*at)[0];
      } else {
        if (!at->is_object()) *at = Json::object();
        at = &(*at)[step];
      }
    }
    *at = std::move(value);
    all_.emplace_back(name + " " + what, std::move(manifest));
  }

  void Walk(const Json& schema, const Path& path) {
    if (!schema.is_object()) return;
    const std::string type = schema.value("type", "");
    const bool either = schema.value("x-kubernetes-int-or-string", false);
    if (type != "string") Add(path, "text", "<a & \"b\">");
    if (type != "integer" && type != "number" && !either) Add(path, "number", 7);
    if (type == "integer" || type == "string" || either) Add(path, "fraction", 1.5);
    if (type == "number" || type == "integer") Add(path, "large", 1e15);
    if (type == "number" || type == "integer") Add(path, "negative", -3);
    if (type == "number" || type == "integer") Add(path, "zero", 0);
    if (type == "number") Add(path, "tiny", 1e-12);
    if (type != "boolean") Add(path, "bool", true);
    if (type != "array") Add(path, "list", Json::array({1, "x"}));
    if (type != "object") Add(path, "object", Json{{"a", 1}});
    if (type == "string") {
      Add(path, "odd", "\xC3\xA4\n\t\"\\");
      Add(path, "empty", "");
      Add(path, "long", std::string(5000, 'x'));
    }
    if (type == "array") {
      Add(path, "none", Json::array());
      Add(path, "many", Json(150, "x"));
      if (schema.contains("items")) {
        Path item = path;
        item.push_back("0");
        Walk(schema["items"], item);
      }
    }
    if (type != "object") return;
    Add(path, "unknown", Json{{"noSuchField", 1}, {"another", {1}}});
    Add(path, "nothing", Json::object());
    if (!schema.contains("properties")) return;
    for (const auto& [name, field] : schema["properties"].items()) {
      Path child = path;
      child.push_back(name);
      Walk(field, child);
    }
  }

  const Json& good_;
  std::vector<std::pair<std::string, Json>> all_;
};

// What a real server says about every field of the CRDs, the embedded one says too.
TEST_P(AnswersTest, AboutEveryFieldAreThoseOfARealServer) {
  kube::TestServer embedded(kube::ServerKind::kEmbedded, clock_);
  Install(embedded);
  Caller caller(server_);
  Caller reference(embedded);
  size_t refused = 0;
  size_t tried = 0;
  size_t asked = 0;
  const std::pair<const char*, const char*> kinds[] = {{"trainingjobs.yaml", "job-full"},
                                                       {"resourcepools.yaml", "pool-minimal"}};
  for (const auto& [file, good] : kinds) {
    const Json crd = LoadYaml(std::string("deploy/crds/") + file);
    const Json manifest = LoadYaml(std::string("tests/data/manifests/good/") + good + ".yaml");
    const Json& spec = kube::ValueAt(crd, "/spec/versions/0/schema/openAPIV3Schema/properties/spec");
    const WrongFields fields(spec, manifest);
    for (const auto& [name, wrong] : fields.all()) {
      const kube::Object object(wrong);
      ++tried;
      if (!server_.real() && tried % 10 != 0) continue;  // here only that each is refused
      ++asked;
      const std::string answer = Comparable(caller.Answer(object, {}));
      refused += answer.empty() ? 0 : 1;
      if (!server_.real()) continue;
      EXPECT_EQ(answer, Comparable(reference.Answer(object, {}))) << name;
    }
  }
  EXPECT_GT(refused, asked * 8 / 10) << asked;
  EXPECT_GT(tried, 1000);
}

}  // namespace
}  // namespace medley::ops
