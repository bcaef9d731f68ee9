// An in-memory Kubernetes API server: real enough for a stock kubectl, controllers and tests.
//
//   base::SystemClock clock;
//   kube::ApiServer server(clock, {.crd_paths = {"deploy/crds"}});
//   MEDLEY_RETURN_IF_ERROR(server.Start());
//   MEDLEY_RETURN_IF_ERROR(server.WriteKubeconfig(dir / "kubeconfig"));
//
// Knows no Medley type: kinds beyond the built-in ones come as CustomResourceDefinitions, from files or
// over the API. Everything is lost when the object goes. CEL rules (x-kubernetes-validations) are kept
// and shown but not evaluated. Plain HTTP/1.1 unless a certificate is given.
//
// Thread-safe; Start once, Stop is idempotent and joins every thread. Bounded: connections, request
// sizes, the event window, and the buffer of each watch (a slow watcher is cut and must list again).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace medley::kube {

class LogReader;
namespace apiserver {
class FaultScript;
}

// What a test may want to know of a request.
struct RequestSeen {
  std::string method;
  std::string path;
  std::string user_agent;
  bool watch = false;
};

struct ApiServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any free one
  // PEM files; both empty: plain HTTP.
  std::filesystem::path tls_certificate;
  std::filesystem::path tls_key;
  // PEM; when set, a client certificate signed by it is a way to authenticate.
  std::filesystem::path client_ca;
  // Bearer token -> user name. Empty together with client_ca: everybody may do everything.
  std::map<std::string, std::string> tokens;
  // Files, or folders of .yaml/.yml/.json files, of objects created at start (CRDs and any other kind).
  std::vector<std::filesystem::path> crd_paths;
  int event_window = 1000;     // changes kept for each resource; a watch from before them gets 410
  int watch_buffer = 1000;     // events waiting for one watcher before it is cut
  int max_connections = 256;   // more are answered 429
  int64_t max_body = 3 << 20;  // bytes of a request
  base::nanoseconds bookmark_interval = base::seconds(60);
  uint64_t seed = 1;  // of UIDs and generated names
  // Called before each request is served, by many threads at once. Null: nobody asks.
  std::function<void(const RequestSeen&)> on_request;
};

class ApiServer {
 public:
  // `clock` is borrowed and must outlive this; it stamps objects. (Waits on sockets use real time.)
  ApiServer(base::Clock& clock, ApiServerOptions options);
  ~ApiServer();

  // Errors: FailedPrecondition "address 127.0.0.1:6443 is in use"; InvalidArgument for a bad
  // certificate, CRD file or option, with the file's name.
  absl::Status Start();
  void Stop();

  int port() const;         // after Start
  std::string url() const;  // "http://127.0.0.1:PORT"
  // A kubeconfig for the first token (if any), context "medley", namespace default. Atomic.
  absl::Status WriteKubeconfig(const std::filesystem::path& path) const;
  // Serves pods/log from now on; borrowed until SetLogReader(nullptr) or Stop. Without one: 404.
  void SetLogReader(LogReader* reader);
  // From now on these count, not those of the options; for a server that asks for them.
  void SetTokens(std::map<std::string, std::string> tokens);

  // Faults for tests: scripted ones, and connections refused until SetListening(true) (errors as Start).
  apiserver::FaultScript& faults();
  absl::Status SetListening(bool listening);
  int64_t connections() const;  // accepted so far

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::kube
