#include "tests/integration/kubectl/kubectl.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"

namespace medley::kube {

KubectlCluster::KubectlCluster(ServerKind kind) {
  const char* given = std::getenv("MEDLEY_KUBECTL");
  kubectl_ = given != nullptr ? given : "kubectl";
  const std::string probe = "command -v '" + kubectl_ + "' >/dev/null 2>&1";
  MEDLEY_CHECK(std::system(probe.c_str()) == 0, "kubectl was not found: install the Debian package kubernetes-client");
  dir_ = base::MakeTempDir("medley-kubectl-").value();
  MEDLEY_CHECK(base::WriteFileAtomic(dir_ / "crd.yaml", kWidgetCrd).ok(), "cannot write the CRD");
  server_ = std::make_unique<TestServer>(kind, clock_, localcluster::ApiServerOptions{.self_signed = true});
  server_->InstallCrd(kWidgetCrd);
  server_->WriteKubeconfig(dir_ / "kubeconfig");
  // A real API server publishes a CRD's schema some time after it serves the objects, once for each version of OpenAPI.
  const bool published = server_->Eventually([&] {
    return Run("explain widgets").code == 0 &&
           Run("get --raw /openapi/v2").text.find("com.example.test.v1.Widget") != std::string::npos;
  });
  MEDLEY_CHECK(published, "the API server does not publish the schema of widgets.test.example.com");
}

KubectlCluster::~KubectlCluster() {
  server_.reset();
  base::RemoveTempDir(dir_);
}

Output KubectlCluster::Run(const std::string& args, const std::string& input, int seconds) const {
  const std::filesystem::path stdin_file = dir_ / ("stdin" + std::to_string(runs_.fetch_add(1)));
  std::ofstream(stdin_file) << input;
  // HOME: kubectl caches discovery below it.
  const std::string command = "cd '" + dir_.string() + "' && HOME=. KUBECONFIG=kubeconfig timeout " +
                              std::to_string(seconds) + " '" + kubectl_ + "' " + args + " < " +
                              stdin_file.filename().string() + " 2>&1";
  Output output;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return output;
}

}  // namespace medley::kube
