#include "cli/run/messages.h"

#include <fmt/core.h>

#include <utility>

namespace medley::cli {

void Messages::Add(double seconds, std::string line) { waiting_.push_back({seconds, false, false, std::move(line)}); }

void Messages::Warn(double seconds, std::string message) {
  waiting_.push_back({seconds, false, true, std::move(message)});
}

void Messages::AddRaw(std::string line) { waiting_.push_back({0, true, false, std::move(line)}); }

std::vector<std::string> Messages::Take(double seconds, bool over) {
  std::vector<std::string> lines;
  while (!waiting_.empty()) {
    const Message& first = waiting_.front();
    if (first.warning && !over && seconds - first.seconds < kHold) break;
    std::string text = first.warning ? once_.Rest(first.text) : first.text;
    const bool dropped = first.warning && text.empty();
    if (!dropped) lines.push_back(first.raw ? std::move(text) : fmt::format("{:6.1f} s  {}", first.seconds, text));
    waiting_.pop_front();
  }
  return lines;
}

}  // namespace medley::cli
