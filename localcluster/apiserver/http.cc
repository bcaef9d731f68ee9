#include "localcluster/apiserver/http.h"

namespace medley::kube::apiserver {
namespace {

int Hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool Decode(std::string_view text, bool plus, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = Hex(text[i + 1]);
      const int low = Hex(text[i + 2]);
      if (high < 0 || low < 0) return false;
      *out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      *out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return true;
}

}  // namespace

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
  if (!Decode(target.substr(0, mark), false, &request->path)) return false;
  if (mark == std::string_view::npos) return true;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    const std::string_view part = rest.substr(0, end);
    const size_t equals = part.find('=');
    std::pair<std::string, std::string> entry;
    if (!Decode(part.substr(0, equals), true, &entry.first)) return false;
    if (equals != std::string_view::npos && !Decode(part.substr(equals + 1), true, &entry.second)) {
      return false;
    }
    if (!part.empty()) request->query.push_back(std::move(entry));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return true;
}

}  // namespace medley::kube::apiserver
