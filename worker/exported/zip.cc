#include "worker/exported/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace medley::worker::exported {
namespace {

// Sizes and places of the format (APPNOTE 6.3.9, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16).
constexpr uint32_t kLocalMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr size_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8;
constexpr uint64_t kMostEntries = 200'000;

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> all) : all_(all) {}
  bool Has(uint64_t at, uint64_t count) const { return at <= all_.size() && count <= all_.size() - at; }
  // Little-endian; the caller has checked Has.
  template <typename T>
  T At(uint64_t at) const {
    T value = 0;
    for (size_t i = sizeof(T); i-- > 0;) {
      value = static_cast<T>((static_cast<uint64_t>(value) << 8) | static_cast<uint64_t>(all_[at + i]));
    }
    return value;
  }
  std::string Text(uint64_t at, size_t count) const { return {reinterpret_cast<const char*>(all_.data()) + at, count}; }
  std::span<const std::byte> Part(uint64_t at, uint64_t count) const { return all_.subspan(at, count); }
  uint64_t size() const { return all_.size(); }

 private:
  std::span<const std::byte> all_;
};

struct Directory {
  uint64_t first = 0, bytes = 0, entries = 0;
};

struct Header {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t stored = 0, size = 0, local = 0;
};

absl::StatusOr<Directory> FindDirectory(const Bytes& file) {
  if (file.size() < kEndBytes) return base::InvalidArgument("it is no zip file: it has {} bytes", file.size());
  const uint64_t earliest = file.size() - std::min<uint64_t>(file.size(), kEndBytes + 0xffff);
  std::optional<uint64_t> end;
  for (uint64_t at = file.size() - kEndBytes + 1; at-- > earliest && !end.has_value();) {
    if (file.At<uint32_t>(at) == kEndMark && at + kEndBytes + file.At<uint16_t>(at + 20) == file.size()) end = at;
  }
  if (!end.has_value()) return base::InvalidArgument("it is no zip file, or its end is missing");
  Directory directory{file.At<uint32_t>(*end + 16), file.At<uint32_t>(*end + 12), file.At<uint16_t>(*end + 10)};
  uint64_t after = *end;
  if (directory.first == 0xffffffff || directory.bytes == 0xffffffff || directory.entries == 0xffff ||
      (*end >= kLocator64Bytes && file.At<uint32_t>(*end - kLocator64Bytes) == kLocator64Mark)) {
    if (*end < kLocator64Bytes || file.At<uint32_t>(*end - kLocator64Bytes) != kLocator64Mark) {
      return base::InvalidArgument("the zip file lacks the locator of its 64-bit directory");
    }
    const uint64_t at = file.At<uint64_t>(*end - kLocator64Bytes + 8);
    if (!file.Has(at, kEnd64Bytes) || file.At<uint32_t>(at) != kEnd64Mark || at > *end - kLocator64Bytes) {
      return base::InvalidArgument("the zip file's 64-bit directory is not where it should be");
    }
    directory = {file.At<uint64_t>(at + 48), file.At<uint64_t>(at + 40), file.At<uint64_t>(at + 32)};
    after = at;
  }
  if (directory.first > after || directory.bytes != after - directory.first || directory.entries > kMostEntries) {
    return base::InvalidArgument("the zip file's directory ({} entries, {} bytes) does not fit into the file",
                                 directory.entries, directory.bytes);
  }
  return directory;
}

// Replaces what the 32-bit fields cannot hold.
absl::Status ReadExtra64(const Bytes& file, uint64_t at, uint64_t count, Header& header) {
  const uint64_t end = at + count;
  while (end - at >= 4) {
    const auto id = file.At<uint16_t>(at), size = file.At<uint16_t>(at + 2);
    at += 4;
    if (size > end - at) break;
    if (id == 1) {
      uint64_t next = at;
      for (uint64_t* field : {&header.size, &header.stored, &header.local}) {
        if (*field != 0xffffffff) continue;
        if (next + 8 > at + size) return base::InvalidArgument("the zip entry '{}' lacks a 64-bit size", header.name);
        *field = file.At<uint64_t>(next);
        next += 8;
      }
    }
    at += size;
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& name) {
  const bool bad = name.empty() || name.front() == '/' || name.find('\\') != std::string::npos ||
                   name.find('\0') != std::string::npos || ("/" + name + "/").find("/../") != std::string::npos;
  return bad ? base::InvalidArgument("the zip entry '{}' has a name that leaves the archive", name) : absl::OkStatus();
}

// The contents of an entry, where its own header says; `ends` becomes the first byte behind it.
absl::StatusOr<std::span<const std::byte>> Locate(const Bytes& file, const Directory& directory, const Header& header,
                                                  uint64_t& ends) {
  const auto wrong = [&](const char* what) {
    return base::InvalidArgument("the zip entry '{}' {}", header.name, what);
  };
  if (header.local > directory.first || directory.first - header.local < kLocalBytes)
    return wrong("is not in the file");
  const uint64_t at = header.local;
  if (file.At<uint32_t>(at) != kLocalMark) return wrong("does not begin where the directory says");
  const auto flags = file.At<uint16_t>(at + 6);
  const auto name_bytes = file.At<uint16_t>(at + 26), extra_bytes = file.At<uint16_t>(at + 28);
  const uint64_t data = at + kLocalBytes + name_bytes + extra_bytes;
  if (data > directory.first || header.stored > directory.first - data) return wrong("is cut off");
  Header local{.name = file.Text(at + kLocalBytes, name_bytes),
               .flags = flags,
               .method = file.At<uint16_t>(at + 8),
               .crc = file.At<uint32_t>(at + 14),
               .stored = file.At<uint32_t>(at + 18),
               .size = file.At<uint32_t>(at + 22)};
  MEDLEY_RETURN_IF_ERROR(ReadExtra64(file, at + kLocalBytes + name_bytes, extra_bytes, local));
  const bool follow = (flags & kSizesFollow) != 0 && local.crc == 0 && local.stored == 0 && local.size == 0;
  const bool same = follow || (local.crc == header.crc && local.stored == header.stored && local.size == header.size);
  if (local.name != header.name || local.method != header.method || !same) return wrong("differs from the directory");
  ends = data + header.stored;
  return file.Part(data, header.stored);
}

}  // namespace

