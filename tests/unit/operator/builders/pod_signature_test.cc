#include "operator/builders/pod_signature.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "operator/builders/worker_env.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

const RecordKeys& SigningKeys() {
  static const RecordKeys keys({std::string(32, 'a')});
  return keys;
}

constexpr base::WallTime kSigned{base::seconds(1767225600)};  // 2026-01-01T00:00:00Z

void SetSignature(kube::Object& pod, const std::string& signature) {
  SetVariable("MEDLEY_POD_SIGNATURE", signature, pod.mutable_json()["spec"]["containers"][0]);
}
std::string DigestOf(const kube::Object& pod) {
  const std::string all = ClaimsOf(pod).signature;
  return all.substr(all.find('.') + 1);
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
         const std::string all = ClaimsOf(pod).signature;
         SetVariable("MEDLEY_POD_SIGNATURE", all.substr(0, all.size() - 1), worker(pod));
       }},
      {"of an earlier version", [&](kube::Object& pod) { SetSignature(pod, DigestOf(pod)); }},
      {"another time", [&](kube::Object& pod) { SetSignature(pod, "1767225601000." + DigestOf(pod)); }},
      {"no time", [&](kube::Object& pod) { SetSignature(pod, "." + DigestOf(pod)); }},
      {"a time with more", [&](kube::Object& pod) { SetSignature(pod, "1767225600000 ." + DigestOf(pod)); }},
      {"a time that is too large",
       [&](kube::Object& pod) { SetSignature(pod, std::string(30, '9') + "." + DigestOf(pod)); }},
  };
  for (const kube::Object& made : EachKindOfPod(ReadJob(SampleJobJson()), SamplePool(), WorkerSettings())) {
    SCOPED_TRACE(made.key().name);
    kube::Object pod = made;
    EXPECT_EQ(SignedAt(SigningKeys(), pod), std::nullopt);
    SignPod(SigningKeys(), kSigned, pod);
    EXPECT_EQ(SignedAt(SigningKeys(), pod), kSigned);
    EXPECT_EQ(SignedAt(RecordKeys({std::string(32, 'b')}), pod), std::nullopt);
    EXPECT_EQ(SignedAt(RecordKeys({std::string(32, 'b'), std::string(32, 'a')}), pod), kSigned) << "after a rotation";
    for (const auto& [what, edit] : edits) {
      kube::Object changed = pod;
      edit(changed);
      EXPECT_EQ(SignedAt(SigningKeys(), changed), std::nullopt) << what;
    }
    // What the API server and other clients add later.
    kube::Object later = pod;
    later.mutable_json()["metadata"]["uid"] = "given by the API server";
    later.SetLabel("team", "ads");
    later.mutable_json()["spec"]["nodeName"] = "n";
    EXPECT_EQ(SignedAt(SigningKeys(), later), kSigned);
  }
}

TEST(PodSignatureTest, APodIsInTimeWhenItIsCreatedAtItsSignature) {
  const std::pair<base::nanoseconds, bool> cases[] = {{-std::chrono::hours(1), false},
                                                      {-kSignedAhead - base::seconds(2), false},
                                                      {-kSignedAhead, true},
                                                      {base::seconds(0), true},
                                                      {kSignedFor, true},
                                                      {kSignedFor + base::seconds(1), false},
                                                      {std::chrono::hours(1), false}};
  for (const auto& [after, in_time] : cases) {
    const base::WallTime created = kSigned + std::chrono::duration_cast<base::seconds>(after);
    const kube::Object pod(Json{{"metadata", {{"creationTimestamp", base::FormatTime(created)}}}});
    EXPECT_EQ(IsInTime(kSigned, pod), in_time) << base::ToSeconds(after) << " s after the signature";
  }
  EXPECT_FALSE(IsInTime(kSigned, kube::Object(Json{{"metadata", {{"name", "n"}}}}))) << "nobody knows when";
}

// Any JSON that an API server may hold: the informer reads pods of everybody.
TEST(PodSignatureTest, OddPodsAreUnsigned) {
  for (const char* spec : {R"({})", R"({"containers": []})", R"({"containers": [{"name": "worker"}]})",
                           R"({"containers": [{"name": "worker", "env": [{}], "args": []}]})",
                           R"({"containers": [{"name": "worker", "env": [{"name": "MEDLEY_POD_SIGNATURE", "valueFrom":
                               {"fieldRef": {"fieldPath": "metadata.name"}}}]}]})"}) {
    kube::Object pod(kube::resources::Pods(), {"ns", "odd"});
    pod.mutable_json()["spec"] = Json::parse(spec);
    EXPECT_EQ(SignedAt(SigningKeys(), pod), std::nullopt) << spec;
  }
}

}  // namespace
}  // namespace medley::ops
