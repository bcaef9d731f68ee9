#include "worker/object_files/object_files.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/object_store/object_writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using object_store::IsRemote;
using object_store::Location;
using object_store::ObjectInfo;
using object_store::ObjectWriter;

// Readers take a folder with one of these for complete.
constexpr std::string_view kCompleting[] = {"manifest.json", "model.json"};
constexpr std::string_view kTemporary = ".tmp.XXXXXX";
constexpr int64_t kFirstRead = int64_t{64} << 10;  // enough for a header; the next read is four times as long
constexpr size_t kMostInMemory = size_t{64} << 20;

std::string UriOf(const fs::path& path) {
  std::string uri = path.string();
  while (uri.ends_with('/')) uri.pop_back();
  return uri;
}

absl::StatusOr<Location> FolderOf(const fs::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(Location at, object_store::ParseLocation(UriOf(path)));
  if (!at.key.empty()) at.key += '/';
  return at;
}

bool Completes(const std::string& key) {
  const std::string name = key.substr(key.rfind('/') + 1);
  return std::ranges::find(kCompleting, name) != std::end(kCompleting);
}

absl::Status OnlyWhole(const std::string& what) {
  return base::Unimplemented("{}: an object is written only as a whole", what);
}

}  // namespace

// What a descriptor means, for the one thread that has it.
struct ObjectFiles::OpenFile {
  Location at;
  // One that is read.
  ObjectInfo info;
  int64_t position = 0;
  std::string piece;
  int64_t piece_at = 0;
  int64_t next_bytes = kFirstRead;
  // A temporary one; null: another.
  std::unique_ptr<ObjectWriter> writer;
  // One that Create made.
  std::optional<std::string> content;
};

ObjectFiles::~ObjectFiles() {
  base::MutexLock lock(mutex_);
  for (const auto& [fd, file] : open_) close(fd);
}

absl::StatusOr<int> ObjectFiles::Add(std::shared_ptr<OpenFile> file) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "opening " + object_store::NameOf(file->at));
  base::MutexLock lock(mutex_);
  open_[fd] = std::move(file);
  return fd;
}

std::shared_ptr<ObjectFiles::OpenFile> ObjectFiles::Find(int fd) {
  base::MutexLock lock(mutex_);
  const auto found = open_.find(fd);
  return found == open_.end() ? nullptr : found->second;
}

bool ObjectFiles::IsObject(const fs::path& path) const { return IsRemote(path.string()); }

absl::StatusOr<std::vector<std::string>> ObjectFiles::List(const fs::path& folder) {
  if (!IsObject(folder)) return Files::List(folder);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, FolderOf(folder));
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Listing listing, quick_->List(at, true, {}));
  std::vector<std::string> names;
  for (const object_store::ListedObject& object : listing.objects) {
    if (object.key.size() > at.key.size()) names.push_back(object.key.substr(at.key.size()));
  }
  for (const std::string& each : listing.folders) {
    if (each.size() > at.key.size() + 1) names.push_back(each.substr(at.key.size(), each.size() - at.key.size() - 1));
  }
  if (!names.empty()) return names;
  base::MutexLock lock(mutex_);
  if (created_.contains(UriOf(folder))) return names;
  return base::NotFound("listing {}: nothing exists below it", UriOf(folder));
}

absl::StatusOr<FileStamp> ObjectFiles::Stat(const fs::path& path) {
  if (!IsObject(path)) return Files::Stat(path);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, object_store::ParseLocation(UriOf(path)));
  MEDLEY_ASSIGN_OR_RETURN(const ObjectInfo info, quick_->Stat(at, {}));
  return FileStamp{info.bytes, static_cast<int64_t>(base::Hash64(info.etag) >> 1)};
}

absl::StatusOr<int> ObjectFiles::OpenToRead(const fs::path& path) {
  if (!IsObject(path)) return Files::OpenToRead(path);
  const auto file = std::make_shared<OpenFile>();
  MEDLEY_ASSIGN_OR_RETURN(file->at, object_store::ParseLocation(UriOf(path)));
  MEDLEY_ASSIGN_OR_RETURN(file->info, quick_->Stat(file->at, {}));
  return Add(file);
}

// Reads the piece that begins at the position.
absl::Status ObjectFiles::Fill(OpenFile& file) {
  const int64_t bytes = std::min({file.next_bytes, bulk_->limits().piece, file.info.bytes - file.position});
  object_store::ObjectStore& store = bytes <= kFirstRead ? *quick_ : *bulk_;
  file.piece.clear();
  MEDLEY_ASSIGN_OR_RETURN(file.piece, store.Read(file.at, file.info, file.position, bytes, {}));
  file.piece_at = file.position;
  file.next_bytes = std::min(4 * file.next_bytes, bulk_->limits().piece);
  return absl::OkStatus();
}

