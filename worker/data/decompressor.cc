#include "worker/data/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits

class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() { MEDLEY_CHECK(inflateInit2(&stream_, kWindow) == Z_OK, "zlib has no memory"); }
  ~GzipDecompressor() override { inflateEnd(&stream_); }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;

  const char* format() const override { return "gzip"; }
  bool complete() const override { return !in_member_; }

  absl::StatusOr<size_t> Decompress(std::string_view& in, char* to, size_t bytes) override {
    // Zeros may fill up the last block of a tape.
    if (!in_member_ && began_ && in.starts_with('\0')) {
      in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
      return 0;
    }
    in_member_ = began_ = true;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib does not write there
    stream_.avail_in = static_cast<uInt>(std::min(in.size(), kMostAtOnce));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min(bytes, kMostAtOnce));
    const uInt given = stream_.avail_in, room = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(given - stream_.avail_in);
    if (result == Z_STREAM_END) {
      in_member_ = false;
      inflateReset2(&stream_, kWindow);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return base::DataLoss("the gzip data are damaged ({})", stream_.msg == nullptr ? "unknown error" : stream_.msg);
    }
    return room - stream_.avail_out;
  }

 private:
  static constexpr int kWindow = 16 + MAX_WBITS;  // window bits of zlib for gzip only

  z_stream stream_ = {};
  bool began_ = false;
  bool in_member_ = false;
};

class ZstdDecompressor final : public Decompressor {
 public:
  ZstdDecompressor() : stream_(ZSTD_createDStream()) { MEDLEY_CHECK(stream_ != nullptr, "zstd has no memory"); }

  const char* format() const override { return "zstd"; }
  bool complete() const override { return wanted_ == 0; }

  absl::StatusOr<size_t> Decompress(std::string_view& in, char* to, size_t bytes) override {
    ZSTD_inBuffer from = {in.data(), in.size(), 0};
    ZSTD_outBuffer into = {to, bytes, 0};
    wanted_ = ZSTD_decompressStream(stream_.get(), &into, &from);
    if (ZSTD_isError(wanted_) != 0) {
      return base::DataLoss("the zstd data are damaged ({})", ZSTD_getErrorName(wanted_));
    }
    in.remove_prefix(from.pos);
    return into.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  std::unique_ptr<ZSTD_DStream, Free> stream_;
  size_t wanted_ = 0;  // 0 at the end of a frame
};

}  // namespace

std::unique_ptr<Decompressor> MakeDecompressor(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b")) return std::make_unique<GzipDecompressor>();
  // A file may also begin with a frame that is skipped: its numbers are 0x184D2A50 to 0x184D2A5F, little-endian.
  const bool skipped =
      beginning.size() >= 4 && (beginning[0] & 0xf0) == 0x50 && beginning.substr(1).starts_with("\x2a\x4d\x18");
  if (skipped || beginning.starts_with("\x28\xb5\x2f\xfd")) return std::make_unique<ZstdDecompressor>();
  return nullptr;
}

const char* CompressionOfName(std::string_view name) {
  if (name.ends_with(".gz")) return "gzip";
  return name.ends_with(".zst") ? "zstd" : nullptr;
}

}  // namespace medley::worker
