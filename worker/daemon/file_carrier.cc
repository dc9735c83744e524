#include "worker/daemon/file_carrier.h"

#include <absl/random/random.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/travelling_files.h"
#include "common/plain/plain_json.h"
#include "common/publish/prediction_files.h"
#include "common/transfer/folder_pack.h"
#include "common/transfer/program_pack.h"
#include "common/transfer/state_path.h"
#include "worker/daemon/backoff.h"
#include "worker/daemon/fetched_input.h"
#include "worker/daemon/own_folder.h"

namespace traind::worker {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
// A file that changes while it is sent is sent again; one that always does is given up.
constexpr int kMostLosses = 5;
// A program's checkpoints take this share of the time to travel, and of the threads half.
constexpr int kPackPause = 9;  // times what the last one took
constexpr int kMostPacks = FileCarrier::kThreads / 2;
// Whose inputs are known.
constexpr size_t kMostJobs = 1000;

// The regular files of a folder, relative to the state folder, sorted.
std::vector<std::string> FilesIn(const std::string& state_dir, const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat(state_dir, "/", folder), error)) {
    if (entry.is_regular_file(error) && !entry.is_symlink(error)) {
      paths.push_back(absl::StrCat(folder, "/", entry.path().filename().string()));
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The number of the Prediction whose manifest has this path; 0: it is none of the Job's.
int NumberOfManifest(const std::string& job, absl::string_view path) {
  int number = 0;
  const bool manifest = absl::ConsumePrefix(&path, absl::StrCat(JobDir(job), "/prediction-")) &&
                        absl::ConsumeSuffix(&path, absl::StrCat("/", kManifestFile)) &&
                        absl::SimpleAtoi(path, &number);
  return manifest ? std::max(number, 0) : 0;
}

// What a program needs of this machine: a folder for its answer, and where else commands may be.
void UseThisMachine(plain::JobSpec& spec, const std::string& results) {
  if (spec.run) spec.run->results = results;
  auto* environment = spec.run             ? &spec.run->environment
                      : spec.model.command ? &spec.model.command->environment
                                           : nullptr;
  const char* path = getenv("PATH");
  if (environment == nullptr || path == nullptr) return;
  const auto named = environment->find("PATH");
  if (named != environment->end()) absl::StrAppend(&named->second, ":", path);
}

// The spec with which a model was trained, as its model.json tells it; an empty one where it does
// not.
plain::JobSpec SpecOfModel(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("model") || !json["model"].is_object()) return {};
  const auto spec = json["model"].find("spec");
  if (spec == json["model"].end() || !spec->is_string()) return {};
  return plain::FromJson<plain::JobSpec>(spec->get<std::string>()).value_or(plain::JobSpec());
}

}  // namespace

bool RunsProgram(const TaskStart& task) {
  return task.kind == TaskKind::kTrain &&
         (task.model == kProgramKind || task.model == kCommandKind);
}

FileCarrier::FileCarrier(std::string state_dir, std::unique_ptr<RemoteFiles> remote,
                         int64_t max_bytes)
    : state_dir_(std::move(state_dir)), remote_(std::move(remote)), max_bytes_(max_bytes) {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
}

FileCarrier::~FileCarrier() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    for (const auto& stop : running_) stop->Stop();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void FileCarrier::Run() {
  while (true) {
    Work work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
      if (stop_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

void FileCarrier::Add(std::function<void(TransferStop&)> work, std::shared_ptr<TransferStop> stop) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_.insert(stop);
    work_.push_back([this, stop, work = std::move(work)] {
      work(*stop);
      const std::lock_guard<std::mutex> done(mutex_);
      running_.erase(stop);
    });
  }
  changed_.notify_all();
}

absl::Status FileCarrier::Insist(const std::function<absl::Status()>& act,
                                 const TransferStop& stop) {
  absl::BitGen random;
  Backoff backoff(kFirstPause, kLongestPause);
  int losses = 0;
  while (true) {
    const absl::Status status = act();
    losses += absl::IsDataLoss(status) ? 1 : 0;
    const bool again = absl::IsUnavailable(status) || absl::IsAborted(status) ||
                       absl::IsResourceExhausted(status) ||
                       (absl::IsDataLoss(status) && losses < kMostLosses);
    if (!again || stop.stopped()) return status;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(backoff.Next(random)),
                      [&] { return stop_ || stop.stopped(); });
  }
}

// ---- whether the folder is shared -------------------------------------------

