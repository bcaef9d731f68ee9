#include "scheduler-service/feeds/aws_error.h"

#include <fmt/format.h>

#include <set>

#include "common/aws/xml_reader.h"
#include "common/base/status.h"
#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

absl::Status StatusOfAwsReply(const FetchReply& reply, const std::string& what) {
  absl::Status plain = StatusOfReply(reply, what);
  if (plain.ok() || reply.code == 429) return plain;
  std::string code, message;
  // EC2: Response/Errors/Error/Code; STS: ErrorResponse/Error/Code.
  const absl::Status read = aws::ReadXml(
      reply.body, [](const std::string&) { return absl::OkStatus(); },
      [&](const std::string& path, std::string_view text) {
        if (code.empty() && path.ends_with("/Error/Code")) code = std::string(text);
        if (message.empty() && path.ends_with("/Error/Message")) message = std::string(text);
        return absl::OkStatus();
      });
  if (!read.ok() || code.empty()) return plain;
  const std::string full = fmt::format("{}: {}: {}", what, Quoted(code), Quoted(message));
  static const std::set<std::string> kThrottled = {"RequestLimitExceeded", "Throttling", "ThrottlingException",
                                                   "RequestThrottled"};
  static const std::set<std::string> kDenied = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException",
                                                "OptInRequired", "Blocked"};
  static const std::set<std::string> kCredentials = {"AuthFailure",
                                                     "InvalidClientTokenId",
                                                     "ExpiredToken",
                                                     "ExpiredTokenException",
                                                     "RequestExpired",
                                                     "SignatureDoesNotMatch",
                                                     "InvalidIdentityToken",
                                                     "UnrecognizedClientException",
                                                     "InvalidAccessKeyId",
                                                     "IncompleteSignature",
                                                     "MissingAuthenticationToken"};
  if (kThrottled.contains(code)) return base::MakeStatus(absl::StatusCode::kResourceExhausted, full);
  if (kDenied.contains(code)) return base::MakeStatus(absl::StatusCode::kPermissionDenied, full);
  if (kCredentials.contains(code)) return base::MakeStatus(absl::StatusCode::kUnauthenticated, full);
  return base::MakeStatus(plain.code(), full);
}

}  // namespace medley::sched
