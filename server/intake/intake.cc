#include "server/intake/intake.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/util/time_util.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/duration.h"
#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"
#include "common/spec/media_rules.h"
#include "common/spec/presets.h"
#include "common/spec/spec_rules.h"
#include "server/intake/automatic.h"
#include "server/intake/columns.h"
#include "server/intake/domain_spec.h"
#include "server/intake/media_files.h"
#include "server/intake/media_load.h"
#include "server/intake/mistakes.h"
#include "server/intake/pretrained_file.h"
#include "server/intake/search_trials.h"
#include "server/intake/volume_time.h"
#include "server/plan/budget_rules.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr double kReadBytesPerSecond = 50e6;
constexpr absl::Duration kFloorStart = absl::Milliseconds(500);
constexpr char kIdAlphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";  // no i, l, o, u
constexpr int kIdCharacters = 6;

// Nobody else can know what a program reads.
void TakeNothingOver(Spec& spec) {
  spec.cache_key.clear();
  spec.cache_read = false;
}

// Returns the time within which a floor can be ready for so many bytes on this kind of machine:
// half a second, and reading at 50 MB/s.
absl::Duration FloorTime(int64_t bytes) {
  return kFloorStart + absl::Seconds(static_cast<double>(bytes) / kReadBytesPerSecond);
}

// Returns the real path of a folder. Errors: InvalidArgument, which says whether it cannot be read.
absl::StatusOr<std::string> FolderAt(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return WithRefusedFiles(absl::InvalidArgumentError(absl::StrCat(path, ": ", error.message())),
                            {{"", FileProblem::kUnreadable}});
  }
  if (!std::filesystem::is_directory(real, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no folder"));
  }
  return real.string();
}

// Returns the columns that name files.
std::vector<std::string> MediaColumns(const v1::DataSpec& data) {
  if (data.has_image()) return {data.image().column()};
  if (data.has_volume()) return {data.volume().image(), data.volume().mask()};
  return {};
}

// A file that is resampled counts as so many bytes for each of its own.
constexpr int64_t kReadings = 2;

MediaLoad LoadOf(const v1::DataSpec& data, const DataFile* file) {
  const std::vector<std::string> columns = MediaColumns(data);
  MediaLoad load = columns.empty() || file == nullptr ? MediaLoad() : CountMedia(*file, columns);
  if (Resamples(data.volume())) load.bytes *= kReadings;
  return load;
}

// Makes the path of a sample a real one. Empty: there is none.
void CheckSample(const char* field, std::string& path, Mistakes& mistakes) {
  if (path.empty()) return;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (!error && !std::filesystem::is_regular_file(real, error)) {
    mistakes.Add(field, absl::StrCat(path, " is no file"));
  } else if (error) {
    mistakes.Add(field, absl::StrCat(path, ": ", error.message()));
  } else {
    path = real.string();
  }
}

// A program reads the rows as they stand in the files. Its folder may lie anywhere, as that of
// `run`.
void CheckCommandFiles(v1::CommandSpec& command, const DataFile& train, const DataFile* test,
                       Mistakes& mistakes) {
  CheckSample("model.command.sample_submission", *command.mutable_sample_submission(), mistakes);
  const auto folder = FolderAt(command.code());
  if (folder.ok()) {
    command.set_code(*folder);
  } else {
    mistakes.AddFile("model.command.code", folder.status());
  }
  for (const auto& [field, file] :
       {std::make_pair("data.train", &train), std::make_pair("data.test", test)}) {
    if (file == nullptr || !file->arrays) continue;
    mistakes.Add(field, "is no file of text, which a program (model.command) needs");
  }
}

// Applies rule B12.
absl::Status CheckTime(const Spec& spec, const MediaLoad& media, absl::Duration needed,
                       absl::Time now) {
  const absl::Time deadline = DeadlineOf(spec, now);
  if (deadline == absl::InfiniteFuture()) return absl::OkStatus();
  if (deadline - now >= needed) return absl::OkStatus();
  const absl::string_view field =
      spec.deadline && *spec.deadline == deadline ? "budget.deadline" : "budget.time";
  const std::string left =
      deadline <= now ? "is over" : absl::StrCat("leaves ", DurationToText(deadline - now));
  const std::string files =
      media.files > 0 ? absl::StrCat(" in about ", media.files, " files") : "";
  const int64_t bytes = spec.train_bytes + spec.test_bytes + media.bytes;
  return absl::FailedPreconditionError(
      absl::StrCat(field, ": it ", left, ", and reading ", bytes / 1'000'000, " MB", files,
                   " and a first prediction take about ", DurationToText(needed),
                   "; the earliest deadline possible now is ", TimestampToText(now + needed),
                   " (a budget of ", DurationToText(absl::Ceil(needed, absl::Seconds(1))), ")"));
}

