// An in-memory Kubernetes API server, complete enough for a stock kubectl, controllers and tests.
//
//   base::SystemClock clock;
//   kube::ApiServer server(clock, {.crd_paths = {"deploy/crds"}});
//   MEDLEY_RETURN_IF_ERROR(server.Start());
//   MEDLEY_RETURN_IF_ERROR(server.WriteKubeconfig(dir / "kubeconfig"));
//
// Knows no Medley type: kinds beyond the built-in ones come as CustomResourceDefinitions, from files or over the API.
// All objects are lost when it is destroyed. Of CEL rules (x-kubernetes-validations) only those that make
// fields immutable are evaluated. It serves plain HTTP/1.1 unless a certificate is given.
//
// Thread-safe. Call Start once; Stop is idempotent and joins every thread. Connections, request sizes, the window of
// changes and the buffer of each watch are limited (a slow watcher is disconnected and must list again).
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
#include "kube/object.h"

namespace medley::localcluster {

class LogReader;
namespace apiserver {
class FaultScript;
}

// What a test can observe of a request.
struct RequestSeen {
  std::string method;
  std::string path;
  std::string user_agent;
  bool watch = false;
};

struct ApiServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any free port
  // TLS with a new certificate for this machine's loopback names, which the kubeconfig contains. kubectl sends its
  // token only over TLS.
  bool self_signed = false;
  // PEM files; both empty and self_signed not set: plain HTTP.
  std::filesystem::path tls_certificate;
  std::filesystem::path tls_key;
  // PEM; if set, a client certificate signed by it authenticates the client.
  std::filesystem::path client_ca;
  // Bearer token -> user name. If this and client_ca are empty, the server makes a random token.
  std::map<std::string, std::string> tokens;
  // Every client may do everything: with pods that run as processes, run programs as this user. For tests only.
  bool allow_anonymous = false;
  // Files, or folders of .yaml/.yml/.json files, of objects created at start (CRDs and any other kind).
  std::vector<std::filesystem::path> crd_paths;
  int event_window = 1000;     // changes kept per resource; a watch from an older version gets 410
  int watch_buffer = 1000;     // events that may wait for one watcher before it is disconnected
  int max_connections = 256;   // further ones get 429
  int64_t max_body = 3 << 20;  // bytes of a request
  base::nanoseconds bookmark_interval = base::seconds(60);
  // Returns 64 random bits, for UIDs and generated names; one thread at a time calls it. Null: the operating system's.
  // Two servers with equal numbers give equal UIDs to different objects, so this is for tests only.
  std::function<uint64_t()> random;
  // The warnings with which a DELETE of this object is answered, as an admission policy's; it is deleted all the same.
  // Called by many threads at once. May be null.
  std::function<std::vector<std::string>(const kube::Object& object)> warn_of_delete;
  // Called before each request is served, by many threads at once. May be null.
  std::function<void(const RequestSeen&)> on_request;
};

class ApiServer {
 public:
  // `clock` is borrowed and must outlive this object. It stamps objects; waits on sockets use real time.
  ApiServer(base::Clock& clock, ApiServerOptions options);
  ~ApiServer();

  // Errors: Unavailable "address 127.0.0.1:6443 is in use"; InvalidArgument for an invalid certificate, CRD file
  // or option, with the file's name.
  absl::Status Start();
  void Stop();

  // Creates an object of an earlier server, as a backup is restored: it keeps its UID, creation time and status. Other
  // fields that a server sets are set anew. Errors: those of a create.
  absl::Status Restore(const kube::Object& object);

  int port() const;           // after Start
  std::string url() const;    // "http://127.0.0.1:PORT"
  std::string ca() const;     // PEM of the self-signed certificate; "": none
  std::string token() const;  // the first one; "": no token was given, and none is needed
  // Writes a kubeconfig with this token, context "medley" and namespace "default". Atomic; only the owner may read it.
  absl::Status WriteKubeconfig(const std::filesystem::path& path) const;
  // Serves pods/log from now on. Borrowed until SetLogReader(nullptr) or Stop. Without a reader pods/log is 404.
  void SetLogReader(LogReader* reader);
  // Replaces the tokens of the options, for a server that requires tokens.
  void SetTokens(std::map<std::string, std::string> tokens);

  // For tests: scripted faults, and refused connections until SetListening(true), whose errors are those of Start.
  apiserver::FaultScript& faults();
  absl::Status SetListening(bool listening);
  int64_t connections() const;  // accepted so far

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::localcluster
