#include "tests/unit/worker/token_check.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"

namespace medley::worker {
namespace {

grpc::StatusCode CallWithEmptyRequest(const std::string& address, const std::string& method, const std::string& token) {
  grpc::GenericStub stub(rpc::MakeChannel(address));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = token, .timeout = base::seconds(60), .wait_for_ready = true});
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(&tag);
  queue.Next(&tag, &ok);
  const grpc::Slice nothing;  // an empty message of any type
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), &tag);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, &tag);
  queue.Next(&tag, &ok);
  return status.error_code();
}

}  // namespace

void ExpectRefusedBeforeTheRequest(const std::string& address, const std::string& method) {
  grpc::GenericStub stub(rpc::MakeChannel(address));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = "wrong", .timeout = base::seconds(60), .wait_for_ready = true});
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(&tag);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, &tag);
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method << ": " << status.error_message();
}

void ExpectEveryMethodNeedsTheToken(const std::string& address, const google::protobuf::FileDescriptor& file,
                                    int methods) {
  int called = 0;
  for (int s = 0; s < file.service_count(); ++s) {
    const auto* service = file.service(s);
    for (int m = 0; m < service->method_count(); ++m, ++called) {
      const std::string method = "/" + service->full_name() + "/" + service->method(m)->name();
      for (const char* token : {"", "wrong"}) {
        EXPECT_EQ(CallWithEmptyRequest(address, method, token), grpc::StatusCode::UNAUTHENTICATED)
            << method << " with token '" << token << "'";
      }
    }
  }
  EXPECT_EQ(called, methods);
}

}  // namespace medley::worker
