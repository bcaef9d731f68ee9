// The frame around every handler: cache, permit, log, metrics. Internal to handlers/.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>

#include "common/base/status.h"
#include "scheduler-service/handlers/handlers.h"

namespace medley::sched {

// The same bytes for equal messages, also of those with maps.
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
    MEDLEY_CHECK(out.ParseFromString(*kept), "the cache holds what was serialised");
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
  call.cached = status.ok();  // nothing was worked out: not worth more than a debug line
  record_.Answered(method, call, status, base::ToSeconds(context_.clock.Steady() - begin));
  return status;
}

}  // namespace medley::sched
