// The tokens that callers may show as "authorization: Bearer TOKEN". Immutable, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace medley::sched {

class BearerTokens {
 public:
  // Nobody needs a token.
  BearerTokens() = default;
  // One token a line, empty lines are skipped; several, so that they can be exchanged without a gap. Errors: as
  // base::ReadFile; InvalidArgument for a token of fewer than 16 characters or with a character that is not visible
  // ASCII, and for a file without any.
  static absl::StatusOr<BearerTokens> Load(const std::filesystem::path& file);
  static absl::StatusOr<BearerTokens> Parse(std::string_view text);

  bool required() const { return !tokens_.empty(); }
  // True when none is needed, or `authorization` (the header's value) shows one. The time taken tells nothing of how
  // many characters were right.
  bool Allow(std::string_view authorization) const;

 private:
  std::vector<std::string> tokens_;
};

}  // namespace medley::sched