absl::StatusOr<size_t> ObjectFiles::Read(int fd, void* out, size_t bytes) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  if (file == nullptr) return Files::Read(fd, out, bytes);
  if (bytes == 0 || file->position >= file->info.bytes) return 0;
  int64_t offset = file->position - file->piece_at;
  if (offset < 0 || offset >= std::ssize(file->piece)) {
    MEDLEY_RETURN_IF_ERROR(Fill(*file));
    offset = 0;
  }
  const size_t n = std::min(bytes, file->piece.size() - static_cast<size_t>(offset));
  std::memcpy(out, file->piece.data() + offset, n);
  file->position += static_cast<int64_t>(n);
  return n;
}

absl::StatusOr<int64_t> ObjectFiles::Length(int fd) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  return file == nullptr ? Files::Length(fd) : file->info.bytes;
}

absl::Status ObjectFiles::Skip(int fd, int64_t bytes) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  if (file == nullptr) return Files::Skip(fd, bytes);
  file->position += bytes;
  return absl::OkStatus();
}

void ObjectFiles::Close(int fd) {
  std::shared_ptr<OpenFile> file;  // ends outside of the lock
  {
    base::MutexLock lock(mutex_);
    const auto found = open_.find(fd);
    if (found != open_.end()) {
      file = std::move(found->second);
      open_.erase(found);
    }
  }
  Files::Close(fd);
}

absl::Status ObjectFiles::CreateFolder(const fs::path& folder) {
  if (!IsObject(folder)) return Files::CreateFolder(folder);
  MEDLEY_RETURN_IF_ERROR(FolderOf(folder).status());
  base::MutexLock lock(mutex_);
  created_.insert(UriOf(folder));
  return absl::OkStatus();
}

absl::StatusOr<int> ObjectFiles::CreateTemporary(std::string& pattern) {
  if (!IsObject(pattern)) return Files::CreateTemporary(pattern);
  if (!pattern.ends_with(kTemporary)) return OnlyWhole("creating " + pattern);
  const auto file = std::make_shared<OpenFile>();
  MEDLEY_ASSIGN_OR_RETURN(file->at, object_store::ParseLocation(pattern.substr(0, pattern.size() - kTemporary.size())));
  file->writer = std::make_unique<ObjectWriter>(*bulk_, file->at);
  MEDLEY_ASSIGN_OR_RETURN(const int fd, Add(file));
  base::MutexLock lock(mutex_);
  pattern = pattern.substr(0, pattern.size() - 6) + fmt::format("{:06}", next_temporary_++);
  temporary_[pattern] = file;
  return fd;
}

absl::StatusOr<int> ObjectFiles::Create(const fs::path& path) {
  if (!IsObject(path)) return Files::Create(path);
  const auto file = std::make_shared<OpenFile>();
  MEDLEY_ASSIGN_OR_RETURN(file->at, object_store::ParseLocation(UriOf(path)));
  file->content.emplace();
  return Add(file);
}

absl::StatusOr<int> ObjectFiles::OpenToAppend(const fs::path& path) {
  return IsObject(path) ? OnlyWhole("appending to " + path.string()) : Files::OpenToAppend(path);
}

absl::Status ObjectFiles::Write(int fd, std::string_view bytes) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  if (file == nullptr) return Files::Write(fd, bytes);
  if (file->writer != nullptr) return file->writer->Add(bytes, {});
  const std::string what = "writing " + object_store::NameOf(file->at);
  if (!file->content) return OnlyWhole(what);
  if (file->content->size() + bytes.size() > kMostInMemory) {
    return base::ResourceExhausted("{}: it would have more than {} bytes", what, kMostInMemory);
  }
  *file->content += bytes;
  return absl::OkStatus();
}

absl::Status ObjectFiles::WriteAt(int fd, int64_t offset, std::string_view bytes) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  return file == nullptr ? Files::WriteAt(fd, offset, bytes) : OnlyWhole("writing " + object_store::NameOf(file->at));
}

absl::Status ObjectFiles::Sync(int fd) {
  const std::shared_ptr<OpenFile> file = Find(fd);
  if (file == nullptr) return Files::Sync(fd);
  if (!file->content) return absl::OkStatus();  // its renaming completes it
  const std::string& content = *file->content;
  const auto read = [&](int64_t offset, int64_t bytes) -> absl::StatusOr<std::string> {
    return content.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  };
  return bulk_->Upload(file->at, std::ssize(content), read, {});
}

