#include "common/object_store/object_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::object_store {
namespace {

constexpr size_t kMostWriterParts = 10'000;
constexpr size_t kPartsOfOneSize = 1000;
constexpr size_t kMostDoublings = 6;

}  // namespace

ObjectWriter::~ObjectWriter() {
  if (upload_) (void)store_.EndUpload(at_, upload_->id, {});
}

int64_t ObjectWriter::PartBytes(int64_t piece, size_t number) {
  return piece << std::min((number - 1) / kPartsOfOneSize, kMostDoublings);
}

absl::Status ObjectWriter::Add(std::string_view bytes, std::stop_token stop) {
  while (!bytes.empty()) {
    const auto most = static_cast<size_t>(PartBytes(store_.limits().piece, etags_.size() + 1));
    if (part_.size() >= most) MEDLEY_RETURN_IF_ERROR(Send(stop));
    const size_t n = std::min(bytes.size(), most - part_.size());
    part_.append(bytes, 0, n);
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status ObjectWriter::Send(std::stop_token stop) {
  if (etags_.size() >= kMostWriterParts) {
    return base::OutOfRange("writing {}: more than {} parts", NameOf(at_), kMostWriterParts);
  }
  if (!upload_) {
    MEDLEY_ASSIGN_OR_RETURN(upload_, store_.BeginUpload(at_, stop));
  }
  MEDLEY_ASSIGN_OR_RETURN(std::string etag, store_.SendPart(at_, upload_->id, static_cast<int>(etags_.size()) + 1,
                                                            std::exchange(part_, {}), stop));
  etags_.push_back(std::move(etag));
  return absl::OkStatus();
}

absl::Status ObjectWriter::Finish(std::stop_token stop) {
  if (!upload_) return store_.Put(at_, part_, stop);
  if (!part_.empty()) MEDLEY_RETURN_IF_ERROR(Send(stop));
  MEDLEY_RETURN_IF_ERROR(store_.CompleteUpload(at_, *upload_, etags_, stop));
  upload_.reset();
  return absl::OkStatus();
}

}  // namespace medley::object_store
