// Credentials that change while the program runs: the projected token of a service account, which a kubelet replaces,
// client certificates and certificate authorities.
#include <atomic>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/cache/informer.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "tests/integration/kube/certificates.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::seconds;
using base::StatusIs;

// A projected volume: "token" links through "..data" into a folder that is replaced atomically.
class ProjectedToken {
 public:
  explicit ProjectedToken(fs::path folder) : folder_(std::move(folder)) {
    fs::create_symlink("..data/token", folder_ / "token");
  }
  void Rotate(const std::string& token) {
    const std::string version = "..2026_" + std::to_string(++versions_);
    fs::create_directory(folder_ / version);
    EXPECT_THAT(base::WriteFileAtomic(folder_ / version / "token", token), IsOk());
    fs::create_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    if (!last_.empty()) base::RemoveTempDir(folder_ / last_);
    last_ = version;
  }
  std::string path() const { return (folder_ / "token").string(); }

 private:
  const fs::path folder_;
  std::string last_;
  int versions_ = 0;
};

class RotationTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("kube-rotation");
    token_ = std::make_unique<ProjectedToken>(folder_);
    token_->Rotate("first");
    localcluster::ApiServerOptions options;
    options.tokens = {{"first", "medley"}};
    options.on_request = [this](const localcluster::RequestSeen& request) {
      ++requests_;
      if (!request.watch && request.method == "GET") ++lists_;
    };
    server_ = std::make_unique<localcluster::ApiServer>(clock_, std::move(options));
    ASSERT_THAT(server_->Start(), IsOk());
    config_.server = server_->url();
    config_.token_file = token_->path();
  }
  void TearDown() override {
    server_->Stop();
    base::RemoveTempDir(folder_);
  }
  absl::Status List(HttpClient& client) { return client.List(maps_, {.ns = "default"}).status(); }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  base::FakeClock fake_;
  fs::path folder_;
  std::unique_ptr<ProjectedToken> token_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> lists_ = 0;
  std::unique_ptr<localcluster::ApiServer> server_;
  ClientConfig config_;
};

TEST_F(RotationTest, TokenRotation_WhileAnInformerRuns) {
  HttpClient client(config_, clock_, 1);
  Informer::Options options;
  options.reflector.resource = maps_;
  options.reflector.ns = "default";
  Informer informer(client, clock_, std::move(options));
  informer.Start();
  ASSERT_THAT(informer.WaitForSync(seconds(60), {}), IsOk());
  ClientConfig other = config_;
  other.token_file.clear();
  for (const std::string token : {"second", "third"}) {
    token_->Rotate(token);
    server_->SetTokens({{token, "medley"}});
    // The watch that was opened with the old token ends, as it would when the server restarts.
    ASSERT_THAT(server_->SetListening(false), IsOk());
    ASSERT_THAT(server_->SetListening(true), IsOk());
    other.token = token;
    HttpClient writer(other, clock_, 1);
    ASSERT_THAT(writer.Create(maps_, Object(maps_, {"default", token})), IsOk());
    const auto deadline = clock_.Steady() + seconds(60);
    while (informer.store().Get({"default", token}) == nullptr && clock_.Steady() < deadline) {
      clock_.SleepFor(base::milliseconds(2), {});
    }
    EXPECT_NE(informer.store().Get({"default", token}), nullptr);
  }
  EXPECT_EQ(lists_, 0);  // no 401 reached the reflector, which would have listed again (A5)
}

TEST_F(RotationTest, TokenRotation_TheFileIsReadAgainAfterAMinute) {
  HttpClient client(config_, fake_, 1);
  EXPECT_THAT(List(client), IsOk());
  token_->Rotate("second");
  fake_.Advance(seconds(59));
  EXPECT_THAT(List(client), IsOk());  // with the first token, which is still valid
  fake_.Advance(seconds(1));
  server_->SetTokens({{"second", "medley"}});
  requests_ = 0;
  EXPECT_THAT(List(client), IsOk());
  EXPECT_EQ(requests_, 1);  // the server did not have to refuse a request
}

