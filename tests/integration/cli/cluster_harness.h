// An API server with Medley's CRDs and scripted objects, against which tests run the program `medley` as a user does.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "cli/cluster/connection.h"
#include "common/base/mutex.h"
#include "localcluster/apiserver/faults.h"
#include "localcluster/log_reader.h"
#include "tests/integration/kube/test_server.h"

namespace medley::cli {

struct Ended {
  int status = -1;
  std::string output;  // stdout and stderr
};

// Runs `line` in a shell in the source folder, with the programs in PATH, for at most a minute.
Ended Shell(const std::string& line);

// Serves logs that a test writes, as a kubelet does. Thread-safe.
class ScriptedLogs final : public localcluster::LogReader {
 public:
  // Appends a line, which begins with its time.
  void Write(const std::string& pod, const std::string& line);
  // The container has ended: followers get the end of the stream.
  void End(const std::string& pod);
  // Breaks the streams of followers, as a lost connection does.
  void Cut(const std::string& pod);
  absl::Status ReadLog(const kube::Key& pod, const localcluster::LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override;

 private:
  struct Log {
    std::vector<std::string> lines;
    bool ended = false;
    int cuts = 0;
  };
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, Log> logs_ ABSL_GUARDED_BY(mutex_);
};

class ClusterTest : public testing::Test {
 protected:
  explicit ClusterTest(bool installed = true);
  ~ClusterTest() override;

  // Runs medley with these arguments and this server's kubeconfig in the environment.
  Ended Medley(const std::string& arguments) { return Shell("KUBECONFIG=" + kubeconfig() + " medley " + arguments); }
  std::string kubeconfig() const { return (folder_ / "kubeconfig").string(); }
  Cluster Connected();

  // Creates the object in this test's namespace, with its status.
  void Put(const kube::Resource& resource, const kube::Object& object);
  void PutStatus(const kube::Resource& resource, const kube::Key& key, const kube::Json& status);
  // Creates the running job `adult` of tests/unit/cli/cluster/objects.h with its pools, profiles, plan and Events.
  void PutRunningJob();
  void PutPod(const std::string& name, const char* role, const char* stage, const char* state);

  base::SystemClock clock_;
  std::filesystem::path folder_;
  ScriptedLogs logs_;
  kube::TestServer server_;
};

}  // namespace medley::cli