// Reports every breach of the rules of the proto file at once.
absl::Status CheckRules(const v1::JobSpec& spec) {
  Mistakes mistakes;
  for (const SpecError& error : CheckSpec(spec)) mistakes.lines()->push_back(error.message);
  return mistakes.empty() ? absl::OkStatus() : mistakes.ToStatus();
}

// Fills in what follows from the sizes of the files, and applies rule B12.
absl::Status TakeTimes(const SpecFiles& files, absl::Time now, CheckedSpec& checked) {
  const v1::JobSpec& resolved = checked.resolved;
  Spec& spec = checked.spec;
  std::optional<absl::Duration> every;
  if (resolved.train().has_checkpoint_every()) {
    every =
        absl::Milliseconds(TimeUtil::DurationToMilliseconds(resolved.train().checkpoint_every()));
  }
  spec.checkpoint_every = CheckpointEvery(every, DeadlineOf(spec, now) - now);
  spec.train_bytes = files.train->bytes;
  spec.test_bytes = files.test == nullptr ? 0 : files.test->bytes;
  checked.train_media = LoadOf(resolved.data(), files.train.get());
  checked.work = EpochWorkOf(resolved, *files.train, checked.train_media);
  MediaLoad media = LoadOf(resolved.data(), files.test.get());
  media.files += checked.train_media.files;
  media.bytes += checked.train_media.bytes;
  checked.floor_time = FloorTime(spec.train_bytes + spec.test_bytes) + MediaTime(media);
  return CheckTime(spec, media, checked.floor_time, now);
}

// Adds the canonical text of the resolved spec, and its digest.
CheckedSpec Sealed(CheckedSpec checked) {
  checked.json = SpecToJson(checked.resolved);
  checked.sha256 = Sha256Hex(checked.json);
  return checked;
}

}  // namespace

// Checks that the operator allows this script, and fills in its digest.
absl::Status Intake::CheckScript(v1::ScriptSpec& script) {
  ASSIGN_OR_RETURN(const std::string start, files_.ReadStart(script.file()));
  if (!absl::StartsWith(start, "PK\x03\x04")) {
    return absl::InvalidArgumentError(absl::StrCat(
        script.file(),
        " is not a TorchScript module; torch.jit.script(model).save(FILE) writes one"));
  }
  ASSIGN_OR_RETURN(const auto file, files_.Look(script.file()));
  constexpr int64_t kMostBytes = int64_t{4} << 30;
  if (file->bytes > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(script.file(), " has more than 4 GiB"));
  }
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(file->path));
  if (scripts_.count("any") == 0 && scripts_.count(digest.sha256) == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("models of users run only where the operator allows them; start traind with "
                     "--allow-script ",
                     digest.sha256));
  }
  script.set_file(file->path);
  script.set_sha256(digest.sha256);
  return absl::OkStatus();
}

absl::Status Intake::CheckAllowed(const v1::JobSpec& spec) const {
  if (programs_ || (!spec.has_run() && !spec.model().has_command())) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(spec.has_run() ? "run" : "model.command",
                   ": programs of users run only where the operator allows them; start traind with "
                   "--allow-programs"));
}

absl::Status Intake::CheckOwner(const v1::JobSpec& spec, const std::string& owner) const {
  if (!spec.has_run() && !spec.model().has_command()) return absl::OkStatus();
  if (program_owners_.empty() || program_owners_.count(owner) > 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(spec.has_run() ? "run" : "model.command", ": the owner ", owner,
                   " may run no programs; the operator allows it by --program-owner ", owner));
}

// The folder may lie anywhere: a program that may run could read it anyway.
absl::StatusOr<CheckedSpec> Intake::CheckProgram(const v1::JobSpec& spec, absl::Time now) const {
  CheckedSpec checked;
  checked.resolved = ResolveSpec(spec);
  v1::RunSpec& run = *checked.resolved.mutable_run();
  Mistakes mistakes;
  const auto folder = FolderAt(run.folder());
  if (!folder.ok()) {
    mistakes.AddFile("run.folder", folder.status());
    return mistakes.ToStatus();
  }
  run.set_folder(*folder);
  // What was sent serves other Jobs, too: its results stay out of it, in the Job's own folder.
  const bool uploaded = !uploads_.empty() && LiesBelow(*folder, {uploads_});
  if (uploaded && !run.results().empty()) {
    mistakes.Add("run.results",
                 "must be empty where run.folder was uploaded; traind keeps what the program "
                 "leaves, and trainctl fetch copies it");
  }
  if (!uploaded && run.results().empty()) run.set_results(*folder);
  CheckSample("run.sample_submission", *run.mutable_sample_submission(), mistakes);
  if (!mistakes.empty()) return mistakes.ToStatus();
  checked.spec = ToDomain(checked.resolved);
  TakeNothingOver(checked.spec);
  checked.spec.checkpoint_every = CheckpointEvery({}, DeadlineOf(checked.spec, now) - now);
  checked.floor_time = kFloorStart;
  RETURN_IF_ERROR(CheckTime(checked.spec, MediaLoad(), checked.floor_time, now));
  return Sealed(std::move(checked));
}

