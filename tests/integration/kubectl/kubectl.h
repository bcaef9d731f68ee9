// The embedded API server in this process, and the stock kubectl (from PATH) run against it.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/kube/embedded/api_server.h"
#include "common/kube/embedded/faults.h"

namespace medley::kube {

struct Output {
  int code = -1;     // exit status
  std::string text;  // stdout and stderr
};

// The CRD of these tests: widgets.test.example.com (wd), with status, scale, columns and rules.
extern const char kWidgetCrd[];

class KubectlCluster {
 public:
  // Starts the server with the CRD loaded. Dies with a sentence when there is no kubectl.
  KubectlCluster();
  ~KubectlCluster();

  // kubectl ARGS (of the shell), at most a minute. `input` goes to its standard input.
  Output Run(const std::string& args, const std::string& input = "") const;
  ApiServer& server() { return *server_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  base::SystemClock clock_;
  std::filesystem::path dir_;
  std::string kubectl_;
  mutable std::atomic<int> runs_ = 0;
  std::unique_ptr<ApiServer> server_;
};

}  // namespace medley::kube
