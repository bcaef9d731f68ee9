// Sends mutated bodies to every decoder and every kind of write: each gets an answer, and nothing crashes.
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/base/testing/fake_clock.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/builtin_schemas.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr uint64_t kSeed = 20261121;

constexpr const char* kBodies[] = {
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"},"finalizers":["x/y"],"managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}}]},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}],"terminationGracePeriodSeconds":5}})",
    R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.x.io"},"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"additionalPrinterColumns":[{"name":"N","type":"integer","jsonPath":".spec.l[?(@.a==\"b\")].c"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","minimum":1,"default":2},"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","properties":{"a":{"type":"string","pattern":"^b"}}}}}}}}}}]}})",
    R"({"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"f"},"spec":{"n":3,"l":[{"a":"b","c":1},{"a":"bb"}]},"status":{"n":1}})",
    R"({"spec":{"containers":[{"name":"c","image":"j"},{"name":"d","$patch":"delete"}],"$setElementOrder/containers":[{"name":"c"}],"$retainKeys":["containers"]}})",
    R"([{"op":"replace","path":"/spec/n","value":4},{"op":"add","path":"/spec/l/-","value":{"a":"b"}},{"op":"move","from":"/spec/l/0","path":"/spec/l/1"}])",
    R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]},"stringData":{"a":"b"},"data":{"c":"ZA=="}})",
};
constexpr const char* kScraps[] = {"null",
                                   "-1",
                                   "\"\"",
                                   "[]",
                                   "{}",
                                   "1e99",
                                   "true",
                                   "\"$patch\"",
                                   "{\"f:\":{}}",
                                   "\"\\ud800\"",
                                   "\"x-kubernetes-list-type\""};
constexpr const char* kTypes[] = {"application/json",
                                  "application/yaml",
                                  "application/merge-patch+json",
                                  "application/json-patch+json",
                                  "application/strategic-merge-patch+json",
                                  "application/apply-patch+yaml",
                                  "application/vnd.kubernetes.protobuf"};
constexpr const char* kPaths[] = {"/api/v1/namespaces/default/pods",
                                  "/api/v1/namespaces/default/pods/p",
                                  "/api/v1/namespaces/default/pods/p/status",
                                  "/api/v1/namespaces/default/pods/p/binding",
                                  "/api/v1/namespaces/default/secrets/s",
                                  "/api/v1/namespaces/default/secrets",
                                  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.x.io",
                                  "/apis/x.io/v1/namespaces/default/foos",
                                  "/apis/x.io/v1/namespaces/default/foos/f",
                                  "/apis/x.io/v1/namespaces/default/foos/f/scale",
                                  "/apis/x.io/v1/namespaces/default/foos/f/status"};

class Fuzzer {
 public:
  Fuzzer()
      : registry_(definitions_),
        store_(100, 100),
        rest_(registry_, store_, clock_, [rng = base::Rng(1)]() mutable { return rng.Next(); }),
        api_({.authenticate = false}, rest_, faults_) {
    HttpRequest ns = Request("POST", "/api/v1/namespaces");
    ns.body = R"({"metadata":{"name":"default"}})";
    EXPECT_EQ(api_.Handle(ns).code, 201);
    HttpRequest crd = Request("POST", kPaths[6]);
    crd.body = kBodies[1];
    EXPECT_EQ(api_.Handle(crd).code, 201) << api_.Handle(crd).body;
  }

  // Returns the answer's code, or 599 if the handler threw an exception (which the connection would turn into 500).
  int One() {
    static constexpr const char* kMethods[] = {"POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "GET"};
    HttpRequest request = Request(Pick(kMethods), Pick(kPaths));
    request.content_type = Pick(kTypes);
    if (request.method == "POST" || request.method == "PUT") request.content_type = kTypes[rng_.Below(2)];
    request.query = {{"fieldManager", "fuzz"}};
    if (rng_.Below(2) == 0) request.query.emplace_back("force", "true");
    if (rng_.Below(8) == 0) request.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    request.body = Mutated(Pick(kBodies));
    if (request.content_type == kTypes[6]) request.body = std::string("k8s\0", 4) + request.body;
    try {
      return api_.Handle(request).code;
    } catch (const std::exception& e) {
      ADD_FAILURE() << request.method << " " << request.path << " " << request.content_type << "\n"
                    << request.body << "\n"
                    << e.what();
      return 599;
    }
  }

 private:
  static HttpRequest Request(const char* method, const char* path) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.content_type = "application/json";
    return request;
  }
  template <typename T, size_t n>
  T Pick(T const (&from)[n]) {
    return from[rng_.Below(n)];
  }
  // Makes a few edits: replaces values, changes bytes, cuts or doubles pieces.
  std::string Mutated(std::string text) {
    for (uint64_t edits = rng_.Below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = rng_.Below(text.size());
      switch (rng_.Below(4)) {
        case 0:
          text[at] = static_cast<char>(rng_.Below(256));
          break;
        case 1:
          text.erase(at, rng_.Below(20));
          break;
        case 2:
          text.insert(at, text.substr(rng_.Below(text.size()), rng_.Below(30)));
          break;
        default: {  // the value after a colon
          const size_t colon = text.find(':', at);
          if (colon == std::string::npos) break;
          const size_t end = text.find_first_of(",}]", colon);
          if (end != std::string::npos) text.replace(colon + 1, end - colon - 1, Pick(kScraps));
        }
      }
    }
    return text;
  }

  base::Rng rng_{kSeed};
  base::FakeClock clock_;
  kube::Definitions definitions_ = BuiltinDefinitions();
  Registry registry_;
  Store store_;
  Rest rest_;
  FaultScript faults_;
  Api api_;
};

TEST(FuzzTest, TenThousandMutatedBodiesEachGetAnAnswer) {
  Fuzzer fuzzer;
  int fine = 0;
  for (int i = 0; i < 10000 && !testing::Test::HasFailure(); ++i) {
    const int code = fuzzer.One();
    EXPECT_LT(code, 500) << "seed " << kSeed << " round " << i;
    fine += code < 300;
  }
  EXPECT_GT(fine, 300) << "the mutations are too wild to test anything";
}

}  // namespace
}  // namespace medley::localcluster::apiserver
