// medley-torchscript NAME:float32:1,28,28...: reads a model that torch.jit.save wrote from standard input, and writes
// it to standard output as torch.export.save would. Before it looks at it, it gives up all rights but computing.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/torchscript/lower.h"
#include "worker/torchscript/sandbox.h"
#include "worker/torchscript/warm_up.h"
#include "worker/torchscript/zip_writer.h"

namespace medley::worker::torchscript {
namespace {

absl::StatusOr<std::string> ReadAll() {
  constexpr size_t kMost = size_t{4} << 30;
  std::string all;
  std::vector<char> block(size_t{1} << 20);
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count < 0) return base::Internal("standard input cannot be read");
    if (count == 0) return all;
    all.append(block.data(), static_cast<size_t>(count));
    if (all.size() > kMost) return base::InvalidArgument("the model has more than 4 GiB");
  }
}

absl::Status WriteAll(const std::string& bytes) {
  for (size_t written = 0; written < bytes.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data() + written, bytes.size() - written);
    if (count <= 0) return base::Internal("standard output cannot be written");
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& arguments) {
  std::vector<SampleInput> inputs;
  for (const std::string& argument : arguments) {
    MEDLEY_ASSIGN_OR_RETURN(inputs.emplace_back(), ParseSample(argument));
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string file, ReadAll());
  WarmUp();
  MEDLEY_RETURN_IF_ERROR(GiveUpRights({}));
  MEDLEY_ASSIGN_OR_RETURN(const Entries entries, Lower(file, inputs));
  return WriteAll(Zip(entries));
}

}  // namespace
}  // namespace medley::worker::torchscript

int main(int argc, char** argv) {
  const absl::Status status = medley::worker::torchscript::Run({argv + 1, argv + argc});
  if (!status.ok()) {
    // The first character is the status code, for the reader that started this program.
    std::fputs(fmt::format("{}\n{}", static_cast<int>(status.code()), medley::base::Message(status)).c_str(), stderr);
    std::fflush(stderr);
  }
  _exit(status.ok() ? 0 : 1);  // without destructors of libraries, which may want rights
}
