#include "worker/inference/dataset_prediction.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/container.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/later_series.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/npy.h"
#include "common/data/table/series_places.h"
#include "common/data/table/table_text.h"
#include "common/publish/publisher.h"
#include "worker/inference/images_file.h"
#include "worker/inference/side_by_side.h"
#include "worker/inference/volumes_file.h"
#include "worker/learner/learner.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

// The estimated duration of publishing, until it has been measured.
constexpr absl::Duration kPublishBase = absl::Milliseconds(150);
constexpr absl::Duration kPublishPerValue = absl::Nanoseconds(600);
// Of volumes: a durable file for each, at least, and its voxels, which no text is made of.
constexpr absl::Duration kPublishPerMask = absl::Microseconds(500);
constexpr absl::Duration kPublishPerVoxel = absl::Nanoseconds(60);
constexpr double kPublishMargin = 1.5;
// Publishing intermediate Predictions may take a twentieth of the time.
constexpr int kMostOfTime = 20;
constexpr absl::Duration kBetweenPredictions = absl::Seconds(2);
// More instances of a model may take this part of the memory that is free.
constexpr int64_t kMemoryOfInstances = 4;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

DatasetPrediction::DatasetPrediction(rank_protocol::Predict task, InferenceControl& control,
                                     EventSink& sink, const Clock& clock)
    : task_(std::move(task)),
      control_(control),
      sink_(sink),
      clock_(clock),
      began_(clock.MonotonicNow()),
      commit_cost_(InAttempt(""), clock),
      published_at_(began_) {}

std::string DatasetPrediction::InAttempt(const std::string& name) const {
  return absl::StrCat(task_.state_dir, "/", AttemptDir(task_.job, task_.attempt), "/", name);
}

absl::Status DatasetPrediction::Run() {
  ASSIGN_OR_RETURN(spec_, ParseInferenceSpec(task_.spec_json));
  values_.resize(spec_.models.size());
  RETURN_IF_ERROR(
      MakeDirs(absl::StrCat(task_.state_dir, "/", AttemptDir(task_.job, task_.attempt))));
  RETURN_IF_ERROR(FindSchema());
  RETURN_IF_ERROR(ReadRows());
  RETURN_IF_ERROR(ReuseEarlierValues());
  for (size_t k = 0; k < spec_.models.size() && !TimeIsUp(); ++k) {
    if (values_[k].has_value()) continue;
    RETURN_IF_ERROR(PredictWith(static_cast<int>(k)));
    RETURN_IF_ERROR(MaybePublish());
  }
  if (control_.order() == InferenceControl::Order::kDrop) return absl::OkStatus();
  if (MayStandIn() && TimeIsUp() && volume_floor_.has_value()) RETURN_IF_ERROR(AnswerByFloor());
  if (Answered() < spec_.min_members) return TooFew();
  const int asked = static_cast<int>(values_.size()) - missing_;
  if (stand_in_ > 0) {
    NoteStandIn();
  } else if (Answered() < asked) {
    NoteMissing("the time is up", asked, Answered());
  }
  RETURN_IF_ERROR(PublishNow());
  RemoveScratch();
  return absl::OkStatus();
}

absl::Status DatasetPrediction::TooFew() const {
  const std::string what =
      absl::StrCat(Answered(), " of ", spec_.models.size(), " models of job ", spec_.from,
                   " have answered, but predict.min_members is ", spec_.min_members);
  if (TimeIsUp()) return OutOfTimeError(absl::StrCat(what, ": time was too short"));
  return absl::InvalidArgumentError(what);  // a retry would end in the same way
}

