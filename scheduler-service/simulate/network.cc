#include "scheduler-service/simulate/network.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace medley::sched {

Network::Network(std::vector<double> cards, int messages)
    : cards_(std::move(cards)), messages_(static_cast<size_t>(messages)), out_(cards_.size()), in_(cards_.size()) {}

void Network::Start(int id, int from, int to, double bytes, double rate, double now, std::vector<Change>& changes) {
  Message& message = messages_[static_cast<size_t>(id)];
  const int version = message.version;
  message = {from, to, rate, bytes, 0, now, version};
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (from != to && cards_[f] > 0) out_[f].push_back(id);
  if (from != to && cards_[t] > 0) in_[t].push_back(id);
  Update(id, now, changes);
  Share(from, true, now, changes);
  Share(to, false, now, changes);
}

bool Network::End(int id, int version, double now, std::vector<Change>& changes) {
  Message& message = messages_[static_cast<size_t>(id)];
  if (message.version != version) return false;
  ++message.version;
  std::erase(out_[static_cast<size_t>(message.from)], id);
  std::erase(in_[static_cast<size_t>(message.to)], id);
  Share(message.from, true, now, changes);
  Share(message.to, false, now, changes);
  return true;
}

void Network::Share(int machine, bool out, double now, std::vector<Change>& changes) {
  for (const int id : (out ? out_ : in_)[static_cast<size_t>(machine)]) Update(id, now, changes);
}

void Network::Update(int id, double now, std::vector<Change>& changes) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  Message& message = messages_[static_cast<size_t>(id)];
  double rate = message.limit > 0 ? message.limit : kNoLimit;
  if (message.from != message.to) {
    const auto f = static_cast<size_t>(message.from), t = static_cast<size_t>(message.to);
    if (cards_[f] > 0) rate = std::min(rate, cards_[f] / static_cast<double>(std::max<size_t>(out_[f].size(), 1)));
    if (cards_[t] > 0) rate = std::min(rate, cards_[t] / static_cast<double>(std::max<size_t>(in_[t].size(), 1)));
  }
  if (rate == message.rate) return;
  if (message.rate > 0 && message.rate < kNoLimit) {
    message.left = std::max(0.0, message.left - message.rate * (now - message.since));
  }
  message.since = now;
  message.rate = rate;
  changes.push_back({id, ++message.version, now + (rate == kNoLimit ? 0 : message.left / rate)});
}

}  // namespace medley::sched
