// A stock kubectl against an API server: the commands of a user, and what kubectl prints.
#include "tests/integration/kubectl/kubectl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

namespace medley::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kWidget[] = R"(
apiVersion: test.example.com/v1
kind: Widget
metadata: {name: a, labels: {team: x}}
spec: {size: 3, parts: [{name: p, weight: 1}]}
)";

class KubectlTest : public testing::TestWithParam<ServerKind> {
 protected:
  std::string Ok(const std::string& args, const std::string& input = "") {
    const Output output = cluster_.Run(args, input);
    EXPECT_EQ(output.code, 0) << "kubectl " << args << "\n" << output.text;
    return output.text;
  }
  std::string Fails(const std::string& args, const std::string& input = "") {
    const Output output = cluster_.Run(args, input);
    EXPECT_NE(output.code, 0) << "kubectl " << args << "\n" << output.text;
    return output.text;
  }
  KubectlCluster cluster_{GetParam()};
  const std::string path_ = "/apis/test.example.com/v1/namespaces/" + cluster_.ns() + "/widgets/a";
};
INSTANTIATE_TEST_SUITE_P(On, KubectlTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(KubectlTest, DiscoversAndExplains) {
  EXPECT_THAT(Ok("api-resources"), HasSubstr("widgets"));
  EXPECT_THAT(Ok("api-versions"), HasSubstr("test.example.com/v1"));
  EXPECT_THAT(Ok("explain wd.spec.size"), HasSubstr("How big the widget is."));
  EXPECT_THAT(Ok("explain pod.spec.containers"), HasSubstr("container"));
  EXPECT_THAT(Ok("get --raw /readyz"), HasSubstr("ok"));
  // The text for people differs between the kubectl of Debian 12 (1.20) and current ones; the JSON does not.
  const std::string version = Ok("version -o json");
  EXPECT_THAT(version, AllOf(HasSubstr("\"serverVersion\""), HasSubstr("\"gitVersion\": \"v1.")));
  EXPECT_THAT(Ok("get crd"), HasSubstr("widgets.test.example.com"));
  EXPECT_THAT(Ok("wait --for=condition=Established crd/widgets.test.example.com --timeout=50s"),
              HasSubstr("condition met"));
}

// kubectl up to 1.23 checks fields itself, by version 2 of the OpenAPI document. It would refuse fields that a schema
// allows without naming them.
TEST_P(KubectlTest, FieldsThatAreLeftOpenAreNotChecked) {
  const auto document = nlohmann::json::parse(Ok("get --raw /openapi/v2"));
  const nlohmann::json::json_pointer at("/definitions/com.example.test.v1.Widget/properties/spec/properties/anything");
  ASSERT_TRUE(document.contains(at));
  EXPECT_FALSE(document[at].contains("properties")) << document[at];
  EXPECT_FALSE(document[at].contains("type")) << document[at];
  std::string widget = kWidget;
  widget.replace(widget.find("size: 3"), 7, "size: 3, anything: {path: p, more: {a: 1}}");
  EXPECT_THAT(Ok("apply -f -", widget), HasSubstr("widget.test.example.com/a created"));
}

TEST_P(KubectlTest, AppliesGetsDescribesAndDeletes) {
  EXPECT_THAT(Ok("apply -f -", kWidget), HasSubstr("widget.test.example.com/a created"));
  EXPECT_THAT(Ok("apply -f -", kWidget), HasSubstr("unchanged"));
  std::string edited = kWidget;
  edited.replace(edited.find("size: 3"), 7, "size: 4");
  EXPECT_THAT(Ok("apply -f -", edited), HasSubstr("configured"));
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.size} {.spec.colour} {.metadata.generation}'"), "4 red 2");
  EXPECT_THAT(Ok("get wd"), Not(HasSubstr("COLOUR")));
  EXPECT_THAT(Ok("get wd -o wide"), HasSubstr("COLOUR"));
  EXPECT_THAT(Ok("get wd -l team=x"), HasSubstr("a "));
  EXPECT_THAT(Ok("get wd -l team=y"), HasSubstr("No resources found"));
  EXPECT_THAT(Ok("get all"), HasSubstr("widget.test.example.com/a"));
  EXPECT_THAT(Ok("describe wd a"), HasSubstr("Size:"));
  EXPECT_THAT(Ok("delete wd a"), HasSubstr("deleted"));
  EXPECT_THAT(Fails("get wd a"), HasSubstr("Error from server (NotFound): widgets.test.example.com \"a\" not found"));
}

