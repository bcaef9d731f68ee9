// The data that `medley predict` and `medley evaluate` read: a file, or standard input for "-".
#pragma once

#include <absl/status/statusor.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "worker/predict/row_stream.h"

namespace medley::cli {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != nullptr && file != stdin) std::fclose(file);
  }
};

class DataFile {
 public:
  // Errors: NotFound, PermissionDenied.
  static absl::StatusOr<DataFile> Open(const std::string& path) {
    const bool standard = path == "-";
    std::FILE* const file = standard ? stdin : std::fopen(path.c_str(), "rb");
    if (file == nullptr) return base::ErrnoStatus(errno, "opening " + path);
    return DataFile(standard ? "standard input" : path, file);
  }

  const std::string& name() const { return name_; }
  // Valid as long as this object.
  worker::RowStream::Read Reader() {
    return [file = file_.get(), name = name_](char* to, size_t bytes) -> absl::StatusOr<size_t> {
      const size_t n = std::fread(to, 1, bytes, file);
      if (n == 0 && std::ferror(file) != 0) return base::ErrnoStatus(errno, "reading " + name);
      return n;
    };
  }

 private:
  DataFile(std::string name, std::FILE* file) : name_(std::move(name)), file_(file) {}

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

// Prints the error, if there is one.
inline int ExitStatusOf(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
  return 1;
}

}  // namespace medley::cli
