#include "server/intake/intake.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/bytes_text.h"
#include "common/base/durable_file.h"
#include "common/base/duration.h"
#include "common/base/engine_version.h"
#include "common/base/status_macros.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/spec/presets.h"
#include "common/spec/spec_rules.h"
#include "server/intake/automatic.h"
#include "server/intake/media_files.h"
#include "server/intake/media_load.h"
#include "server/intake/mistakes.h"
#include "server/intake/pretrained_file.h"
#include "server/intake/search_trials.h"
#include "server/plan/budget_rules.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr double kReadBytesPerSecond = 50e6;
constexpr absl::Duration kFloorStart = absl::Milliseconds(500);
constexpr char kIdAlphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";  // no i, l, o, u
constexpr int kIdCharacters = 6;

// Returns a hash of everything that shapes training besides the files' bytes: equal keys train
// equal folds.
std::string CacheKey(v1::JobSpec spec) {
  if (spec.cache() == "off" || !spec.has_train()) return "";
  // Trials above the first are compared by their settings (server/reuse).
  for (const char* field : {"name", "output", "labels", "priority", "budget", "preset", "cache",
                            "from", "predictions", "search", "after"}) {
    spec.GetReflection()->ClearField(&spec, spec.GetDescriptor()->FindFieldByName(field));
  }
  spec.mutable_data()->clear_train();
  spec.mutable_data()->clear_test();
  if (spec.data().has_image()) {
    spec.mutable_data()->mutable_image()->clear_labels();
    spec.mutable_data()->mutable_image()->clear_test_labels();
  }
  if (spec.model().has_script()) spec.mutable_model()->mutable_script()->clear_file();
  if (spec.model().has_pretrained()) {
    spec.mutable_model()->mutable_pretrained()->clear_file();
    spec.mutable_model()->mutable_pretrained()->clear_folder();
  }
  v1::TrainSpec& train = *spec.mutable_train();
  train.clear_checkpoint_every();
  train.clear_checkpoint_epochs();
  train.clear_keep_best();
  train.clear_gradient_norm();
  train.clear_seeds();  // the number of models does not change any of them
  v1::ResourceSpec& resources = *spec.mutable_resources();
  resources.clear_labels();
  resources.clear_gpu();
  resources.clear_gpu_memory();
  return Sha256Hex(absl::StrCat("engine ", kEngineVersion, "\n", SpecToJson(spec)));
}

// Returns a key of everything besides the data that a step's time depends on: equal keys are
// equally fast.
std::string SpeedKey(const v1::JobSpec& spec) {
  if (!spec.has_train()) return "";
  v1::JobSpec shape;
  // The first of several trials is the one that the Plan is made for.
  *shape.mutable_model() = spec.trials_size() > 0 ? spec.trials(0).model() : spec.model();
  shape.mutable_model()->clear_pretrained();
  shape.mutable_data()->set_window(spec.data().window());
  if (spec.data().has_image()) *shape.mutable_data()->mutable_image() = spec.data().image();
  if (spec.data().has_text()) *shape.mutable_data()->mutable_text() = spec.data().text();
  if (spec.train().has_patches()) {
    *shape.mutable_train()->mutable_patches() = spec.train().patches();
    for (const std::string& name : spec.data().volume().classes()) {
      shape.mutable_data()->mutable_volume()->add_classes(name);
    }
  }
  shape.mutable_resources()->set_slots(spec.resources().slots());
  shape.mutable_resources()->set_device(spec.resources().device());
  shape.mutable_resources()->set_gpu(spec.resources().gpu());
  shape.mutable_resources()->set_gpu_memory(spec.resources().gpu_memory());
  shape.mutable_train()->set_batch(spec.train().batch());
  shape.mutable_train()->set_accumulation(spec.train().accumulation());
  shape.mutable_train()->set_precision(spec.train().precision());
  shape.mutable_train()->set_recompute(spec.train().recompute());
  return Sha256Hex(SpecToJson(shape));
}

