#include "worker/prepare/prepare.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/folds.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/negative_targets.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/text/json_tokenizer.h"
#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"
#include "common/publish/floor_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/publisher.h"
#include "worker/floor/floor_model_file.h"
#include "worker/floor/series_floor_model.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/prepare/class_rows.h"
#include "worker/prepare/data_files.h"
#include "worker/prepare/kept_file.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/local_floor.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/prepare/pretrained_check.h"
#include "worker/prepare/prior_floor.h"
#include "worker/prepare/program_check.h"
#include "worker/prepare/range_floor.h"
#include "worker/prepare/script_check.h"
#include "worker/prepare/series_floor.h"
#include "worker/prepare/threshold_floor.h"
#include "worker/prepare/tokenizers.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

// Limit for the second floor. It needs much less when it runs alone, but it gives
// way to other programs.
constexpr absl::Duration kMostFloorTime = absl::Seconds(5);
constexpr double kFloorShare = 0.2;                // of the remaining time
constexpr double kLagShare = 0.5;                  // of that, for the regression on lags
constexpr char kNextTestFile[] = "test.next.npy";  // renamed to test.npy
// A sound module is done within a second.
constexpr absl::Duration kScriptPatience = absl::Seconds(15);
constexpr absl::Duration kLeastPatience = absl::Seconds(2);
// Includes reading a large file, and encoding a large table's columns.
constexpr absl::Duration kWeightsPatience = absl::Minutes(2);
// The first floors of other Jobs have priority over our second one.
constexpr int kNiceAfterFirstFloor = 5;

// Number of columns that only the floor uses.
int FloorColumns(const TableSchema& schema) {
  return static_cast<int>(std::count_if(schema.features.begin(), schema.features.end(),
                                        [](const Column& column) { return column.floor_only; }));
}

class PrepareRun {
 public:
  PrepareRun(const rank_protocol::Prepare& task, const PrepareSpec& spec, const Clock& clock,
             const SendMessage& send)
      : task_(task), spec_(spec), clock_(clock), send_(send), begin_(clock.MonotonicNow()) {}

  absl::Status Run();

 private:
  absl::Status ReadAndFit();
  absl::Status ReadData();
  absl::Status FillCache(const DataFiles& files);
  absl::StatusOr<bool> OpenCached(const DataFiles& files);
  absl::Status WriteFolds();
  absl::StatusOr<Floor> FirstFloor();
  absl::Status PublishFloor(Floor& floor, FloorModel model, SeriesFloorModel series);
  bool FloorPredictsOthers() const;
  FloorModel PriorModel(const Floor& floor) const;
  absl::Status KeepModel(FloorModel model) const;
  absl::Status CheckUserScript();
  absl::Status CheckUserWeights();
  // Returns `most`, or half of the remaining time if that is less, but at least kLeastPatience.
  absl::Duration Patience(absl::Duration most) const;
  absl::StatusOr<std::string> ReadTokenizer() const;
  absl::Status WriteFoldTokenizers() const;
  absl::Status KeepSeriesModel(SeriesFloorModel model) const;
  absl::Status KeepVolumeModel() const;
  struct Forecast {
    Floor floor;
    SeriesFloorModel model;  // its parts alone
  };
  Forecast ForecastFloor(const LinearFloorOptions& options) const;
  absl::Status ImproveFloor(const Floor& first);
  void ReportTable() const;
  void ReportFloor(const Floor& floor) const;
  std::string InState(const std::string& path) const {
    return absl::StrCat(task_.state_dir, "/", path);
  }
  absl::Duration Spent() const { return clock_.MonotonicNow() - begin_; }
  FloorFolds Folds() const { return {fold_of_, split_}; }

  const rank_protocol::Prepare& task_;
  const PrepareSpec& spec_;
  const Clock& clock_;
  const SendMessage& send_;
  const absl::Duration begin_;
  std::string tokenizer_;  // the bytes of the one that the spec names; empty: none
  std::string key_;        // of the cache
  bool cached_ = false;
  absl::Duration read_time_;
  std::shared_ptr<const Table> table_;
  SplitSpec split_;  // with its kind resolved
  std::vector<int16_t> fold_of_;
  std::optional<SeasonalFloor> naive_;  // of a forecast
  std::optional<VolumeFloorModel> volume_model_;
  std::string lone_classes_;  // a warning of them
  std::string weights_;       // report on the pretrained weights
};

