// Messages that share network cards. Not thread-safe.
#pragma once

#include <vector>

namespace medley::sched {

// Messages that leave one card share its rate, and so do those that arrive at one: equally, except that one whose link
// is slower than its part leaves the rest to the others (max-min fairness at each card). What a message cannot use
// because of the card at its other end is not given to the others.
class Network {
 public:
  // Called whenever the end of the bytes of message `id` changes; `version` is that of the newest call.
  struct Change {
    int id = 0;
    int version = 0;
    double end = 0;
  };

  // `cards`: bytes per second by machine, 0: no limit. Messages are numbered from 0 to `messages` - 1.
  Network(const std::vector<double>& cards, int messages);

  // Starts a message that no other machine's card limits when `from` == `to`. `rate` 0: no limit.
  void Start(int id, int from, int to, double bytes, double rate, double now, std::vector<Change>& changes);
  // The bytes of a message have left, at `now`. False if `version` is out of date: nothing happens.
  bool End(int id, int version, double now, std::vector<Change>& changes);

 private:
  struct Message {
    int from = 0;
    int to = 0;
    double limit = 0;  // of its link
    double left = 0;   // bytes
    double rate = 0;
    double since = 0;  // when `left` was true
    int version = 0;
  };
  // One direction of a card.
  struct Side {
    double rate = 0;  // 0: no limit
    std::vector<int> messages;
    double most = 0;  // of one message
  };
  // Divides the rate anew.
  void Share(Side& side, double now, std::vector<Change>& changes);
  void Update(int id, double now, std::vector<Change>& changes);
  Side& Out(int machine) { return sides_[2 * static_cast<size_t>(machine)]; }
  Side& In(int machine) { return sides_[2 * static_cast<size_t>(machine) + 1]; }

  std::vector<Message> messages_;
  std::vector<Side> sides_;
  std::vector<double> limits_;  // in Share only
};

}  // namespace medley::sched
