#include "worker/torchscript/zip_writer.h"

#include <zlib.h>

#include <cstdint>

namespace medley::worker::torchscript {
namespace {

void Number(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value);
}

// What local and central headers have in common: from the version to the length of the extra field.
void Header(std::string& out, const std::string& name, const std::string& content, uint64_t crc) {
  constexpr int kVersion = 20;
  Number(out, kVersion, 2);
  Number(out, 0, 2);  // flags
  Number(out, 0, 2);  // stored
  Number(out, 0, 4);  // time and date
  Number(out, crc, 4);
  Number(out, content.size(), 4);
  Number(out, content.size(), 4);
  Number(out, name.size(), 2);
  Number(out, 0, 2);  // extra
}

}  // namespace

std::string Zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, central;
  for (const auto& [name, content] : entries) {
    const uint64_t crc =
        crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<z_size_t>(content.size()));
    Number(central, 0x02014b50, 4);
    Number(central, 20, 2);
    Header(central, name, content, crc);
    Number(central, 0, 2 + 2 + 2 + 4);  // comment, disk, attributes
    Number(central, out.size(), 4);
    central += name;
    Number(out, 0x04034b50, 4);
    Header(out, name, content, crc);
    out += name;
    out += content;
  }
  const size_t begin = out.size();
  out += central;
  Number(out, 0x06054b50, 4);
  Number(out, 0, 4);
  Number(out, entries.size(), 2);
  Number(out, entries.size(), 2);
  Number(out, central.size(), 4);
  Number(out, begin, 4);
  Number(out, 0, 2);
  return out;
}

}  // namespace medley::worker::torchscript
