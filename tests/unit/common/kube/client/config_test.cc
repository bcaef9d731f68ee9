#include "common/kube/client/config.h"

#include <map>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr const char* kConfig = R"(apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: k, user: bob, namespace: team}}
- {name: prod, context: {cluster: p, user: cert}}
- {name: plugin, context: {cluster: k, user: plugin}}
- {name: lost, context: {cluster: nowhere, user: bob}}
- {name: half, context: {cluster: k, user: half}}
- {name: garbled, context: {cluster: g, user: bob}}
- {name: odd, context: {cluster: odd, user: bob}}
clusters:
- {name: k, cluster: {server: "https://1.2.3.4:6443/", certificate-authority-data: Q0E=}}
- {name: p, cluster: {server: "https://p", certificate-authority: ca.pem, insecure-skip-tls-verify: true, tls-server-name: api}}
- {name: g, cluster: {server: "https://g", certificate-authority-data: "***"}}
- {name: odd, cluster: {server: "ftp://g"}}
users:
- {name: bob, user: {token: secret}}
- {name: cert, user: {client-certificate: c.pem, client-key-data: S0VZ, tokenFile: sub/token}}
- {name: plugin, user: {exec: {command: aws}}}
- {name: half, user: {client-certificate-data: Q0VSVA==}}
)";

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() : folder_(*base::MakeTempDir("kubeconfig")), path_(folder_ / "config") {
    Write("config", kConfig);
  }
  ~ConfigTest() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_THAT(base::WriteFileAtomic(folder_ / name, text), IsOk());
  }
  const fs::path folder_;
  const fs::path path_;
};

TEST_F(ConfigTest, CurrentContext) {
  const auto config = LoadKubeconfig(path_);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->server, "https://1.2.3.4:6443");
  EXPECT_EQ(config->ca_data, "CA");
  EXPECT_EQ(config->token, "secret");
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->user_agent, "medley/0.1");
  EXPECT_FALSE(config->insecure_skip_tls_verify);
}

TEST_F(ConfigTest, FilesAreRelativeToTheKubeconfig) {
  Write("ca.pem", "PEM-CA");
  Write("c.pem", "PEM-CERT");
  const auto config = LoadKubeconfig(path_, "prod");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->ca_data, "PEM-CA");
  EXPECT_EQ(config->client_certificate_data, "PEM-CERT");
  EXPECT_EQ(config->client_key_data, "KEY");
  EXPECT_EQ(config->token_file, (folder_ / "sub/token").string());
  EXPECT_EQ(config->tls_server_name, "api");
  EXPECT_EQ(config->ns, "default");
  EXPECT_TRUE(config->insecure_skip_tls_verify);
}

TEST_F(ConfigTest, BadInputSaysWhat) {
  using Code = absl::StatusCode;
  EXPECT_THAT(LoadKubeconfig(path_, "none"), StatusIs(Code::kNotFound, HasSubstr("context 'none'")));
  EXPECT_THAT(LoadKubeconfig(path_, "lost"), StatusIs(Code::kNotFound, HasSubstr("cluster 'nowhere'")));
  EXPECT_THAT(LoadKubeconfig(path_, "prod"), StatusIs(Code::kNotFound, HasSubstr("ca.pem")));
  EXPECT_THAT(LoadKubeconfig(path_, "plugin"), StatusIs(Code::kUnimplemented, HasSubstr("exec")));
  EXPECT_THAT(LoadKubeconfig(path_, "half"), StatusIs(Code::kInvalidArgument, HasSubstr("without a key")));
  EXPECT_THAT(LoadKubeconfig(path_, "garbled"), StatusIs(Code::kInvalidArgument, HasSubstr("base64")));
  EXPECT_THAT(LoadKubeconfig(path_, "odd"), StatusIs(Code::kInvalidArgument, HasSubstr("ftp://g")));
  EXPECT_THAT(LoadKubeconfig(folder_ / "absent"), StatusIs(Code::kNotFound));
  Write("config", "a: [b");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kInvalidArgument));
  Write("config", "just text");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kInvalidArgument));
  Write("config", "contexts: 7\ncurrent-context: x\n");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kNotFound));
}

TEST_F(ConfigTest, PathIsTheFirstThatExistsOfTheEnvironment) {
  std::map<std::string, std::string> variables;
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
  variables["KUBECONFIG"] = "/no/such/file:" + path_.string() + ":/other";
  EXPECT_EQ(*KubeconfigPath(environment), path_);
  variables["KUBECONFIG"] = "/no/such/file";
  EXPECT_THAT(KubeconfigPath(environment), StatusIs(absl::StatusCode::kNotFound));
  variables.clear();
  variables["HOME"] = folder_.string();
  EXPECT_THAT(KubeconfigPath(environment), StatusIs(absl::StatusCode::kNotFound));
  fs::create_directories(folder_ / ".kube");
  Write(".kube/config", kConfig);
  EXPECT_EQ(*KubeconfigPath(environment), folder_ / ".kube/config");
}

TEST_F(ConfigTest, OutsideOfAClusterThereIsNoInClusterConfig) {
  const Environment empty = [](const std::string&) { return std::nullopt; };
  EXPECT_THAT(InClusterConfig(empty, folder_), StatusIs(absl::StatusCode::kFailedPrecondition));
  const Environment inside = [](const std::string& name) -> std::optional<std::string> {
    return name == "KUBERNETES_SERVICE_HOST" ? "10.0.0.1" : "443";
  };
  EXPECT_THAT(InClusterConfig(inside, folder_), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace medley::kube