// All folds were trained on one table, so any model's schema will do.
absl::Status DatasetPrediction::FindSchema() {
  absl::Status status;
  for (const ModelChoice& model : spec_.models) {
    absl::StatusOr<RowModelInput> input = ReadRowModelInput(task_.state_dir, model);
    status = input.status();
    if (!status.ok()) continue;
    schema_ = std::move(input->schema);
    if (input->has_images) image_ = std::move(input->image);
    volume_ = std::move(input->volume);
    if (volume_.has_value()) schema_.features.clear();  // the models see voxels alone
    series_ = std::move(input->series);
    shape_ = input->shape;
    table_sha256_ = std::move(input->table_sha256);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no model of job ", spec_.from, " can predict: ", status.message()));
}

absl::Status DatasetPrediction::ReadRows() {
  const absl::StatusOr<FileIdentity> data = IdentityOf(spec_.data);
  if (!data.ok()) return OfUserFiles(data.status());
  data_ = *data;
  rank_protocol::TableReady ready;
  if (image_.has_value()) {
    const absl::StatusOr<std::unique_ptr<ImageInput>> images = ImageInput::Open(
        spec_.data, {*image_, ImagePart::kLater, schema_.targets, task_.threads, InAttempt("")});
    if (!images.ok()) return OfUserFiles(images.status());
    ready.warnings = (*images)->warnings();
    absl::Status status = ReadTable((*images)->table(), ready.warnings);
    if (status.ok()) status = ReadImages(**images, ready.warnings);
    // A file that changed meanwhile explains every other error, so this error comes first.
    if (const absl::Status unchanged = (*images)->CheckUnchanged(); !unchanged.ok()) {
      return OfUserFiles(unchanged);
    }
    RETURN_IF_ERROR(status);
  } else {
    const absl::StatusOr<std::unique_ptr<MappedFile>> file =
        MappedFile::Open(spec_.data, MapUse::kStream);
    if (!file.ok()) return OfUserFiles(file.status());
    const auto text = TableText::Of((*file)->bytes(), BaseName(spec_.data), InAttempt(""));
    absl::Status status = !text.ok()            ? OfUserFiles(text.status())
                          : series_.has_value() ? ReadSeries((*text)->csv(), ready.warnings)
                                                : ReadTable((*text)->csv(), ready.warnings);
    if (status.ok() && volume_.has_value()) status = ReadVolumes();
    if (const absl::Status unchanged = (*file)->CheckUnchanged(); !unchanged.ok()) {
      return OfUserFiles(unchanged);
    }
    RETURN_IF_ERROR(status);
  }
  ready.attempt = task_.attempt;
  ready.test_rows = rows_;
  ready.features = static_cast<int>(schema_.features.size());
  ready.classes = static_cast<int>(schema_.classes.size());
  ready.read_ms = absl::ToInt64Milliseconds(clock_.MonotonicNow() - began_);
  sink_.Send(ready);
  return absl::OkStatus();
}

absl::Status DatasetPrediction::ReadTable(const CsvFile& data, std::vector<std::string>& warnings) {
  const std::string path = InAttempt("rows.bin");
  const absl::StatusOr<RowsFileInfo> info =
      WriteRowsFile(schema_, data, path, InAttempt("ids.bin"), [this] {
        ReportProgress();
        return !TimeIsUp();
      });
  if (absl::IsCancelled(info.status())) return TooFew();
  if (!info.ok()) return OfUserFiles(info.status());
  warnings.insert(warnings.end(), info->warnings.begin(), info->warnings.end());
  rows_ = info->rows;
  ASSIGN_OR_RETURN(RowsFile rows, RowsFile::Open(path, schema_, rows_));
  rows_file_ = std::make_unique<RowsFile>(std::move(rows));
  return absl::OkStatus();
}

absl::Status DatasetPrediction::ReadSeries(const CsvFile& data,
                                           std::vector<std::string>& warnings) {
  absl::StatusOr<LaterSeries> read = ReadLaterSeries(data, schema_, *series_, shape_);
  if (!read.ok()) return OfUserFiles(read.status());
  const std::vector<std::string>& told = read->rows.schema.warnings;
  warnings.insert(warnings.end(), told.begin(), told.end());
  rows_ = read->rows.schema.test_rows;
  schema_.id = read->id;
  std::string ids;
  for (size_t row = 0; row < static_cast<size_t>(rows_); ++row) {
    absl::StrAppend(&ids, read->ids[row].size(), ":", read->ids[row]);
  }
  RETURN_IF_ERROR(StorageError(WriteFileDurably(InAttempt("ids.bin"), ids)));
  RETURN_IF_ERROR(StorageError(WriteTable(read->rows, InAttempt("rows.bin"))));
  ASSIGN_OR_RETURN(later_, Table::Open(InAttempt("rows.bin")));
  return absl::OkStatus();
}

absl::Status DatasetPrediction::ReadImages(const ImageInput& images,
                                           std::vector<std::string>& warnings) {
  const std::string path = InAttempt("rows.bin");
  const int64_t stride = image_->size * image_->size * image_->channels;
  absl::StatusOr<ImagesFileInfo> info = WriteImagesFile(images, *rows_file_, stride, path, [this] {
    ReportProgress();
    return !TimeIsUp();
  });
  if (absl::IsCancelled(info.status())) return TooFew();
  if (!info.ok()) return OfUserFiles(info.status());
  if (!info->warning.empty()) warnings.push_back(std::move(info->warning));
  data_.pixels_sha256 = std::move(info->sha256);
  return rows_file_->OpenImages(ImagesPath(path), stride);
}

absl::Status DatasetPrediction::ReadVolumes() {
  absl::StatusOr<VolumesFile> file =
      WriteVolumesFile(*volume_, spec_.data, *rows_file_, InAttempt("rows.bin"), [this] {
        ReportProgress();
        return !TimeIsUp();
      });
  if (absl::IsCancelled(file.status())) return TooFew();
  if (!file.ok()) return OfUserFiles(file.status());
  volumes_ = std::move(file->set);
  ReadVolumeFloor();
  RETURN_IF_ERROR(TimeCommits());
  if (volume_->treatment.choose_components) {
    const auto standing = ReadStandingPrediction(task_.state_dir, spec_.from);
    if (standing.ok()) spec_.tuned.largest = standing->tuned.largest;
  }
  data_.pixels_sha256 = std::move(file->sha256);
  return absl::OkStatus();
}

absl::Status DatasetPrediction::TimeCommits() {
  if (control_.deadline() == absl::InfiniteDuration()) return absl::OkStatus();
  if (publish_cost_ > absl::ZeroDuration()) return absl::OkStatus();  // that tells more
  const absl::Duration end = clock_.MonotonicNow() + commit_cost_.took() + step_cost_;
  if (end >= AnswerAt()) return absl::OkStatus();
  return StorageError(commit_cost_.Update());
}

absl::Status DatasetPrediction::ReuseEarlierValues() {
  for (size_t k = 0; k < spec_.models.size(); ++k) {
    const ModelChoice& model = spec_.models[k];
    auto values = FindValues(task_.state_dir, task_.job, static_cast<int>(k), data_, model.dir);
    if (!values.has_value()) continue;
    values->member.fold = model.fold;
    values->member.trial = model.trial;
    values->member.seed = model.seed;
    values->member.kind = model.kind;
    values->member.complete = model.complete;
    values->member.score = model.score;
    values->member.weight = model.weight;
    values_[k] = std::move(values);
  }
  return absl::OkStatus();
}

absl::Status DatasetPrediction::PredictWith(int index) {
  const ModelChoice& choice = spec_.models[static_cast<size_t>(index)];
  auto model = LoadRowModel(task_.state_dir, choice, task_.threads);
  if (model.ok() && (*model)->table_sha256() != table_sha256_) {
    model = absl::FailedPreconditionError("it was trained on another table");
  }
  if (!model.ok()) {
    const int models = static_cast<int>(spec_.models.size());
    NoteMissing(absl::StrCat(ModelText(choice), ": ", model.status().message()), models,
                models - ++missing_);
    return absl::OkStatus();
  }
  SetTorchThreads(volumes_ != nullptr ? task_.threads : 1);
  const absl::StatusOr<std::string> sha256 = later_ != nullptr     ? WriteForecast(index, **model)
                                             : volumes_ != nullptr ? WriteVoxels(index, **model)
                                                                   : WriteValues(index, **model);
  if (absl::IsCancelled(sha256.status())) return absl::OkStatus();
  if (!sha256.ok()) return StorageError(sha256.status());
  MemberValues values;
  values.path = InAttempt(absl::StrCat("values-", index, ".npy"));
  values.member.fold = choice.fold;
  values.member.trial = choice.trial;
  values.member.seed = choice.seed;
  values.member.kind = choice.kind;
  values.member.attempt = (*model)->attempt();
  values.member.complete = choice.complete && stand_in_ == 0;
  values.member.score = choice.score;
  values.member.weight = choice.weight;
  values.member.best_epoch = (*model)->epoch();
  values.member.step = (*model)->step();
  values.member.test_sha256 = *sha256;
  if (stand_in_ == 0) {
    RETURN_IF_ERROR(SaveValues(InAttempt("."), index, data_, *sha256, values.member));
  }
  values_[static_cast<size_t>(index)] = std::move(values);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DurableWriter>> DatasetPrediction::StartValues(int index) const {
  ASSIGN_OR_RETURN(std::unique_ptr<DurableWriter> out,
                   DurableWriter::Create(InAttempt(absl::StrCat("values-", index, ".npy"))));
  const int64_t shape[] = {answers(), values()};
  RETURN_IF_ERROR(out->Append(NpyHeaderText("<f4", shape)));
  return out;
}

int64_t DatasetPrediction::values() const {
  return volumes_ != nullptr ? volumes_->values() : static_cast<int64_t>(schema_.outputs());
}

// A forecast's rows depend on each other, so they are predicted at once.
absl::StatusOr<std::string> DatasetPrediction::WriteForecast(int index, RowModel& model) {
  const absl::Duration began = clock_.MonotonicNow();
  ASSIGN_OR_RETURN(const std::vector<float> values, model.Forecast(later_));
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, StartValues(index));
  RETURN_IF_ERROR(out->Append(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                                values.size() * sizeof(float))));
  step_cost_ = clock_.MonotonicNow() - began;
  ReportProgress();
  ASSIGN_OR_RETURN(const FileDigest digest, out->Commit());
  return digest.sha256;
}