absl::StatusOr<std::string> PrepareRun::ReadTokenizer() const {
  ASSIGN_OR_RETURN(const auto file, MappedFile::Open(spec_.tokenizer_file));
  if (spec_.tokenizer_config.empty()) return std::string(file->bytes());
  absl::StatusOr<std::string> json = TokenizerOfVocabulary(file->bytes(), spec_.tokenizer_config);
  if (json.ok()) return json;
  return absl::InvalidArgumentError(
      absl::StrCat(spec_.tokenizer_file, ": ", json.status().message()));
}

absl::Status PrepareRun::ReadData() {
  ASSIGN_OR_RETURN(const std::unique_ptr<DataFiles> files, DataFiles::Open(spec_));
  if (!spec_.tokenizer_file.empty()) {
    ASSIGN_OR_RETURN(tokenizer_, ReadTokenizer());
  }
  key_ = files->Key(spec_, tokenizer_);
  ASSIGN_OR_RETURN(cached_, OpenCached(*files));
  if (cached_) return absl::OkStatus();
  RETURN_IF_ERROR(FillCache(*files));
  ASSIGN_OR_RETURN(table_, Table::Open(InState(TableCachePath(key_))));
  return absl::OkStatus();
}

// Returns whether the cache has the table and its media, undamaged.
absl::StatusOr<bool> PrepareRun::OpenCached(const DataFiles& files) {
  const std::string path = InState(TableCachePath(key_));
  absl::StatusOr<std::shared_ptr<const Table>> table = Table::Open(path);
  if (absl::IsNotFound(table.status()) || absl::IsDataLoss(table.status())) return false;
  // A fault of the state folder whatever its code, not of the user's data.
  if (!table.ok()) return absl::InternalError(table.status().message());
  // Retention deletes entries that were not used for long. It may have chosen this one just before
  // it was marked as used; then it is gone by the time its digest is verified.
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  if ((*table)->schema().content_sha256 != key_ || !(*table)->VerifyDigest().ok()) return false;
  if (files.media() != nullptr && !files.media()->IsCached(task_.state_dir, key_)) return false;
  if (access(path.c_str(), F_OK) != 0) return false;
  table_ = *std::move(table);
  return true;
}

absl::Status PrepareRun::FillCache(const DataFiles& files) {
  ASSIGN_OR_RETURN(TableRows rows, files.Read(spec_));
  rows.schema.content_sha256 = key_;
  RETURN_IF_ERROR(MakeDirs(InState(CacheDir())));
  // The table is written last: if it exists, everything else does.
  if (files.media() != nullptr) {
    RETURN_IF_ERROR(files.media()->Add(task_.state_dir, key_, rows));
  }
  return WriteTable(rows, InState(TableCachePath(key_)));
}

absl::Status PrepareRun::WriteFolds() {
  split_ = spec_.split;
  split_.kind = split_.KindFor(*table_);
  if (!spec_.volume) {
    ASSIGN_OR_RETURN(lone_classes_, CheckClassRows(*table_, spec_.train));
  }
  if (RefusesNegativeTargets(spec_.loss)) {
    RETURN_IF_ERROR(CheckNoNegativeTargets(*table_, spec_.loss, spec_.train));
  }
  if (spec_.logarithm) RETURN_IF_ERROR(CheckPositiveTargets(*table_, spec_.train));
  ASSIGN_OR_RETURN(fold_of_, MakeFolds(*table_, split_));
  RETURN_IF_ERROR(MakeDirs(InState(JobDir(task_.job))));
  // Ranks assume the default for fields that are not written.
  const bool plain = split_.shape.window == 1 && split_.shape.horizon == 0;
  if (!plain || split_.kind == SplitKind::kForward) {
    RETURN_IF_ERROR(WriteSamplePlan(InState(SamplesPath(task_.job)), split_));
  }
  return WriteNpy(InState(FoldsPath(task_.job)), {static_cast<int64_t>(fold_of_.size())},
                  absl::MakeConstSpan(fold_of_));
}

