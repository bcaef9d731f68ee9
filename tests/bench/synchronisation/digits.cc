#include "tests/bench/synchronisation/digits.h"

#include <array>
#include <fstream>
#include <numeric>

#include "common/base/file.h"
#include "common/base/gzip.h"
#include "common/base/status.h"
#include "worker/data/permutation.h"

namespace medley::bench {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

absl::StatusOr<std::vector<uint8_t>> Unzip(const std::string& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string file, base::ReadFile(path, kMostBytes));
  MEDLEY_ASSIGN_OR_RETURN(const std::string bytes, base::Gunzip(file, kMostBytes));
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

uint32_t BigEndian(const std::vector<uint8_t>& bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

void Header(std::ofstream& out, const std::vector<size_t>& dimensions) {
  out << '\0' << '\0' << '\x08' << static_cast<char>(dimensions.size());
  for (const size_t size : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) out << static_cast<char>(size >> shift & 0xff);
  }
}

}  // namespace

absl::StatusOr<Digits> ReadDigits(const std::filesystem::path& prefix) {
  MEDLEY_ASSIGN_OR_RETURN(const auto images, Unzip(prefix.string() + "-images-idx3-ubyte.gz"));
  MEDLEY_ASSIGN_OR_RETURN(const auto labels, Unzip(prefix.string() + "-labels-idx1-ubyte.gz"));
  if (images.size() < 16 || labels.size() < 8) return base::InvalidArgument("{}: no header", prefix.string());
  Digits digits{.width = static_cast<int>(BigEndian(images, 12)), .height = static_cast<int>(BigEndian(images, 8))};
  const size_t size = static_cast<size_t>(digits.width) * static_cast<size_t>(digits.height);
  const size_t count = BigEndian(images, 4);
  if (images.size() != 16 + count * size || labels.size() != 8 + count) {
    return base::InvalidArgument("{}: {} and {} bytes for {} images", prefix.string(), images.size(), labels.size(),
                                 count);
  }
  digits.labels.assign(labels.begin() + 8, labels.end());
  for (size_t i = 0; i < count; ++i) {
    const auto begin = images.begin() + static_cast<ptrdiff_t>(16 + i * size);
    digits.images.emplace_back(begin, begin + static_cast<ptrdiff_t>(size));
  }
  return digits;
}

Digits Arrange(const Digits& all, const Holdings& holdings, int64_t rows, int batch, uint64_t seed) {
  std::array<std::vector<size_t>, 10> of_digit;
  for (size_t i = 0; i < all.labels.size(); ++i) of_digit[all.labels[i]].push_back(i);
  std::array<size_t, 10> used{};
  Digits arranged{.width = all.width, .height = all.height};
  arranged.images.resize(static_cast<size_t>(rows));
  arranged.labels.resize(static_cast<size_t>(rows));
  const worker::Permutation order(rows, seed, 0);
  std::vector<int> every(10);
  std::iota(every.begin(), every.end(), 0);
  const auto replicas = static_cast<int64_t>(holdings.size());
  for (int64_t position = 0; position < rows; ++position) {
    const int64_t in_batch = position % batch;
    const std::vector<int>& held = replicas == 0 ? every : holdings[static_cast<size_t>(in_batch * replicas / batch)];
    const int digit = held[static_cast<size_t>((in_batch + position / batch) % std::ssize(held))];
    const auto slot = static_cast<size_t>(digit);
    const size_t image = of_digit[slot][used[slot]++ % of_digit[slot].size()];
    const auto row = static_cast<size_t>(order(position));
    arranged.images[row] = all.images[image];
    arranged.labels[row] = all.labels[image];
  }
  return arranged;
}

absl::Status WriteDigits(const Digits& digits, const Canvas& canvas, const std::filesystem::path& folder,
                         const std::string& name) {
  std::ofstream labels(folder / (name + "-labels"), std::ios::binary);
  Header(labels, {digits.labels.size()});
  labels.write(reinterpret_cast<const char*>(digits.labels.data()), static_cast<std::streamsize>(digits.labels.size()));
  std::ofstream images(folder / (name + "-images"), std::ios::binary);
  const auto side = static_cast<size_t>(canvas.side);
  std::vector<size_t> dimensions = {digits.images.size(), side, side};
  if (canvas.channels > 1) dimensions.insert(dimensions.begin() + 1, static_cast<size_t>(canvas.channels));
  Header(images, dimensions);
  const auto width = static_cast<size_t>(digits.width), height = static_cast<size_t>(digits.height);
  const size_t left = (side - width) / 2, top = (side - height) / 2;
  std::vector<char> plane(side * side);
  for (const std::vector<uint8_t>& image : digits.images) {
    std::fill(plane.begin(), plane.end(), '\0');
    for (size_t y = 0; y < height; ++y) {
      std::copy_n(image.begin() + static_cast<ptrdiff_t>(y * width), width,
                  plane.begin() + static_cast<ptrdiff_t>((y + top) * side + left));
    }
    for (int channel = 0; channel < canvas.channels; ++channel) {
      images.write(plane.data(), static_cast<std::streamsize>(plane.size()));
    }
  }
  if (!labels.flush() || !images.flush()) return base::Internal("cannot write {}/{}", folder.string(), name);
  return absl::OkStatus();
}

}  // namespace medley::bench