// More instances of a model, one for each further thread that has rows to predict. What a model
// answers does not depend on their number, as each works with one thread.
std::vector<std::unique_ptr<RowModel>> DatasetPrediction::MoreInstances(
    const ModelChoice& choice, const RowModel& model) const {
  std::vector<std::unique_ptr<RowModel>> more;
  const int64_t bytes = model.InstanceBytes();
  if (bytes == 0) return more;
  const int64_t steps = std::min(rows_, kRowsPerBlock) / model.RowsPerStep();
  const int64_t most = std::min({static_cast<int64_t>(task_.threads), steps,
                                 1 + AvailableMemory() / kMemoryOfInstances / bytes});
  while (static_cast<int64_t>(more.size()) + 1 < most) {
    auto instance = LoadRowModel(task_.state_dir, choice, /*threads=*/1);
    if (!instance.ok()) break;
    more.push_back(*std::move(instance));
  }
  return more;
}

// Returns the digest of values-<index>.npy. Cancelled: time is up.
absl::StatusOr<std::string> DatasetPrediction::WriteValues(int index, RowModel& model) {
  const size_t outputs = schema_.outputs();
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, StartValues(index));
  const auto more = MoreInstances(spec_.models[static_cast<size_t>(index)], model);
  std::vector<RowModel*> models = {&model};
  for (const auto& instance : more) models.push_back(instance.get());
  std::vector<float> values;
  std::vector<double> sums(outputs);
  const int64_t step = model.RowsPerStep();
  const int64_t at_once = step * static_cast<int64_t>(models.size());
  int64_t rows_left = rows_;
  for (int64_t block = 0; block < rows_file_->blocks(); ++block) {
    const LaterRows rows = rows_file_->Block(block);
    const int64_t count = rows_file_->RowsOf(block);
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      if (TimeIsUp() || CannotFinish(rows_left, at_once)) return EndEarly(sums, rows_left, *out);
      const std::vector<int64_t> ends = StepEnds(begin, count, step, models.size());
      end = ends.back();
      const absl::Duration began = clock_.MonotonicNow();
      values.resize(static_cast<size_t>(end - begin) * outputs);
      RETURN_IF_ERROR(PredictSideBySide(models, rows, begin, ends, absl::MakeSpan(values)));
      RETURN_IF_ERROR(out->Append(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                                    values.size() * sizeof(float))));
      if (end - begin >= at_once) step_cost_ = clock_.MonotonicNow() - began;
      for (size_t i = 0; i < values.size(); ++i) sums[i % outputs] += values[i];
      rows_left -= end - begin;
      ReportProgress();
    }
  }
  ASSIGN_OR_RETURN(const FileDigest digest, out->Commit());
  return digest.sha256;
}