// The model is kept before its predictions are, so that whoever sees these finds it.
absl::Status PrepareRun::PublishFloor(Floor& floor, FloorModel model, SeriesFloorModel series) {
  RETURN_IF_ERROR(WriteFloor(task_.state_dir, task_.job, floor, [&]() -> absl::Status {
    RETURN_IF_ERROR(KeepModel(std::move(model)));
    RETURN_IF_ERROR(KeepVolumeModel());
    return KeepSeriesModel(std::move(series));
  }));
  PublishRequest request;
  request.state_dir = task_.state_dir;
  request.job = task_.job;
  request.table = TableCachePath(key_);
  request.metric = std::string(MetricName(spec_.metric));
  request.spec_folds = split_.folds;
  return Publish(request, clock_.WallNow()).status();
}

// Whether the floor's model predicts later rows: it sees nothing but their columns and texts.
bool PrepareRun::FloorPredictsOthers() const {
  return !spec_.volume && split_.shape.history() == 0 && FloorColumns(table_->schema()) == 0;
}

FloorModel PrepareRun::PriorModel(const Floor& floor) const {
  FloorModel model;
  model.name = floor.model;
  model.table_sha256 = table_->schema().content_sha256;
  model.input = InputSchemaOf(table_->schema());
  if (FloorPredictsOthers()) model.prior = PriorOfAllRows(*table_, Folds(), spec_.metric);
  return model;
}

absl::Status PrepareRun::KeepModel(FloorModel model) const {
  if (!FloorPredictsOthers()) return absl::OkStatus();
  model.job = task_.job;
  const std::string dir = InState(FloorDir(task_.job));
  RETURN_IF_ERROR(MakeDirs(dir));
  return WriteFloorModel(dir, model);
}

absl::Status PrepareRun::WriteFoldTokenizers() const {
  if (!spec_.tokenizer_of_folds) return absl::OkStatus();
  const absl::Status written = WriteTokenizers(*table_, fold_of_, split_, spec_.vocabulary,
                                               tokenizer_, task_.state_dir, task_.job);
  if (tokenizer_.empty() || !absl::IsInvalidArgument(written)) return written;
  return absl::InvalidArgumentError(absl::StrCat(spec_.tokenizer_file, ": ", written.message()));
}

void PrepareRun::ReportTable() const {
  const TableSchema& schema = table_->schema();
  rank_protocol::TableReady ready;
  ready.attempt = task_.attempt;
  ready.table = TableCachePath(key_);
  ready.content_sha256 = schema.content_sha256;
  ready.train_rows = schema.train_rows;
  ready.test_rows = schema.test_rows;
  ready.features = static_cast<int>(schema.features.size()) - FloorColumns(schema);
  ready.classes = static_cast<int>(schema.classes.size());
  ready.read_ms = absl::ToInt64Milliseconds(read_time_);
  ready.cached = cached_;
  ready.warnings = schema.warnings;
  for (const std::string& warning : {lone_classes_, weights_}) {
    if (!warning.empty()) ready.warnings.push_back(warning);
  }
  send_(ready);
}

void PrepareRun::ReportFloor(const Floor& floor) const {
  rank_protocol::FloorReady ready;
  ready.attempt = task_.attempt;
  ready.model = floor.model;
  ready.score = floor.score;
  ready.oof_sha256 = floor.oof_sha256;
  if (table_->schema().test_rows > 0) ready.test_sha256 = floor.test_sha256;
  send_(ready);
}

// Tries the user's own model.
absl::Status PrepareRun::CheckUserScript() {
  if (spec_.script.empty()) return absl::OkStatus();
  ScriptCheck check;
  check.program = RankProgram();
  check.path = InState(ScriptCachePath(spec_.script_sha256));
  check.sha256 = spec_.script_sha256;
  RETURN_IF_ERROR(KeepFile("model.script.file", spec_.script, check.sha256, check.path));
  check.window = split_.shape.window;
  check.past_is_input = split_.shape.horizon > 0;
  return CheckScript(check, *table_, Patience(kScriptPatience));
}

absl::Duration PrepareRun::Patience(absl::Duration most) const {
  if (task_.remaining_ms < 0) return most;
  const absl::Duration left = absl::Milliseconds(task_.remaining_ms) - Spent();
  return std::min(most, std::max(kLeastPatience, left / 2));
}