void FileCarrier::Compare() {
  Add([this](TransferStop& stop) {
    Result result;
    const absl::StatusOr<bool> shared = CompareNow(stop);
    result.status = shared.status();
    result.shared = shared.value_or(false);
    results_.Put(std::move(result));
  });
}

absl::StatusOr<bool> FileCarrier::CompareNow(TransferStop& stop) const {
  ASSIGN_OR_RETURN(const std::string random, ReadFile("/proc/sys/kernel/random/uuid"));
  const std::string content = Sha256Hex(random);
  const std::string name = absl::StrCat("probe-", content.substr(0, 32));
  RETURN_IF_ERROR(WriteFileDurably(InState(name), content));
  absl::StatusOr<bool> shared = remote_->HasFile(name, content, stop);
  unlink(InState(name).c_str());
  return shared;
}

// ---- to this Worker ---------------------------------------------------------

void FileCarrier::Bring(const TaskStart& task) {
  auto stop = std::make_shared<TransferStop>();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    bringing_[task.attempt] = stop;
  }
  const auto bring = [this, task](TransferStop& stop_now) {
    Result result;
    result.kind = Result::kBrought;
    result.attempt = task.attempt;
    result.status = Insist([&] { return BringNow(task, stop_now, result); }, stop_now);
    results_.Put(std::move(result));
    const std::lock_guard<std::mutex> lock(mutex_);
    bringing_.erase(task.attempt);
  };
  Add(bring, std::move(stop));
}

void FileCarrier::StopBringing(int64_t attempt) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bringing_.find(attempt);
    if (found == bringing_.end()) return;
    found->second->Stop();
  }
  changed_.notify_all();
}

absl::Status FileCarrier::BringNow(const TaskStart& task, TransferStop& stop, Result& result) {
  result.spec_json = task.spec_json;
  if (UsesModels(task.kind)) RETURN_IF_ERROR(BringModels(task, stop, result));
  if (task.kind == TaskKind::kServe) return absl::OkStatus();
  if (task.kind == TaskKind::kTrain) RETURN_IF_ERROR(BringFold(task, stop, result));
  if (task.kind == TaskKind::kTrain && !RunsProgram(task)) return absl::OkStatus();
  if (task.kind == TaskKind::kTrain) RETURN_IF_ERROR(BringProgramPack(task, stop, result));
  return BringData(task, stop, result);
}

absl::Status FileCarrier::BringData(const TaskStart& task, TransferStop& stop, Result& result) {
  ASSIGN_OR_RETURN(auto spec, plain::FromJson<plain::JobSpec>(task.spec_json));
  result.names.clear();
  for (const NamedFile& file : TravellingFiles(spec)) {
    ASSIGN_OR_RETURN(const FetchedInput input, BringInput(task, file, stop, result));
    SetTravellingFile(spec, file.field, input.path);
    result.names.emplace_back(input.path, file.path);
    if (input.IsFolder()) result.names.emplace_back(input.folder, input.named_folder);
  }
  if (RunsProgram(task)) {
    const std::string results =
        InState(absl::StrCat(AttemptDir(task.job, task.attempt), "/", kResultsFolder));
    // traind's own folder goes without its name, which nobody here knows.
    if (spec.run) {
      result.names.emplace_back(results, ProgramResultsDir(".", task.job, spec.run->results));
    }
    UseThisMachine(spec, results);
  }
  result.spec_json = plain::ToJson(spec);
  return absl::OkStatus();
}

absl::StatusOr<FetchedInput> FileCarrier::BringInput(const TaskStart& task, const NamedFile& file,
                                                     TransferStop& stop, Result& result) {
  FetchedInput input;
  if (task.kind == TaskKind::kTrain) {
    const std::lock_guard<std::mutex> lock(mutex_);
    input = inputs_[task.job][file.field];
  }
  if (!input.path.empty() && input.IsThere()) return input;
  int64_t bytes = 0;
  const auto destination = [&](const RemoteContent& content) {
    input = FetchedInput::Of(state_dir_, file, content);
    if (input.IsThere()) return std::string();
    bytes = content.digest.bytes;
    return input.comes_to;
  };
  RETURN_IF_ERROR(remote_->Fetch({task.job, "", file.field}, destination, stop));
  result.bytes += bytes;
  RETURN_IF_ERROR(input.Unpack());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (inputs_.size() > kMostJobs) inputs_.clear();  // then they are asked for once more
  inputs_[task.job][file.field] = input;
  return input;
}

