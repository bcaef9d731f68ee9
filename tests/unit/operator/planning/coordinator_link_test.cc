#include "operator/planning/coordinator_link.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "common/base/mutex.h"
#include "common/base/testing/status_matchers.h"
#include "common/certificates/job_certificates.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"
#include "common/rpc/server.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::ops {
namespace {

namespace pb = job::v1;

constexpr std::chrono::seconds kPatience(60);
constexpr char kToken[] = "token";

pb::Observation At(int64_t generation, int64_t step) {
  pb::Observation out;
  out.set_phase(pb::JOB_PHASE_TRAINING);
  out.set_generation(generation);
  out.set_step(step);
  return out;
}

// A coordinator that publishes the observations it is given, until the test ends its calls.
class Coordinator final : public pb::CoordinatorService::Service {
 public:
  grpc::Status WatchObservations(grpc::ServerContext* context, const pb::WatchObservationsRequest*,
                                 grpc::ServerWriter<pb::WatchObservationsResponse>* writer) override {
    if (grpc::Status status = rpc::Authorize(*context, kToken); !status.ok()) return status;
    base::MutexLock lock(mutex_);
    const int mine = ++calls_;
    changed_.NotifyAll();
    size_t at = 0;
    while (true) {
      for (; at < published_.size(); ++at) {
        pb::WatchObservationsResponse response;
        *response.mutable_observation() = published_[at];
        writer->Write(response);
      }
      const auto news = [&] { return at < published_.size() || ended_ >= mine || context->IsCancelled(); };
      while (!news()) changed_.WaitFor(mutex_, {}, base::milliseconds(20), news);
      if (ended_ >= mine || context->IsCancelled()) return grpc::Status::OK;
    }
  }
  void Tell(const pb::Observation& observation) {
    base::MutexLock lock(mutex_);
    published_.push_back(observation);
    changed_.NotifyAll();
  }
  void EndCalls() {
    base::MutexLock lock(mutex_);
    ended_ = calls_;
    changed_.NotifyAll();
  }
  bool WaitForCalls(int n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, kPatience, [&] { return calls_ >= n; });
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<pb::Observation> published_;
  int calls_ = 0;
  int ended_ = 0;
};

// The observations that links have published.
class Heard {
 public:
  CoordinatorLinks::OnChange Callback() {
    return [this](const kube::Key& job, bool news) {
      base::MutexLock lock(mutex_);
      heard_.emplace_back(job.name, news);
      changed_.NotifyAll();
    };
  }
  std::vector<std::pair<std::string, bool>> WaitFor(size_t n) {
    base::MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, {}, kPatience, [&] { return heard_.size() >= n; });
    return heard_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::pair<std::string, bool>> heard_;
};

class CoordinatorLinkTest : public testing::Test {
 protected:
  void Serve(int port = 0, std::shared_ptr<const rpc::MutualTls> tls = nullptr) {
    auto server = rpc::Server::Start({.port = port, .mutual_tls = std::move(tls)}, {&coordinator_});
    ASSERT_THAT(server, base::IsOk());
    server_ = std::move(*server);
  }
  Coordinator coordinator_;
  std::unique_ptr<rpc::Server> server_;
  Heard heard_;
  CoordinatorLinks links_{1, heard_.Callback()};
};

using Pair = std::pair<std::string, bool>;

TEST_F(CoordinatorLinkTest, TellsWhatTheCoordinatorSaysAndWhatOfItIsNews) {
  Serve();
  coordinator_.Tell(At(1, 10));
  coordinator_.Tell(At(1, 11));
  pb::Observation last = At(2, 12);
  last.mutable_row_tiers()->set_memory_rows(10);
  last.mutable_row_tiers()->set_disk_rows(30);
  last.mutable_row_tiers()->set_memory_bytes(1000);
  last.mutable_row_tiers()->set_disk_bytes(4000);
  last.mutable_row_tiers()->set_pulled_rows(100);
  last.mutable_row_tiers()->set_loaded_rows(20);
  last.mutable_row_tiers()->set_ahead_rows(15);
  last.mutable_row_tiers()->set_left_rows(18);
  last.mutable_row_tiers()->set_wait_seconds(0.5);
  last.mutable_device_tables()->set_place(plan::v1::TABLE_PLACE_CACHE);
  last.mutable_device_tables()->set_used_rows(50);
  last.mutable_device_tables()->set_found_rows(40);
  last.mutable_device_tables()->set_bytes_in(800);
  last.mutable_device_tables()->set_bytes_out(700);
  last.mutable_device_tables()->set_instead("The plan has more.");
  coordinator_.Tell(last);
  const auto link = links_.For({"ns", "a"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  EXPECT_THAT(heard_.WaitFor(3), testing::ElementsAre(Pair("a", true), Pair("a", false), Pair("a", true)));
  ASSERT_NE(link->latest(), nullptr);
  EXPECT_EQ(link->latest()->embedding_rows, (EmbeddingRows{10, 30, 1000, 4000, 100, 20, 15, 18, 0.5}));
  EXPECT_EQ(link->latest()->device_tables,
            (DeviceTables{model::TablePlace::kCache, 50, 40, 800, 700, "The plan has more."}));
  EXPECT_EQ(link->latest()->generation, 2);
  EXPECT_EQ(link->latest()->step, 12);
}

// As a coordinator that has the job's Secret.
std::shared_ptr<const rpc::MutualTls> TlsOfJob(const certificates::KeyPair& authority) {
  const base::SystemClock clock;
  const auto own = certificates::IssueForJob(authority, "uid", clock.Now(), std::chrono::hours(1)).value();
  return rpc::MutualTls::FromTexts({authority.certificate, own.certificate, own.key}, certificates::JobName("uid"));
}

TEST_F(CoordinatorLinkTest, EncryptsWithTheCaOfTheJobAndTrustsNoOther) {
  const base::SystemClock clock;
  const auto authority = certificates::MakeJobAuthority("uid", clock.Now()).value();
  const auto other = certificates::MakeJobAuthority("uid", clock.Now()).value();
  Serve(0, TlsOfJob(authority));
  coordinator_.Tell(At(1, 10));
  const auto stranger =
      links_.For({"ns", "stranger"}, {"uid", server_->address(), {kToken, other.certificate, other.key}}).value();
  const auto plain = links_.For({"ns", "plain"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  const auto link =
      links_.For({"ns", "a"}, {"uid", server_->address(), {kToken, authority.certificate, authority.key}}).value();
  EXPECT_THAT(heard_.WaitFor(1), testing::ElementsAre(Pair("a", true)));
  EXPECT_EQ(stranger->latest(), nullptr);
  EXPECT_EQ(plain->latest(), nullptr);
  EXPECT_EQ(stranger->Drain({"m"}, base::seconds(1), 1, {}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(CoordinatorLinkTest, ACaThatIsInvalidIsAnErrorAndNotPlainText) {
  EXPECT_FALSE(links_.For({"ns", "a"}, {"uid", "127.0.0.1:1", {kToken, "no certificate", "no key"}}).ok());
  EXPECT_EQ(links_.Find({"ns", "a"}), nullptr);
}

TEST_F(CoordinatorLinkTest, CallsAgainWhenTheCoordinatorEndsTheCall) {
  Serve();
  coordinator_.Tell(At(1, 10));
  const auto link = links_.For({"ns", "a"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  heard_.WaitFor(1);
  coordinator_.EndCalls();
  // The first of a call is news, whatever was known: the coordinator may be another.
  EXPECT_THAT(heard_.WaitFor(2), testing::ElementsAre(Pair("a", true), Pair("a", true)));
}

TEST_F(CoordinatorLinkTest, FindsACoordinatorThatComesLaterOrComesBack) {
  Serve();
  const int port = server_->port();
  const std::string address = server_->address();
  server_.reset();
  const auto link = links_.For({"ns", "a"}, {"uid", address, {kToken, "", ""}}).value();
  coordinator_.Tell(At(1, 10));
  for (size_t n = 1; n <= 2; ++n) {
    Serve(port);
    ASSERT_EQ(heard_.WaitFor(n).size(), n);
    server_.reset();
  }
}

TEST_F(CoordinatorLinkTest, AWrongTokenHearsNothingAndIsTriedWithPauses) {
  Serve();
  const auto refused = links_.For({"ns", "a"}, {"uid", server_->address(), {"wrong", "", ""}}).value();
  const auto link = links_.For({"ns", "b"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  coordinator_.Tell(At(1, 10));
  heard_.WaitFor(1);
  EXPECT_EQ(refused->latest(), nullptr);
  EXPECT_NE(link->latest(), nullptr);
}

TEST_F(CoordinatorLinkTest, EndsWhateverItWaitsFor) {
  Serve();
  const std::string nobody = "127.0.0.1:1";
  links_.For({"ns", "connecting"}, {"uid", nobody, {kToken, "", ""}}).value();
  links_.For({"ns", "refused"}, {"uid", server_->address(), {"wrong", "", ""}}).value();
  links_.For({"ns", "reading"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  ASSERT_TRUE(coordinator_.WaitForCalls(1));
  EXPECT_NE(links_.Find({"ns", "reading"}), nullptr);
  for (const char* job : {"connecting", "refused", "reading"}) {
    links_.Drop({"ns", job});
    EXPECT_EQ(links_.Find({"ns", job}), nullptr);
  }
  // At once again, before anything could happen.
  for (int i = 0; i < 50; ++i)
    links_.For({"ns", "a"}, {"uid", server_->address(), {"token" + std::to_string(i), "", ""}}).value();
  links_.Clear();
  EXPECT_EQ(links_.Find({"ns", "a"}), nullptr);
}

TEST_F(CoordinatorLinkTest, ManyLinksShareOneThread) {
  Serve();
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  coordinator_.Tell(At(1, 10));
  const auto one = links_.For({"ns", "first"}, {"uid", server_->address(), {kToken, "", ""}}).value();
  heard_.WaitFor(1);
  const auto before = threads();
  for (int i = 0; i < 500; ++i)
    links_.For({"ns", "away" + std::to_string(i)}, {"uid", "127.0.0.1:1", {kToken, "", ""}}).value();
  EXPECT_LT(threads(), before + 50);  // gRPC's own may come and go
  links_.Clear();
}

}  // namespace
}  // namespace medley::ops