// Returns the settings of a trial that the Plan depends on. train: its own, or the Job's.
Trial TrialOf(const std::string& name, const v1::ModelSpec& model, const v1::TrainSpec& train) {
  Trial trial;
  trial.name = name;
  trial.epochs = train.epochs();
  trial.patience = train.patience();
  const auto* const kind = model.GetReflection()->GetOneofFieldDescriptor(
      model, v1::ModelSpec::descriptor()->FindOneofByName("architecture"));
  if (kind != nullptr) trial.kind = kind->name();
  const auto rounds = [&trial](int64_t all, int64_t patience) {
    trial.epochs = static_cast<int>(EpochsOfRounds(all));
    trial.patience = patience == 0 ? 0 : static_cast<int>(EpochsOfRounds(patience));
  };
  if (model.has_lightgbm()) {
    rounds(model.lightgbm().num_iterations(), model.lightgbm().early_stopping_round());
  }
  if (model.has_xgboost()) {
    rounds(model.xgboost().num_boost_round(), model.xgboost().early_stopping_rounds());
  }
  return trial;
}

// Returns the trials of a spec, or the one that it is where it names none.
std::vector<Trial> TrialsOf(const v1::JobSpec& spec) {
  std::vector<Trial> trials;
  for (const v1::TrialSpec& trial : spec.trials()) {
    trials.push_back(
        TrialOf(trial.name(), trial.model(), trial.has_train() ? trial.train() : spec.train()));
  }
  if (trials.empty()) trials.push_back(TrialOf("", spec.model(), spec.train()));
  if (spec.has_run()) trials[0].kind = kProgramKind;
  return trials;
}

// REQUIRES: checked (common/spec/spec_rules.h).
Constraints ConstraintsOf(const v1::ResourceSpec& from) {
  Constraints to;
  for (const auto& [key, value] : from.labels()) to.labels.insert(absl::StrCat(key, "=", value));
  to.gpu = absl::AsciiStrToLower(absl::StripAsciiWhitespace(from.gpu()));
  to.gpu_memory_bytes = ParseBytes(from.gpu_memory()).value_or(0);
  return to;
}

Spec ToDomain(const v1::JobSpec& from) {
  Spec to;
  to.name = from.name();
  to.metric = from.task().metric();
  to.higher_is_better = HigherIsBetter(to.metric);
  to.folds = from.data().folds();
  to.trials = TrialsOf(from);
  to.epochs = from.has_train() ? to.trials[0].epochs : 0;
  to.patience = from.train().patience();
  if (from.has_run()) to.folds = from.run().folds();
  if (from.has_run() || from.model().has_command()) {
    const int epochs = from.has_run() ? from.run().epochs() : from.model().command().epochs();
    // One that tells of no epochs is an epoch by itself.
    to.epochs = to.trials[0].epochs = std::max(1, epochs);
    to.patience = to.trials[0].patience = 0;
  }
  to.seeds = std::max(1, from.train().seeds());
  to.slots = from.resources().slots();
  to.device = from.resources().device();
  to.constraints = ConstraintsOf(from.resources());
  to.batch = from.train().batch();
  to.precision = from.train().precision();
  to.priority = from.priority();
  to.labels.insert(from.labels().begin(), from.labels().end());
  to.has_test = !from.data().test().empty();
  if (from.budget().has_time()) {
    to.budget = absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.budget().time()));
  }
  if (from.budget().has_deadline()) {
    to.deadline = absl::FromUnixMillis(TimeUtil::TimestampToMilliseconds(from.budget().deadline()));
  }
  to.policy = from.budget().policy() == "fixed" ? Policy::kFixed : Policy::kAdaptive;
  to.shares = {from.budget().plan_share(),
               from.budget().first_fold_share(),
               from.budget().reserve_share(),
               from.budget().stop_share(),
               from.budget().reserve_margin(),
               absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.budget().reserve_least()))};
  to.subsample = from.budget().subsample();
  to.cache_key = CacheKey(from);
  to.speed_key = SpeedKey(from);
  to.cache_read = from.cache() == "use";
  to.from = from.from();
  to.after_any_end = from.after().end() == "any";
  return to;
}