absl::Status FileCarrier::BringFold(const TaskStart& task, TransferStop& stop,
                                    Result& result) const {
  ASSIGN_OR_RETURN(const auto spec, plain::FromJson<plain::JobSpec>(task.spec_json));
  for (const std::string& path : CachedFiles(spec, task.table)) {
    RETURN_IF_ERROR(FetchInState(task.job, task.job, path, stop, result));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> paths, remote_->List(task.job, JobDir(task.job), stop));
  if (!task.resume.empty()) {
    // With the checkpoint before it, in case that it is damaged.
    const std::string folder = task.resume.substr(0, task.resume.rfind('/'));
    ASSIGN_OR_RETURN(const auto checkpoints, remote_->List(task.job, folder, stop));
    for (const std::string& path : checkpoints) {
      if (absl::StartsWith(FileName(path), kCheckpointPrefix)) paths.push_back(path);
    }
  }
  for (const std::string& path : paths) {
    const absl::Status fetched = FetchInState(task.job, task.job, path, stop, result);
    // Another Attempt may have removed it since it was listed.
    if (!fetched.ok() && !absl::IsNotFound(fetched)) return fetched;
  }
  return absl::OkStatus();
}

absl::Status FileCarrier::BringProgramPack(const TaskStart& task, TransferStop& stop,
                                           Result& result) const {
  ASSIGN_OR_RETURN(const auto paths, remote_->List(task.job, ProgramsDir(task.job), stop));
  const ProgramPack next = {task.fold, task.trial, task.attempt};
  // What has run here since is not replaced (worker/program/travelling_fold.h).
  const int64_t last = LastProgramAttempt(InState(ProgramDir(task.job, task.fold, task.trial)));
  const auto pack = NewestProgramPack(paths, task.job, last, next);
  if (!pack) return absl::OkStatus();
  const absl::Status fetched =
      FetchInState(task.job, task.job, ProgramPackPath(task.job, *pack), stop, result);
  return absl::IsNotFound(fetched) ? absl::OkStatus() : fetched;
}

absl::Status FileCarrier::BringModels(const TaskStart& task, TransferStop& stop,
                                      Result& result) const {
  ASSIGN_OR_RETURN(const auto spec, plain::FromJson<plain::JobSpec>(task.spec_json));
  const std::string from = ModelsFrom(spec);
  // Volumes are read as the floor read them.
  std::set<std::string> folders = {FloorDir(from)};
  const auto& models = spec.serve ? spec.serve->models : spec.predict.value().models;
  for (const auto& model : models.models) folders.insert(model.path);
  RETURN_IF_ERROR(BringStanding(task, from, stop, result));
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const auto paths, remote_->List(task.job, folder, stop));
    for (const std::string& path : paths) {
      if (absl::EndsWith(path, ".log") || absl::EndsWith(path, ".npy")) continue;
      const absl::Status fetched = FetchInState(task.job, from, path, stop, result);
      // That Job may still train, and replace its checkpoints.
      if (!fetched.ok() && !absl::IsNotFound(fetched)) return fetched;
    }
    // A network of the user's own is in the cache.
    const auto file = ReadFile(InState(absl::StrCat(folder, "/", kModelFile)));
    const auto trained = file.ok() ? SpecOfModel(*file) : plain::JobSpec();
    if (!trained.model.script) continue;
    const std::string script = ScriptCachePath(trained.model.script->sha256);
    RETURN_IF_ERROR(FetchInState(task.job, from, script, stop, result));
  }
  return absl::OkStatus();
}

absl::Status FileCarrier::BringStanding(const TaskStart& task, const std::string& from,
                                        TransferStop& stop, Result& result) const {
  ASSIGN_OR_RETURN(const auto paths, remote_->List(task.job, JobDir(from), stop));
  for (const std::string& path : paths) {
    const int number = NumberOfManifest(from, path);
    if (number == 0) continue;
    RETURN_IF_ERROR(FetchInState(task.job, from, path, stop, result));
    RETURN_IF_ERROR(SwitchCurrent(state_dir_, from, number));
  }
  return absl::OkStatus();
}

absl::Status FileCarrier::FetchInState(const std::string& job, const std::string& owner,
                                       const std::string& path, TransferStop& stop,
                                       Result& result) const {
  RETURN_IF_ERROR(CheckStatePath(state_dir_, path, owner, Direction::kToWorker));
  const std::string local = InState(path);
  int64_t bytes = 0;
  const auto destination = [&](const RemoteContent& content) {
    if (HasDigest(local, content.digest)) return std::string();
    bytes = content.digest.bytes;
    return local;
  };
  RETURN_IF_ERROR(remote_->Fetch({job, path, ""}, destination, stop));
  result.bytes += bytes;
  return absl::OkStatus();
}

