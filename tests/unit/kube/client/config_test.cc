#include "kube/client/config.h"
#include "common/base/testing/temp_dir.h"

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
- {name: provider, context: {cluster: k, user: provider}}
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
- {name: plugin, user: {exec: {command: no-such-plugin, installHint: get it}}}
- {name: provider, user: {auth-provider: {name: gcp}}}
- {name: half, user: {client-certificate-data: Q0VSVA==}}
)";

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() : folder_(*base::MakeTempDir("kubeconfig")), path_(folder_ / "config") { Write("config", kConfig); }
  ~ConfigTest() override { base::RemoveTempDir(folder_); }
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
  EXPECT_THAT(LoadKubeconfig(path_, "plugin"), StatusIs(Code::kNotFound, HasSubstr("no-such-plugin")));
  EXPECT_THAT(LoadKubeconfig(path_, "provider"), StatusIs(Code::kUnimplemented, HasSubstr("auth-provider")));
  EXPECT_THAT(LoadKubeconfig(path_, "half"), StatusIs(Code::kInvalidArgument, HasSubstr("without a key")));
  EXPECT_THAT(LoadKubeconfig(path_, "garbled"), StatusIs(Code::kInvalidArgument, HasSubstr("base64")));
  EXPECT_THAT(LoadKubeconfig(path_, "odd"), StatusIs(Code::kInvalidArgument, HasSubstr("ftp://g")));
  EXPECT_THAT(LoadKubeconfig(folder_ / "absent"), StatusIs(Code::kNotFound));
  Write("config", "a: [b");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kInvalidArgument));
  Write("config", "just text");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kInvalidArgument));
  Write("config", "a: 1\na: 2\n");
  EXPECT_THAT(LoadKubeconfig(path_), StatusIs(Code::kInvalidArgument, HasSubstr("a: is given twice, at line 2")));
  Write("config",
        "{current-context: f, contexts: [{name: f, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: http://x}}], users: [{name: u, user: {token: 0123}}]}");
  EXPECT_THAT(LoadKubeconfig(path_),
              StatusIs(Code::kInvalidArgument, HasSubstr("users[0].user.token: must be a string, is 123")));
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

TEST_F(ConfigTest, InClusterConfigNeedsACluster) {
  const Environment empty = [](const std::string&) { return std::nullopt; };
  EXPECT_THAT(InClusterConfig(empty, folder_), StatusIs(absl::StatusCode::kFailedPrecondition));
  const Environment inside = [](const std::string& name) -> std::optional<std::string> {
    return name == "KUBERNETES_SERVICE_HOST" ? "10.0.0.1" : "443";
  };
  EXPECT_THAT(InClusterConfig(inside, folder_), StatusIs(absl::StatusCode::kNotFound));
}

// The cluster is found by the same rules as kubectl's --kubeconfig, --context, --namespace and KUBECONFIG.
class FindClusterTest : public ConfigTest {
 protected:
  absl::StatusOr<ClientConfig> Find(const KubeconfigFlags& flags = {}) {
    return FindCluster(
        flags,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto it = variables_.find(name);
          return it == variables_.end() ? std::nullopt : std::optional<std::string>(it->second);
        },
        folder_ / "root");
  }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  void EnterPod() {
    variables_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    variables_["KUBERNETES_SERVICE_PORT"] = "443";
    fs::create_directories(folder_ / "root/var/run/secrets/kubernetes.io/serviceaccount");
    Write("root/var/run/secrets/kubernetes.io/serviceaccount/token", "pod-token");
    Write("root/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "POD-CA");
    Write("root/var/run/secrets/kubernetes.io/serviceaccount/namespace", "pods");
  }
  std::map<std::string, std::string> variables_;
};