TEST_F(RotationTest, TokenRotation_A401ReadsTheFileAgainOnce) {
  HttpClient client(config_, fake_, 1);
  EXPECT_THAT(List(client), IsOk());
  server_->SetTokens({{"third", "medley"}});
  requests_ = 0;
  EXPECT_THAT(List(client), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(requests_, 1);  // the file has not changed
  token_->Rotate("second");
  requests_ = 0;
  EXPECT_THAT(List(client), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(requests_, 2);  // one retry, not an endless loop
  token_->Rotate("third");
  requests_ = 0;
  EXPECT_THAT(List(client), IsOk());
  EXPECT_EQ(requests_, 2);
}

TEST_F(RotationTest, TokenRotation_AMissingFileLeavesTheLastToken) {
  HttpClient client(config_, fake_, 1);
  EXPECT_THAT(List(client), IsOk());
  fs::remove(folder_ / "token");
  fake_.Advance(seconds(61));
  EXPECT_THAT(List(client), IsOk());
}

class CertificateRotationTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("kube-rotation");
    Write("server", authority_.Issue("api", "IP:127.0.0.1"));
    Write("ca.crt", authority_.certificate());
    Write("me", authority_.Issue("someone", ""));
    config_.ca_file = folder_ / "ca.crt";
    config_.client_certificate_file = folder_ / "me.crt";
    config_.client_key_file = folder_ / "me.key";
  }
  void TearDown() override {
    if (server_) server_->Stop();
    base::RemoveTempDir(folder_);
  }
  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_THAT(base::WriteFileAtomic(folder_ / name, bytes), IsOk());
  }
  void Write(const std::string& name, const PemPair& pair) {
    Write(name + ".crt", pair.certificate);
    Write(name + ".key", pair.key);
  }
  void Start(int port = 0) {
    server_.reset();
    localcluster::ApiServerOptions options;
    options.port = port;
    options.tls_certificate = folder_ / "server.crt";
    options.tls_key = folder_ / "server.key";
    options.client_ca = folder_ / "ca.crt";
    server_ = std::make_unique<localcluster::ApiServer>(clock_, std::move(options));
    ASSERT_THAT(server_->Start(), IsOk());
    config_.server = server_->url();
  }
  absl::Status List(HttpClient& client) { return client.List(resources::Pods(), {.ns = "default"}).status(); }

  const TestAuthority authority_;
  base::SystemClock clock_;
  base::FakeClock fake_;
  fs::path folder_;
  ClientConfig config_;
  std::unique_ptr<localcluster::ApiServer> server_;
};

TEST_F(CertificateRotationTest, ANewClientCertificateMakesNewConnections) {
  Start();
  HttpClient client(config_, fake_, 1);
  EXPECT_THAT(List(client), IsOk());
  EXPECT_THAT(List(client), IsOk());
  EXPECT_EQ(server_->connections(), 1);
  Write("me", authority_.Issue("someone", ""));
  EXPECT_THAT(List(client), IsOk());
  EXPECT_EQ(server_->connections(), 1);
  fake_.Advance(seconds(60));
  EXPECT_THAT(List(client), IsOk());
  EXPECT_EQ(server_->connections(),
            2);  // the connection with the old certificate is not used again
}

TEST_F(CertificateRotationTest, ANewAuthorityOfTheServerIsReadWhenTheOldOneFails) {
  Start();
  HttpClient client(config_, fake_, 1);
  EXPECT_THAT(List(client), IsOk());
  const TestAuthority next("next-ca");
  Write("server", next.Issue("api", "IP:127.0.0.1"));
  Start(server_->port());
  EXPECT_THAT(List(client), StatusIs(absl::StatusCode::kFailedPrecondition));
  Write("ca.crt", authority_.certificate() + next.certificate());
  EXPECT_THAT(List(client), IsOk());  // no minute has passed
}

}  // namespace
}  // namespace medley::kube