// ---- to traind --------------------------------------------------------------

void FileCarrier::SendProgramPack(const SendRequest& request) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pack_sends_[request.attempt].request = request;
  }
  StartPackSends();
}

void FileCarrier::StartPackSends() {
  std::vector<std::pair<SendRequest, std::shared_ptr<TransferStop>>> starts;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto busy = std::count_if(pack_sends_.begin(), pack_sends_.end(),
                              [](const auto& send) { return send.second.stop != nullptr; });
    const auto now = std::chrono::steady_clock::now();
    for (auto it = pack_sends_.begin(); it != pack_sends_.end();) {
      PackSend& send = (it++)->second;
      if (send.stop != nullptr || (now < send.not_before && !send.last)) continue;
      const SendRequest request = send.request;
      struct stat info = {};
      const bool news = stat(InState(request.program_pack).c_str(), &info) == 0 &&
                        !HasSent(request.attempt, request.program_pack, info);
      if (!news && send.last) {
        sent_.erase(request.attempt);
        pack_sends_.erase(request.attempt);
      } else if (news && busy < kMostPacks) {
        ++busy;
        send.stop = std::make_shared<TransferStop>();
        starts.emplace_back(request, send.stop);
      }
    }
  }
  for (auto& [request, stop] : starts) {
    Add([this, request = request](TransferStop& stop_now) { SendPackNow(request, stop_now); },
        std::move(stop));
  }
}

void FileCarrier::SendPackNow(const SendRequest& request, TransferStop& stop) {
  const auto began = std::chrono::steady_clock::now();
  Result unused;
  const absl::Status status =
      Insist([&] { return SendOne(request, request.program_pack, stop, unused); }, stop);
  // FailedPrecondition: the Job is over.
  if (!status.ok() && !absl::IsFailedPrecondition(status) && !stop.stopped()) {
    TRAIND_LOG(WARNING) << "checkpoints of attempt " << request.attempt << ": " << status;
  }
  {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard<std::mutex> lock(mutex_);
    PackSend& own = pack_sends_[request.attempt];
    own.stop = nullptr;
    own.not_before = now + kPackPause * (now - began);
    // A last one that failed is given up; one that was broken off is taken up again.
    if (own.last && !status.ok() && !stop.stopped()) {
      sent_.erase(request.attempt);
      pack_sends_.erase(request.attempt);
    }
  }
  StartPackSends();
}

// REQUIRES: mutex_ is held.
bool FileCarrier::HasSent(int64_t attempt, const std::string& path, const struct stat& info) const {
  const auto files = sent_.find(attempt);
  if (files == sent_.end()) return false;
  const auto file = files->second.find(path);
  return file != files->second.end() && file->second == VersionOf(info);
}

void FileCarrier::Send(const SendRequest& request) {
  if (request.with_log) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto pack = pack_sends_.find(request.attempt);
    if (pack != pack_sends_.end() && pack->second.stop != nullptr) pack->second.stop->Stop();
  }
  Add([this, request](TransferStop& stop) {
    Result result;
    result.kind = Result::kSent;
    result.job = request.job;
    result.attempt = request.attempt;
    result.status = Insist([&] { return SendNow(request, stop, result); }, stop);
    results_.Put(std::move(result));
  });
}

std::vector<std::string> FileCarrier::PathsToSend(const SendRequest& request) const {
  std::vector<std::string> folders = {AttemptDir(request.job, request.attempt)};
  std::vector<std::string> paths;
  if (UsesModels(request.kind)) {
    // The rest are scratch files.
    paths.push_back(absl::StrCat(folders[0], "/", kPredictionPack));
    if (request.with_log) paths.push_back(RankLogPath(request.job, request.attempt, 0));
    return paths;
  }
  if (request.kind == TaskKind::kPrepare) {
    folders.push_back(JobDir(request.job));
    folders.push_back(FloorDir(request.job));
    const auto spec = plain::FromJson<plain::JobSpec>(request.spec_json);
    if (spec.ok()) paths = CachedFiles(*spec, request.table);
  }
  for (const std::string& folder : folders) {
    for (std::string& path : FilesIn(state_dir_, folder)) {
      if (!request.with_log && absl::EndsWith(path, ".log")) continue;
      if (Travels(path, request.job, Direction::kToTraind)) paths.push_back(std::move(path));
    }
  }
  // A manifest says that what it names is there.
  std::stable_partition(paths.begin(), paths.end(),
                        [](const std::string& path) { return !absl::EndsWith(path, ".json"); });
  return paths;
}

