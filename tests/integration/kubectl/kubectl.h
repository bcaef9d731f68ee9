// An API server, and the stock kubectl (from PATH, or MEDLEY_KUBECTL) for it, in a namespace of the test's own.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {

struct Output {
  int code = -1;     // exit status
  std::string text;  // stdout and stderr
};

class KubectlCluster {
 public:
  // Writes crd.yaml into the folder and installs it in the server. Ends the test program if there is no kubectl.
  explicit KubectlCluster(ServerKind kind);
  ~KubectlCluster();

  // Runs kubectl with these arguments (of the shell) for at most `seconds`. `input` is its standard input.
  Output Run(const std::string& args, const std::string& input = "", int seconds = 60) const;
  const std::string& ns() const { return server_->ns(); }
  localcluster::ApiServer& embedded() { return *server_->embedded(); }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  base::SystemClock clock_;
  std::filesystem::path dir_;
  std::string kubectl_;
  mutable std::atomic<int> runs_ = 0;
  std::unique_ptr<TestServer> server_;
};

}  // namespace medley::kube
