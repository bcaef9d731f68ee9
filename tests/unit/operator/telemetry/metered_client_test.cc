#include "operator/telemetry/metered_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns `status` from every call; when it is OK, an empty result.
class OneAnswer final : public kube::Client {
 public:
  absl::Status status;

  absl::StatusOr<kube::Object> Get(const kube::Resource&, const kube::Key&) override { return Answer(); }
  absl::StatusOr<kube::ObjectList> List(const kube::Resource&, const kube::ListOptions&) override {
    if (!status.ok()) return status;
    return kube::ObjectList();
  }
  absl::StatusOr<kube::Object> Create(const kube::Resource&, const kube::Object&) override { return Answer(); }
  absl::StatusOr<kube::Object> Update(const kube::Resource&, const kube::Object&, std::string_view) override {
    return Answer();
  }
  absl::StatusOr<kube::Object> Patch(const kube::Resource&, const kube::Key&, kube::PatchType, const kube::Json&,
                                     const kube::PatchOptions&, std::string_view) override {
    return Answer();
  }
  absl::Status Delete(const kube::Resource&, const kube::Key&, const kube::DeleteOptions&) override { return status; }
  absl::Status Watch(const kube::Resource&, const kube::WatchOptions&, std::stop_token,
                     const std::function<bool(kube::WatchEvent)>&) override {
    return status;
  }
  absl::StatusOr<std::string> GetRaw(std::string_view) override {
    if (!status.ok()) return status;
    return std::string();
  }
  absl::Status StreamRaw(std::string_view, std::stop_token, const std::function<bool(std::string_view)>&) override {
    return status;
  }

 private:
  absl::StatusOr<kube::Object> Answer() const {
    if (!status.ok()) return status;
    return kube::Object();
  }
};

class MeteredClientTest : public testing::Test {
 protected:
  void CallAll() {
    const kube::Resource pods = kube::resources::Pods();
    (void)client_.Get(pods, {"a", "b"});
    (void)client_.List(pods, {});
    (void)client_.Create(pods, {});
    (void)client_.Update(pods, {});
    (void)client_.Patch(pods, {"a", "b"}, kube::PatchType::kMerge, {});
    (void)client_.Delete(pods, {"a", "b"});
    (void)client_.Watch(pods, {}, {}, [](kube::WatchEvent) { return true; });
    (void)client_.GetRaw("/version");
    (void)client_.StreamRaw("/version", {}, [](std::string_view) { return true; });
  }
  OneAnswer inner_;
  base::FakeClock clock_;
  metrics::Registry registry_;
  MeteredClient client_{inner_, clock_, registry_};
};

TEST_F(MeteredClientTest, SuccessByMethod) {
  CallAll();
  const std::string page = registry_.Text();
  for (const char* line : {"rest_client_requests_total{code=\"200\",method=\"GET\"} 5\n",
                           "rest_client_requests_total{code=\"201\",method=\"POST\"} 1\n",
                           "rest_client_requests_total{code=\"200\",method=\"PUT\"} 1\n",
                           "rest_client_requests_total{code=\"200\",method=\"PATCH\"} 1\n",
                           "rest_client_requests_total{code=\"200\",method=\"DELETE\"} 1\n",
                           // Not for a watch and a stream: their duration means nothing.
                           "rest_client_request_duration_seconds_count{verb=\"GET\"} 3\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(MeteredClientTest, FailuresByCodeAndTheyArePassedOn) {
  inner_.status = kube::ErrorFromHttp(409, "", "put");
  EXPECT_THAT(client_.Update(kube::resources::Pods(), {}), base::StatusIs(absl::StatusCode::kAborted));
  inner_.status = kube::ConnectionRefused("get");
  EXPECT_THAT(client_.Get(kube::resources::Pods(), {"a", "b"}), base::StatusIs(absl::StatusCode::kUnavailable));
  const std::string page = registry_.Text();
  EXPECT_THAT(page, HasSubstr("rest_client_requests_total{code=\"409\",method=\"PUT\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rest_client_requests_total{code=\"<error>\",method=\"GET\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("code=\"200\"")));
}

}  // namespace
}  // namespace medley::ops