absl::StatusOr<CheckedSpec> Intake::Check(const v1::JobSpec& spec, absl::Time now) {
  RETURN_IF_ERROR(CheckRules(spec));
  if (UsesModelsOfAnother(spec)) {
    return absl::InvalidArgumentError("predict, serve: there is nothing to plan for");
  }
  RETURN_IF_ERROR(CheckAllowed(spec));
  if (spec.has_run()) return CheckProgram(spec, now);
  CheckedSpec checked;
  RETURN_IF_ERROR(Resolve(spec, checked));
  ASSIGN_OR_RETURN(const SpecFiles files, LookAtFiles(spec, checked.resolved));
  RETURN_IF_ERROR(CheckData(files, checked));
  FillTrials(files_, *files.train, spec, checked.resolved);
  checked.spec = ToDomain(checked.resolved);
  if (checked.resolved.model().has_command()) TakeNothingOver(checked.spec);
  if (checked.resolved.has_search()) {
    RETURN_IF_ERROR(FillSearch(spec, checked.resolved, checked.spec, &checked.warnings));
  }
  RETURN_IF_ERROR(TakeTimes(files, now, checked));
  return Sealed(std::move(checked));
}

absl::Status Intake::Resolve(const v1::JobSpec& spec, CheckedSpec& checked) {
  v1::JobSpec with_preset = spec;
  if (spec.task().type().empty()) {
    RETURN_IF_ERROR(FillTaskType(files_, with_preset, &checked.warnings));
    RETURN_IF_ERROR(CheckRules(with_preset));
  }
  FillText(files_, with_preset, &checked.warnings);
  checked.preset_fields = ApplyPreset(with_preset);
  checked.resolved = ResolveSpec(std::move(with_preset));
  return absl::OkStatus();
}

absl::StatusOr<SpecFiles> Intake::LookAtFiles(const v1::JobSpec& spec, v1::JobSpec& resolved) {
  Mistakes mistakes;
  SpecFiles found;
  v1::DataSpec& data = *resolved.mutable_data();
  const auto look = [&](const char* field, bool training, std::shared_ptr<const DataFile>& into) {
    auto file = LookAtData(data, training, files_);
    if (!file.ok()) return mistakes.AddFile(field, file.status());
    into = *std::move(file);
  };
  look("data.train", /*training=*/true, found.train);
  if (!data.test().empty()) look("data.test", /*training=*/false, found.test);
  if (resolved.model().has_script()) {
    const absl::Status script = CheckScript(*resolved.mutable_model()->mutable_script());
    if (!script.ok()) mistakes.AddFile("model.script.file", script);
  }
  if (resolved.model().has_pretrained()) TakePretrained(spec, files_, resolved, mistakes);
  const auto resolve = [&](const char* field, std::string* path) {
    absl::StatusOr<std::string> real = files_.Resolve(*path);
    if (!real.ok()) return mistakes.AddFile(field, real.status());
    *path = *std::move(real);
  };
  if (!data.text().model_file().empty()) {
    resolve("data.text.model_file", data.mutable_text()->mutable_model_file());
  }
  if (!data.image().labels().empty()) {
    resolve("data.image.labels", data.mutable_image()->mutable_labels());
  }
  if (!data.image().test_labels().empty()) {
    resolve("data.image.test_labels", data.mutable_image()->mutable_test_labels());
  }
  if (!mistakes.empty()) return mistakes.ToStatus();
  return found;
}

absl::Status Intake::CheckData(const SpecFiles& files, CheckedSpec& checked) {
  Mistakes mistakes;
  v1::DataSpec& data = *checked.resolved.mutable_data();
  const DataFile* const test = files.test.get();
  // Images of folders answer by the names of their files.
  if (data.id().empty() && (files.train->folder || (test != nullptr && test->folder))) {
    data.set_id(data.image().column());
  }
  CheckColumns(checked.resolved, *files.train, test, mistakes, &checked.warnings);
  const absl::Status numbers = CheckTargetNumbers(files_, *files.train, checked.resolved);
  if (!numbers.ok()) mistakes.lines()->emplace_back(numbers.message());
  if (checked.resolved.model().has_command()) {
    CheckCommandFiles(*checked.resolved.mutable_model()->mutable_command(), *files.train, test,
                      mistakes);
  }
  if (!mistakes.empty()) return mistakes.ToStatus();
  data.set_train(files.train->path);
  if (test != nullptr) data.set_test(test->path);
  return absl::OkStatus();
}

