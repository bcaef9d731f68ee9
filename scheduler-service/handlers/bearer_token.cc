#include "scheduler-service/handlers/bearer_token.h"

#include <algorithm>
#include <cctype>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/secrets.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr std::string_view kBearer = "bearer ";
constexpr size_t kMinLength = 16;
constexpr int64_t kMaxFileBytes = 64 << 10;

bool StartsWithBearer(std::string_view value) {
  return value.size() > kBearer.size() &&
         std::equal(kBearer.begin(), kBearer.end(), value.begin(),
                    [](char want, char is) { return want == std::tolower(static_cast<unsigned char>(is)); });
}

bool Has(const std::vector<std::string>& tokens, std::string_view authorization) {
  if (!StartsWithBearer(authorization)) return false;
  const std::string_view shown = authorization.substr(kBearer.size());
  bool has = false;
  for (const std::string& token : tokens) has = base::SameSecret(shown, token) || has;
  return has;
}

}  // namespace

absl::StatusOr<BearerTokens> BearerTokens::Load(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kMaxFileBytes));
  auto tokens = Parse(text);
  if (!tokens.ok()) return base::Annotate(tokens.status(), file.string());
  return tokens;
}

absl::StatusOr<BearerTokens> BearerTokens::Parse(std::string_view text) {
  BearerTokens out;
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view token = text.substr(begin, end - begin);
    if (!token.empty() && token.back() == '\r') token.remove_suffix(1);
    begin = end + 1;
    if (token.empty()) continue;
    const bool visible = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (token.size() < kMinLength || !visible) {
      return base::InvalidArgument("line {}: a token must have at least {} visible ASCII characters and no spaces",
                                   line, kMinLength);
    }
    out.tokens_.emplace_back(token);
  }
  if (out.tokens_.empty()) return base::InvalidArgument("contains no token");
  return out;
}

bool BearerTokens::Allow(std::string_view authorization) const {
  if (tokens_.empty()) return true;
  const bool common = Has(tokens_, authorization);
  return FromOperator(authorization) || common;
}

std::string BearerTokens::TenantOf(std::string_view authorization) const {
  if (FromOperator(authorization)) return "operator";
  if (tokens_.empty() || !StartsWithBearer(authorization)) return "";
  return "token " + base::HashHex(authorization.substr(kBearer.size()));
}

bool BearerTokens::FromOperator(std::string_view authorization) const { return Has(operator_tokens_, authorization); }

}  // namespace medley::sched
