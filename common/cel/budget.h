// How much work an evaluation may do.
#pragma once

#include <cstdint>

namespace medley::cel {

// In units like those of Kubernetes: about 1 for each operation, and 1 for every ten bytes of text that is read.
class Budget {
 public:
  explicit Budget(uint64_t units) : left_(units) {}
  // False, now and from then on: it is spent.
  bool Spend(uint64_t units) {
    spent_out_ = spent_out_ || units > left_;
    left_ -= spent_out_ ? 0 : units;
    return !spent_out_;
  }
  bool spent_out() const { return spent_out_; }
  uint64_t left() const { return left_; }

 private:
  uint64_t left_;
  bool spent_out_ = false;
};

}  // namespace medley::cel