// Returns the digest of values-<index>.npy. Cancelled: time is up.
absl::StatusOr<std::string> DatasetPrediction::WriteVoxels(int index, RowModel& model) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, StartValues(index));
  const auto outputs = static_cast<size_t>(values());
  std::vector<double> sums(outputs);
  int64_t left = answers();
  bool ended = false;
  absl::Duration began = clock_.MonotonicNow(), batch_began = began;
  const auto take = [&](absl::Span<const float> slab) -> absl::Status {
    RETURN_IF_ERROR(
        out->Append({reinterpret_cast<const char*>(slab.data()), slab.size() * sizeof(float)}));
    for (size_t i = 0; i < slab.size(); ++i) sums[i % outputs] += slab[i];
    const auto voxels = static_cast<int64_t>(slab.size() / outputs);
    left -= voxels;
    step_cost_ = clock_.MonotonicNow() - began;
    RETURN_IF_ERROR(TimeCommits());
    began = batch_began = clock_.MonotonicNow();
    ReportProgress();
    ended = left > 0 && (TimeIsUp() || CannotFinish(left, voxels));
    return ended ? absl::CancelledError("the time is up") : absl::OkStatus();
  };
  // A slab of a large volume may take longer than there is time.
  const auto between = [&]() -> absl::Status {
    const absl::Duration now = clock_.MonotonicNow(), batch = now - batch_began;
    batch_began = now;
    ReportProgress();
    ended = left > 0 &&
            (control_.order() != InferenceControl::Order::kContinue || now + batch >= AnswerAt());
    if (ended) step_cost_ = std::max(step_cost_, batch);
    return ended ? absl::CancelledError("the time is up") : absl::OkStatus();
  };
  const absl::Status status = model.PredictVolumes(volumes_, take, between);
  if (ended) return EndEarly(sums, left, *out);
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(const FileDigest digest, out->Commit());
  return digest.sha256;
}

