#include "scheduler-service/handlers/request_id.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "common/base/hash.h"

namespace medley::sched {

std::string RequestIds::Choose(std::string_view callers) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (!callers.empty() && callers.size() <= 64 && std::all_of(callers.begin(), callers.end(), fits)) {
    return std::string(callers);
  }
  const uint64_t count = ++count_;
  const std::string_view bytes(reinterpret_cast<const char*>(&count), sizeof count);
  return fmt::format("{:016x}", base::Hash64(bytes, seed_));
}

}  // namespace medley::sched