absl::Status PrepareRun::CheckUserWeights() {
  if (spec_.weights.empty()) return absl::OkStatus();
  PretrainedCheck check;
  check.program = RankProgram();
  check.state_dir = task_.state_dir;
  check.job = task_.job;
  check.table = TableCachePath(key_);
  check.spec_json = task_.spec_json;
  check.file = spec_.weights;
  check.sha256 = spec_.weights_sha256;
  ASSIGN_OR_RETURN(const std::string report, CheckPretrained(check, Patience(kWeightsPatience)));
  if (!report.empty()) weights_ = absl::StrCat("model.pretrained: ", spec_.weights, ": ", report);
  return absl::OkStatus();
}

// A forecast with a horizon has a floor of its own kind.
absl::Status PrepareRun::KeepSeriesModel(SeriesFloorModel model) const {
  const TableSchema& schema = table_->schema();
  if (!naive_.has_value() || FloorColumns(schema) > 0) return absl::OkStatus();
  model.job = task_.job;
  model.table_sha256 = schema.content_sha256;
  model.input = InputSchemaOf(schema);
  model.series = {spec_.time, spec_.series, schema.series, StepOf(*table_), schema.time_order};
  model.shape = split_.shape;
  model.period = naive_->period;
  model.season = naive_->season;
  model.prior = PriorOfAllRows(*table_, Folds(), spec_.metric);
  const std::string dir = InState(FloorDir(task_.job));
  RETURN_IF_ERROR(MakeDirs(dir));
  return WriteSeriesFloorModel(dir, model);
}

absl::Status PrepareRun::KeepVolumeModel() const {
  if (!volume_model_.has_value()) return absl::OkStatus();
  VolumeFloorModel model = *volume_model_;
  model.job = task_.job;
  model.table_sha256 = table_->schema().content_sha256;
  model.input = InputSchemaOf(table_->schema());
  return WriteVolumeFloorModel(InState(FloorDir(task_.job)), model);
}

// The row's own columns are not known, only the past is.
PrepareRun::Forecast PrepareRun::ForecastFloor(const LinearFloorOptions& options) const {
  const absl::Duration end = clock_.MonotonicNow() + options.time;
  std::vector<Floor> floors = {naive_->floor};
  const auto add = [&](std::optional<Floor> floor) {
    if (floor) floors.push_back(*std::move(floor));
  };
  LinearFloorOptions lags = options;
  lags.time = options.time * kLagShare;
  Forecast forecast;
  if (auto ridge = LagFloor(*table_, Folds(), spec_.metric, naive_->season, lags, clock_)) {
    floors.push_back(std::move(ridge->floor));
    forecast.model.ridge = std::move(ridge->folds);
  }
  for (const LocalModel kind : {LocalModel::kTheta, LocalModel::kEts}) {
    add(LocalFloor(*table_, Folds(), spec_.metric, *naive_, kind, end - clock_.MonotonicNow(),
                   clock_));
  }
  FloorMix mix = MixFloors(*table_, Folds(), spec_.metric, floors);
  for (size_t i = 0; i < floors.size(); ++i) {
    if (mix.weights[i] > 0) forecast.model.parts.push_back({floors[i].model, mix.weights[i]});
  }
  forecast.floor = std::move(mix.floor);
  return forecast;
}

absl::Status PrepareRun::ImproveFloor(const Floor& first) {
  LinearFloorOptions options;
  options.seed = split_.seed;
  options.time = kMostFloorTime;
  if (task_.remaining_ms >= 0) {
    const absl::Duration left = absl::Milliseconds(task_.remaining_ms) - Spent();
    options.time = std::min(options.time, std::max(absl::ZeroDuration(), left * kFloorShare));
  }
  options.texts = !spec_.text_columns.empty();
  std::optional<Floor> better;
  FloorModel model;
  SeriesFloorModel series;
  if (naive_) {
    Forecast forecast = ForecastFloor(options);
    better = std::move(forecast.floor);
    series = std::move(forecast.model);
  } else if (auto linear = LinearFloor(*table_, Folds(), spec_.metric, options, clock_)) {
    better = std::move(linear->floor);
    model = std::move(linear->model);
  }
  if (!better || !Better(spec_.metric, better->score, first.score)) return absl::OkStatus();
  RETURN_IF_ERROR(PublishFloor(*better, std::move(model), std::move(series)));
  ReportFloor(*better);
  return absl::OkStatus();
}