TEST_P(KubectlTest, RefusesWithTheServersMessages) {
  Ok("apply -f -", kWidget);
  EXPECT_THAT(Fails("patch wd a --type=merge -p '{\"spec\":{\"size\":0}}'"),
              HasSubstr("The Widget \"a\" is invalid: spec.size: Invalid value: 0: spec.size in body "
                        "should be greater than or equal to 1"));
  EXPECT_THAT(Fails("patch wd a --type=json -p "
                    "'[{\"op\":\"replace\",\"path\":\"/spec/colour\",\"value\":\"blue\"}]'"),
              HasSubstr("spec.colour: Unsupported value: \"blue\": supported values: \"red\", \"green\""));
  std::string unknown = kWidget;
  unknown.replace(unknown.find("size: 3"), 7, "size: 3, sized: 4");
  EXPECT_THAT(Fails("apply -f -", unknown), testing::ContainsRegex("unknown field .*sized"));
  EXPECT_THAT(Fails("create -f -", kWidget), HasSubstr("already exists"));
  EXPECT_THAT(Fails("create configmap Bad_Name"), HasSubstr("RFC 1123"));
  EXPECT_THAT(Fails("get wd -n nowhere x"), HasSubstr("not found"));
  EXPECT_THAT(Ok("apply --dry-run=server -f -", kWidget), HasSubstr("server dry run"));
}

TEST_P(KubectlTest, ScalesPatchesStatusAndWaits) {
  Ok("apply -f -", kWidget);
  EXPECT_THAT(Ok("scale wd/a --replicas=4"), HasSubstr("scaled"));
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.replicas}'"), "4");
  // Debian's kubectl has no --subresource.
  const std::string unversioned =
      R"({"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":9},)"
      R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})";
  EXPECT_THAT(Fails("replace --raw " + path_ + "/status -f -", unversioned),
              HasSubstr("metadata.resourceVersion: Invalid value: 0: must be specified for an update"));
  std::string status = unversioned;
  status.replace(status.find("\"name\""), 6,
                 "\"resourceVersion\":\"" + Ok("get wd a -o jsonpath='{.metadata.resourceVersion}'") + "\",\"name\"");
  Ok("replace --raw " + path_ + "/status -f -", status);
  EXPECT_THAT(Ok("wait wd/a --for=condition=Ready --timeout=50s"), HasSubstr("condition met"));
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.size} {.metadata.generation}'"), "3 2");
  EXPECT_THAT(Ok("get wd a"), HasSubstr("True"));
}

TEST_P(KubectlTest, WatchesWhileThingsChange) {
  Ok("apply -f -", kWidget);
  std::string shown;
  // A busy machine needs longer until kubectl watches.
  for (int seconds = 5; seconds <= 40 && shown.find("MODIFIED") == std::string::npos; seconds *= 2) {
    std::atomic<bool> over = false;
    std::jthread watcher([&] {
      shown = cluster_.Run("get wd -w --output-watch-events", "", seconds).text;
      over = true;
    });
    for (int i = 0; i < 8 || !over; ++i) Ok("label wd a --overwrite n=" + std::to_string(i));
  }
  EXPECT_THAT(shown, HasSubstr("ADDED"));
  EXPECT_THAT(shown, HasSubstr("MODIFIED"));
}

TEST_P(KubectlTest, EditsReplacesLabelsAndAnnotates) {
  Ok("apply -f -", kWidget);
  EXPECT_THAT(Ok("label wd a tier=gold"), HasSubstr("labeled"));
  EXPECT_THAT(Ok("annotate wd a note=yes"), HasSubstr("annotated"));
  EXPECT_THAT(Ok("get wd -l tier=gold -o name"), HasSubstr("widget.test.example.com/a"));
  ::setenv("KUBE_EDITOR", "sed -i 's/size: 3/size: 7/'", 1);
  EXPECT_THAT(Ok("edit wd a"), HasSubstr("edited"));
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.size}'"), "7");
  const std::string yaml = Ok("get wd a -o yaml");
  EXPECT_THAT(Ok("replace -f -", yaml), HasSubstr("replaced"));
  std::string stale = yaml;
  const size_t at = stale.find("resourceVersion: \"") + 18;
  stale.replace(at, stale.find('"', at) - at, "1");
  EXPECT_THAT(Fails("replace -f -", stale), HasSubstr("the object has been modified"));
}

TEST_P(KubectlTest, AppliesOnTheServerWithFieldOwnership) {
  Ok("apply --server-side --field-manager=one -f -", kWidget);
  EXPECT_THAT(Ok("get --raw " + path_), HasSubstr("\"manager\":\"one\""));
  std::string other = R"({"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},)"
                      R"("spec":{"size":5,"parts":[{"name":"q","weight":2}]}})";
  EXPECT_THAT(Fails("apply --server-side --field-manager=two -f -", other),
              HasSubstr("Apply failed with 1 conflict: conflict with \"one\""));
  Ok("apply --server-side --force-conflicts --field-manager=two -f -", other);
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.size} {.spec.parts[*].name}'"), "5 p q");
  // A field that "two" no longer applies is removed; a field of "one" stays.
  Ok("apply --server-side --field-manager=two -f -",
     R"({"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":5}})");
  EXPECT_EQ(Ok("get wd a -o jsonpath='{.spec.size} {.spec.parts[*].name}'"), "5 p");
}

