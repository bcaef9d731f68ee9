// Receives the observations of one coordinator over a streaming call, which is started again whenever it ends. A stream
// has no thread of its own: one StreamLoop serves the streams of all jobs, of which there may be thousands.
//
//   Call --connected, started--> Read --an observation--> Read ...
//     ^                           | ended
//     +---- pause ---- Finish <---+
//
// A call waits until its channel is connected; the channel reconnects with its own backoff.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace grpc {
class Channel;
}
namespace medley::job::v1 {
class Observation;
}

namespace medley::ops {

// The thread that serves the streams. Must outlive them. Thread-safe.
class StreamLoop {
 public:
  StreamLoop();
  ~StreamLoop();

 private:
  friend class ObservationStream;
  class Queue;
  const std::unique_ptr<Queue> queue_;
};

class ObservationStream {
 public:
  // Called from the loop's thread, which all streams share, so it must not block. `first`: the first of its call.
  using OnObservation = std::function<void(const job::v1::Observation& observation, bool first)>;
  ObservationStream(StreamLoop& loop, std::shared_ptr<grpc::Channel> channel, std::string token, uint64_t seed,
                    OnObservation on_observation);
  // Cancels the call and waits until no callback runs. Must not be called from a callback.
  ~ObservationStream();

 private:
  friend class StreamLoop;
  class Steps;
  const std::unique_ptr<Steps> steps_;
};

}  // namespace medley::ops
