#include "common/http_server/message.h"

namespace medley::http_server {

std::string HttpRequest::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return "";
}

bool HttpRequest::Is(std::string_view name) const {
  const std::string value = Query(name);
  return value == "true" || value == "1";
}

bool ParseTarget(std::string_view target, HttpRequest* request) {
  const size_t mark = target.find('?');
  auto path = base::UrlDecode(target.substr(0, mark));
  auto query = base::QueryDecode(mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1));
  if (!path || !query) return false;
  request->path = *std::move(path);
  request->query = *std::move(query);
  return true;
}

}  // namespace medley::http_server
