#include "common/object_store/wire.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/aws/xml_reader.h"
#include "common/base/status.h"
#include "common/base/url.h"
#include "common/base/xml_text.h"

namespace medley::object_store {
namespace {

constexpr size_t kLongestListedKey = 1024;
constexpr size_t kMostMessage = 300;

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string Visible(std::string_view text) {
  std::string out(text.substr(0, kMostMessage));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return out;
}

absl::Status Nothing(const std::string&) { return absl::OkStatus(); }

absl::Status DecodeKey(bool encoded, std::string& key) {
  if (encoded) {
    std::string escaped;
    for (const char c : key) escaped += c == '+' ? std::string("%20") : std::string(1, c);
    const std::optional<std::string> decoded = base::UrlDecode(escaped);
    if (!decoded) return base::InvalidArgument("the listing has a key with a wrong escape: {}", Visible(key));
    key = *decoded;
  }
  if (key.empty() || key.size() > kLongestListedKey) {
    return base::InvalidArgument("the listing has a key of {} bytes", key.size());
  }
  return absl::OkStatus();
}

class ListingReader {
 public:
  absl::Status On(const std::string& path, std::string_view text) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (path == kRoot) root_ = true;
    if (!path.starts_with("ListBucketResult/")) return absl::OkStatus();
    const std::string_view name = std::string_view(path).substr(kRoot.size() + 1);
    if (name == "Contents/Key") object_.key = std::string(text);
    if (name == "Contents/ETag") object_.etag = Visible(text);
    if (name == "Contents/Size") {
      const std::optional<int64_t> bytes = Number(text);
      if (!bytes) return base::InvalidArgument("the listing has an object of '{}' bytes", Visible(text));
      object_.bytes = *bytes;
      sized_ = true;
    }
    if (name == "Contents") MEDLEY_RETURN_IF_ERROR(Add());
    if (name == "CommonPrefixes/Prefix") page_.prefixes.emplace_back(text);
    if (name == "NextContinuationToken") page_.next = std::string(text);
    if (name == "IsTruncated") truncated_ = text == "true";
    if (name == "EncodingType") encoded_ = text == "url";
    if (page_.objects.size() + page_.prefixes.size() > kMostListed) {
      return base::ResourceExhausted("a page of the listing has more than {} objects", kMostListed);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ListingPage> Finish() {
    if (!root_) return base::InvalidArgument("the answer is no listing");
    if (truncated_ && page_.next.empty()) return base::InvalidArgument("the listing ends early and has no next page");
    if (!truncated_) page_.next.clear();
    for (ListedObject& object : page_.objects) MEDLEY_RETURN_IF_ERROR(DecodeKey(encoded_, object.key));
    for (std::string& prefix : page_.prefixes) MEDLEY_RETURN_IF_ERROR(DecodeKey(encoded_, prefix));
    return std::move(page_);
  }

 private:
  absl::Status Add() {
    if (!sized_) return base::InvalidArgument("the listing has an object without a size");
    page_.objects.push_back(std::move(object_));
    object_ = {};
    sized_ = false;
    return absl::OkStatus();
  }

  ListingPage page_;
  ListedObject object_;
  bool root_ = false, sized_ = false, truncated_ = false, encoded_ = false;
};

class UploadsReader {
 public:
  absl::Status On(const std::string& path, std::string_view text) {
    constexpr std::string_view kRoot = "ListMultipartUploadsResult";
    if (path == kRoot) root_ = true;
    if (!path.starts_with("ListMultipartUploadsResult/")) return absl::OkStatus();
    const std::string_view name = std::string_view(path).substr(kRoot.size() + 1);
    if (name == "Upload/Key") upload_.key = std::string(text);
    if (name == "Upload/UploadId") upload_.id = std::string(text);
    if (name == "Upload") {
      if (upload_.id.empty() || upload_.id.size() > kLongestListedKey) {
        return base::InvalidArgument("the listing has an upload without an id");
      }
      page_.uploads.push_back(std::move(upload_));
      upload_ = {};
    }
    if (name == "NextKeyMarker") page_.next_key = std::string(text);
    if (name == "NextUploadIdMarker") page_.next_id = std::string(text);
    if (name == "IsTruncated") truncated_ = text == "true";
    if (name == "EncodingType") encoded_ = text == "url";
    if (page_.uploads.size() > kMostListed) {
      return base::ResourceExhausted("a page of the listing has more than {} uploads", kMostListed);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<UploadsPage> Finish() {
    if (!root_) return base::InvalidArgument("the answer is no listing of uploads");
    if (truncated_ && page_.next_key.empty()) {
      return base::InvalidArgument("the listing ends early and has no next page");
    }
    if (!truncated_) page_.next_key.clear();
    for (ListedUpload& upload : page_.uploads) MEDLEY_RETURN_IF_ERROR(DecodeKey(encoded_, upload.key));
    if (!page_.next_key.empty()) MEDLEY_RETURN_IF_ERROR(DecodeKey(encoded_, page_.next_key));
    return std::move(page_);
  }

 private:
  UploadsPage page_;
  ListedUpload upload_;
  bool root_ = false, truncated_ = false, encoded_ = false;
};

}  // namespace

absl::StatusOr<UploadsPage> ParseUploads(std::string_view body) {
  UploadsReader reader;
  MEDLEY_RETURN_IF_ERROR(aws::ReadXml(
      body, Nothing, [&](const std::string& path, std::string_view text) { return reader.On(path, text); }));
  return reader.Finish();
}

absl::StatusOr<ListingPage> ParseListing(std::string_view body) {
  ListingReader reader;
  MEDLEY_RETURN_IF_ERROR(aws::ReadXml(
      body, Nothing, [&](const std::string& path, std::string_view text) { return reader.On(path, text); }));
  return reader.Finish();
}

ErrorText ParseError(std::string_view body) {
  ErrorText out;
  const absl::Status read = aws::ReadXml(body, Nothing, [&](const std::string& path, std::string_view text) {
    if (path == "Error/Code") out.code = Visible(text);
    if (path == "Error/Message") out.message = Visible(text);
    return absl::OkStatus();
  });
  return read.ok() ? out : ErrorText();
}

absl::StatusOr<std::string> ParseUploadId(std::string_view body) {
  std::string id;
  MEDLEY_RETURN_IF_ERROR(aws::ReadXml(body, Nothing, [&](const std::string& path, std::string_view text) {
    if (path == "InitiateMultipartUploadResult/UploadId") id = std::string(text);
    return absl::OkStatus();
  }));
  if (id.empty() || id.size() > kLongestListedKey) return base::InvalidArgument("the answer has no id of an upload");
  return id;
}

std::string CompleteBody(const std::vector<std::string>& etags) {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i) {
    body += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + base::XmlText(etags[i]) +
            "</ETag></Part>";
  }
  return body + "</CompleteMultipartUpload>";
}

absl::StatusOr<ContentRange> ParseContentRange(std::string_view header) {
  constexpr std::string_view kUnit = "bytes ";
  const auto wrong = [&] { return base::InvalidArgument("not a Content-Range of bytes: '{}'", Visible(header)); };
  const size_t slash = header.find('/');
  if (!header.starts_with(kUnit) || slash == std::string_view::npos) return wrong();
  const std::string_view range = header.substr(kUnit.size(), slash - kUnit.size());
  const std::optional<int64_t> size = Number(header.substr(slash + 1));
  if (!size) return wrong();
  if (range == "*") return ContentRange{.size = *size};
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return wrong();
  const std::optional<int64_t> first = Number(range.substr(0, dash));
  const std::optional<int64_t> last = Number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last >= *size) return wrong();
  return ContentRange{*first, *last, *size};
}

std::string EncodeKey(std::string_view key) {
  std::string out;
  while (true) {
    const size_t slash = key.find('/');
    out += base::UrlEncode(key.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    out += '/';
    key.remove_prefix(slash + 1);
  }
}

}  // namespace medley::object_store
