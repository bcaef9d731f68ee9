// AWS Signature Version 4 for requests with a form body (the EC2 and STS query APIs).
//
// Source: "Signing AWS API requests" (AWS General Reference). Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::sched {

struct AwsKeys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty: long-term keys
};

// What is signed. The path is "/" plus whatever follows, as sent; header names in any case.
struct SignableRequest {
  std::string method;
  std::string host;  // with its port where it is not the scheme's own
  std::string path = "/";
  std::vector<std::pair<std::string, std::string>> query;    // not encoded
  std::vector<std::pair<std::string, std::string>> headers;  // beside Host and X-Amz-*
  std::string body;
};

struct SigV4 {
  std::string canonical_request;
  std::string string_to_sign;
  std::string signature;  // 64 hex digits
  // X-Amz-Date, X-Amz-Security-Token (where there is one) and Authorization: to be sent with the
  // request.
  std::vector<std::pair<std::string, std::string>> headers;
};

SigV4 SignV4(const SignableRequest& request, const AwsKeys& keys, const std::string& region, const std::string& service,
             base::WallTime now);

// HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request"): 32 bytes.
std::string SigV4SigningKey(std::string_view secret, std::string_view date, std::string_view region,
                            std::string_view service);

// Lower-case hex of SHA-256, and of any bytes.
std::string Sha256Hex(std::string_view bytes);
std::string Hex(std::string_view bytes);

}  // namespace medley::sched
