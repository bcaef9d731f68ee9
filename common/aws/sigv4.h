// Signs requests with AWS Signature Version 4: of the query APIs (EC2, STS) and of S3.
//
// Source: "Signing AWS API requests" (AWS General Reference). Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::aws {

struct Keys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty for long-term keys
};

// The parts of a request that are signed. The path starts with "/" and is used as sent; header names are not
// case-sensitive.
struct SignableRequest {
  std::string method;
  std::string host;  // with the port if it is not the scheme's default
  std::string path = "/";
  std::vector<std::pair<std::string, std::string>> query;    // not encoded
  std::vector<std::pair<std::string, std::string>> headers;  // without Host and X-Amz-*
  std::string body;
  std::string payload_hash;  // S3: the value of X-Amz-Content-Sha256, which is signed and sent; empty: of `body`
};

struct SigV4 {
  std::string canonical_request;
  std::string string_to_sign;
  std::string signature;  // 64 hex digits
  // Send these with the request: X-Amz-Date, X-Amz-Content-Sha256 (S3), X-Amz-Security-Token (if there is a session
  // token) and Authorization.
  std::vector<std::pair<std::string, std::string>> headers;
};

SigV4 SignV4(const SignableRequest& request, const Keys& keys, const std::string& region, const std::string& service,
             base::WallTime now);

// HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request"): 32 bytes.
std::string SigV4SigningKey(std::string_view secret, std::string_view date, std::string_view region,
                            std::string_view service);

// Lower-case hexadecimal: of the SHA-256 of `bytes`, and of `bytes` itself.
std::string Sha256Hex(std::string_view bytes);
std::string Hex(std::string_view bytes);

}  // namespace medley::aws
