#include "worker/prepare/prepare.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/folds.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/publish/floor_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/publisher.h"
#include "worker/prepare/data_files.h"
#include "worker/prepare/kept_file.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/prepare/pretrained_check.h"
#include "worker/prepare/prior_floor.h"
#include "worker/prepare/range_floor.h"
#include "worker/prepare/script_check.h"
#include "worker/prepare/series_floor.h"
#include "worker/prepare/threshold_floor.h"
#include "worker/prepare/tokenizers.h"

namespace traind {
namespace {

// Of the second floor. Much more than it takes alone: it gives way to others.
constexpr absl::Duration kMostFloorTime = absl::Seconds(5);
constexpr double kFloorShare = 0.2;                // of the time that remains
constexpr char kNextTestFile[] = "test.next.npy";  // becomes test.npy
// A module that is sound is through in a second.
constexpr absl::Duration kScriptPatience = absl::Seconds(15);
constexpr absl::Duration kLeastPatience = absl::Seconds(2);
// Reading a large file, and encoding a large table's columns.
constexpr absl::Duration kWeightsPatience = absl::Minutes(2);
// What others' first floors need goes before our second one.
constexpr int kNiceAfterFirstFloor = 5;

// A failure with the reason that the coordinator is told.
struct Failure {
  AttemptEndReason reason = AttemptEndReason::kInternal;
  std::string message;
};

Failure FailureOf(const absl::Status& status) {
  AttemptEndReason reason = AttemptEndReason::kInternal;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      reason = AttemptEndReason::kDataError;
      break;
    case absl::StatusCode::kFailedPrecondition:
      reason = AttemptEndReason::kUserError;
      break;
    case absl::StatusCode::kResourceExhausted:
      reason = AttemptEndReason::kStorageFull;
      break;
    default:
      break;
  }
  return {reason, std::string(status.message())};
}

// Columns that are the floor's alone.
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
  absl::Status ReadData();
  absl::Status FillCache(const DataFiles& files);
  absl::StatusOr<bool> OpenCached(const DataFiles& files);
  absl::Status WriteFolds();
  absl::StatusOr<Floor> FirstFloor();
  absl::Status PutFloor(Floor& floor);
  absl::Status TakeScript();
  absl::Status TakeWeights();
  // `most`, or less where half of the time that remains is less, but at least a little.
  absl::Duration Patience(absl::Duration most) const;
  absl::Status PutTokenizers() const;
  absl::Status ImproveFloor(const Floor& first);
  void TellTable() const;
  void TellFloor(const Floor& floor) const;
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
  std::unique_ptr<MappedFile> tokenizer_;  // that the spec names; null: none
  std::string key_;                        // of the cache
  bool cached_ = false;
  absl::Duration read_time_;
  std::shared_ptr<const Table> table_;
  SplitSpec split_;  // its kind resolved
  std::vector<int16_t> fold_of_;
  int64_t period_ = 1;   // of the season, in rows
  std::string weights_;  // what is taken of the weights to start from
};

absl::Status PrepareRun::ReadData() {
  ASSIGN_OR_RETURN(const std::unique_ptr<DataFiles> files, DataFiles::Open(spec_));
  if (!spec_.tokenizer_file.empty()) {
    ASSIGN_OR_RETURN(tokenizer_, MappedFile::Open(spec_.tokenizer_file));
  }
  key_ = files->Key(spec_, tokenizer_ == nullptr ? "" : tokenizer_->bytes());
  ASSIGN_OR_RETURN(cached_, OpenCached(*files));
  if (cached_) return absl::OkStatus();
  RETURN_IF_ERROR(FillCache(*files));
  ASSIGN_OR_RETURN(table_, Table::Open(InState(TableCachePath(key_))));
  return absl::OkStatus();
}