absl::StatusOr<Zip> Zip::Open(std::span<const std::byte> all) {
  const Bytes file(all);
  MEDLEY_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  Zip zip;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // from the header to the end of the contents
  uint64_t at = directory.first;
  const uint64_t end = directory.first + directory.bytes;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < kDirectoryBytes || file.At<uint32_t>(at) != kDirectoryMark) {
      return base::InvalidArgument("the zip file's directory ends after {} of {} entries", i, directory.entries);
    }
    const uint64_t name_bytes = file.At<uint16_t>(at + 28), extra_bytes = file.At<uint16_t>(at + 30);
    const uint64_t whole = kDirectoryBytes + name_bytes + extra_bytes + file.At<uint16_t>(at + 32);
    if (end - at < whole) return base::InvalidArgument("the zip file's directory is cut off at entry {}", i);
    Header header{.name = file.Text(at + kDirectoryBytes, name_bytes),
                  .flags = file.At<uint16_t>(at + 8),
                  .method = file.At<uint16_t>(at + 10),
                  .crc = file.At<uint32_t>(at + 16),
                  .stored = file.At<uint32_t>(at + 20),
                  .size = file.At<uint32_t>(at + 24),
                  .local = file.At<uint32_t>(at + 42)};
    MEDLEY_RETURN_IF_ERROR(CheckName(header.name));
    MEDLEY_RETURN_IF_ERROR(ReadExtra64(file, at + kDirectoryBytes + name_bytes, extra_bytes, header));
    at += whole;
    constexpr uint16_t kStored = 0, kDeflated = 8;
    if ((header.flags & kEncrypted) != 0) return base::InvalidArgument("the zip entry '{}' is encrypted", header.name);
    if (header.method != kStored && header.method != kDeflated) {
      return base::InvalidArgument("the zip entry '{}' has compression {}, which is not read", header.name,
                                   header.method);
    }
    if (header.method == kStored && header.stored != header.size) {
      return base::InvalidArgument("the zip entry '{}' is not compressed, but has two sizes", header.name);
    }
    uint64_t ends = 0;
    MEDLEY_ASSIGN_OR_RETURN(const auto stored, Locate(file, directory, header, ends));
    ranges.emplace_back(header.local, ends);
    const bool added =
        zip.entries_.try_emplace(header.name, Entry{stored, header.size, header.crc, header.method == kDeflated})
            .second;
    if (!added) return base::InvalidArgument("the zip file has two entries '{}'", header.name);
  }
  if (at != end)
    return base::InvalidArgument("the zip file's directory has more than its {} entries", directory.entries);
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return base::InvalidArgument("entries of the zip file overlap");
  }
  return zip;
}

const Zip::Entry* Zip::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

absl::StatusOr<std::string> Zip::Read(const std::string& name, size_t most) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return base::NotFound("the archive has no '{}'", name);
  if (entry->size > most) {
    return base::InvalidArgument("'{}' of the archive has {} bytes; at most {} are read", name, entry->size, most);
  }
  std::string out(entry->size, '\0');
  const auto* stored = reinterpret_cast<const Bytef*>(entry->stored.data());
  if (!entry->deflated) {
    std::memcpy(out.data(), stored, out.size());
  } else {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return base::Internal("zlib cannot begin");
    constexpr size_t kMostAtOnce = 1 << 30;
    if (entry->stored.size() > kMostAtOnce || out.size() > kMostAtOnce) {
      inflateEnd(&stream);
      return base::InvalidArgument("'{}' of the archive is too large to be compressed", name);
    }
    char spare = 0;  // shows contents that are longer than they say
    stream.next_in = const_cast<Bytef*>(stored);
    stream.avail_in = static_cast<uInt>(entry->stored.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &spare : out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream, Z_FINISH);
    const bool whole = result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
    inflateEnd(&stream);
    if (!whole)
      return base::InvalidArgument("'{}' of the archive does not decompress to its {} bytes", name, out.size());
  }
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size());
  if (crc != entry->crc) return base::InvalidArgument("'{}' of the archive is damaged: its checksum is wrong", name);
  return out;
}

}  // namespace medley::worker::exported