// Some answers, and their mean for the others, are better than none.
absl::StatusOr<std::string> DatasetPrediction::EndEarly(const std::vector<double>& sums,
                                                        int64_t left, DurableWriter& out) {
  if (!MayStandIn() || left == answers()) return absl::CancelledError("the time is up");
  RETURN_IF_ERROR(volume_floor_.has_value() ? AppendFloor(left, out)
                                            : AppendMeans(sums, left, out));
  stand_in_ = left;
  ASSIGN_OR_RETURN(const FileDigest digest, out.Commit());
  return digest.sha256;
}

bool DatasetPrediction::MayStandIn() const {
  return Answered() == 0 && spec_.min_members <= 1 &&
         control_.order() != InferenceControl::Order::kDrop;
}

// The floor of the Job whose models predict, where it saw the same table and volumes.
void DatasetPrediction::ReadVolumeFloor() {
  auto floor = ReadVolumeFloorModel(absl::StrCat(task_.state_dir, "/", FloorDir(spec_.from)));
  if (!floor.ok() || floor->table_sha256 != table_sha256_) return;
  volume_floor_ = *std::move(floor);
}

absl::Status DatasetPrediction::AppendFloor(int64_t left, DurableWriter& out) const {
  int64_t answered = answers() - left;  // before the next slice
  return AnswerVolumes(*volumes_, volume_floor_->Label(), [&](absl::Span<const float> slice) {
    const int64_t voxels = static_cast<int64_t>(slice.size()) / values();
    const int64_t known = std::min(answered, voxels);
    answered -= known;
    slice.remove_prefix(static_cast<size_t>(known * values()));
    return out.Append({reinterpret_cast<const char*>(slice.data()), slice.size() * sizeof(float)});
  });
}

