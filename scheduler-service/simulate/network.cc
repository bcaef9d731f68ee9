#include "scheduler-service/simulate/network.h"

#include <algorithm>
#include <limits>

namespace medley::sched {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The most that one of those with these limits gets when they share `rate`. Reorders `limits`.
double ShareOf(double rate, std::vector<double>& limits) {
  double sum = 0;
  for (const double limit : limits) sum += limit;
  if (sum <= rate) return kNoLimit;
  std::ranges::sort(limits);
  for (size_t i = 0; i < limits.size(); ++i) {
    const double part = rate / static_cast<double>(limits.size() - i);
    if (limits[i] >= part) return part;
    rate -= limits[i];
  }
  return kNoLimit;
}

}  // namespace

Network::Network(const std::vector<double>& cards, int messages)
    : messages_(static_cast<size_t>(messages)), sides_(2 * cards.size()) {
  for (size_t s = 0; s < sides_.size(); ++s) sides_[s] = {cards[s / 2], {}, kNoLimit};
}

void Network::Start(int id, int from, int to, double bytes, double rate, double now, std::vector<Change>& changes) {
  Message& message = messages_[static_cast<size_t>(id)];
  const int version = message.version;
  message = {from, to, rate > 0 ? rate : kNoLimit, bytes, 0, now, version};
  if (from != to) {
    for (Side* const side : {&Out(from), &In(to)}) {
      if (side->rate <= 0) continue;
      side->messages.push_back(id);
      Share(*side, now, changes);
    }
  }
  Update(id, now, changes);
}

bool Network::End(int id, int version, double now, std::vector<Change>& changes) {
  Message& message = messages_[static_cast<size_t>(id)];
  if (message.version != version) return false;
  ++message.version;
  if (message.from == message.to) return true;
  for (Side* const side : {&Out(message.from), &In(message.to)}) {
    if (std::erase(side->messages, id) > 0) Share(*side, now, changes);
  }
  return true;
}

void Network::Share(Side& side, double now, std::vector<Change>& changes) {
  limits_.clear();
  for (const int id : side.messages) limits_.push_back(messages_[static_cast<size_t>(id)].limit);
  const double most = ShareOf(side.rate, limits_);
  if (most == side.most) return;
  side.most = most;
  for (const int id : side.messages) Update(id, now, changes);
}

void Network::Update(int id, double now, std::vector<Change>& changes) {
  Message& message = messages_[static_cast<size_t>(id)];
  double rate = message.limit;
  if (message.from != message.to) rate = std::min({rate, Out(message.from).most, In(message.to).most});
  if (rate == message.rate) return;
  if (message.rate > 0 && message.rate < kNoLimit) {
    message.left = std::max(0.0, message.left - message.rate * (now - message.since));
  }
  message.since = now;
  message.rate = rate;
  changes.push_back({id, ++message.version, now + (rate == kNoLimit ? 0 : message.left / rate)});
}

}  // namespace medley::sched
