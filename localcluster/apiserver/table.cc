#include "localcluster/apiserver/table.h"

#include <fmt/format.h>

#include "localcluster/apiserver/printers.h"

namespace medley::localcluster::apiserver {
namespace {

// The cell of a CRD's column: the first value at its path, formatted by its type.
kube::Json CrdCell(const kube::Json& object, const kube::Json& column, base::WallTime now) {
  const kube::Json value = JsonPath(object, column.value("jsonPath", ""));
  const std::string type = column.value("type", "string");
  if (value.is_null()) return nullptr;
  if (type == "date") return value.is_string() ? kube::Json(Age(value.get<std::string>(), now)) : kube::Json();
  if (type == "integer") {
    return value.is_number() ? kube::Json(static_cast<int64_t>(value.get<double>())) : kube::Json();
  }
  if (type == "number") return value.is_number() ? value : kube::Json();
  if (type == "boolean") return value.is_boolean() ? value : kube::Json();
  return value.is_string() ? value : kube::Json(kube::Dump(value));
}

std::vector<PrinterColumn> CrdColumns(const ResourceInfo& info, base::WallTime now) {
  std::vector<PrinterColumn> columns = {NameColumn()};
  for (const kube::Json& column : info.columns) {
    if (!column.is_object()) continue;
    columns.push_back({column.value("name", ""), column.value("type", "string"), column.value("priority", 0),
                       [&column, now](const kube::Json& object) { return CrdCell(object, column, now); }});
  }
  return columns;
}

kube::Json RowObject(const kube::Json& object, const std::string& include) {
  if (include == "Object") return object;
  if (include == "None") return nullptr;
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", kube::Json::object())}};
}

}  // namespace

std::string HumanDuration(base::nanoseconds age) {
  const int64_t s = std::chrono::duration_cast<base::seconds>(age).count();
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  const int64_t m = s / 60;
  const int64_t h = m / 60;
  const auto two = [](int64_t a, const char* ua, int64_t b, const char* ub) {
    return b == 0 ? fmt::format("{}{}", a, ua) : fmt::format("{}{}{}{}", a, ua, b, ub);
  };
  if (m < 10) return two(m, "m", s % 60, "s");
  if (m < 180) return fmt::format("{}m", m);
  if (h < 8) return two(h, "h", m % 60, "m");
  if (h < 48) return fmt::format("{}h", h);
  if (h < 24 * 8) return two(h / 24, "d", h % 24, "h");
  if (h < 24 * 365 * 2) return fmt::format("{}d", h / 24);
  if (h < 24 * 365 * 8) return two(h / 24 / 365, "y", h / 24 % 365, "d");
  return fmt::format("{}y", h / 24 / 365);
}

kube::Json MakeTable(const ResourceInfo& info, const std::vector<const kube::Json*>& objects, base::WallTime now,
                     const std::string& include) {
  const std::vector<PrinterColumn> columns =
      info.columns.is_array() ? CrdColumns(info, now) : BuiltinColumns(info, now);
  kube::Json definitions = kube::Json::array();
  for (const PrinterColumn& column : columns) {
    definitions.push_back({{"name", column.name},
                           {"type", column.type},
                           {"format", column.name == "Name" ? "name" : ""},
                           {"description", ""},
                           {"priority", column.priority}});
  }
  kube::Json rows = kube::Json::array();
  for (const kube::Json* object : objects) {
    kube::Json cells = kube::Json::array();
    for (const PrinterColumn& column : columns) cells.push_back(column.cell(*object));
    rows.push_back({{"cells", std::move(cells)}, {"object", RowObject(*object, include)}});
  }
  kube::Json table = {{"kind", "Table"},
                      {"apiVersion", "meta.k8s.io/v1"},
                      {"metadata", kube::Json::object()},
                      {"columnDefinitions", std::move(definitions)},
                      {"rows", std::move(rows)}};
  if (objects.size() == 1) {
    table["metadata"]["resourceVersion"] = objects[0]->at("metadata").value("resourceVersion", "");
  }
  return table;
}

}  // namespace medley::localcluster::apiserver
