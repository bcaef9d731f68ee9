#include "tests/integration/kube/test_server.h"

#include <map>
#include <utility>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/secrets.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

constexpr char kKubeconfig[] = "MEDLEY_TEST_KUBECONFIG";

const Resource& ServiceAccounts() {
  static const Resource kAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
  return kAccounts;
}

Json FromYaml(std::string_view yaml) {
  auto json = document::Parse(yaml);
  MEDLEY_CHECK(json.ok(), base::ToString(json.status()));
  return *std::move(json);
}

}  // namespace

const char kWidgetCrd[] = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How big the widget is.}
              replicas: {type: integer, minimum: 0, default: 1}
              colour: {type: string, enum: [red, green], default: red}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, weight: {type: integer}}
              share: {x-kubernetes-int-or-string: true}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {path: {type: string}}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
)";

std::vector<ServerKind> ServersUnderTest() {
  std::vector<ServerKind> kinds = {ServerKind::kEmbedded};
  if (ProcessEnvironment()(kKubeconfig)) kinds.push_back(ServerKind::kReal);
  return kinds;
}

std::string ServerName(const testing::TestParamInfo<ServerKind>& info) {
  return info.param == ServerKind::kReal ? "Real" : "Embedded";
}

TestServer::TestServer(ServerKind kind, base::Clock& clock, localcluster::ApiServerOptions options) {
  if (kind == ServerKind::kEmbedded) {
    if (!options.random) options.random = [rng = base::Rng(1)]() mutable { return rng.Next(); };
    embedded_ = std::make_unique<localcluster::ApiServer>(clock, std::move(options));
    const absl::Status started = embedded_->Start();
    MEDLEY_CHECK(started.ok(), base::ToString(started));
    config_.server = embedded_->url();
    config_.token = embedded_->token();
    config_.ca_data = embedded_->ca();
  } else {
    kubeconfig_ = ProcessEnvironment()(kKubeconfig).value_or("");
    auto loaded = LoadKubeconfig(kubeconfig_);
    MEDLEY_CHECK(loaded.ok(), base::ToString(loaded.status()));
    config_ = *std::move(loaded);
  }
  client_ = std::make_unique<HttpClient>(config_, clock, 1);
  MakeNamespace();
}

TestServer::~TestServer() {
  if (!real()) return;
  // No kubelet finishes the deletion of pods here.
  const auto pods = client_->List(resources::Pods(), {.ns = ns_});
  for (const Object& pod : pods.ok() ? pods->items : std::vector<Object>()) {
    if (const auto deleted = client_->Delete(resources::Pods(), pod.key(), {.grace_period_seconds = 0});
        !deleted.ok() && !IsNotFound(deleted)) {
      ADD_FAILURE() << base::ToString(deleted);
    }
  }
  const absl::Status deleted = client_->Delete(resources::Namespaces(), {"", ns_});
  EXPECT_TRUE(deleted.ok() || IsNotFound(deleted)) << base::ToString(deleted);
}

void TestServer::MakeNamespace() {
  const Json body = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"generateName", "medley-test-"}}}};
  const auto made = client_->Create(resources::Namespaces(), Object(body));
  MEDLEY_CHECK(made.ok(), base::ToString(made.status()));
  ns_ = made->key().name;
  // The server refuses pods until the default service account exists. Without controllers it does not check that.
  if (!real() || ProcessEnvironment()("MEDLEY_TEST_NO_CONTROLLERS")) return;
  const bool ready = Eventually([&] { return client_->Get(ServiceAccounts(), {ns_, "default"}).ok(); });
  MEDLEY_CHECK(ready, "the namespace " + ns_ + " has no default service account");
}

void TestServer::InstallCrd(std::string_view yaml) {
  const Object crd(FromYaml(yaml));
  const Json& spec = crd.At("/spec");
  const Resource kind{spec["group"], spec["versions"][0]["name"], spec["names"]["plural"], spec["names"]["kind"],
                      spec["scope"] == "Namespaced"};
  // Applying a large CRD costs a real API server a third of a second, also where nothing changes.
  static std::map<std::pair<std::string, std::string>, std::string> applied;  // by kubeconfig and name, by this process
  std::string& last = applied[{kubeconfig_, crd.key().name}];
  if (real() && last == yaml) {
    const auto found = client_->Get(resources::CustomResourceDefinitions(), crd.key());
    if (found.ok() && !found->deleting() && client_->List(kind, {.ns = kind.namespaced ? ns_ : ""}).ok()) return;
  }
  // A CRD of this name may still be terminating.
  const bool served = Eventually([&] {
    const auto put = client_->Patch(resources::CustomResourceDefinitions(), {"", crd.key().name}, PatchType::kApply,
                                    crd.json(), {.field_manager = "tests", .force = true});
    if (!put.ok() || put->deleting()) return false;
    bool established = false;
    for (const Json& condition : put->At("/status/conditions")) {
      established =
          established || (condition.value("type", "") == "Established" && condition.value("status", "") == "True");
    }
    return established && client_->List(kind, {.ns = kind.namespaced ? ns_ : ""}).ok();
  });
  MEDLEY_CHECK(served, "the API server does not serve the CRD " + crd.key().name);
  last = yaml;
}

void TestServer::WriteKubeconfig(const std::filesystem::path& path) const {
  if (!real()) {
    MEDLEY_CHECK(embedded_->WriteKubeconfig(path).ok(), "cannot write " + path.string());
  }
  const auto text = base::ReadFile(real() ? kubeconfig_ : path);
  MEDLEY_CHECK(text.ok(), base::ToString(text.status()));
  Json config = FromYaml(*text);
  for (Json& context : config["contexts"]) context["context"]["namespace"] = ns_;
  MEDLEY_CHECK(base::WriteSecretFile(path, config.dump()).ok(), "cannot write " + path.string());
}

bool TestServer::Eventually(const std::function<bool()>& holds, base::nanoseconds patience) {
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + patience;
  while (!holds()) {
    if (clock.Steady() > deadline) return false;
    clock.SleepFor(base::milliseconds(20), {});
  }
  return true;
}

}  // namespace medley::kube
