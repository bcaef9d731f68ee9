// The observations of one coordinator: a call that is made again whenever it ends. No thread of its own: a loop
// serves the streams of all jobs, of which there may be thousands.
//
//   Call --connected, started--> Read --an observation--> Read ...
//     ^                           | ended
//     +---- pause ---- Finish <---+
//
// A call waits for a connection, which its channel tries to make with a backoff of its own.
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

// One thread that carries on the streams. It outlives them. Thread-safe.
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
  // Called from the loop's thread, which all streams share: it must not wait. `first`: of its call.
  using OnObservation = std::function<void(const job::v1::Observation& observation, bool first)>;
  ObservationStream(StreamLoop& loop, std::shared_ptr<grpc::Channel> channel, std::string token, uint64_t seed,
                    OnObservation on_observation);
  // Cancels and waits until no callback runs; not from a callback.
  ~ObservationStream();

 private:
  friend class StreamLoop;
  class Steps;
  const std::unique_ptr<Steps> steps_;
};

}  // namespace medley::ops
