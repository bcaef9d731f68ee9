#include "worker/data/decompressor.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // ISA-L counts in 32 bits

// ISA-L decompresses several times as fast as zlib. It reads some bytes ahead, which may already be of the next member.
class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() {
    isal_inflate_init(&stream_);
    stream_.crc_flag = ISAL_GZIP;
  }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;

  const char* format() const override { return "gzip"; }
  bool complete() const override { return !in_member_ && ahead_.empty(); }

  absl::StatusOr<size_t> Decompress(std::string_view& in, char* to, size_t bytes) override {
    if (ahead_.empty()) return DecompressNext(in, to, bytes);
    const std::string ahead = std::exchange(ahead_, {});
    std::string_view rest = ahead;
    MEDLEY_ASSIGN_OR_RETURN(const size_t count, DecompressNext(rest, to, bytes));
    ahead_.append(rest);
    return count;
  }

 private:
  absl::StatusOr<size_t> DecompressNext(std::string_view& in, char* to, size_t bytes) {
    // Zeros may fill up the last block of a tape.
    if (!in_member_ && began_ && in.starts_with('\0')) {
      in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
      return 0;
    }
    // ISA-L would wait for a whole header.
    if (!in_member_ && !in.empty() && !in.starts_with('\x1f')) {
      return base::DataLoss("the gzip data are damaged ({})", Reason(ISAL_INVALID_WRAPPER));
    }
    in_member_ = began_ = true;
    stream_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(in.data()));  // nothing is written there
    stream_.avail_in = static_cast<uint32_t>(std::min(in.size(), kMostAtOnce));
    stream_.next_out = reinterpret_cast<uint8_t*>(to);
    stream_.avail_out = static_cast<uint32_t>(std::min(bytes, kMostAtOnce));
    const uint32_t given = stream_.avail_in, room = stream_.avail_out;
    const int result = isal_inflate(&stream_);
    if (result < ISAL_DECOMP_OK) return base::DataLoss("the gzip data are damaged ({})", Reason(result));
    in.remove_prefix(given - stream_.avail_in);
    const size_t written = room - stream_.avail_out;
    if (stream_.block_state == ISAL_BLOCK_FINISH) EndMember();
    return written;
  }

  void EndMember() {
    in_member_ = false;
    for (int i = 0; i < stream_.read_in_length / 8; ++i) {
      ahead_.push_back(static_cast<char>(stream_.read_in >> (8 * i) & 0xff));
    }
    isal_inflate_reset(&stream_);
  }

  static const char* Reason(int result) {
    switch (result) {
      case ISAL_INVALID_WRAPPER:
      case ISAL_UNSUPPORTED_METHOD:
        return "incorrect header";
      case ISAL_INCORRECT_CHECKSUM:
        return "incorrect checksum";
      default:
        return "invalid block";
    }
  }

  inflate_state stream_;
  std::string ahead_;  // what was read after the end of the last member
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
