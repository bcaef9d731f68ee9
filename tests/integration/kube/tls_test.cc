// TLS, bearer tokens and client certificates, from a kubeconfig as kubectl reads it.
#include <absl/strings/escaping.h>

#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "localcluster/apiserver/api_server.h"
#include "tests/integration/kube/certificates.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;

std::string Base64(const std::string& text) { return absl::Base64Escape(text); }

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("kube-tls");
    const PemPair server = authority_.Issue("api", "IP:127.0.0.1,DNS:api.test");
    Write("server.crt", server.certificate);
    Write("server.key", server.key);
    Write("ca.crt", authority_.certificate());
    localcluster::ApiServerOptions options;
    options.tls_certificate = folder_ / "server.crt";
    options.tls_key = folder_ / "server.key";
    options.client_ca = folder_ / "ca.crt";
    options.tokens = {{"good-token", "someone"}};
    server_ = std::make_unique<localcluster::ApiServer>(clock_, std::move(options));
    ASSERT_THAT(server_->Start(), IsOk());
  }
  void TearDown() override {
    server_->Stop();
    base::RemoveTempDir(folder_);
  }
  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_THAT(base::WriteFileAtomic(folder_ / name, bytes), IsOk());
  }
  absl::StatusOr<ClientConfig> Config(const std::string& cluster, const std::string& user) {
    Write("kubeconfig", fmt::format(R"(apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k, user: u, namespace: team}}}}]
clusters: [{{name: k, cluster: {{server: "{}", {}}}}}]
users: [{{name: u, user: {{{}}}}}]
)",
                                    server_->url(), cluster, user));
    return LoadKubeconfig(folder_ / "kubeconfig");
  }
  absl::Status Try(const std::string& cluster, const std::string& user) {
    auto config = Config(cluster, user);
    if (!config.ok()) return config.status();
    HttpClient client(*std::move(config), clock_, 1);
    return client.List(resources::Pods(), {.ns = "default"}).status();
  }

  const std::string ca_data_ = "certificate-authority-data: ";
  const TestAuthority authority_;
  base::SystemClock clock_;
  fs::path folder_;
  std::unique_ptr<localcluster::ApiServer> server_;
};

TEST_F(TlsTest, BearerTokenWithInlineAuthority) {
  EXPECT_TRUE(server_->url().starts_with("https://"));
  EXPECT_THAT(Try(ca_data_ + Base64(authority_.certificate()), "token: good-token"), IsOk());
  EXPECT_THAT(Try("certificate-authority: ca.crt", "token: good-token"), IsOk());
  EXPECT_THAT(Try("insecure-skip-tls-verify: true", "token: good-token"), IsOk());
  EXPECT_THAT(Try("certificate-authority: ca.crt", "token: bad-token"), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TlsTest, AnotherAuthorityOrNameIsRefused) {
  const TestAuthority impostor;  // it has the right name and another key
  EXPECT_FALSE(Try(ca_data_ + Base64(impostor.certificate()), "token: good-token").ok());
  const TestAuthority other("other-ca");
  EXPECT_THAT(Try(ca_data_ + Base64(other.certificate()), "token: good-token"),
              StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("TLS")));
  EXPECT_THAT(Try("", "token: good-token"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Try("certificate-authority: ca.crt, tls-server-name: api.test", "token: good-token"), IsOk());
  EXPECT_THAT(Try("certificate-authority: ca.crt, tls-server-name: other.test", "token: good-token"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TlsTest, ClientCertificateInlineAndFromFiles) {
  const PemPair me = authority_.Issue("someone", "");
  EXPECT_THAT(Try("certificate-authority: ca.crt",
                  "client-certificate-data: " + Base64(me.certificate) + ", client-key-data: " + Base64(me.key)),
              IsOk());
  Write("me.crt", me.certificate);
  Write("me.key", me.key);
  EXPECT_THAT(Try("certificate-authority: ca.crt", "client-certificate: me.crt, client-key: me.key"), IsOk());
  const TestAuthority other;
  const PemPair stranger = other.Issue("someone", "");
  EXPECT_FALSE(Try("certificate-authority: ca.crt", "client-certificate-data: " + Base64(stranger.certificate) +
                                                        ", client-key-data: " + Base64(stranger.key))
                   .ok());
  EXPECT_THAT(Try("certificate-authority: ca.crt", ""), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TlsTest, ARotatedTokenFileIsReadAgain) {
  Write("token", "good-token\n");
  auto config = Config("certificate-authority: ca.crt", "tokenFile: token, token: ignored");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->ns, "team");
  HttpClient client(*std::move(config), clock_, 1);
  const auto list = [&] { return client.List(resources::Pods(), {.ns = "default"}).status(); };
  EXPECT_THAT(list(), IsOk());

  Write("token", "stale\n");
  auto stale = Config("certificate-authority: ca.crt", "tokenFile: token");
  ASSERT_THAT(stale, IsOk());
  HttpClient late(*std::move(stale), clock_, 1);
  EXPECT_THAT(late.List(resources::Pods(), {.ns = "default"}), StatusIs(absl::StatusCode::kUnauthenticated));
  Write("token", "good-token\n");
  EXPECT_THAT(late.List(resources::Pods(), {.ns = "default"}), IsOk());  // read again after the 401
}

TEST_F(TlsTest, InClusterConfiguration) {
  const fs::path account = folder_ / "var/run/secrets/kubernetes.io/serviceaccount";
  fs::create_directories(account);
  ASSERT_THAT(base::WriteFileAtomic(account / "token", "good-token\n"), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(account / "ca.crt", authority_.certificate()), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(account / "namespace", "prod"), IsOk());
  const std::string port = std::to_string(server_->port());
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "KUBERNETES_SERVICE_HOST") return "127.0.0.1";
    if (name == "KUBERNETES_SERVICE_PORT") return port;
    return std::nullopt;
  };
  auto config = InClusterConfig(environment, folder_);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->ns, "prod");
  HttpClient client(*std::move(config), clock_, 1);
  EXPECT_THAT(client.List(resources::Pods(), {.ns = "default"}), IsOk());
}

TEST_F(TlsTest, WatchOverTlsEndsAtOnceByItsStopToken) {
  auto config = Config("certificate-authority: ca.crt", "token: good-token");
  ASSERT_THAT(config, IsOk());
  HttpClient client(*std::move(config), clock_, 1);
  Object map(resources::ConfigMaps(), {"default", "m"});
  ASSERT_THAT(client.Create(resources::ConfigMaps(), map), IsOk());
  std::stop_source stop;
  EXPECT_THAT(client.Watch(resources::ConfigMaps(), {.ns = "default", .resource_version = "0"}, stop.get_token(),
                           [&](WatchEvent) {
                             stop.request_stop();
                             return true;
                           }),
              IsOk());  // the server would end it after some minutes
}

}  // namespace
}  // namespace medley::kube
