// The API server that a test runs against: always the embedded one, and a real one too if MEDLEY_TEST_KUBECONFIG names
// its kubeconfig (tests/cluster/README.md). Both have the same test bodies: where the results differ, the embedded one
// is wrong.
//
//   class MyTest : public testing::TestWithParam<ServerKind> {
//     base::SystemClock clock_;
//     TestServer server_{GetParam(), clock_};
//   };
//   INSTANTIATE_TEST_SUITE_P(On, MyTest, testing::ValuesIn(ServersUnderTest()), ServerName);
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/client/config.h"
#include "kube/client/http_client.h"
#include "localcluster/apiserver/api_server.h"

namespace medley::kube {

enum class ServerKind { kEmbedded, kReal };
std::vector<ServerKind> ServersUnderTest();
std::string ServerName(const testing::TestParamInfo<ServerKind>& info);

// The CRD of these tests: widgets.test.example.com (wd), with status, scale, columns and a schema.
extern const char kWidgetCrd[];

// Ends the test program if no server can be reached. Not thread-safe; config() may be copied.
class TestServer {
 public:
  TestServer(ServerKind kind, base::Clock& clock, localcluster::ApiServerOptions options = {});
  // On a real server: deletes the namespace with everything in it, without waiting for the end.
  ~TestServer();

  bool real() const { return embedded_ == nullptr; }
  localcluster::ApiServer* embedded() { return embedded_.get(); }  // null for a real one
  ClientConfig config() const { return config_; }
  HttpClient& client() { return *client_; }  // for the test's own requests
  // A namespace that this test alone uses.
  const std::string& ns() const { return ns_; }

  // Creates or replaces the CRD and waits until its objects can be listed.
  void InstallCrd(std::string_view yaml);
  // The kubeconfig has ns() as the namespace of its context.
  void WriteKubeconfig(const std::filesystem::path& path) const;
  // Waits until `holds` returns true, for at most `patience` of real time; returns whether it did.
  bool Eventually(const std::function<bool()>& holds, base::nanoseconds patience = base::seconds(60));

 private:
  void MakeNamespace();

  std::unique_ptr<localcluster::ApiServer> embedded_;
  std::filesystem::path kubeconfig_;  // of the real one
  ClientConfig config_;
  std::unique_ptr<HttpClient> client_;
  std::string ns_;
};

}  // namespace medley::kube
