#include "worker/file_server/file_server.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/hasher.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using http_server::BodySink;
using http_server::HttpRequest;
using http_server::HttpResponse;

constexpr size_t kPieceBytes = size_t{1} << 20;

HttpResponse Refuse(int code, const std::string& message) {
  return {.code = code, .content_type = "text/plain", .body = message + "\n"};
}

// In constant time, so that the time does not tell how much of a secret was right.
bool SameSecret(std::string_view given, std::string_view secret) {
  unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
  }
  return difference == 0;
}

// A file that is read in pieces. Never follows a link: a folder of a volume may have been changed by others.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool ok() const { return fd_ >= 0; }
  // The number of bytes read; 0 at the end; below 0: an error.
  ssize_t Read(std::string& piece) const { return read(fd_, piece.data(), piece.size()); }

 private:
  const int fd_;
};

// Calls `use` with each piece until it returns false. Returns false when the file cannot be read.
bool ReadPieces(const fs::path& path, const std::function<bool(std::string_view)>& use) {
  const OpenFile file(path);
  std::string piece(kPieceBytes, '\0');
  while (file.ok()) {
    const ssize_t n = file.Read(piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0 || !use(std::string_view(piece).substr(0, static_cast<size_t>(n)))) return true;
  }
  return false;
}

// The regular files below `folder`, by their path in it. Links are left out.
absl::StatusOr<std::map<std::string, int64_t>> FilesOf(const fs::path& folder) {
  std::map<std::string, int64_t> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(error) || at->is_symlink(error)) continue;
    files[at->path().lexically_relative(folder).string()] = static_cast<int64_t>(at->file_size(error));
  }
  if (error) return base::ErrnoStatus(error.value(), "listing " + folder.string());
  return files;
}

}  // namespace

FileServer::FileServer(fs::path folder, std::string secret, const base::Clock& clock)
    : folder_(std::move(folder)),
      secret_(std::move(secret)),
      clock_(clock),
      last_request_(clock.Steady().time_since_epoch().count()) {}

HttpResponse FileServer::Respond(const HttpRequest& request) {
  if (request.method != "GET") return Refuse(405, "GET only");
  const std::string_view path = std::string_view(request.path).substr(std::min<size_t>(1, request.path.size()));
  const std::string_view secret = path.substr(0, path.find('/'));
  if (secret_.empty() || !SameSecret(secret, secret_)) return Refuse(404, "not found");
  last_request_ = clock_.Steady().time_since_epoch().count();
  const std::string name(path.substr(std::min(path.size(), secret.size() + 1)));
  if (name.empty()) {
    const absl::StatusOr<std::string> list = List();
    if (!list.ok()) return Refuse(absl::IsNotFound(list.status()) ? 404 : 500, base::Message(list.status()));
    return {.body = *list};
  }
  const auto files = FilesOf(folder_);
  if (!files.ok() || !files->contains(name)) return Refuse(404, "no such file: " + name);
  HttpResponse response{.content_type = "application/octet-stream"};
  response.stream = [file = folder_ / name](BodySink& sink, const std::stop_token& stop) {
    const bool read =
        ReadPieces(file, [&](std::string_view piece) { return !stop.stop_requested() && sink.Write(piece); });
    if (!read || stop.stop_requested()) sink.Abort();
  };
  return response;
}

absl::StatusOr<std::string> FileServer::List() const {
  MEDLEY_ASSIGN_OR_RETURN(const auto files, FilesOf(folder_));
  nlohmann::json list = {{"files", nlohmann::json::array()}};
  for (const auto& [path, bytes] : files) {
    base::Hasher hash;
    if (!ReadPieces(folder_ / path, [&](std::string_view piece) { return hash.Add(piece), true; })) {
      return base::Internal("reading {}: it cannot be read", path);
    }
    list["files"].push_back({{"path", path}, {"bytes", bytes}, {"xxh3", hash.Hex()}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace medley::worker