TEST_P(KubectlTest, MigratesFromClientSideToServerSideApply) {
  Ok("apply -f -", kWidget);
  Ok("apply --server-side --force-conflicts -f -",
     R"({"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":5}})");
  // A kubectl without the migration leaves the fields to its client-side manager.
  EXPECT_THAT(Ok("get wd a -o jsonpath='{.spec.size} {.spec.parts}'"), testing::StartsWith("5 "));
}

TEST_P(KubectlTest, RunsPods) {
  Ok("run p --image=busybox:1 --restart=Never -- sleep 1");
  EXPECT_THAT(Ok("get pods"), HasSubstr("0/1     Pending   0"));
  EXPECT_THAT(Ok("describe pod p"), HasSubstr("Image:      busybox:1"));
  EXPECT_THAT(Ok("set image pod/p p=busybox:2"), HasSubstr("image updated"));
  EXPECT_THAT(Ok("get pod p -o jsonpath='{.spec.containers[*].image}'"), HasSubstr("busybox:2"));
  EXPECT_THAT(Ok("get pods --field-selector=status.phase=Running"), HasSubstr("No resources found"));
  EXPECT_THAT(Fails("patch pod p -p '{\"spec\":{\"restartPolicy\":\"Always\"}}'"),
              HasSubstr("pod updates may not change fields"));
  EXPECT_THAT(Ok("delete pod p"), HasSubstr("deleted"));
}

TEST_P(KubectlTest, BoundPodsStayUntilTheNodeFinishesTheirDeletion) {
  Ok("run p --image=busybox:1 --overrides='{\"spec\":{\"nodeName\":\"n1\"}}'");
  Ok("delete pod p --wait=false");
  EXPECT_THAT(Ok("get pods"), HasSubstr("Terminating"));
  Ok("delete pod p --grace-period=0 --force");
  EXPECT_THAT(Ok("get pods"), HasSubstr("No resources found"));
}

TEST_P(KubectlTest, CreatesBuiltInKindsFromProtobuf) {
  Ok("create configmap c --from-literal=key=value");
  EXPECT_EQ(Ok("get cm c -o jsonpath='{.data.key}'"), "value");
  Ok("create secret generic s --from-literal=key=value");
  EXPECT_EQ(Ok("get secret s -o jsonpath='{.data.key} {.type}'"), "dmFsdWU= Opaque");
  Ok("create quota q --hard=cpu=1,pods=2");
  EXPECT_EQ(Ok("get quota q -o jsonpath='{.spec.hard.cpu} {.spec.hard.pods}'"), "1 2");
  Ok("create service clusterip w --tcp=80:8080");
  EXPECT_EQ(Ok("get svc w -o jsonpath='{.spec.ports[0].port} {.spec.ports[0].targetPort}'"), "80 8080");
  Ok("create serviceaccount sa");
  Ok("create -f -", R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},)"
                    R"("spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})");
  EXPECT_EQ(Ok("get pdb b -o jsonpath='{.spec.minAvailable} {.spec.selector.matchLabels.a}'"), "1 b");
  EXPECT_THAT(Ok("get cm,secret,quota,svc,sa,pdb"), HasSubstr("configmap/c"));
}

TEST_P(KubectlTest, CollectsGarbageAndNamespaces) {
  const std::string other = cluster_.ns() + "-n";
  Ok("create namespace " + other);
  Ok("-n " + other + " create configmap inside --from-literal=a=b");
  EXPECT_THAT(Ok("delete namespace " + other + " --timeout=50s"), HasSubstr("deleted"));
  EXPECT_THAT(Fails("get ns " + other), HasSubstr("not found"));
  EXPECT_THAT(Fails("-n " + other + " get cm inside"), HasSubstr("not found"));
  Ok("create configmap owner");
  const std::string uid = Ok("get cm owner -o jsonpath='{.metadata.uid}'");
  const std::string child =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child","ownerReferences":[)"
      R"({"apiVersion":"v1","kind":"ConfigMap","name":"owner","blockOwnerDeletion":true,"uid":")" +
      uid + "\"}]}}";
  Ok("create -f -", child);
  Ok("delete cm owner --cascade=foreground --timeout=50s");
  EXPECT_THAT(Fails("get cm child"), HasSubstr("not found"));
}

TEST_P(KubectlTest, DeletingACrdDeletesItsObjects) {
  Ok("apply -f -", kWidget);
  Ok("delete crd widgets.test.example.com --timeout=50s");
  EXPECT_THAT(Fails("get wd"), HasSubstr("could not find the requested resource"));
  Ok("apply -f crd.yaml");
  EXPECT_THAT(Ok("get wd"), HasSubstr("No resources found"));
}

}  // namespace
}  // namespace medley::kube
