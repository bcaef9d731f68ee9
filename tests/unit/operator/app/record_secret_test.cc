#include "operator/app/record_secret.h"

#include <gmock/gmock.h>

#include <thread>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

const kube::Key kSecret{"medley-system", "medley-operator-records"};

class RecordSecretTest : public testing::Test {
 protected:
  RecordSecretTest() {
    client_.on_get = [this](const kube::Key& key) -> absl::StatusOr<kube::Object> {
      if (!stored_ || key != kSecret) return base::NotFound("no Secret {}", key.ToString());
      return *stored_;
    };
    client_.on_create = [this](const kube::Object& secret) -> absl::StatusOr<kube::Object> {
      ++created_;
      if (stored_) return base::AlreadyExists("Secret {}", secret.key().ToString());
      stored_ = secret;
      return secret;
    };
  }
  absl::StatusOr<RecordKeys> Keys() { return EnsureRecordKeys(client_, kSecret, clock_, {}); }
  void Store(const kube::Json& data) {
    stored_.emplace(kube::resources::Secrets(), kSecret);
    stored_->mutable_json()["data"] = data;
  }

  base::FakeClock clock_;
  kube::FakeClient client_;
  std::optional<kube::Object> stored_;
  int created_ = 0;
};

kube::Object SignedMap(const RecordKeys& keys) {
  kube::Object map(kube::resources::ConfigMaps(), {"ml", "adult-plan"});
  map.mutable_json()["data"] = {{"plan.json", "{}"}};
  keys.Sign(RecordKind::kPlan, "uid", map);
  return map;
}

TEST_F(RecordSecretTest, EveryProcessBelievesTheOthers) {
  const auto first = Keys();
  const auto later = Keys();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(later, IsOk());
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(later->Check(RecordKind::kPlan, "uid", SignedMap(*first)), IsOk());
  EXPECT_FALSE(RecordKeys().Check(RecordKind::kPlan, "uid", SignedMap(*first)).ok()) << "another key";
}

TEST_F(RecordSecretTest, OfTwoReplicasThatCreateItOneWins) {
  const auto create = client_.on_create;
  client_.on_create = [&](const kube::Object& secret) {
    Store({{"key", "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3RoZXI="}});  // by the other replica, a moment before
    return create(secret);
  };
  const auto keys = Keys();
  ASSERT_THAT(keys, IsOk());
  EXPECT_THAT(RecordKeys({"otherotherotherotherotherotherother"}).Check(RecordKind::kPlan, "uid", SignedMap(*keys)),
              IsOk());
}

TEST_F(RecordSecretTest, AfterARotationRecordsOfTheEarlierKeyAreBelieved) {
  const auto before = Keys();
  const std::string old = stored_->String("/data/key");
  Store({{"key", "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3RoZXI="}, {"previous", old}});
  const auto after = Keys();
  ASSERT_THAT(after, IsOk());
  EXPECT_THAT(after->Check(RecordKind::kPlan, "uid", SignedMap(*before)), IsOk());
  EXPECT_FALSE(after->IsCurrent(RecordKind::kPlan, "uid", SignedMap(*before)));
}

TEST_F(RecordSecretTest, AKeyThatCanBeGuessedIsRefused) {
  for (const kube::Json& data :
       {kube::Json::object(), kube::Json{{"key", ""}}, kube::Json{{"key", "c2hvcnQ="}}, kube::Json{{"key", "%"}},
        kube::Json{{"key", 7}},
        kube::Json{{"key", "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3RoZXI="}, {"previous", ""}}}) {
    Store(data);
    EXPECT_THAT(Keys(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("medley-operator-records")))
        << data.dump();
  }
}

TEST_F(RecordSecretTest, AnApiServerThatDoesNotAnswerIsTriedAgain) {
  int calls = 0;
  const auto get = client_.on_get;
  client_.on_get = [&](const kube::Key& key) -> absl::StatusOr<kube::Object> {
    if (++calls == 1) return base::Unavailable("connection refused");
    return get(key);
  };
  absl::Status status = base::Internal("did not return");
  std::jthread thread([&] { status = Keys().status(); });
  EXPECT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(base::seconds(1));
  thread.join();
  EXPECT_THAT(status, IsOk());
}

TEST_F(RecordSecretTest, SaysWhichRightsAreMissing) {
  client_.on_get = [](const kube::Key&) -> absl::StatusOr<kube::Object> {
    return base::PermissionDenied("secrets is forbidden");
  };
  EXPECT_THAT(Keys(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("get and create for Secrets")));
}

}  // namespace
}  // namespace medley::ops
