// Wraps every handler: response cache, admission, log line and metrics. Internal to handlers/.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>

#include "common/base/status.h"
#include "scheduler-service/handlers/handlers.h"

namespace medley::sched {

// Serializes deterministically: equal messages give equal bytes, also if they contain maps.
inline std::string CanonicalBytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

template <typename In, typename Out, typename Work>
absl::Status Handlers::Answer(const char* method, const In& in, Call& call, Out& out, Work work) {
  const base::SteadyTime begin = context_.clock.Steady();
  call.input_version = input_version();
  const std::string request = CanonicalBytes(in);
  absl::Status status;
  if (const ResultCache::Answer kept = cache_.Find(method, request, call.input_version)) {
    MEDLEY_CHECK(out.ParseFromString(*kept), "the cache contains a message that cannot be parsed");
    call.cached = call.reproducible = true;
  } else if (const auto permit = admission_.Enter(call.stop, call.deadline); !permit.ok()) {
    status = permit.status();
  } else {
    status = work(out);
    if (status.ok() && call.reproducible) cache_.Insert(method, request, call.input_version, out.SerializeAsString());
  }
  record_.Answered(method, call, status, base::ToSeconds(context_.clock.Steady() - begin));
  return status;
}

template <typename Work>
absl::Status Handlers::Read(const char* method, Call& call, Work work) {
  const base::SteadyTime begin = context_.clock.Steady();
  call.input_version = input_version();
  const absl::Status status = work();
  call.cached = status.ok();  // a plain read, so log it at debug level like a cached response
  record_.Answered(method, call, status, base::ToSeconds(context_.clock.Steady() - begin));
  return status;
}

}  // namespace medley::sched
