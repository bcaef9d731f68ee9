// The messages of which collectives consist.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <span>
#include <vector>

namespace medley::worker {

// Messages among `size` ranks, those between two of them in order. One thread uses an object. Errors: that of the
// connection, which is then of no more use.
class Messages {
 public:
  virtual ~Messages() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Either may wait for the other rank to call its counterpart.
  virtual absl::Status Send(int to, std::span<const std::byte> bytes) = 0;
  virtual absl::Status Receive(int from, std::span<std::byte> bytes) = 0;
  // Sends and receives at the same time, so ranks that all exchange do not wait in a circle. `out` and `in` are
  // disjoint.
  virtual absl::Status Exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) = 0;
  // Memory for `count` values, valid until the next call; its content is anything.
  virtual std::span<float> Scratch(size_t count) = 0;
  // What the collectives do with two values: to += values. Another associative and commutative operation of the same
  // size turns sums into others.
  virtual void Combine(std::span<float> to, std::span<const float> values);

  absl::Status SendValues(int to, std::span<const float> values) { return Send(to, std::as_bytes(values)); }
  absl::Status ReceiveValues(int from, std::span<float> values) {
    return Receive(from, std::as_writable_bytes(values));
  }
  absl::Status ExchangeValues(int to, std::span<const float> out, int from, std::span<float> in) {
    return Exchange(to, std::as_bytes(out), from, std::as_writable_bytes(in));
  }
};

// Some of the ranks, numbered from 0 in the order given.
class Team final : public Messages {
 public:
  // `ranks` must contain the own rank; both are borrowed.
  Team(Messages& all, std::span<const int> ranks);
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  absl::Status Send(int to, std::span<const std::byte> bytes) override { return all_.Send(At(to), bytes); }
  absl::Status Receive(int from, std::span<std::byte> bytes) override { return all_.Receive(At(from), bytes); }
  absl::Status Exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    return all_.Exchange(At(to), out, At(from), in);
  }
  std::span<float> Scratch(size_t count) override { return all_.Scratch(count); }
  void Combine(std::span<float> to, std::span<const float> values) override { all_.Combine(to, values); }

 private:
  int At(int member) const { return ranks_[static_cast<size_t>(member)]; }

  Messages& all_;
  const std::span<const int> ranks_;
  int rank_ = 0;
};

}  // namespace medley::worker