absl::Status ObjectFiles::MakeReadable(int fd) {
  return Find(fd) == nullptr ? Files::MakeReadable(fd) : absl::OkStatus();
}

absl::Status ObjectFiles::Rename(const fs::path& from, const fs::path& to) {
  if (!IsObject(from) && !IsObject(to)) return Files::Rename(from, to);
  std::shared_ptr<OpenFile> file;
  {
    base::MutexLock lock(mutex_);
    const auto found = temporary_.find(from.string());
    if (found != temporary_.end()) file = found->second;
  }
  const auto target = object_store::ParseLocation(UriOf(to));
  if (file == nullptr || !target.ok() || *target != file->at) {
    return OnlyWhole(fmt::format("renaming {} to {}", from.string(), to.string()));
  }
  MEDLEY_RETURN_IF_ERROR(file->writer->Finish({}));
  base::MutexLock lock(mutex_);
  temporary_.erase(from.string());
  return absl::OkStatus();
}

absl::Status ObjectFiles::Remove(const fs::path& path) {
  if (!IsObject(path)) return Files::Remove(path);
  std::shared_ptr<OpenFile> file;  // ends its upload, outside of the lock
  {
    base::MutexLock lock(mutex_);
    const auto found = temporary_.find(path.string());
    if (found != temporary_.end()) {
      file = std::move(found->second);
      temporary_.erase(found);
    }
  }
  if (file != nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const Location at, object_store::ParseLocation(UriOf(path)));
  return quick_->Remove(at, {});
}

absl::Status ObjectFiles::RemoveFolder(const fs::path& folder) {
  if (!IsObject(folder)) return Files::RemoveFolder(folder);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, FolderOf(folder));
  if (at.key.empty()) return base::InvalidArgument("removing {}: it is a whole bucket", UriOf(folder));
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Listing listing, quick_->List(at, false, {}));
  std::vector<std::string> keys;
  for (const object_store::ListedObject& each : listing.objects) keys.push_back(each.key);
  std::ranges::stable_partition(keys, Completes);
  for (std::string& key : keys) {
    MEDLEY_RETURN_IF_ERROR(quick_->Remove({at.scheme, at.bucket, std::move(key)}, {}));
  }
  MEDLEY_RETURN_IF_ERROR(Remove(folder));  // Files::RemoveFolder takes a file too
  MEDLEY_RETURN_IF_ERROR(RemoveUnfinished(folder));
  base::MutexLock lock(mutex_);
  created_.erase(UriOf(folder));
  return absl::OkStatus();
}

absl::Status ObjectFiles::WriteAtomic(const fs::path& path, std::string_view bytes) {
  if (!IsObject(path)) return Files::WriteAtomic(path, bytes);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, object_store::ParseLocation(UriOf(path)));
  object_store::ObjectStore& store = std::ssize(bytes) <= quick_->limits().piece ? *quick_ : *bulk_;
  const auto read = [&](int64_t offset, int64_t length) -> absl::StatusOr<std::string> {
    return std::string(bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length)));
  };
  return store.Upload(at, std::ssize(bytes), read, {});
}

absl::StatusOr<std::vector<object_store::ListedUpload>> ObjectFiles::Uploads(const Location& folder) {
  {
    base::MutexLock lock(mutex_);
    if (!lists_uploads_) return std::vector<object_store::ListedUpload>();
  }
  absl::StatusOr<std::vector<object_store::ListedUpload>> uploads = quick_->ListUploads(folder, {});
  const absl::Status status = uploads.status();
  if (absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status) || absl::IsNotFound(status)) {
    base::MutexLock lock(mutex_);
    lists_uploads_ = false;
  }
  return uploads;
}

absl::StatusOr<std::vector<std::string>> ObjectFiles::Unfinished(const fs::path& folder) {
  if (!IsObject(folder)) return Files::Unfinished(folder);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, FolderOf(folder));
  MEDLEY_ASSIGN_OR_RETURN(const auto uploads, Uploads(at));
  std::set<std::string> names;
  for (const object_store::ListedUpload& upload : uploads) {
    const std::string below = upload.key.substr(at.key.size());
    names.insert(below.substr(0, below.find('/')));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status ObjectFiles::RemoveUnfinished(const fs::path& folder) {
  if (!IsObject(folder)) return Files::RemoveUnfinished(folder);
  MEDLEY_ASSIGN_OR_RETURN(const Location at, FolderOf(folder));
  MEDLEY_ASSIGN_OR_RETURN(const auto uploads, Uploads(at));
  for (const object_store::ListedUpload& upload : uploads) {
    MEDLEY_RETURN_IF_ERROR(quick_->EndUpload({at.scheme, at.bucket, upload.key}, upload.id, {}));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
