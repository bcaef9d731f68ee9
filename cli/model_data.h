// The data that `medley predict` and `medley evaluate` read: a file, compressed with gzip or not, or standard input
// for "-".
#pragma once

#include <absl/status/statusor.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "worker/data/text_file.h"
#include "worker/predict/predict.h"

namespace medley::cli {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != nullptr) std::fclose(file);
  }
};

class DataFile {
 public:
  // Errors: NotFound, PermissionDenied.
  static absl::StatusOr<DataFile> Open(const std::string& path) {
    if (path == "-") return DataFile("standard input", worker::TextFile::StandardInput());
    MEDLEY_ASSIGN_OR_RETURN(worker::TextFile file, worker::TextFile::Open(path));
    return DataFile(path, std::move(file));
  }

  const std::string& name() const { return name_; }
  // Valid as long as this object.
  worker::RowStream::Read Reader() {
    return [this](char* to, size_t bytes) { return file_.Read(to, bytes); };
  }

 private:
  DataFile(std::string name, worker::TextFile file) : name_(std::move(name)), file_(std::move(file)) {}

  std::string name_;
  worker::TextFile file_;
};

// Says on standard error that rows could not be read, and what became of them.
inline void SayBadRows(const worker::BadRows& bad, const char* consequence) {
  if (bad.count == 0) return;
  std::fprintf(stderr, "medley: %lld %s cannot be read, %s; the first: %s\n", static_cast<long long>(bad.count),
               bad.count == 1 ? "row" : "rows", consequence, bad.first.c_str());
}

// Prints the error, if there is one.
inline int ExitStatusOf(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
  return 1;
}

}  // namespace medley::cli
