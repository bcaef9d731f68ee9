// The valid tokens for the header "authorization: Bearer TOKEN". Immutable, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace medley::sched {

class BearerTokens {
 public:
  // Callers need no token.
  BearerTokens() = default;
  // Reads one token per line and skips empty lines. All tokens are valid at the same time, so that they can be rotated
  // without an interruption. Errors: those of base::ReadFile; InvalidArgument for a token of fewer than 16 characters
  // or with a character that is not visible ASCII, and for a file without tokens.
  static absl::StatusOr<BearerTokens> Load(const std::filesystem::path& file);
  static absl::StatusOr<BearerTokens> Parse(std::string_view text);

  // Makes the tokens of `tokens` valid too, for the operator. Where callers need none, Allow does not change.
  void SetOperator(BearerTokens tokens) { operator_tokens_ = std::move(tokens.tokens_); }

  bool required() const { return !tokens_.empty(); }
  // True if no token is required, or if `authorization` (the header's value) has a valid one. Compares in constant
  // time, so timing reveals nothing about a token.
  bool Allow(std::string_view authorization) const;
  // Names who calls with a valid token: all who share a token are one tenant, and so is the operator. Empty if no token
  // is required. Says nothing about the token itself.
  std::string TenantOf(std::string_view authorization) const;
  // True if `authorization` has a token of the operator.
  bool FromOperator(std::string_view authorization) const;

 private:
  std::vector<std::string> tokens_;
  std::vector<std::string> operator_tokens_;
};

}  // namespace medley::sched