absl::Status DatasetPrediction::AnswerByFloor() {
  constexpr int kPlace = 0;  // that of a model, none of which has answered
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, StartValues(kPlace));
  RETURN_IF_ERROR(AppendFloor(answers(), *out));
  ASSIGN_OR_RETURN(const FileDigest digest, out->Commit());
  MemberValues values;
  values.path = InAttempt(absl::StrCat("values-", kPlace, ".npy"));
  values.member.fold = -1;
  values.member.kind = volume_floor_->name;
  values.member.weight = 1;
  values.member.test_sha256 = digest.sha256;
  values_[kPlace] = std::move(values);
  stand_in_ = answers();
  return absl::OkStatus();
}

absl::Status DatasetPrediction::AppendMeans(const std::vector<double>& sums, int64_t left,
                                            DurableWriter& out) const {
  constexpr int64_t kAtOnce = 4096;
  std::vector<float> means;
  for (int64_t i = 0; i < std::min(left, kAtOnce); ++i) {
    for (const double sum : sums) {
      means.push_back(static_cast<float>(sum / static_cast<double>(answers() - left)));
    }
  }
  for (; left > 0; left -= kAtOnce) {
    const size_t size = static_cast<size_t>(std::min(left, kAtOnce)) * sums.size() * sizeof(float);
    RETURN_IF_ERROR(out.Append({reinterpret_cast<const char*>(means.data()), size}));
  }
  return absl::OkStatus();
}

int DatasetPrediction::Answered() const {
  return static_cast<int>(std::count_if(values_.begin(), values_.end(),
                                        [](const auto& values) { return values.has_value(); }));
}

absl::Duration DatasetPrediction::AnswerAt() const {
  absl::Duration cost = publish_cost_;
  if (cost == absl::ZeroDuration()) {
    const auto count = static_cast<double>(answers()) * static_cast<double>(values());
    const absl::Duration mask = std::max(kPublishPerMask, commit_cost_.of_file());
    cost = kPublishBase + (volumes_ == nullptr
                               ? count * kPublishPerValue
                               : static_cast<double>(rows_) * mask + count * kPublishPerVoxel);
  }
  return control_.deadline() - kPublishMargin * cost;
}

bool DatasetPrediction::TimeIsUp() const {
  return control_.order() != InferenceControl::Order::kContinue ||
         clock_.MonotonicNow() + step_cost_ >= AnswerAt();
}

// Once enough models have answered, another one is started only if it can finish in time.
bool DatasetPrediction::CannotFinish(int64_t left, int64_t step) const {
  if (Answered() < spec_.min_members) return false;
  const double steps = static_cast<double>(left) / static_cast<double>(step);
  return clock_.MonotonicNow() + 0.8 * steps * step_cost_ >= AnswerAt();
}

