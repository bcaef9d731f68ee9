#include "common/base/hasher.h"

#include <fmt/core.h>
#include <xxhash.h>

#include "common/base/status.h"

namespace medley::base {

struct Hasher::State {
  XXH3_state_t* hash = XXH3_createState();
  ~State() { XXH3_freeState(hash); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  MEDLEY_CHECK(state_->hash != nullptr && XXH3_128bits_reset(state_->hash) == XXH_OK, "no memory for a hash");
}
Hasher::~Hasher() = default;

void Hasher::Add(std::string_view bytes) { XXH3_128bits_update(state_->hash, bytes.data(), bytes.size()); }

std::string Hasher::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace medley::base
