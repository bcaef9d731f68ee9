// Sends large messages with a wrong token to a gRPC server, as someone who knows only its address can.
//
//   grpc_flood ADDRESS METHOD CONNECTIONS CALLS MEBIBYTES [MILLISECONDS]
//
// Opens CONNECTIONS connections, makes CALLS calls on each at the same time, every one with a message of MEBIBYTES, and
// prints how the calls ended as JSON: {"UNAUTHENTICATED": 128}. A call ends after MILLISECONDS (default 20000) at most.
#include <absl/strings/numbers.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "common/rpc/context.h"

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

struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

}  // namespace

int main(int argc, char** argv) {
  int connections = 0, calls = 0, mebibytes = 0, milliseconds = 20000;
  if (argc < 6 || !absl::SimpleAtoi(argv[3], &connections) || !absl::SimpleAtoi(argv[4], &calls) ||
      !absl::SimpleAtoi(argv[5], &mebibytes) || (argc > 6 && !absl::SimpleAtoi(argv[6], &milliseconds))) {
    std::fprintf(stderr, "usage: grpc_flood ADDRESS METHOD CONNECTIONS CALLS MEBIBYTES [MILLISECONDS]\n");
    return 2;
  }
  // All messages share one slice, so this process needs little memory.
  const grpc::Slice bytes(std::string(static_cast<size_t>(mebibytes) << 20, '\0'));
  const grpc::ByteBuffer message(&bytes, 1);
  grpc::CompletionQueue queue;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<Call>> open;
  for (int c = 0; c < connections; ++c) {
    channels.push_back(medley::rpc::MakeChannel(argv[1], {.max_message_bytes = -1}));
    grpc::GenericStub stub(channels.back());
    for (int i = 0; i < calls; ++i) {
      Call& call = *open.emplace_back(std::make_unique<Call>());
      medley::rpc::Prepare(
          call.context,
          {.token = "wrong", .timeout = medley::base::milliseconds(milliseconds), .wait_for_ready = true});
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