absl::Status DatasetPrediction::MaybePublish() {
  const int answered = Answered();
  if (answered < spec_.min_members || answered == static_cast<int>(values_.size())) {
    return absl::OkStatus();
  }
  const absl::Duration since = clock_.MonotonicNow() - published_at_;
  if (since < kBetweenPredictions || since < kMostOfTime * publish_cost_) return absl::OkStatus();
  return PublishNow();
}

absl::Status DatasetPrediction::PublishNow() {
  if (Answered() == published_) return absl::OkStatus();
  DatasetAnswer answer;
  answer.state_dir = task_.state_dir;
  answer.job = task_.job;
  answer.models_from = spec_.from;
  answer.metric = spec_.metric;
  answer.columns = {schema_.id, schema_.targets, schema_.classes, spec_.tuned.threshold,
                    spec_.quantiles};
  if (later_ != nullptr) answer.columns.steps = TestSteps(*later_, shape_);
  answer.tuned = spec_.tuned;
  answer.form = spec_.form;
  answer.rows = rows_;
  answer.volumes = volumes_;
  if (!schema_.id.empty()) answer.ids = InAttempt("ids.bin");
  answer.members_wanted = static_cast<int>(values_.size());
  answer.stand_in = stand_in_ > 0;
  for (const auto& values : values_) {
    if (values.has_value()) answer.members.push_back(*values);
  }
  answer.quality = spec_.quality;
  answer.oof_score = spec_.oof_score;
  answer.comparable = spec_.comparable;
  answer.progress = [this] { ReportProgress(); };  // so that a long file does not look like a hang
  const absl::Duration began = clock_.MonotonicNow();
  const absl::StatusOr<PublishedPrediction> published = PublishDataset(answer, clock_.WallNow());
  if (!published.ok()) return StorageError(published.status());
  published_at_ = clock_.MonotonicNow();
  publish_cost_ = std::max(publish_cost_, published_at_ - began);
  published_ = Answered();
  rank_protocol::Predicted predicted;
  predicted.attempt = task_.attempt;
  predicted.number = published->number;
  predicted.members = published_;
  sink_.Send(predicted);
  return absl::OkStatus();
}

// Removes the scratch files, which are useless once the Prediction is published.
void DatasetPrediction::RemoveScratch() const {
  unlink(InAttempt("rows.bin").c_str());
  unlink(TextsPath(InAttempt("rows.bin")).c_str());
  unlink(ImagesPath(InAttempt("rows.bin")).c_str());
  unlink(VolumesPath(InAttempt("rows.bin")).c_str());
  unlink(InAttempt("ids.bin").c_str());
  for (const auto& values : values_) {
    if (!values.has_value()) continue;
    unlink(values->path.c_str());
    unlink(absl::StrCat(values->path.substr(0, values->path.size() - 4), ".json").c_str());
  }
}

void DatasetPrediction::ReportProgress() {
  rank_protocol::Progress progress;
  progress.attempt = task_.attempt;
  progress.step = ++blocks_done_;
  sink_.SendProgress(progress);
}

void DatasetPrediction::NoteStandIn() const {
  rank_protocol::Decision decision;
  decision.attempt = task_.attempt;
  decision.rule = DecisionRule::kPredict;
  decision.cause = "the time is up before one model has answered for all rows";
  const char* const what = volumes_ != nullptr ? " voxels" : " rows";
  decision.from = absl::StrCat(answers(), what);
  decision.to = absl::StrCat(answers() - stand_in_, what, ", and ",
                             volume_floor_.has_value() ? "the floor's" : "their mean",
                             " answer for the others");
  sink_.Send(decision);
}

void DatasetPrediction::NoteMissing(const std::string& cause, int before, int after) const {
  rank_protocol::Decision decision;
  decision.attempt = task_.attempt;
  decision.rule = DecisionRule::kPredict;
  decision.cause = cause;
  decision.from = absl::StrCat(before, " models");
  decision.to = absl::StrCat(after, " models");
  sink_.Send(decision);
}

}  // namespace traind
