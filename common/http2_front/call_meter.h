// Follows the calls of one HTTP/2 connection by its frames, and decides how far the server may read.
//
// What costs the server more than its bytes is paced, not refused: opening a call waits for the budget, and frames that
// make the server answer without a call (PING, SETTINGS) or that carry nothing wait for a bucket of tokens. A client
// that keeps to the protocol never notices. A connection is closed only for what no client does: no preface, a list of
// fields without an end, more open calls than the server allows.
// Not thread-safe. Does no I/O.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/http2_front/call_budget.h"

namespace medley::http2_front {

class CallMeter {
 public:
  struct Limits {
    int max_open = 1000;  // calls
    // Frames without a call: these at once, and so many per second.
    double control_burst = 200;
    double control_per_second = 100;
    int64_t max_field_bytes = 64 << 10;  // of one list of fields
  };
  enum class Verdict { kPass, kWait, kClose };
  struct Progress {
    size_t passed = 0;  // bytes from the front that the server may read
    // kPass: the rest is an incomplete header of a frame. kWait: ask again later. kClose: see `why`.
    Verdict verdict = Verdict::kPass;
    const char* why = "";
  };

  // Borrows `budget`.
  CallMeter(const Limits& limits, CallBudget& budget, base::SteadyTime now);
  ~CallMeter();  // its open calls are abandoned
  CallMeter(const CallMeter&) = delete;
  CallMeter& operator=(const CallMeter&) = delete;

  // `bytes`: from the client, beginning with the first that did not pass before.
  Progress FromClient(std::string_view bytes, base::SteadyTime now);
  // `bytes`: the next ones from the server.
  void FromServer(std::string_view bytes, base::SteadyTime now);

  // True when the preface and the header of the first frame have been seen, which must be SETTINGS.
  bool introduced() const { return introduced_; }
  int open() const { return static_cast<int>(open_.size()); }

 private:
  struct Frame {
    uint32_t length = 0;
    uint8_t type = 0, flags = 0;
    uint32_t stream = 0;
  };
  static Frame Parse(const char* header);
  Progress Judge(const Frame& frame, base::SteadyTime now);
  void Advance(base::SteadyTime now);
  bool TakeControl(base::SteadyTime now);
  void Abandon(uint32_t stream, base::SteadyTime now);
  void FrameOfServer(std::string_view start, base::SteadyTime now);

  const Limits limits_;
  CallBudget& budget_;
  absl::flat_hash_set<uint32_t> open_;  // streams
  uint32_t last_ = 0;                   // newest stream
  bool preface_ = false;
  bool introduced_ = false;
  uint64_t skip_ = 0;  // bytes of the payload that is passing
  int64_t field_bytes_ = 0;
  double control_;  // tokens
  double abandoned_ = 0;
  base::SteadyTime looked_;
  base::SteadyTime last_now_;
  // From the server: the start of a frame, which may arrive in pieces, and the rest of its payload.
  std::array<char, 13> start_;
  size_t started_ = 0;
  uint64_t server_skip_ = 0;
};

}  // namespace medley::http2_front
