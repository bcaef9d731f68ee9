// The hash of bytes that come in pieces: XXH3, 128 bits. Equal bytes have equal hashes, however they are divided. Not
// for secrets: it is no cryptographic hash. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace medley::base {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  void Add(std::string_view bytes);
  // The hash of what was added so far, as 32 hexadecimal digits.
  std::string Hex() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace medley::base
