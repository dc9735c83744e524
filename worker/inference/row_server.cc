#include "worker/inference/row_server.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status_macros.h"
#include "common/publish/ensemble.h"
#include "common/publish/prediction_files.h"
#include "common/publish/quantiles.h"
#include "worker/inference/row_images.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(1);
constexpr size_t kMostReaders = 64;
// A message has about so many bytes at most, far below kMaxLineBytes.
constexpr size_t kAnswerBytes = 1 << 20;
constexpr size_t kNumberBytes = 26;  // of a number in a line of JSON
constexpr size_t kEscapedBytes = 6;  // of a byte of text

std::string TextOf(float value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace

// The rows of several requests.
struct RowServer::Batch {
  std::vector<ColumnRows> features;
  TextRows texts;               // if the models take texts
  std::vector<uint8_t> pixels;  // if the models take images
  std::vector<std::pair<const rank_protocol::Rows*, size_t>>
      requests;  // with their numbers of rows
  size_t rows = 0;
};

RowServer::RowServer(rank_protocol::Serve task, InferenceControl& control, EventSink& sink,
                     const Clock& clock)
    : task_(std::move(task)), control_(control), sink_(sink), clock_(clock) {}

RowServer::~RowServer() = default;

absl::Status RowServer::LoadModels() {
  absl::Status status;
  std::vector<AnswerPart> parts;
  nlohmann::json members = nlohmann::json::array();
  for (const ModelChoice& choice : spec_.models) {
    auto model = LoadRowModel(task_.state_dir, choice, task_.threads);
    if (model.ok() && !models_.empty() && (*model)->table_sha256() != models_[0]->table_sha256()) {
      model = absl::FailedPreconditionError("it was trained on another table");
    }
    if (!model.ok()) {
      status = model.status();
      sink_.Send(rank_protocol::LogText{
          "warning", absl::StrCat(ModelText(choice), " does not answer: ", status.message())});
      continue;
    }
    members.push_back({{"fold", choice.fold},
                       {"trial", choice.trial},
                       {"seed", choice.seed},
                       {"kind", choice.kind},
                       {"attempt", (*model)->attempt()},
                       {"complete", choice.complete},
                       {"score", choice.score},
                       {"epoch", (*model)->epoch()},
                       {"step", (*model)->step()},
                       {"weight", choice.weight}});
    (*model)->AnswerFewRows();
    weights_.push_back(choice.weight);
    parts.push_back({choice.fold, choice.fold < 0 ? -1 : choice.trial, choice.weight});
    models_.push_back(*std::move(model));
  }
  if (!models_.empty() && models_[0]->series() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the models of job ", spec_.from,
                     " forecast, so single rows do not suffice: predict a file that holds the "
                     "history of each series (trainctl predict ",
                     spec_.from, " --data FILE)"));
  }
  if (models_.empty()) {
    return absl::InvalidArgumentError(  // a retry would end in the same way
        absl::StrCat("no model of job ", spec_.from, " can predict: ", status.message()));
  }
  ScaleToOne(weights_);
  for (size_t k = 0; k < weights_.size(); ++k) {
    members[k]["weight"] = weights_[k];
    parts[k].weight = weights_[k];
  }
  join_ = AnswerJoin(std::move(parts), spec_.tuned.powers);
  members_ = members.dump();
  quality_ = models_.size() == spec_.models.size() ? spec_.quality : Quality::kDegraded;
  schema_ = models_[0]->input();
  schema_.id.clear();  // not needed, because answers keep the order of the rows
  return absl::OkStatus();
}

absl::Status RowServer::Run() {
  SetTorchThreads(task_.threads);
  ASSIGN_OR_RETURN(spec_, ParseInferenceSpec(task_.spec_json));
  RETURN_IF_ERROR(LoadModels());
  rank_protocol::Serving serving;
  serving.attempt = task_.attempt;
  serving.members = static_cast<int>(models_.size());
  sink_.Send(serving);
  absl::Duration last = clock_.MonotonicNow();
  while (control_.order() == InferenceControl::Order::kContinue) {
    std::vector<rank_protocol::Rows> requests = control_.WaitForRows(kHeartbeat);
    const absl::Duration now = clock_.MonotonicNow();
    if (!requests.empty()) {
      AnswerAll(std::move(requests));
      last = clock_.MonotonicNow();
    } else if (now - last >= spec_.idle) {
      break;
    }
    rank_protocol::Progress progress;
    progress.attempt = task_.attempt;
    sink_.SendProgress(progress);
  }
  for (const rank_protocol::Rows& request : control_.WaitForRows(absl::ZeroDuration())) {
    Refuse(request, absl::UnavailableError("the models are about to be unloaded"));
  }
  return absl::OkStatus();
}

void RowServer::AnswerAll(std::vector<rank_protocol::Rows> requests) {
  Batch batch;
  batch.features.resize(schema_.features.size());
  for (const rank_protocol::Rows& request : requests) {
    const absl::Status read = ReadRows(request, batch);
    if (!read.ok()) Refuse(request, read);
  }
  if (batch.rows == 0) return;
  std::vector<float> values;
  const absl::Status predicted = PredictBatch(batch, values);
  const size_t outputs = schema_.outputs();
  size_t at = 0;
  for (const auto& [request, rows] : batch.requests) {
    if (predicted.ok()) {
      SendAnswer(*request, absl::MakeConstSpan(values).subspan(at, rows * outputs));
    } else {
      Refuse(*request, predicted);
    }
    at += rows * outputs;
  }
}

