#include "tests/unit/worker/places/fake_store.h"

#include <fmt/format.h>

#include "common/base/url.h"

namespace medley::worker {
namespace {

using http_client::Request;
using http_client::Result;

Result Respond(int code, std::string body = "", http_client::Headers headers = {}) {
  Result result;
  result.response = {code, std::move(headers), std::move(body)};
  return result;
}

std::string HeaderOf(const Request& request, const std::string& name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

std::string Field(const base::QueryFields& query, const std::string& name) {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return "";
}

bool Has(const base::QueryFields& query, const std::string& name) {
  for (const auto& field : query) {
    if (field.first == name) return true;
  }
  return false;
}

}  // namespace

object_store::Exchange FakeStore::exchange() {
  return [this](const Request& request, const std::string&, const std::stop_token&) {
    const base::MutexLock lock(mutex_);
    if (const int code = fault ? fault(request) : 0; code != 0) return Respond(code);
    return Answer(request);
  };
}

void FakeStore::Put(const std::string& key, std::string bytes) {
  const base::MutexLock lock(mutex_);
  objects_[key] = {std::move(bytes), fmt::format("\"{}\"", ++next_), ""};
}

std::vector<std::string> FakeStore::Keys() const {
  const base::MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

std::string FakeStore::Get(const std::string& key) const {
  const base::MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? "" : found->second.bytes;
}

void FakeStore::Remove(const std::string& key) {
  const base::MutexLock lock(mutex_);
  objects_.erase(key);
}

int FakeStore::reads() const {
  const base::MutexLock lock(mutex_);
  return reads_;
}

Result FakeStore::Answer(const Request& request) {
  const size_t path = request.url.find('/', request.url.find("://") + 3);
  const size_t mark = request.url.find('?');
  const std::string key = *base::UrlDecode(request.url.substr(path + 1, mark - path - 1));
  const base::QueryFields query =
      mark == std::string::npos ? base::QueryFields() : *base::QueryDecode(request.url.substr(mark + 1));
  if (Has(query, "list-type")) return List(key, query);
  if (request.method == "GET" && Has(query, "uploads")) return ListUploads(key, query);
  if (request.method != "GET" && request.method != "HEAD") return Change(request, key, query);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return Respond(404, "<Error><Code>NoSuchKey</Code></Error>");
  const Object& object = found->second;
  http_client::Headers headers = {{"ETag", object.etag}, {"x-amz-meta-medley-upload", object.mark}};
  if (request.method == "HEAD") {
    headers.emplace_back("Content-Length", std::to_string(object.bytes.size()));
    return Respond(200, "", headers);
  }
  if (const std::string wanted = HeaderOf(request, "If-Match"); !wanted.empty() && wanted != object.etag) {
    return Respond(412);
  }
  const std::string range = HeaderOf(request, "Range").substr(6);
  const size_t first = std::stoul(range);
  const size_t last = std::min(std::stoul(range.substr(range.find('-') + 1)), object.bytes.size() - 1);
  if (first >= object.bytes.size()) return Respond(416);
  ++reads_;
  headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", first, last, object.bytes.size()));
  return Respond(206, object.bytes.substr(first, last - first + 1), headers);
}

Result FakeStore::List(const std::string& bucket, const base::QueryFields& query) {
  const std::string prefix = Field(query, "prefix");
  const bool folders = Field(query, "delimiter") == "/";
  std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
  std::string last;
  const std::string root = bucket.ends_with('/') ? bucket : bucket + "/";
  for (const auto& [name, object] : objects_) {
    if (!name.starts_with(root + prefix)) continue;
    const std::string key = name.substr(root.size());
    const size_t slash = folders ? key.find('/', prefix.size()) : std::string::npos;
    if (slash != std::string::npos) {
      const std::string folder = key.substr(0, slash + 1);
      if (folder == last) continue;
      last = folder;
      body += "<CommonPrefixes><Prefix>" + base::UrlEncode(folder) + "</Prefix></CommonPrefixes>";
    } else {
      body += fmt::format("<Contents><Key>{}</Key><Size>{}</Size><ETag>{}</ETag></Contents>", base::UrlEncode(key),
                          object.bytes.size(), object.etag);
    }
  }
  return Respond(200, body + "</ListBucketResult>");
}

Result FakeStore::ListUploads(const std::string& bucket, const base::QueryFields& query) {
  const std::string root = bucket.ends_with('/') ? bucket : bucket + "/";
  std::string body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType>";
  for (const auto& [id, upload] : uploads_) {
    if (!upload.key.starts_with(root + Field(query, "prefix"))) continue;
    body += fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload>",
                        base::UrlEncode(upload.key.substr(root.size())), id);
  }
  return Respond(200, body + "</ListMultipartUploadsResult>");
}

Result FakeStore::Change(const Request& request, const std::string& key, const base::QueryFields& query) {
  const std::string etag = fmt::format("\"{}\"", ++next_);
  const std::string id = Field(query, "uploadId");
  const auto upload = uploads_.find(id);
  if (request.method == "POST" && Has(query, "uploads")) {
    const std::string made = std::to_string(next_);
    uploads_[made] = {key, HeaderOf(request, "x-amz-meta-medley-upload"), {}};
    return Respond(200,
                   "<InitiateMultipartUploadResult><UploadId>" + made + "</UploadId></InitiateMultipartUploadResult>");
  }
  if (!id.empty() && upload == uploads_.end()) return Respond(404, "<Error><Code>NoSuchUpload</Code></Error>");
  if (request.method == "PUT" && !id.empty()) {
    upload->second.parts[std::stoi(Field(query, "partNumber"))] = *request.body;
    return Respond(200, "", {{"ETag", etag}});
  }
  if (request.method == "POST") {
    std::string bytes;
    for (const auto& [number, part] : upload->second.parts) bytes += part;
    objects_[key] = {bytes, etag, upload->second.mark};
    uploads_.erase(upload);
    return Respond(200, "<CompleteMultipartUploadResult/>");
  }
  if (request.method == "PUT") {
    const std::string from = HeaderOf(request, "x-amz-copy-source");
    if (!from.empty() && !objects_.contains(*base::UrlDecode(from.substr(1)))) {
      return Respond(404, "<Error><Code>NoSuchKey</Code></Error>");
    }
    objects_[key] = {from.empty() ? *request.body : objects_[*base::UrlDecode(from.substr(1))].bytes, etag, ""};
    return Respond(200);
  }
  if (!id.empty()) uploads_.erase(upload);
  if (id.empty()) objects_.erase(key);
  return Respond(204);
}

}  // namespace medley::worker
