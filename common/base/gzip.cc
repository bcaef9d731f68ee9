#include "common/base/gzip.h"

#include <absl/cleanup/cleanup.h>
#include <zlib.h>

#include <limits>

#include "common/base/status.h"

namespace medley::base {

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(std::string_view bytes, int64_t max_bytes) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return InvalidArgument("the gzip file is too large");
  constexpr int kGzip = 16 + MAX_WBITS;  // window bits of zlib for gzip only
  z_stream stream{};
  MEDLEY_CHECK(inflateInit2(&stream, kGzip) == Z_OK, "zlib has no memory");
  const absl::Cleanup end = [&] { inflateEnd(&stream); };
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  char buffer[1 << 16];
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) return InvalidArgument("the gzip file is damaged or incomplete");
    out.append(buffer, sizeof buffer - stream.avail_out);
    if (static_cast<int64_t>(out.size()) > max_bytes) {
      return ResourceExhausted("the content of the gzip file has more than {} bytes", max_bytes);
    }
  }
  if (stream.avail_in > 0) return InvalidArgument("the gzip file has {} bytes after its end", stream.avail_in);
  return out;
}

}  // namespace medley::base
