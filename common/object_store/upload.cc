// Uploads in parts. An object appears when the last request completes the upload, so a process that is killed before
// leaves nothing that can be read.
#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/object_store/call.h"
#include "common/object_store/object_store.h"

namespace medley::object_store {
namespace {

constexpr int64_t kMostParts = 10'000;
constexpr int64_t kMostPart = int64_t{1} << 30;

}  // namespace

absl::Status ObjectStore::Upload(const Location& at, int64_t size, ReadPart read, std::stop_token stop) {
  if (size <= limits_.piece) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string bytes, read(0, size));
    return Put(at, bytes, stop);
  }
  MEDLEY_ASSIGN_OR_RETURN(const StartedUpload started, BeginUpload(at, stop));
  const absl::StatusOr<std::vector<std::string>> etags = SendParts(at, started.id, size, read, stop);
  const absl::Status status = etags.ok() ? CompleteUpload(at, started, *etags, stop) : etags.status();
  // Best effort, also when `stop` was requested: parts cost money until they are removed.
  if (!status.ok()) (void)EndUpload(at, started.id, {});
  return status;
}

absl::StatusOr<StartedUpload> ObjectStore::BeginUpload(const Location& at, std::stop_token stop) {
  const std::string what = "writing " + NameOf(at);
  StartedUpload started{.id = "", .mark = fmt::format("{:016x}{:016x}", NextRandom(), NextRandom())};
  Call call{.what = what, .parts = {.method = "POST", .query = {{"uploads", ""}}, .body = ""}};
  call.parts.headers = {{MetaPrefix(settings_, at) + "meta-medley-upload", started.mark},
                        {"Content-Type", "application/octet-stream"}};
  MEDLEY_ASSIGN_OR_RETURN(const http_client::Response response, Run(at, call, stop));
  absl::StatusOr<std::string> id = ParseUploadId(response.body);
  if (!id.ok()) return base::Annotate(id.status(), what);
  started.id = *std::move(id);
  return started;
}

absl::StatusOr<std::vector<std::string>> ObjectStore::SendParts(const Location& at, const std::string& id, int64_t size,
                                                                ReadPart read, const std::stop_token& stop) {
  const int64_t piece = std::max(limits_.piece, (size - 1) / kMostParts + 1);
  if (piece > kMostPart) {
    return base::OutOfRange("writing {}: {} bytes are too many for one object", NameOf(at), size);
  }
  std::vector<std::string> etags;
  for (int64_t offset = 0; offset < size; offset += piece) {
    MEDLEY_ASSIGN_OR_RETURN(std::string bytes, read(offset, std::min(piece, size - offset)));
    MEDLEY_ASSIGN_OR_RETURN(std::string etag,
                            SendPart(at, id, static_cast<int>(etags.size()) + 1, std::move(bytes), stop));
    etags.push_back(std::move(etag));
  }
  return etags;
}

absl::StatusOr<std::string> ObjectStore::SendPart(const Location& at, const std::string& id, int number,
                                                  std::string bytes, std::stop_token stop) {
  const std::string what = "writing " + NameOf(at);
  Call call{.what = what, .parts = {.method = "PUT", .body = std::move(bytes)}};
  call.parts.query = {{"partNumber", std::to_string(number)}, {"uploadId", id}};
  call.parts.headers = {{"Content-Type", "application/octet-stream"}};
  call.check = [&](const http_client::Response& response) {
    return response.Header("ETag").empty() ? base::Unavailable("{}: the answer has no ETag", what) : absl::OkStatus();
  };
  MEDLEY_ASSIGN_OR_RETURN(const http_client::Response response, Run(at, call, stop));
  return response.Header("ETag");
}

absl::Status ObjectStore::CompleteUpload(const Location& at, const StartedUpload& upload,
                                         const std::vector<std::string>& etags, std::stop_token stop) {
  const std::string what = "writing " + NameOf(at);
  Call call{.what = what, .parts = {.method = "POST", .query = {{"uploadId", upload.id}}, .body = CompleteBody(etags)}};
  call.parts.headers = {{"Content-Type", "application/xml"}};
  const absl::Status status = Run(at, call, stop).status();
  if (!absl::IsNotFound(status)) return status;
  // There is no such upload: an earlier attempt has completed it, if the object is that of this upload.
  const absl::StatusOr<http_client::Response> found = Run(at, {.what = what, .parts = {.method = "HEAD"}}, stop);
  const bool own = found.ok() && found->Header(MetaPrefix(settings_, at) + "meta-medley-upload") == upload.mark;
  return own ? absl::OkStatus() : base::Unavailable("{}: the upload has been removed", what);
}

absl::Status ObjectStore::EndUpload(const Location& at, const std::string& id, std::stop_token stop) {
  const std::string what = "ending the upload of " + NameOf(at);
  const absl::Status status =
      Run(at, {.what = what, .parts = {.method = "DELETE", .query = {{"uploadId", id}}}}, stop).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<ListedUpload>> ObjectStore::ListUploads(const Location& prefix, std::stop_token stop) {
  const std::string what = "listing the uploads of " + NameOf(prefix);
  if (prefix.scheme == Scheme::kHttps) return base::Unimplemented("{}: a web server has no listing", what);
  Location bucket = prefix;
  bucket.key.clear();
  std::vector<ListedUpload> all;
  UploadsPage page;
  do {
    Call call{.what = what, .parts = {.query = {{"uploads", ""}, {"encoding-type", "url"}}}};
    if (!prefix.key.empty()) call.parts.query.emplace_back("prefix", prefix.key);
    if (!page.next_key.empty()) {
      call.parts.query.emplace_back("key-marker", page.next_key);
      call.parts.query.emplace_back("upload-id-marker", page.next_id);
    }
    MEDLEY_ASSIGN_OR_RETURN(const http_client::Response response, Run(bucket, call, stop));
    const std::pair<std::string, std::string> before{page.next_key, page.next_id};
    absl::StatusOr<UploadsPage> parsed = ParseUploads(response.body);
    if (!parsed.ok()) return base::Annotate(parsed.status(), what);
    page = *std::move(parsed);
    for (ListedUpload& upload : page.uploads) {
      if (upload.key.starts_with(prefix.key)) all.push_back(std::move(upload));
    }
    if (all.size() > limits_.most_listed) {
      return base::ResourceExhausted("{}: more than {} uploads", what, limits_.most_listed);
    }
    if (!page.next_key.empty() && std::pair(page.next_key, page.next_id) == before) {
      return base::InvalidArgument("{}: the listing has no end", what);
    }
  } while (!page.next_key.empty());
  return all;
}

}  // namespace medley::object_store