// Whether the cache has the table and what belongs to it, undamaged.
absl::StatusOr<bool> PrepareRun::OpenCached(const DataFiles& files) {
  absl::StatusOr<std::shared_ptr<const Table>> table = Table::Open(InState(TableCachePath(key_)));
  if (absl::IsNotFound(table.status()) || absl::IsDataLoss(table.status())) return false;
  // The state folder's fault, whatever its code: not the user's.
  if (!table.ok()) return absl::InternalError(table.status().message());
  if ((*table)->schema().content_sha256 != key_ || !(*table)->VerifyDigest().ok()) return false;
  if (files.media() != nullptr && !files.media()->IsCached(task_.state_dir, key_)) return false;
  table_ = *std::move(table);
  return true;
}

absl::Status PrepareRun::FillCache(const DataFiles& files) {
  ASSIGN_OR_RETURN(TableRows rows, files.Read(spec_));
  rows.schema.content_sha256 = key_;
  RETURN_IF_ERROR(MakeDirs(InState(CacheDir())));
  // The table last: where it is, all is.
  if (files.media() != nullptr) {
    RETURN_IF_ERROR(files.media()->Add(task_.state_dir, key_, rows));
  }
  return WriteTable(rows, InState(TableCachePath(key_)));
}

absl::Status PrepareRun::WriteFolds() {
  split_ = spec_.split;
  split_.kind = split_.KindFor(*table_);
  ASSIGN_OR_RETURN(fold_of_, MakeFolds(*table_, split_));
  RETURN_IF_ERROR(MakeDirs(InState(JobDir(task_.job))));
  // What is not said there is what Ranks assume.
  const bool plain = split_.shape.window == 1 && split_.shape.horizon == 0;
  if (!plain || split_.kind == SplitKind::kForward) {
    RETURN_IF_ERROR(WriteSamplePlan(InState(SamplesPath(task_.job)), split_));
  }
  return WriteNpy(InState(FoldsPath(task_.job)), {static_cast<int64_t>(fold_of_.size())},
                  absl::MakeConstSpan(fold_of_));
}

absl::Status PrepareRun::PutFloor(Floor& floor) {
  RETURN_IF_ERROR(WriteFloor(task_.state_dir, task_.job, floor));
  PublishRequest request;
  request.state_dir = task_.state_dir;
  request.job = task_.job;
  request.table = TableCachePath(key_);
  request.metric = std::string(MetricName(spec_.metric));
  request.spec_folds = split_.folds;
  return Publish(request, clock_.WallNow()).status();
}

absl::Status PrepareRun::PutTokenizers() const {
  if (!spec_.sentencepiece) return absl::OkStatus();
  const absl::Status written =
      WriteTokenizers(*table_, fold_of_, split_, spec_.vocabulary,
                      tokenizer_ == nullptr ? absl::string_view() : tokenizer_->bytes(),
                      task_.state_dir, task_.job);
  if (tokenizer_ == nullptr || !absl::IsInvalidArgument(written)) return written;
  return absl::InvalidArgumentError(absl::StrCat(spec_.tokenizer_file, ": ", written.message()));
}

void PrepareRun::TellTable() const {
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
  if (!weights_.empty()) ready.warnings.push_back(weights_);
  send_(ready);
}

void PrepareRun::TellFloor(const Floor& floor) const {
  rank_protocol::FloorReady ready;
  ready.attempt = task_.attempt;
  ready.model = floor.model;
  ready.score = floor.score;
  ready.oof_sha256 = floor.oof_sha256;
  if (table_->schema().test_rows > 0) ready.test_sha256 = floor.test_sha256;
  send_(ready);
}