absl::StatusOr<CheckedSpec> Intake::CheckInference(const v1::JobSpec& spec, const Job& source,
                                                   const v1::ModelSet& models, absl::Time now) {
  RETURN_IF_ERROR(CheckRules(spec));
  CheckedSpec checked;
  checked.resolved = ResolveSpec(spec);
  v1::JobSpec& resolved = checked.resolved;
  ASSIGN_OR_RETURN(const v1::JobSpec of_source, SpecFromJson(source.spec_json));
  if (of_source.data().has_volume() && resolved.has_serve()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", source.id,
                     " segments volumes, which are not asked row by row; predict a file "
                     "(`predict`) that names them"));
  }
  v1::PredictionsSpec form = of_source.predictions();
  form.MergeFrom(resolved.predictions());
  *resolved.mutable_predictions() = form;
  int64_t bytes = 0;
  MediaLoad media;
  if (resolved.has_serve()) {
    checked.kind = TaskKind::kServe;
    resolved.mutable_serve()->set_from(source.id);
  } else {
    checked.kind = TaskKind::kPredict;
    Mistakes mistakes;
    const auto data = LookAtLaterData(of_source.data(), resolved.predict().data(), files_);
    if (!data.ok()) {
      mistakes.AddFile("predict.data", data.status());
    } else if ((*data)->parquet) {
      mistakes.Add("predict.data",
                   "rows of later files come as CSV, NPY or NPZ; this is a Parquet table");
    }
    if (!mistakes.empty()) return mistakes.ToStatus();
    bytes = (*data)->bytes;
    v1::DataSpec read = of_source.data();
    if (read.has_volume()) read.mutable_volume()->clear_mask();  // which nobody reads
    media = LoadOf(read, data->get());
    resolved.mutable_predict()->set_data((*data)->path);
    resolved.mutable_predict()->set_from(source.id);
    if (resolved.predict().min_members() > models.models_size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("predict.min_members: ", resolved.predict().min_members(), ", but job ",
                       source.id, " has ", models.models_size(), " models"));
    }
  }
  checked.spec = ToDomain(resolved);
  checked.spec.models_from = source.id;
  checked.spec.metric = source.spec.metric;
  checked.spec.higher_is_better = source.spec.higher_is_better;
  checked.spec.folds = 0;
  checked.spec.epochs = 0;
  checked.spec.has_test = resolved.has_predict();
  checked.spec.test_bytes = bytes;
  checked.floor_time = FloorTime(bytes) + MediaTime(media);
  const absl::Status time = CheckTime(checked.spec, media, checked.floor_time, now);
  if (!time.ok()) return time;
  if (of_source.data().has_volume()) {
    std::string warning = VolumeTimeWarning(
        source, media.files, DeadlineOf(checked.spec, now) - now - checked.floor_time);
    if (!warning.empty()) checked.warnings.push_back(std::move(warning));
  }
  checked.sha256 = Sha256Hex(SpecToJson(resolved));
  *(resolved.has_predict() ? resolved.mutable_predict()->mutable_models()
                           : resolved.mutable_serve()->mutable_models()) = models;
  checked.json = SpecToJson(resolved);
  return checked;
}

Job Intake::MakeJob(const CheckedSpec& checked, const std::string& owner,
                    const std::string& request_id, const std::string& spec_text, absl::Time now) {
  Job job;
  job.id = absl::StrCat(checked.spec.name, "-");
  {
    absl::MutexLock lock(&mutex_);
    for (int i = 0; i < kIdCharacters; ++i) {
      job.id += kIdAlphabet[absl::Uniform<size_t>(random_, 0, sizeof(kIdAlphabet) - 1)];
    }
  }
  job.owner = owner;
  job.request_id = request_id;
  job.spec_sha256 = checked.sha256;
  job.spec = checked.spec;
  job.spec_json = checked.json;
  if (UsesModels(checked.kind)) {
    job.tasks.resize(1);
    job.tasks[0].kind = checked.kind;
  }
  job.spec_text = spec_text;
  job.warnings = checked.warnings;
  job.accepted_at = now;
  job.deadline = DeadlineOf(job.spec, now);
  return job;
}

}  // namespace traind
