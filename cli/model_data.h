// The data that `medley predict` and `medley evaluate` read: a file, compressed or not, or standard input
// for "-".
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/read_progress.h"
#include "worker/data/text_file.h"
#include "worker/predict/predict.h"

namespace medley::cli {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != nullptr) std::fclose(file);
  }
};

// Says on standard error, every few seconds, how far the data are read. What is fast says nothing.
class DataProgress {
 public:
  explicit DataProgress(const std::string& what)
      : progress_(what, clock_, [](const std::string& line) {
          std::fprintf(stderr, "medley: %s\n", base::Printable(line).c_str());
        }) {}

  worker::ReadProgress& progress() { return progress_; }

 private:
  base::SystemClock clock_;
  worker::ReadProgress progress_;
};

// Tells `progress` the bytes of all files, but of those that are none, such as standard input.
inline void ExpectFiles(const std::vector<std::string>& paths, worker::ReadProgress& progress) {
  for (const std::string& path : paths) {
    std::error_code absent;
    const auto bytes = std::filesystem::file_size(path, absent);
    if (!absent) progress.Expect(static_cast<int64_t>(bytes));
  }
}

class DataFile {
 public:
  // Opens a file in the form that the model reads. Errors: NotFound, PermissionDenied.
  static absl::StatusOr<DataFile> Open(const std::string& path, const worker::ExportedModel& model) {
    const worker::TextForm form{.delimiter = model.delimiter, .header = model.schema.header};
    if (path == "-") return DataFile("standard input", worker::TextFile::StandardInput(), form);
    MEDLEY_ASSIGN_OR_RETURN(worker::TextFile file, worker::TextFile::Open(path));
    return DataFile(path, std::move(file), form);
  }

  const std::string& name() const { return name_; }
  // Valid as long as this object, and as `progress`, which may be null.
  worker::RowStream::Read Reader(worker::ReadProgress* progress) {
    return [this, progress](char* to, size_t bytes) {
      const int64_t before = file_.consumed();
      auto read = file_.Read(to, bytes);
      if (progress != nullptr) progress->Read(file_.consumed() - before);
      return read;
    };
  }

 private:
  DataFile(std::string name, worker::TextFile file, const worker::TextForm& form)
      : name_(std::move(name)), file_(std::move(file)) {
    file_.SetForm(form);
  }

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
