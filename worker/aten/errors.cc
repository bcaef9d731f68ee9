#include "worker/aten/errors.h"

#include <algorithm>
#include <string>

#include "common/base/status.h"
#include "worker/aten/torch.h"

namespace medley::worker::aten {
namespace {

constexpr size_t kLongest = 400;  // bytes of LibTorch's text

std::string Shortened(std::string text) {
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free."
// What follows is about settings of Python programs.
std::string OutOfMemoryText(std::string text) {
  constexpr std::string_view kLast = " is free.";
  if (const size_t end = text.find(kLast); end != std::string::npos) text.resize(end + kLast.size() - 1);
  return text;
}

}  // namespace

absl::Status FromTorch(const std::exception& error, std::string_view what) {
  const std::string text = error.what();
  const std::string first = text.substr(0, text.find('\n'));
  const bool out_of_memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
  if (!out_of_memory) return base::Internal("{}: {}", what, Shortened(first));
  return base::ResourceExhausted(
      "{}: {}; use a smaller training.batchSize, more training.microBatches, or GPUs with more memory", what,
      Shortened(OutOfMemoryText(first)));
}

}  // namespace medley::worker::aten