TEST_F(FindClusterTest, FlagBeatsEnvironmentBeatsHome) {
  Write("flag",
        "{current-context: f, contexts: [{name: f, context: {cluster: c}}],"
        " clusters: [{name: c, cluster: {server: http://flag}}]}");
  fs::create_directories(folder_ / ".kube");
  Write(".kube/config",
        "{current-context: h, contexts: [{name: h, context: {cluster: c}}],"
        " clusters: [{name: c, cluster: {server: http://home}}]}");
  variables_["HOME"] = folder_.string();
  EXPECT_EQ(Find()->server, "http://home");
  variables_["KUBECONFIG"] = path_.string();
  EXPECT_EQ(Find()->server, "https://1.2.3.4:6443");
  EXPECT_EQ(Find({.kubeconfig = File("flag")})->server, "http://flag");
  EXPECT_EQ(Find({.kubeconfig = File("flag"), .ns = "n"})->ns, "n");
  EXPECT_EQ(Find()->ns, "team");
  EXPECT_EQ(Find({.ns = "n"})->ns, "n");
  EXPECT_THAT(Find({.kubeconfig = File("absent")}), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(FindClusterTest, FilesOfTheEnvironmentAreMergedAndTheFirstWins) {
  fs::create_directories(folder_ / "a");
  Write("a/ca.pem", "PEM-A");
  Write("a/config",
        "{contexts: [{name: far, context: {cluster: p2, user: bob}}, {name: dev, context: "
        "{cluster: p2}}],"
        " clusters: [{name: p2, cluster: {server: https://a, certificate-authority: ca.pem}}]}");
  variables_["KUBECONFIG"] = File("a/config") + ":/no/such:" + path_.string();
  const auto far = Find({.context = "far"});
  ASSERT_THAT(far, IsOk());
  EXPECT_EQ(far->server, "https://a");
  EXPECT_EQ(far->ca_data, "PEM-A") << "relative to its own file";
  EXPECT_EQ(far->token, "secret") << "the user is of the other file";
  const auto dev = Find();
  ASSERT_THAT(dev, IsOk());
  EXPECT_EQ(dev->server, "https://a") << "current-context of the second file, context of the first";
  EXPECT_THAT(Find({.context = "none"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("it has far, dev, dev, prod")));
}

TEST_F(FindClusterTest, InAPodTheServiceAccountIsTheLastResort) {
  EnterPod();
  const auto pod = Find();
  ASSERT_THAT(pod, IsOk());
  EXPECT_EQ(pod->server, "https://10.0.0.1:443");
  EXPECT_EQ(pod->ns, "pods");
  variables_["POD_NAMESPACE"] = "mine";
  EXPECT_EQ(Find()->ns, "mine");
  variables_["KUBECONFIG"] = path_.string();
  EXPECT_EQ(Find()->server, "https://1.2.3.4:6443");
}

TEST_F(FindClusterTest, NothingNamesACluster) {
  variables_["HOME"] = File("nowhere");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--kubeconfig")));
  variables_["KUBECONFIG"] = File("nowhere");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no file of KUBECONFIG")));
  Write("empty", "");
  variables_["KUBECONFIG"] = File("empty");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--context")));
}

class PluginTest : public FindClusterTest {
 protected:
  // Loads a kubeconfig whose user's credential plugin is the shell script `script`.
  absl::StatusOr<ClientConfig> Run(const std::string& script, const std::string& more = "") {
    Write("plugin.sh", "#!/bin/sh\n" + script);
    fs::permissions(folder_ / "plugin.sh", fs::perms::owner_all);
    Write("plugin",
          "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
          " clusters: [{name: c, cluster: {server: https://c, certificate-authority-data: Q0E=}}],"
          " users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1,"
          " command: ./plugin.sh, args: [one], env: [{name: WHO, value: me}]" +
              more + "}}}]}");
    return Find({.kubeconfig = File("plugin")});
  }
};

TEST_F(PluginTest, PrintsAToken) {
  const auto config = Run(R"sh(cd "$(dirname "$0")"
n=$(cat count 2>/dev/null || echo 0)
echo $((n+1)) > count
echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"$1-$WHO-$n\"}}"
)sh");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->token, "one-me-0");
  ASSERT_TRUE(config->token_source);
  EXPECT_EQ(*config->token_source(), "one-me-1") << "asked again after a 401";
}

TEST_F(PluginTest, GetsTheClusterAndMayAnswerWithACertificate) {
  const auto config = Run(R"sh(case "$KUBERNETES_EXEC_INFO" in *'"server":"https://c"'*) ;; *) exit 3 ;; esac
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"clientCertificateData":"CERT","clientKeyData":"KEY"}}')sh",
                          ", provideClusterInfo: true");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->client_certificate_data, "CERT");
  EXPECT_EQ(config->client_key_data, "KEY");
  EXPECT_FALSE(config->token_source);
}

TEST_F(PluginTest, FailuresSayWhat) {
  using Code = absl::StatusCode;
  EXPECT_THAT(Run("exit 7"), StatusIs(Code::kFailedPrecondition, HasSubstr("exit status 7")));
  EXPECT_THAT(Run("echo hello"), StatusIs(Code::kInvalidArgument, HasSubstr("did not print an ExecCredential")));
  EXPECT_THAT(Run(R"sh(echo '{"apiVersion":"v9","kind":"ExecCredential","status":{"token":"t"}}')sh"),
              StatusIs(Code::kInvalidArgument, HasSubstr("v9")));
}

}  // namespace
}  // namespace medley::kube