// Nobody else can know what a program reads.
void TakeNothingOver(Spec& spec) {
  spec.cache_key.clear();
  spec.cache_read = false;
}

// The columns that a spec names, by their role.
struct NamedColumns {
  explicit NamedColumns(const v1::DataSpec& data)
      : targets(data.targets().begin(), data.targets().end()) {
    if (!data.target().empty()) targets.push_back(data.target());
    no_features = targets;
    for (const std::string& column :
         {data.id(), data.group(), data.fold_column(), data.image().column(), data.volume().image(),
          data.volume().mask()}) {
      if (!column.empty()) no_features.push_back(column);
    }
  }
  std::vector<std::string> targets;
  std::vector<std::string> no_features;
};

// Checks that the files have the columns that the spec names.
void CheckNamed(const v1::DataSpec& data, const NamedColumns& named, const DataFile& train,
                const DataFile* test, Mistakes& mistakes) {
  const auto require = [&](const DataFile& file, absl::string_view which, absl::string_view field,
                           const std::string& column) {
    if (column.empty() || absl::c_linear_search(file.header, column)) return;
    mistakes.Add(field, MissingColumn(which, column, file.header));
  };
  for (const std::string& target : named.targets) {
    require(train, "training", "data.target", target);
  }
  require(train, "training", "data.time", data.time());
  require(train, "training", "data.series", data.series());
  for (const std::string& column : data.known_ahead()) {
    require(train, "training", "data.known_ahead", column);
  }
  require(train, "training", "data.group", data.group());
  require(train, "training", "data.fold_column", data.fold_column());
  for (const std::string& column : data.text().columns()) {
    require(train, "training", "data.text.columns", column);
  }
  require(train, "training", "data.image.column", data.image().column());
  require(train, "training", "data.volume.image", data.volume().image());
  require(train, "training", "data.volume.mask", data.volume().mask());
  if (test == nullptr) return;
  require(*test, "test", "data.image.column", data.image().column());
  require(*test, "test", "data.volume.image", data.volume().image());
  require(*test, "test", "data.id", data.id());
}

// Checks columns against the spec and each other.
void CheckColumns(const v1::JobSpec& spec, const DataFile& train, const DataFile* test,
                  Mistakes& mistakes, std::vector<std::string>* warnings) {
  const v1::DataSpec& data = spec.data();
  // The columns of arrays are known only when they are read.
  if (train.arrays || (test != nullptr && test->arrays)) return;
  const NamedColumns named(data);
  CheckNamed(data, named, train, test, mistakes);
  if (!data.id().empty() && absl::c_linear_search(named.targets, data.id())) {
    mistakes.Add("data.id", "the target cannot be the id");
  }
  const auto is_feature = [&](const std::string& column) {
    return !absl::c_linear_search(named.no_features, column);
  };
  // A forecast can learn from the target's own past, without other columns.
  const bool past = spec.task().type() == "forecasting" && spec.data().horizon() > 0;
  if (!past && !data.has_image() && !data.has_volume() &&
      absl::c_none_of(train.header, is_feature)) {
    mistakes.Add("data.train", "there is no column besides the target and the id");
  }
  // Without the target it is unknown which columns are features.
  const bool targets = absl::c_all_of(named.targets, [&](const std::string& target) {
    return absl::c_linear_search(train.header, target);
  });
  if (test == nullptr || !targets) return;
  const auto has = [](const DataFile& file, const std::string& column) {
    return absl::c_linear_search(file.header, column);
  };
  std::vector<std::string> missing, extra;
  for (const std::string& column : train.header) {
    if (is_feature(column) && !has(*test, column)) missing.push_back(column);
  }
  for (const std::string& column : test->header) {
    if (is_feature(column) && !has(train, column)) extra.push_back(column);
  }
  if (!missing.empty()) {
    mistakes.Add("data.test", absl::StrCat("the test file lacks columns of the training file: ",
                                           SomeOf(missing)));
  }
  if (!extra.empty()) {
    warnings->push_back(absl::StrCat(
        "data.test: columns that the training file lacks are ignored: ", SomeOf(extra)));
  }
}

