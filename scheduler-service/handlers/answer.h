// Wraps every handler: response cache, admission, log line and metrics. Internal to handlers/.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <tuple>

#include "common/base/status.h"
#include "scheduler-service/handlers/finite.h"
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

// The memory of a request while it waits and runs: the message, its domain values and its canonical bytes.
inline int64_t MemoryOf(const google::protobuf::Message& in) { return 3 * static_cast<int64_t>(in.SpaceUsedLong()); }

template <typename In, typename Out, typename Work>
absl::Status Handlers::Answer(const char* method, const In& in, Call& call, Out& out, Work work) {
  const base::SteadyTime begin = context_.clock.Steady();
  call.input_version = input_version();
  const std::string request = call.tenant + '\n' + CanonicalBytes(in);
  absl::Status status;
  if (const ResultCache::Answer kept = cache_.Find(method, request, call.input_version)) {
    MEDLEY_CHECK(out.ParseFromString(*kept), "the cache contains a message that cannot be parsed");
    call.cached = call.reproducible = true;
  } else if (const RequestMemory::Share share(memory_, MemoryOf(in)); !share) {
    status = base::ResourceExhausted("the requests that are being processed are too large together: try again later");
  } else {
    status = Admitted(in, call, out, std::move(work));
    if (const std::string where = status.ok() ? NotFinite(out) : ""; !where.empty()) {
      out.Clear();
      status = base::InvalidArgument(
          "the numbers of the request are too large or too small: {} of the answer would not be finite", where);
    }
    if (status.ok() && call.reproducible) cache_.Insert(method, request, call.input_version, out.SerializeAsString());
  }
  GiveMemoryBack(request.size());
  record_.Answered(method, call, status, base::ToSeconds(context_.clock.Steady() - begin));
  return status;
}

template <typename In, typename Out, typename Work>
absl::Status Handlers::Admitted(const In& in, Call& call, Out& out, Work work) {
  Cost cost = CostOf(in);
  if (call.from_operator) cost.cost = CostClass::kOperator;
  // A request that takes longer than it looked begins anew in the next class.
  for (const auto& [is, limit, next] : {std::tuple{CostClass::kTiny, options_.max_tiny, CostClass::kCheap},
                                        std::tuple{CostClass::kCheap, options_.max_cheap, CostClass::kExpensive}}) {
    if (cost.cost != is) continue;
    MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, admission_.Enter(cost, call.stop, call.deadline));
    const base::SteadyTime end = context_.clock.Steady() + limit;
    const absl::Status status = work(out, end);
    const bool cut_short = absl::IsDeadlineExceeded(status) || (status.ok() && !call.reproducible);
    if (!cut_short || context_.clock.Steady() < end || call.stop.stop_requested() || end >= call.deadline)
      return status;
    cost.cost = next;
    out.Clear();
  }
  MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, admission_.Enter(cost, call.stop, call.deadline));
  const absl::Status status = work(out, base::SteadyTime::max());
  if (cost.cost == CostClass::kExpensive) GiveMemoryBack(SIZE_MAX);
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