absl::StatusOr<const FeatureReader*> RowServer::ReaderFor(const std::vector<std::string>& columns) {
  const auto found = readers_.find(columns);
  if (found != readers_.end()) return found->second.get();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (std::find(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(i), columns[i]) !=
        columns.begin() + static_cast<ptrdiff_t>(i)) {
      return absl::InvalidArgumentError(absl::StrCat("columns: '", columns[i], "' occurs twice"));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FeatureReader> reader,
                   FeatureReader::Match(schema_, columns, "rows"));
  if (readers_.size() >= kMostReaders) readers_.clear();
  return readers_.emplace(columns, std::move(reader)).first->second.get();
}

absl::Status RowServer::ReadRows(const rank_protocol::Rows& request, Batch& batch) {
  const size_t columns = request.columns.size();
  if (columns == 0 || request.values.empty() || request.values.size() % columns != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows: ", request.values.size(), " values for ", columns, " columns"));
  }
  ASSIGN_OR_RETURN(const FeatureReader* const reader, ReaderFor(request.columns));
  std::string text;
  std::vector<size_t> ends;
  for (const std::string& value : request.values) {
    absl::StrAppend(&text, absl::StripAsciiWhitespace(value));
    ends.push_back(text.size());
  }
  CsvRows rows;
  rows.Append(std::move(text), ends, columns, 1);
  std::vector<ColumnRows> features;
  RETURN_IF_ERROR(reader->Read(rows, 0, features));
  if (const ImageFields* image = models_[0]->image()) {
    TextRows images;
    reader->ReadTexts(rows, images);
    RETURN_IF_ERROR(AddRowImages(*image, images, batch.pixels));
  } else {
    reader->ReadTexts(rows, batch.texts);
  }
  for (size_t f = 0; f < features.size(); ++f) {
    ColumnRows& to = batch.features[f];
    to.numbers.insert(to.numbers.end(), features[f].numbers.begin(), features[f].numbers.end());
    to.codes.insert(to.codes.end(), features[f].codes.begin(), features[f].codes.end());
  }
  batch.requests.emplace_back(&request, rows.rows());
  batch.rows += rows.rows();
  return absl::OkStatus();
}

absl::Status RowServer::PredictBatch(const Batch& batch, std::vector<float>& values) {
  LaterRows rows;
  rows.pixels = batch.pixels.data();
  for (const ColumnRows& column : batch.features) {
    rows.numbers.push_back(column.numbers.data());
    rows.codes.push_back(column.codes.data());
  }
  for (size_t i = 0; i < batch.texts.ends.size(); ++i) rows.texts.push_back(batch.texts[i]);
  const size_t size = batch.rows * schema_.outputs();
  std::vector<std::vector<float>> model_values;
  std::vector<absl::Span<const float>> parts;
  for (const auto& model : models_) {
    std::vector<float>& out = model_values.emplace_back(size);
    RETURN_IF_ERROR(model->Predict(rows, 0, static_cast<int64_t>(batch.rows), absl::MakeSpan(out)));
  }
  for (const std::vector<float>& out : model_values) parts.push_back(out);
  values.resize(size);
  join_.Join(parts, schema_.outputs(), absl::MakeSpan(values));
  ApplyTemperature(spec_.tuned.temperature, schema_.outputs(), absl::MakeSpan(values));
  return absl::OkStatus();
}

void RowServer::SendAnswer(const rank_protocol::Rows& request, absl::Span<const float> values) {
  const size_t outputs = schema_.outputs();
  size_t longest = 0;
  for (const std::string& name : schema_.classes) longest = std::max(longest, name.size());
  const size_t row_bytes = kNumberBytes * outputs * (1 + spec_.quantiles.levels.size()) +
                           kEscapedBytes * longest + kNumberBytes;
  const size_t step = std::max<size_t>(1, kAnswerBytes / row_bytes) * outputs;
  for (size_t at = 0; at < values.size(); at += step) {
    rank_protocol::Answered answer = MakeAnswer(request, values.subspan(at, step));
    answer.more = at + step < values.size();
    sink_.Send(answer);
  }
}

rank_protocol::Answered RowServer::MakeAnswer(const rank_protocol::Rows& request,
                                              absl::Span<const float> values) const {
  rank_protocol::Answered answer;
  answer.attempt = request.attempt;
  answer.request = request.request;
  answer.targets = schema_.targets;
  answer.classes = schema_.classes;
  answer.members = members_;
  answer.quality = QualityName(quality_);
  const size_t outputs = schema_.outputs();
  if (schema_.classes.empty()) {
    answer.quantile_columns = QuantileNames({"", schema_.targets, {}, {}, spec_.quantiles});
  }
  std::vector<double> quantiles;
  for (size_t at = 0; at < values.size(); at += outputs) {
    const auto row = values.subspan(at, outputs);
    if (schema_.classes.empty()) {
      for (const float value : row) answer.values.push_back(TextOf(value));
      if (answer.quantile_columns.empty()) continue;
      QuantilesAt(spec_.quantiles, row, /*step=*/0, quantiles);
      answer.quantiles.insert(answer.quantiles.end(), quantiles.begin(), quantiles.end());
      continue;
    }
    answer.values.push_back(schema_.classes[LabelOf(row, spec_.tuned.threshold)]);
    answer.probabilities.insert(answer.probabilities.end(), row.begin(), row.end());
  }
  return answer;
}

void RowServer::Refuse(const rank_protocol::Rows& request, const absl::Status& why) {
  rank_protocol::Answered answer;
  answer.attempt = request.attempt;
  answer.request = request.request;
  answer.code = absl::StrCat(why.raw_code());
  answer.message = std::string(why.message());
  sink_.Send(answer);
}

}  // namespace traind
