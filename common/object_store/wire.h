// What object stores answer, decoded, and what they are sent. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::object_store {

struct ListedObject {
  std::string key;
  int64_t bytes = 0;
  std::string etag;  // with its quotes
  bool operator==(const ListedObject&) const = default;
};

// One page of ListObjectsV2.
struct ListingPage {
  std::vector<ListedObject> objects;
  std::vector<std::string> prefixes;  // with a delimiter: what lies below, each ending in it
  std::string next;                   // token of the next page; empty: there is none
};

inline constexpr size_t kMostListed = 1000;  // objects and prefixes of one page, as S3 promises

// Errors: InvalidArgument: no listing, a size that is no number, a key that is empty, longer than 1024 bytes or wrongly
// encoded, a truncated listing without a token; ResourceExhausted (kMostListed, limits of aws::ReadXml).
absl::StatusOr<ListingPage> ParseListing(std::string_view body);

// An upload in parts that was begun and not ended.
struct ListedUpload {
  std::string key;
  std::string id;
  bool operator==(const ListedUpload&) const = default;
};

// One page of ListMultipartUploads.
struct UploadsPage {
  std::vector<ListedUpload> uploads;
  std::string next_key, next_id;  // where the next page begins; an empty key: there is none
};

// Errors: as ParseListing.
absl::StatusOr<UploadsPage> ParseUploads(std::string_view body);

// What an error response says; empty where it does not, also when the body is no XML.
struct ErrorText {
  std::string code;     // "NoSuchKey"
  std::string message;  // at most 300 bytes of visible characters
};
ErrorText ParseError(std::string_view body);

// The id in the answer of InitiateMultipartUpload. Errors: InvalidArgument.
absl::StatusOr<std::string> ParseUploadId(std::string_view body);

// The body of CompleteMultipartUpload: part i + 1 has the i-th tag.
std::string CompleteBody(const std::vector<std::string>& etags);

// The bytes that a Content-Range header ("bytes 0-9/100") is about.
struct ContentRange {
  int64_t first = 0;
  int64_t last = -1;  // below `first`: none ("bytes */100")
  int64_t size = 0;   // of the whole object
};
// Errors: InvalidArgument, also when the size is "*".
absl::StatusOr<ContentRange> ParseContentRange(std::string_view header);

// With the parts of the path encoded as S3 signs them; "/" stays.
std::string EncodeKey(std::string_view key);

}  // namespace medley::object_store
