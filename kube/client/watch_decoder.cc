#include "kube/client/watch_decoder.h"

#include "common/base/status.h"

namespace medley::kube {
namespace {

WatchEvent::Type TypeOf(const std::string& text) {
  if (text == "ADDED") return WatchEvent::Type::kAdded;
  if (text == "MODIFIED") return WatchEvent::Type::kModified;
  if (text == "DELETED") return WatchEvent::Type::kDeleted;
  if (text == "BOOKMARK") return WatchEvent::Type::kBookmark;
  if (text == "ERROR") return WatchEvent::Type::kError;
  return WatchEvent::Type::kUnknown;
}

}  // namespace

absl::Status WatchDecoder::Line(std::string_view line, const std::function<bool(WatchEvent)>& on_event) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return absl::OkStatus();
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return base::DataLoss("decoding a watch event: '{}' is not a JSON object", line.substr(0, 80));
  }
  const auto type = json.find("type");
  const auto object = json.find("object");
  if (type == json.end() || !type->is_string() || object == json.end() || !object->is_object()) {
    return base::DataLoss("decoding a watch event: '{}' has no type or no object", line.substr(0, 80));
  }
  WatchEvent event{TypeOf(type->get_ref<const std::string&>()), Object(std::move(*object))};
  if (!on_event(std::move(event))) stopped_ = true;
  return absl::OkStatus();
}

absl::Status WatchDecoder::Feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event) {
  while (!bytes.empty() && !stopped_) {
    const size_t end = bytes.find('\n');
    const size_t size = end == std::string_view::npos ? bytes.size() : end;
    if (buffer_.size() + size > max_line_bytes_) {
      return base::ResourceExhausted("decoding a watch event: the line is longer than {} bytes", max_line_bytes_);
    }
    if (end == std::string_view::npos) {
      buffer_.append(bytes);
      return absl::OkStatus();
    }
    if (buffer_.empty()) {
      MEDLEY_RETURN_IF_ERROR(Line(bytes.substr(0, end), on_event));
    } else {
      buffer_.append(bytes.substr(0, end));
      const std::string line = std::move(buffer_);
      buffer_.clear();
      MEDLEY_RETURN_IF_ERROR(Line(line, on_event));
    }
    bytes.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

}  // namespace medley::kube
