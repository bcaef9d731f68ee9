#include "worker/checkpoint/header.h"

#include <cstring>

#include "common/base/status.h"
#include "common/model/fingerprint.h"
#include "worker/checkpoint/format.h"

namespace medley::worker {
namespace {

namespace fmtn = checkpoint_format;

constexpr size_t kFixed = kHeaderStart + 8 + 8 + 4 + 4 + 4 + 4;

template <typename T>
T TakeValue(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

}  // namespace

std::string FileName(const CheckpointFileHeader& header) {
  return header.kind == CheckpointFileKind::kDense ? DenseFileName(header.generation, header.shard)
                                                   : RowsFileName(header.generation, header.shard);
}

absl::StatusOr<std::string> EncodeHeader(const CheckpointFileHeader& header) {
  const CheckpointOwner& owner = header.owner;
  const size_t length = kFixed + owner.job_uid.size() + owner.model_fingerprint.size() + 4;
  if (length > kMaxHeader) {
    return base::InvalidArgument("checkpoint: the uid or fingerprint of a job with uid {} is too long",
                                 owner.job_uid.substr(0, 64));
  }
  std::string bytes(fmtn::kMagic);
  fmtn::Append(bytes, fmtn::kVersion);
  fmtn::Append(bytes, static_cast<uint32_t>(length));
  fmtn::Append(bytes, header.generation);
  fmtn::Append(bytes, header.step);
  fmtn::Append(bytes, static_cast<uint32_t>(header.kind));
  fmtn::Append(bytes, header.shard);
  fmtn::Append(bytes, static_cast<uint32_t>(owner.job_uid.size()));
  fmtn::Append(bytes, static_cast<uint32_t>(owner.model_fingerprint.size()));
  bytes += owner.job_uid;
  bytes += owner.model_fingerprint;
  fmtn::Append(bytes, fmtn::Crc32(0, bytes.data(), bytes.size()));
  return bytes;
}

absl::StatusOr<size_t> HeaderLength(std::string_view start) {
  if (start.size() < kHeaderStart || !start.starts_with(fmtn::kMagic)) {
    return base::DataLoss("the file is not a checkpoint file");
  }
  start.remove_prefix(fmtn::kMagic.size());
  const auto version = TakeValue<uint32_t>(start);
  if (version != fmtn::kVersion) {
    return base::DataLoss("version {} is of another version of Medley, this program reads version {}", version,
                          fmtn::kVersion);
  }
  const auto length = TakeValue<uint32_t>(start);
  if (length < kFixed + 4 || length > kMaxHeader) return base::DataLoss("the header of the file is damaged");
  return length;
}

absl::StatusOr<CheckpointFileHeader> DecodeHeader(std::string_view bytes) {
  MEDLEY_ASSIGN_OR_RETURN(const size_t length, HeaderLength(bytes));
  const absl::Status damaged = base::DataLoss("the header of the file is damaged");
  if (bytes.size() != length) return damaged;
  std::string_view end = bytes.substr(length - 4);
  if (TakeValue<uint32_t>(end) != fmtn::Crc32(0, bytes.data(), length - 4)) return damaged;
  bytes = bytes.substr(kHeaderStart, length - kHeaderStart - 4);
  CheckpointFileHeader header;
  header.generation = TakeValue<int64_t>(bytes);
  header.step = TakeValue<int64_t>(bytes);
  header.kind = static_cast<CheckpointFileKind>(TakeValue<uint32_t>(bytes));
  header.shard = TakeValue<int32_t>(bytes);
  const size_t uid = TakeValue<uint32_t>(bytes);
  const size_t fingerprint = TakeValue<uint32_t>(bytes);
  if (uid + fingerprint != bytes.size()) return damaged;
  if (header.kind != CheckpointFileKind::kDense && header.kind != CheckpointFileKind::kRows) return damaged;
  header.owner.job_uid = bytes.substr(0, uid);
  header.owner.model_fingerprint = bytes.substr(uid);
  return header;
}

absl::Status CheckBelongs(const CheckpointFileHeader& header, const std::string& name,
                          const CheckpointManifest& manifest) {
  const bool imported = !manifest.origin_uid.empty();
  const std::string& uid = imported ? manifest.origin_uid : manifest.job_uid;
  const int64_t generation = imported ? manifest.origin_generation : manifest.generation;
  if (header.owner.job_uid != uid) {
    return base::DataLoss("{}: the file was written by the job with uid {}, the manifest names {}", name,
                          header.owner.job_uid, uid);
  }
  // While Medley is updated, members and the coordinator of a job may be of two versions, whose fingerprints differ.
  if (header.owner.model_fingerprint != manifest.model_fingerprint &&
      model::Comparable(header.owner.model_fingerprint, manifest.model_fingerprint)) {
    return base::DataLoss("{}: the model fingerprint of the file is {}, the manifest says {}", name,
                          header.owner.model_fingerprint, manifest.model_fingerprint);
  }
  if (header.generation != generation) {
    return base::DataLoss("{}: the file was written by generation {}, the manifest says {}", name, header.generation,
                          generation);
  }
  if (header.step != manifest.step) {
    return base::DataLoss("{}: the file is of step {}, the manifest says {}", name, header.step, manifest.step);
  }
  if (FileName(header) != name) {
    return base::DataLoss("{}: the file was written under the name {}", name, FileName(header));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
