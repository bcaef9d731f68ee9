// Hashes of what a job trains, by which it knows its own checkpoints and its own journal. Pure.
#pragma once

#include <fmt/core.h>

#include <string>

#include "common/base/hash.h"
#include "common/model/job_spec.h"

namespace medley::worker {

// A hash of model, training data, schema, weights of classes, optimizer with its constants, learning rate and its
// schedule, batch size and seed. A job restores only checkpoints with its own hash. The number of epochs is not part of
// it: a checkpoint is as good for more of them.
inline std::string ModelFingerprint(const model::JobSpec& spec) {
  const model::TrainingSpec& t = spec.training;
  std::string text = model::ProfileHash(spec) + "/" + t.optimizer + "/" + std::to_string(t.learning_rate) + "/" +
                     std::to_string(t.seed) + "/" + std::to_string(t.batch_size);
  if (t.beta1) text += fmt::format("/beta1 {}", *t.beta1);
  if (t.beta2) text += fmt::format("/beta2 {}", *t.beta2);
  if (t.momentum) text += fmt::format("/momentum {} {}", *t.momentum, t.nesterov);
  if (t.weight_decay) text += fmt::format("/weightDecay {}", *t.weight_decay);
  if (t.row_decay) text += fmt::format("/rowDecay {}", *t.row_decay);
  if (t.alpha) text += fmt::format("/alpha {}", *t.alpha);
  if (t.clip_norm) text += fmt::format("/clipNorm {}", *t.clip_norm);
  if (t.epsilon) text += fmt::format("/epsilon {}", *t.epsilon);
  if (const auto& s = t.schedule) {
    text += fmt::format("/{}/{}/{}/{}/{}/{}", s->kind, s->warmup_steps, s->every_steps, s->factor, s->steps,
                        s->final_factor);
  }
  text += model::ClassWeightsText(t);
  const model::SchemaSpec& schema = spec.data.schema;
  if (schema.label_log) text += "/log";
  if (schema.weight_column >= 0 || !schema.names.weight.empty()) {
    text += fmt::format("/weight {}:{}", schema.weight_column, schema.names.weight);
  }
  if (!spec.model.initial_from.empty()) text += "/initialFrom " + spec.model.initial_from;
  return base::HashHex(text);
}

// What names a source: every text with its length, so that no two sources are the same text.
inline std::string SourceText(const model::SourceSpec& source) {
  std::string text =
      fmt::format("/{}/{}:{}/{}:{}", source.format, source.uri.size(), source.uri, source.labels.size(), source.labels);
  for (const auto& [name, uri] : source.files) text += fmt::format("/{}:{}/{}:{}", name.size(), name, uri.size(), uri);
  return text;
}

// A hash of the fingerprint, the exact learning rate, the format and header of the data, the meaning of labels, the
// number of epochs, the test data, files of validation data, the choice of the exported model, and early stopping with
// its evaluations: all that decides which samples a job trains
// and what it reports at its end. A coordinator continues only a journal with its own hash. How the job is planned,
// priced and checkpointed, on how many micro-batches, when it is evaluated if it cannot stop early, and how many bad
// rows it accepts are not part of it.
inline std::string JobDigest(const model::JobSpec& spec) {
  const model::SourceSpec test = spec.data.test.value_or(model::SourceSpec());
  const model::SchemaSpec& schema = spec.data.schema;
  std::string text = fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", ModelFingerprint(spec), spec.training.learning_rate,
                                 spec.data.train.format, schema.label_positive, schema.header, spec.training.epochs,
                                 test.uri, test.format);
  if (!test.labels.empty() || !test.files.empty()) {
    text += fmt::format("/{}:{}", test.labels.size(), test.labels);
    for (const auto& [name, uri] : test.files) text += fmt::format("/{}:{}/{}:{}", name.size(), name, uri.size(), uri);
  }
  if (const auto& validation = spec.data.validation; validation && validation->fraction <= 0) {
    text += "/validation" + SourceText(validation->source);
  }
  if (!spec.export_best) text += "/export Last";
  if (spec.training.evaluation && !spec.training.evaluation->metric.empty()) {
    text += "/metric " + spec.training.evaluation->metric;
  }
  if (const auto& stopping = spec.training.early_stopping) {
    const model::EvaluationSpec when = spec.training.evaluation.value_or(model::EvaluationSpec());
    text += fmt::format("/{}/{}/{}/{}/{}", stopping->metric, stopping->patience, stopping->min_delta, when.every_epochs,
                        when.every_steps);
  }
  return base::HashHex(text);
}

}  // namespace medley::worker