// Returns the time within which a floor can be ready for so many bytes on this kind of machine:
// half a second, and reading at 50 MB/s.
absl::Duration FloorTime(int64_t bytes) {
  return kFloorStart + absl::Seconds(static_cast<double>(bytes) / kReadBytesPerSecond);
}

// Returns the real path of a folder. Errors: InvalidArgument.
absl::StatusOr<std::string> FolderAt(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.message()));
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

MediaLoad LoadOf(const v1::DataSpec& data, const DataFile* file) {
  const std::vector<std::string> columns = MediaColumns(data);
  return columns.empty() || file == nullptr ? MediaLoad() : CountMedia(*file, columns);
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
    mistakes.Add("model.command.code", folder.status().message());
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
    mistakes.Add("run.folder", folder.status().message());
    return mistakes.ToStatus();
  }
  run.set_folder(*folder);
  if (run.results().empty()) run.set_results(*folder);
  CheckSample("run.sample_submission", *run.mutable_sample_submission(), mistakes);
  if (!mistakes.empty()) return mistakes.ToStatus();
  checked.spec = ToDomain(checked.resolved);
  TakeNothingOver(checked.spec);
  checked.spec.checkpoint_every = CheckpointEvery({}, DeadlineOf(checked.spec, now) - now);
  checked.floor_time = kFloorStart;
  RETURN_IF_ERROR(CheckTime(checked.spec, MediaLoad(), checked.floor_time, now));
  checked.json = SpecToJson(checked.resolved);
  checked.sha256 = Sha256Hex(checked.json);
  return checked;
}