// Tries the user's own model.
absl::Status PrepareRun::TakeScript() {
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

absl::Status PrepareRun::TakeWeights() {
  if (spec_.weights.empty()) return absl::OkStatus();
  PretrainedCheck check;
  check.program = RankProgram();
  check.state_dir = task_.state_dir;
  check.job = task_.job;
  check.table = TableCachePath(key_);
  check.spec_json = task_.spec_json;
  check.file = spec_.weights;
  check.sha256 = spec_.weights_sha256;
  ASSIGN_OR_RETURN(const std::string report, TakePretrained(check, Patience(kWeightsPatience)));
  if (!report.empty()) weights_ = absl::StrCat("model.pretrained: ", spec_.weights, ": ", report);
  return absl::OkStatus();
}

absl::Status PrepareRun::ImproveFloor(const Floor& first) {
  LinearFloorOptions options;
  options.seed = split_.seed;
  options.time = kMostFloorTime;
  if (task_.remaining_ms >= 0) {
    const absl::Duration left = absl::Milliseconds(task_.remaining_ms) - Spent();
    options.time = std::min(options.time, std::max(absl::ZeroDuration(), left * kFloorShare));
  }
  // Each of many words says little: as much of a penalty as keeps all of them together
  // from saying more than the other columns.
  if (!spec_.text_columns.empty()) options.l2 = FloorColumns(table_->schema());
  // Of a forecast the row's own columns are not known.
  std::optional<Floor> better =
      split_.shape.horizon > 0 ? LagFloor(*table_, Folds(), spec_.metric, period_, options, clock_)
                               : LinearFloor(*table_, Folds(), spec_.metric, options, clock_);
  if (!better || !Better(spec_.metric, better->score, first.score)) return absl::OkStatus();
  RETURN_IF_ERROR(PutFloor(*better));
  TellFloor(*better);
  return absl::OkStatus();
}

// Stands within seconds, and is not improved where rows have voxels.
absl::StatusOr<Floor> PrepareRun::FirstFloor() {
  if (spec_.volume) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const VolumeSet> volumes,
                     VolumeSet::Open(InState(VolumeCachePath(key_))));
    const std::string folder = InState(FloorDir(task_.job));
    RETURN_IF_ERROR(MakeDirs(folder));
    const auto fit = volumes->classes().size() > 1 ? RangeFloor : ThresholdFloor;
    return fit(*table_, *volumes, Folds(), spec_.metric, absl::StrCat(folder, "/", kNextTestFile));
  }
  Floor first = PriorFloor(*table_, Folds(), spec_.metric);
  if (std::optional<SeasonalFloor> naive = SeasonalNaiveFloor(*table_, Folds(), spec_.metric)) {
    period_ = naive->period;
    if (!Better(spec_.metric, first.score, naive->floor.score)) first = std::move(naive->floor);
  }
  return first;
}

absl::Status PrepareRun::Run() {
  RETURN_IF_ERROR(ReadData());
  read_time_ = Spent();
  RETURN_IF_ERROR(WriteFolds());
  RETURN_IF_ERROR(WritePredictionForm(task_.state_dir, task_.job, spec_.form));
  ASSIGN_OR_RETURN(Floor first, FirstFloor());
  RETURN_IF_ERROR(PutFloor(first));
  // Before the table is told: folds may begin then.
  RETURN_IF_ERROR(TakeScript());
  RETURN_IF_ERROR(PutTokenizers());
  RETURN_IF_ERROR(TakeWeights());
  TellTable();
  TellFloor(first);
  if (spec_.volume) return absl::OkStatus();
  setpriority(PRIO_PROCESS, 0, kNiceAfterFirstFloor);
  return ImproveFloor(first);
}

void Fail(const rank_protocol::Prepare& task, const Failure& failure, const SendMessage& send) {
  rank_protocol::Failed failed;
  failed.attempt = task.attempt;
  failed.reason = failure.reason;
  failed.message = failure.message;
  send(failed);
}

}  // namespace

void RunPrepare(const rank_protocol::Prepare& task, const Clock& clock, const SendMessage& send) {
  const absl::StatusOr<PrepareSpec> spec = ParsePrepareSpec(task.spec_json);
  if (!spec.ok()) {
    Fail(task, {AttemptEndReason::kUserError, std::string(spec.status().message())}, send);
    return;
  }
  absl::Status status;
  try {
    status = PrepareRun(task, *spec, clock, send).Run();
  } catch (const std::bad_alloc&) {
    Fail(task,
         {AttemptEndReason::kOutOfMemory, absl::StrCat("no memory left to read ", spec->train)},
         send);
    return;
  }
  if (!status.ok()) {
    Fail(task, FailureOf(status), send);
    return;
  }
  rank_protocol::Finished finished;
  finished.attempt = task.attempt;
  send(finished);
}

}  // namespace traind
