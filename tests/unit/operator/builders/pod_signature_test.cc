#include "operator/builders/pod_signature.h"

#include <gtest/gtest.h>

#include <functional>

#include "operator/builders/worker_env.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

const RecordKeys& SigningKeys() {
  static const RecordKeys keys({std::string(32, 'a')});
  return keys;
}

TEST(PodSignatureTest, IsThatOfThisPodOnly) {
  using Edit = std::function<void(kube::Object&)>;
  const auto worker = [](kube::Object& pod) -> Json& { return pod.mutable_json()["spec"]["containers"][0]; };
  const std::pair<const char*, Edit> edits[] = {
      {"name", [](kube::Object& pod) { pod.mutable_json()["metadata"]["name"] = "adult-9"; }},
      {"namespace", [](kube::Object& pod) { pod.mutable_json()["metadata"]["namespace"] = "evil"; }},
      {"owner", [](kube::Object& pod) { pod.mutable_json()["metadata"]["ownerReferences"][0]["uid"] = "other"; }},
      {"no owner", [](kube::Object& pod) { pod.mutable_json()["metadata"].erase("ownerReferences"); }},
      {"job", [&](kube::Object& pod) { SetVariable("MEDLEY_JOB_NAME", "other", worker(pod)); }},
      {"pool", [&](kube::Object& pod) { SetVariable("MEDLEY_POOL", "other", worker(pod)); }},
      {"role", [&](kube::Object& pod) { worker(pod)["args"] = Json::array({"--role=other"}); }},
      {"container", [&](kube::Object& pod) { worker(pod)["name"] = "mine"; }},
      {"no signature", [&](kube::Object& pod) { SetVariable("MEDLEY_POD_SIGNATURE", "", worker(pod)); }},
      {"part of it",
       [&](kube::Object& pod) {
         SetVariable("MEDLEY_POD_SIGNATURE", ClaimsOf(pod).signature.substr(0, 63), worker(pod));
       }},
  };
  for (const kube::Object& made : EachKindOfPod(ReadJob(SampleJobJson()), SamplePool(), WorkerSettings())) {
    SCOPED_TRACE(made.key().name);
    kube::Object pod = made;
    EXPECT_FALSE(IsSigned(SigningKeys(), pod));
    SignPod(SigningKeys(), pod);
    EXPECT_TRUE(IsSigned(SigningKeys(), pod));
    EXPECT_FALSE(IsSigned(RecordKeys({std::string(32, 'b')}), pod));
    EXPECT_TRUE(IsSigned(RecordKeys({std::string(32, 'b'), std::string(32, 'a')}), pod)) << "after a rotation";
    for (const auto& [what, edit] : edits) {
      kube::Object changed = pod;
      edit(changed);
      EXPECT_FALSE(IsSigned(SigningKeys(), changed)) << what;
    }
    // What the API server and other clients add later.
    kube::Object later = pod;
    later.mutable_json()["metadata"]["uid"] = "given by the API server";
    later.SetLabel("team", "ads");
    later.mutable_json()["spec"]["nodeName"] = "n";
    EXPECT_TRUE(IsSigned(SigningKeys(), later));
  }
}

// Any JSON that an API server may hold: the informer reads pods of everybody.
TEST(PodSignatureTest, OddPodsAreUnsigned) {
  for (const char* spec : {R"({})", R"({"containers": []})", R"({"containers": [{"name": "worker"}]})",
                           R"({"containers": [{"name": "worker", "env": [{}], "args": []}]})",
                           R"({"containers": [{"name": "worker", "env": [{"name": "MEDLEY_POD_SIGNATURE", "valueFrom":
                               {"fieldRef": {"fieldPath": "metadata.name"}}}]}]})"}) {
    kube::Object pod(kube::resources::Pods(), {"ns", "odd"});
    pod.mutable_json()["spec"] = Json::parse(spec);
    EXPECT_FALSE(IsSigned(SigningKeys(), pod)) << spec;
  }
}

}  // namespace
}  // namespace medley::ops
