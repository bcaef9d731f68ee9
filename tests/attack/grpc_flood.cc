// Sends large messages with a wrong token to a gRPC server, as someone who knows only its address can.
//
//   grpc_flood ADDRESS METHOD CONNECTIONS CALLS MEBIBYTES [FOLDER UID]
//
// Opens CONNECTIONS connections, makes CALLS calls on each at the same time, every one with a message of MEBIBYTES, and
// prints how the calls ended as JSON: {"UNAUTHENTICATED": 128}. A call ends after 20 s at most. With the credentials of
// the job UID in FOLDER, connections have a certificate of the job; otherwise they are plain text. The token is that in
// the environment variable GRPC_FLOOD_TOKEN, or a wrong one.
#include <absl/strings/numbers.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"

namespace {

const char* NameOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "OK";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case grpc::StatusCode::UNAVAILABLE:
      return "UNAVAILABLE";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case grpc::StatusCode::UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    default:
      return "OTHER";
  }
}

// Null: the folder has no CA, or one that is not valid.
std::shared_ptr<const medley::rpc::MutualTls> CertificateOf(const std::filesystem::path& folder,
                                                            const std::string& uid) {
  namespace certificates = medley::certificates;
  const auto certificate = medley::base::ReadFile(folder / "ca.crt");
  const auto key = medley::base::ReadFile(folder / "ca.key");
  if (!certificate.ok() || !key.ok()) {
    std::fprintf(stderr, "grpc_flood: %s has no ca.crt and ca.key\n", folder.c_str());
    return nullptr;
  }
  const auto own = certificates::IssueForJob({*certificate, *key}, uid, medley::base::SystemClock().Now(),
                                             medley::base::seconds(3600));
  if (!own.ok()) {
    std::fprintf(stderr, "grpc_flood: %s\n", medley::base::ToString(own.status()).c_str());
    return nullptr;
  }
  return medley::rpc::MutualTls::FromTexts({*certificate, own->certificate, own->key}, certificates::JobName(uid));
}

struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

}  // namespace

int main(int argc, char** argv) {
  int connections = 0, calls = 0, mebibytes = 0;
  if ((argc != 6 && argc != 8) || !absl::SimpleAtoi(argv[3], &connections) || !absl::SimpleAtoi(argv[4], &calls) ||
      !absl::SimpleAtoi(argv[5], &mebibytes)) {
    std::fprintf(stderr, "usage: grpc_flood ADDRESS METHOD CONNECTIONS CALLS MEBIBYTES [FOLDER UID]\n");
    return 2;
  }
  std::shared_ptr<const medley::rpc::MutualTls> tls;
  if (argc == 8) {
    tls = CertificateOf(argv[6], argv[7]);
    if (tls == nullptr) return 1;
  }
  const char* const set = std::getenv("GRPC_FLOOD_TOKEN");
  const std::string token = set == nullptr ? "wrong" : set;
  // All messages share one slice, so this process needs little memory.
  const grpc::Slice bytes(std::string(static_cast<size_t>(mebibytes) << 20, '\0'));
  const grpc::ByteBuffer message(&bytes, 1);
  grpc::CompletionQueue queue;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<Call>> open;
  for (int c = 0; c < connections; ++c) {
    channels.push_back(
        medley::rpc::MakeChannel(argv[1], {.mutual_tls = tls, .max_message_bytes = -1, .max_send_bytes = -1}));
    grpc::GenericStub stub(channels.back());
    for (int i = 0; i < calls; ++i) {
      Call& call = *open.emplace_back(std::make_unique<Call>());
      medley::rpc::Prepare(call.context, {.token = token, .timeout = medley::base::seconds(20)});
      call.reader = stub.PrepareUnaryCall(&call.context, argv[2], message, &queue);
      call.reader->StartCall();
      call.reader->Finish(&call.response, &call.status, &call);
    }
  }
  std::map<std::string, int> ended;
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < open.size() && queue.Next(&tag, &ok); ++i) {
    ++ended[NameOf(static_cast<Call*>(tag)->status.error_code())];
  }
  queue.Shutdown();
  const char* separator = "";
  std::printf("{");
  for (const auto& [code, count] : ended) {
    std::printf("%s\"%s\": %d", separator, code.c_str(), count);
    separator = ", ";
  }
  std::printf("}\n");
  return 0;
}