// Available within seconds. It is not improved later if rows have volumes.
absl::StatusOr<Floor> PrepareRun::FirstFloor() {
  if (spec_.volume) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const VolumeSet> volumes,
                     VolumeSet::Open(InState(VolumeCachePath(key_))));
    const std::string folder = InState(FloorDir(task_.job));
    RETURN_IF_ERROR(MakeDirs(folder));
    const auto fit = volumes->classes().size() > 1 ? RangeFloor : ThresholdFloor;
    VolumeFloorModel& model = volume_model_.emplace();
    model.volume = {spec_.volume->image,
                    volumes->channels(),
                    volumes->classes(),
                    volumes->treatment(),
                    {1, 1, 1}};
    return fit(*table_, *volumes, Folds(), spec_.metric, absl::StrCat(folder, "/", kNextTestFile),
               model);
  }
  Floor first = PriorFloor(*table_, Folds(), spec_.metric);
  naive_ = SeasonalNaiveFloor(*table_, Folds(), spec_.metric);
  if (naive_ && !Better(spec_.metric, first.score, naive_->floor.score)) first = naive_->floor;
  return first;
}

absl::Status PrepareRun::Run() { return OfUserFiles(ReadAndFit()); }

// A failure here is due to the content of the user's files, unless it is marked otherwise.
absl::Status PrepareRun::ReadAndFit() {
  RETURN_IF_ERROR(ReadData());
  read_time_ = Spent();
  RETURN_IF_ERROR(WriteFolds());
  RETURN_IF_ERROR(WritePredictionForm(task_.state_dir, task_.job, spec_.form));
  ASSIGN_OR_RETURN(Floor first, FirstFloor());
  SeriesFloorModel series;
  series.parts.push_back({first.model, 1});
  RETURN_IF_ERROR(PublishFloor(first, PriorModel(first), std::move(series)));
  // All checks come before TableReady, because folds may start after it.
  RETURN_IF_ERROR(CheckUserScript());
  if (spec_.program.has_value()) RETURN_IF_ERROR(CheckUserProgram(*spec_.program));
  RETURN_IF_ERROR(WriteFoldTokenizers());
  RETURN_IF_ERROR(CheckUserWeights());
  ReportTable();
  ReportFloor(first);
  if (spec_.volume) return absl::OkStatus();
  setpriority(PRIO_PROCESS, 0, kNiceAfterFirstFloor);
  return ImproveFloor(first);
}

void Fail(const rank_protocol::Prepare& task, const absl::Status& status, const SendMessage& send) {
  rank_protocol::Failed failed;
  failed.attempt = task.attempt;
  failed.reason = FailureReason(status);
  failed.message = std::string(status.message());
  send(failed);
}

// A program brings its own data: there is nothing to read, and no floor.
absl::Status PrepareProgram(const rank_protocol::Prepare& task, const UserProgram& program,
                            const SendMessage& send) {
  RETURN_IF_ERROR(CheckUserProgram(program));
  rank_protocol::TableReady ready;
  ready.attempt = task.attempt;
  ready.table = JobDir(task.job);
  send(ready);
  rank_protocol::Finished finished;
  finished.attempt = task.attempt;
  send(finished);
  return absl::OkStatus();
}

}  // namespace

void RunPrepare(const rank_protocol::Prepare& task, const Clock& clock, const SendMessage& send) {
  KeepToDataRoots(task.data_roots, {absl::StrCat(task.state_dir, "/jobs"),
                                    absl::StrCat(task.state_dir, "/", CacheDir())});
  const auto whole = plain::FromJson<plain::JobSpec>(task.spec_json);
  const auto program = whole.ok() ? UserProgramOf(*whole) : std::nullopt;
  if (program.has_value() && !program->answers_rows) {
    const absl::Status checked = PrepareProgram(task, *program, send);
    return checked.ok() ? void() : Fail(task, checked, send);
  }
  absl::StatusOr<PrepareSpec> spec = ParsePrepareSpec(task.spec_json);
  if (!spec.ok()) return Fail(task, spec.status(), send);
  spec->scratch = absl::StrCat(task.state_dir, "/", CacheDir());
  absl::Status status;
  try {
    status = PrepareRun(task, *spec, clock, send).Run();
  } catch (const std::bad_alloc&) {
    status = OutOfMemory(
        absl::ResourceExhaustedError(absl::StrCat("not enough memory to read ", spec->train)));
  }
  if (!status.ok()) return Fail(task, status, send);
  rank_protocol::Finished finished;
  finished.attempt = task.attempt;
  send(finished);
}

}  // namespace traind
