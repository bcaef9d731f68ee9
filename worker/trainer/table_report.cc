#include "worker/trainer/table_report.h"

#include "common/model/convert_tables.h"

namespace medley::worker {

void TableReport::Fill(const TrainerState& state, job::v1::Progress& progress) {
  const TableCounts now = state.DeviceTables();
  if (of_ != &state) counted_ = {};
  of_ = &state;
  if (now.place == model::TablePlace::kUnspecified) return;
  job::v1::DeviceTables& tables = *progress.mutable_device_tables();
  tables.set_place(model::ToProto(now.place));
  tables.set_instead(now.instead);
  tables.set_used_rows(now.used_rows - counted_.used_rows);
  tables.set_found_rows(now.found_rows - counted_.found_rows);
  tables.set_bytes_in(now.bytes_in - counted_.bytes_in);
  tables.set_bytes_out(now.bytes_out - counted_.bytes_out);
  counted_ = now;
}

}  // namespace medley::worker