absl::StatusOr<CheckedSpec> Intake::Check(const v1::JobSpec& spec, absl::Time now) {
  Mistakes mistakes;
  for (const SpecError& error : CheckSpec(spec)) {
    mistakes.lines()->push_back(error.message);
  }
  if (!mistakes.empty()) return mistakes.ToStatus();

  if (UsesModelsOfAnother(spec)) {
    return absl::InvalidArgumentError("predict, serve: there is nothing to plan for");
  }
  RETURN_IF_ERROR(CheckAllowed(spec));
  if (spec.has_run()) return CheckProgram(spec, now);
  CheckedSpec checked;
  v1::JobSpec with_preset = spec;
  if (spec.task().type().empty()) {
    RETURN_IF_ERROR(FillTaskType(files_, with_preset, &checked.warnings));
    for (const SpecError& error : CheckSpec(with_preset))
      mistakes.lines()->push_back(error.message);
    if (!mistakes.empty()) return mistakes.ToStatus();
  }
  checked.preset_fields = ApplyPreset(with_preset);
  checked.resolved = ResolveSpec(std::move(with_preset));
  v1::DataSpec* const data = checked.resolved.mutable_data();
  const auto train = LookAtData(*data, /*training=*/true, files_);
  if (!train.ok()) mistakes.AddFile("data.train", train.status());
  absl::StatusOr<std::shared_ptr<const DataFile>> test = std::shared_ptr<const DataFile>();
  if (!data->test().empty()) {
    test = LookAtData(*data, /*training=*/false, files_);
    if (!test.ok()) mistakes.AddFile("data.test", test.status());
  }
  if (checked.resolved.model().has_script()) {
    const absl::Status script = CheckScript(*checked.resolved.mutable_model()->mutable_script());
    if (!script.ok()) mistakes.AddFile("model.script.file", script);
  }
  if (checked.resolved.model().has_pretrained()) {
    TakePretrained(spec, files_, checked.resolved, mistakes);
  }
  const auto resolve = [&](const std::string& field, std::string* path) {
    if (path->empty()) return;
    absl::StatusOr<std::string> real = files_.Resolve(*path);
    if (real.ok()) {
      *path = *std::move(real);
    } else {
      mistakes.AddFile(field, real.status());
    }
  };
  if (data->has_text()) {
    resolve("data.text.model_file", data->mutable_text()->mutable_model_file());
  }
  if (data->image().has_labels()) {
    resolve("data.image.labels", data->mutable_image()->mutable_labels());
  }
  if (data->image().has_test_labels()) {
    resolve("data.image.test_labels", data->mutable_image()->mutable_test_labels());
  }
  if (!mistakes.empty()) return mistakes.ToStatus();
  // Images of folders answer by the names of their files.
  if (data->id().empty() && ((*train)->folder || (*test != nullptr && (*test)->folder))) {
    data->set_id(data->image().column());
  }
  CheckColumns(checked.resolved, **train, test->get(), mistakes, &checked.warnings);
  if (const absl::Status numbers = CheckTargetNumbers(files_, **train, checked.resolved);
      !numbers.ok()) {
    mistakes.lines()->emplace_back(numbers.message());
  }
  const bool command = checked.resolved.model().has_command();
  if (command) {
    CheckCommandFiles(*checked.resolved.mutable_model()->mutable_command(), **train, test->get(),
                      mistakes);
  }
  if (!mistakes.empty()) return mistakes.ToStatus();

  FillTrials(files_, **train, spec, checked.resolved);
  data->set_train((*train)->path);
  if (*test != nullptr) data->set_test((*test)->path);
  checked.spec = ToDomain(checked.resolved);
  if (command) TakeNothingOver(checked.spec);
  if (checked.resolved.has_search()) {
    RETURN_IF_ERROR(FillSearch(spec, checked.resolved, checked.spec, &checked.warnings));
  }
  std::optional<absl::Duration> every;
  if (const v1::TrainSpec& asked = checked.resolved.train(); asked.has_checkpoint_every()) {
    every = absl::Milliseconds(TimeUtil::DurationToMilliseconds(asked.checkpoint_every()));
  }
  checked.spec.checkpoint_every = CheckpointEvery(every, DeadlineOf(checked.spec, now) - now);
  checked.spec.train_bytes = (*train)->bytes;
  checked.spec.test_bytes = *test == nullptr ? 0 : (*test)->bytes;
  checked.train_media = LoadOf(*data, train->get());
  checked.work = EpochWorkOf(checked.resolved, **train, checked.train_media);
  MediaLoad media = LoadOf(*data, test->get());
  media.files += checked.train_media.files;
  media.bytes += checked.train_media.bytes;
  checked.floor_time =
      FloorTime(checked.spec.train_bytes + checked.spec.test_bytes) + MediaTime(media);
  const absl::Status time = CheckTime(checked.spec, media, checked.floor_time, now);
  if (!time.ok()) return time;
  checked.json = SpecToJson(checked.resolved);
  checked.sha256 = Sha256Hex(checked.json);
  return checked;
}

absl::StatusOr<CheckedSpec> Intake::CheckInference(const v1::JobSpec& spec, const Job& source,
                                                   const v1::ModelSet& models, absl::Time now) {
  Mistakes mistakes;
  for (const SpecError& error : CheckSpec(spec)) mistakes.lines()->push_back(error.message);
  if (!mistakes.empty()) return mistakes.ToStatus();
  CheckedSpec checked;
  checked.resolved = ResolveSpec(spec);
  v1::JobSpec& resolved = checked.resolved;
  ASSIGN_OR_RETURN(const v1::JobSpec of_source, SpecFromJson(source.spec_json));
  if (of_source.data().has_volume()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", source.id,
                     " segments volumes: masks are made of its own data.test alone; train again "
                     "with another one, folds are taken over"));
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
    const auto data = LookAtLaterData(of_source.data(), resolved.predict().data(), files_);
    if (!data.ok()) {
      mistakes.AddFile("predict.data", data.status());
    } else if ((*data)->parquet) {
      mistakes.Add("predict.data",
                   "rows of later files come as CSV, NPY or NPZ; this is a Parquet table");
    }
    if (!mistakes.empty()) return mistakes.ToStatus();
    bytes = (*data)->bytes;
    media = LoadOf(of_source.data(), data->get());
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