FileCarrier::Version FileCarrier::VersionOf(const struct stat& info) {
  return {info.st_ino, info.st_size, absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim))};
}

absl::StatusOr<int> FileCarrier::PackPrediction(const SendRequest& request) {
  if (request.kind != TaskKind::kPredict) return 0;
  const auto standing = ReadStandingPrediction(state_dir_, request.job);
  if (!standing.ok()) return 0;  // there is none
  const int number = standing->number;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (published_[request.attempt] == number) return 0;
  }
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::canonical(InState(PredictionDir(request.job, number)), error);
  // Another one may stand by now, and this one be removed.
  if (error) return absl::AbortedError(absl::StrCat(folder.string(), ": ", error.message()));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(folder.string()));
  ASSIGN_OR_RETURN(const auto pack, FolderPack::Open(folder.string(), files, {}));
  RETURN_IF_ERROR(pack->WriteTo(
      InState(absl::StrCat(AttemptDir(request.job, request.attempt), "/", kPredictionPack))));
  return number;
}

absl::Status FileCarrier::PackResults(const SendRequest& request) {
  if (request.kind != TaskKind::kTrain) return absl::OkStatus();
  const std::string attempt = InState(AttemptDir(request.job, request.attempt));
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::canonical(absl::StrCat(attempt, "/", kResultsFolder), error);
  if (error) return absl::OkStatus();  // it has left nothing
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(folder.string()));
  std::map<std::string, Version> seen;
  for (const std::string& name : files) {
    struct stat info = {};
    if (stat((folder / name).c_str(), &info) == 0) seen[name] = VersionOf(info);
  }
  if (files.empty()) return absl::OkStatus();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (packed_[request.attempt] == seen) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto pack, FolderPack::Open(folder.string(), files, {}));
  RETURN_IF_ERROR(pack->WriteTo(absl::StrCat(attempt, "/", kResultsPack)));
  const std::lock_guard<std::mutex> lock(mutex_);
  packed_[request.attempt] = std::move(seen);
  return absl::OkStatus();
}

absl::Status FileCarrier::SendNow(const SendRequest& request, TransferStop& stop, Result& result) {
  ASSIGN_OR_RETURN(const int number, PackPrediction(request));
  RETURN_IF_ERROR(PackResults(request));
  const std::vector<std::string> paths = PathsToSend(request);
  std::vector<std::string> checkpoints;
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(SendOne(request, path, stop, result));
    const std::string name = FileName(path);
    if (absl::StartsWith(name, kCheckpointPrefix)) checkpoints.push_back(name);
  }
  if (number > 0) {
    result.published = number;
    const std::lock_guard<std::mutex> lock(mutex_);
    published_[request.attempt] = number;
  }
  if (checkpoints.empty()) return absl::OkStatus();
  return remote_->DropCheckpoints(request.job, request.attempt, checkpoints, stop);
}

absl::Status FileCarrier::SendOne(const SendRequest& request, const std::string& path,
                                  TransferStop& stop, Result& result) {
  const std::string local = InState(path);
  struct stat info = {};
  if (stat(local.c_str(), &info) != 0) return absl::OkStatus();  // a checkpoint that was replaced
  const Version version = VersionOf(info);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (HasSent(request.attempt, path, info)) return absl::OkStatus();
  }
  const absl::StatusOr<int64_t> sent_bytes = remote_->Send(request.job, path, local, stop);
  if (absl::IsNotFound(sent_bytes.status())) return absl::OkStatus();  // likewise
  RETURN_IF_ERROR(sent_bytes.status());
  result.bytes += *sent_bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  sent_[request.attempt][path] = version;
  return absl::OkStatus();
}

void FileCarrier::Finish(int64_t attempt, std::set<std::string> busy) {
  Add([this, attempt, busy = std::move(busy)](TransferStop&) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      published_.erase(attempt);
      packed_.erase(attempt);
      const auto pack = pack_sends_.find(attempt);
      if (pack == pack_sends_.end()) {
        sent_.erase(attempt);
      } else {
        pack->second.last = true;
      }
    }
    StartPackSends();
    TrimOwnFolder(state_dir_, max_bytes_, busy);
  });
}

}  // namespace traind::worker
