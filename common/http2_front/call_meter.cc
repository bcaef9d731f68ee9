#include "common/http2_front/call_meter.h"

#include <algorithm>

namespace medley::http2_front {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeader = 9;
constexpr size_t kResetPayload = 4;
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kWindow = 8, kContinuation = 9;
constexpr uint8_t kEndStream = 1;

uint32_t Number(const char* bytes) {
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

}  // namespace

CallMeter::CallMeter(const Limits& limits, CallBudget& budget, base::SteadyTime now)
    : limits_(limits), budget_(budget), control_(limits.control_burst), looked_(now), last_now_(now) {}

CallMeter::~CallMeter() {
  if (!open_.empty()) budget_.Abandon(open(), last_now_);
}

CallMeter::Frame CallMeter::Parse(const char* header) {
  return {.length = Number(header) >> 8,
          .type = static_cast<uint8_t>(header[3]),
          .flags = static_cast<uint8_t>(header[4]),
          .stream = Number(header + 5) & 0x7fffffff};
}

CallMeter::Progress CallMeter::FromClient(std::string_view bytes, base::SteadyTime now) {
  last_now_ = std::max(last_now_, now);
  Progress progress;
  if (!preface_) {
    const std::string_view seen = bytes.substr(0, kPreface.size());
    if (seen != kPreface.substr(0, seen.size())) return {0, Verdict::kClose, "no preface of HTTP/2"};
    if (seen.size() < kPreface.size()) return progress;
    preface_ = true;
    progress.passed = kPreface.size();
  }
  while (progress.passed < bytes.size()) {
    const std::string_view rest = bytes.substr(progress.passed);
    if (skip_ > 0) {
      const auto passing = std::min<uint64_t>(skip_, rest.size());
      skip_ -= passing;
      progress.passed += static_cast<size_t>(passing);
      continue;
    }
    if (rest.size() < kFrameHeader) break;
    const Frame frame = Parse(rest.data());
    const Progress judged = Judge(frame, now);
    if (judged.verdict != Verdict::kPass) return {progress.passed, judged.verdict, judged.why};
    introduced_ = true;
    skip_ = frame.length;
    progress.passed += kFrameHeader;
  }
  return progress;
}

CallMeter::Progress CallMeter::Judge(const Frame& frame, base::SteadyTime now) {
  if (!introduced_ && frame.type != kSettings) return {0, Verdict::kClose, "the first frame is not SETTINGS"};
  if (frame.type == kHeaders || frame.type == kContinuation) {
    field_bytes_ = (frame.type == kHeaders ? 0 : field_bytes_) + frame.length;
    if (field_bytes_ > limits_.max_field_bytes) return {0, Verdict::kClose, "a list of fields is too long"};
  }
  if (frame.type == kHeaders && frame.stream > last_) {
    if (open() >= limits_.max_open) return {0, Verdict::kClose, "more calls are open than the server allows"};
    Advance(now);
    if (!budget_.Open(open(), abandoned_, now)) return {0, Verdict::kWait, "calls"};
    last_ = frame.stream;
    open_.insert(frame.stream);
    return {};
  }
  if (frame.type == kReset && open_.contains(frame.stream)) {
    Abandon(frame.stream, now);
    return {};
  }
  const bool carries = frame.type == kWindow || (frame.type == kData && (frame.length > 0 || frame.flags != 0));
  if (carries || TakeControl(now)) return {};
  return {0, Verdict::kWait, "control frames"};
}

void CallMeter::Advance(base::SteadyTime now) {
  if (now <= looked_) return;
  abandoned_ = budget_.ForgetOwn(abandoned_, now - looked_);
  control_ = std::min(limits_.control_burst, control_ + limits_.control_per_second * base::ToSeconds(now - looked_));
  looked_ = now;
}

bool CallMeter::TakeControl(base::SteadyTime now) {
  Advance(now);
  if (control_ < 1) return false;
  control_ -= 1;
  return true;
}

void CallMeter::Abandon(uint32_t stream, base::SteadyTime now) {
  open_.erase(stream);
  abandoned_ += 1;
  budget_.Abandon(1, now);
}

void CallMeter::FromServer(std::string_view bytes, base::SteadyTime now) {
  last_now_ = std::max(last_now_, now);
  while (!bytes.empty()) {
    if (server_skip_ > 0) {
      const auto passing = std::min<uint64_t>(server_skip_, bytes.size());
      server_skip_ -= passing;
      bytes.remove_prefix(static_cast<size_t>(passing));
      continue;
    }
    // A frame of the server is judged by its header and, if it is RST_STREAM, by its payload.
    const bool reset = started_ >= kFrameHeader && static_cast<uint8_t>(start_[3]) == kReset;
    const size_t want = kFrameHeader + (reset ? kResetPayload : 0);
    const size_t taken = std::min(want - started_, bytes.size());
    std::copy_n(bytes.begin(), taken, start_.begin() + static_cast<std::ptrdiff_t>(started_));
    started_ += taken;
    bytes.remove_prefix(taken);
    if (started_ < want) return;
    if (started_ == kFrameHeader && static_cast<uint8_t>(start_[3]) == kReset && Parse(start_.data()).length == 4) {
      continue;
    }
    FrameOfServer({start_.data(), started_}, now);
    started_ = 0;
  }
}

void CallMeter::FrameOfServer(std::string_view start, base::SteadyTime now) {
  const Frame frame = Parse(start.data());
  server_skip_ = frame.length - (start.size() - kFrameHeader);
  if (frame.type == kReset) {
    // NO_ERROR follows a complete answer to a request that is not complete.
    const bool clean = start.size() > kFrameHeader && Number(start.data() + kFrameHeader) == 0;
    if (!open_.contains(frame.stream)) return;
    if (!clean) return Abandon(frame.stream, now);
    open_.erase(frame.stream);
    budget_.End(1);
  } else if ((frame.type == kHeaders || frame.type == kData) && (frame.flags & kEndStream) != 0) {
    budget_.End(static_cast<int>(open_.erase(frame.stream)));
  }
}

}  // namespace medley::http2_front
