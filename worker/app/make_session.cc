#include "worker/app/make_session.h"

#include <memory>
#include <utility>

#include "common/base/hash.h"
#include "common/base/rng.h"

namespace medley::worker {

SessionOptions MakeSession(const Environment& env, const JobTls& tls, std::string name, job::v1::MemberRole role,
                           std::string address) {
  SessionOptions session;
  session.coordinator = env.coordinator;
  session.address_book = std::make_shared<CoordinatorAddress>(env.coordinator, env.checkpoints);
  session.token = env.token;
  session.tls = tls.credentials();
  session.member = std::move(name);
  session.role = role;
  session.pool = env.pool;
  session.address = std::move(address);
  session.seed = base::SystemSeed();
  session.instance = base::HashHex(session.member + std::to_string(session.seed));
  return session;
}

}  // namespace medley::worker
