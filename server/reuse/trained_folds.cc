#include "server/reuse/trained_folds.h"

#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr char kManifestSuffix[] = ".json";
constexpr char kTemporarySuffix[] = ".tmp";
constexpr char kCheckpointPrefix[] = "checkpoint-";
// The suffixes of a checkpoint's own file: a network's tensors, or the trees of either library.
constexpr const char* kStateSuffixes[] = {".safetensors", ".txt", ".ubj"};

TrainedFold FoldOf(const Job& source, const Task& task, const Spec& wanted) {
  TrainedFold fold;
  fold.fold = task.fold;
  fold.trial = task.trial;
  fold.seed = task.seed;
  fold.job = source.id;
  fold.attempt = task.attempt;
  fold.member = task.member;
  fold.checkpoint = task.checkpoint;
  fold.row_share = task.row_share;
  if (task.member) fold.epochs_done = task.member->epochs_done;
  if (task.checkpoint) fold.epochs_done = std::max(fold.epochs_done, task.checkpoint->epoch);
  // A fold with fewer epochs than its Plan had ran out of patience and is fully trained. A fold
  // with all epochs of a Plan that was cut has more to train.
  fold.whole = task.state == TaskState::kDone && task.member && task.member->complete &&
               task.row_share >= 1 &&
               (task.member->epochs_done >= EpochsOf(wanted, task.trial) || RanOutOfPatience(task));
  return fold;
}

// Trials of searches have settings of their own, which the cache key does not tell.
bool SameSettings(const Spec& source, const Spec& wanted, int trial) {
  const auto at = static_cast<size_t>(trial);
  if (trial == 0 || at >= source.trials.size() || at >= wanted.trials.size()) return true;
  const auto &there = source.trials[at].settings, &here = wanted.trials[at].settings;
  return there == here || (there != nullptr && here != nullptr && *there == *here);
}

// Durably gives the file another name, by a hard link where possible, else by a copy.
absl::Status Link(const std::string& from, const std::string& to) {
  const std::string temporary = to + kTemporarySuffix;
  unlink(temporary.c_str());
  if (link(from.c_str(), temporary.c_str()) == 0) {
    const absl::Status renamed = RenameDurably(temporary, to);
    unlink(temporary.c_str());  // rename leaves it if `to` was already that file
    return renamed;
  }
  if (errno == ENOENT) return absl::NotFoundError(absl::StrCat(from, " is gone"));
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from));
  return WriteFileDurably(to, bytes);
}

absl::Status LinkVerified(const std::string& from, const std::string& sha256,
                          const std::string& to) {
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(from));
  if (digest.sha256 != sha256) return absl::DataLossError(absl::StrCat(from, " is damaged"));
  return Link(from, to);
}

// The files of one fold, from one Job's folder to another's.
class Files {
 public:
  Files(const std::string& state_dir, const std::string& job, const TrainedFold& fold)
      : state_dir_(state_dir + "/"),
        job_dir_(JobDir(job) + "/"),
        source_dir_(JobDir(fold.job) + "/"),
        dir_(ReusedDir(job, fold.attempt)) {}

  absl::Status LinkFiles(Member& member) const {
    RETURN_IF_ERROR(MakeDirs(state_dir_ + dir_));
    ASSIGN_OR_RETURN(member.oof, LinkArray(member.oof, member.oof_sha256, kOofFile));
    if (member.test.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(member.test, LinkArray(member.test, member.test_sha256, kTestFile));
    return absl::OkStatus();
  }

  // The model of a fold that its own Job took over, whose record names no checkpoint. Readers of
  // the model verify it. oof: of the member, as its own Job has it.
  absl::Status LinkModel(const std::string& oof) const {
    const std::string from =
        absl::StrCat(state_dir_, source_dir_, oof.substr(0, oof.find_last_of('/')));
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
      const std::string name = entry.path().filename().string();
      const bool of_model = name == kModelFile || absl::StartsWith(name, kCheckpointPrefix);
      if (!of_model || absl::EndsWith(name, kTemporarySuffix)) continue;
      RETURN_IF_ERROR(Link(entry.path().string(), absl::StrCat(state_dir_, dir_, "/", name)));
    }
    return error ? ErrnoStatus(error.value(), from) : absl::OkStatus();
  }

  absl::Status LinkFiles(Checkpoint& checkpoint) const {
    RETURN_IF_ERROR(MakeDirs(state_dir_ + dir_));
    absl::string_view stem = checkpoint.manifest;
    if (!absl::ConsumeSuffix(&stem, kManifestSuffix)) {
      return absl::InvalidArgumentError(absl::StrCat(checkpoint.manifest, " is not a manifest"));
    }
    const absl::string_view name = stem.substr(stem.rfind('/') + 1);
    const std::string to = absl::StrCat(dir_, "/", name);
    const std::string suffix = StateSuffix(absl::StrCat(state_dir_, stem));
    RETURN_IF_ERROR(LinkVerified(absl::StrCat(state_dir_, stem, suffix), checkpoint.sha256,
                                 absl::StrCat(state_dir_, to, suffix)));
    RETURN_IF_ERROR(Link(absl::StrCat(state_dir_, checkpoint.manifest),
                         absl::StrCat(state_dir_, to, kManifestSuffix)));
    // Folds that an older engine trained have no such file.
    const absl::string_view from = stem.substr(0, stem.rfind('/'));
    const absl::Status model = Link(absl::StrCat(state_dir_, from, "/", kModelFile),
                                    absl::StrCat(state_dir_, dir_, "/", kModelFile));
    if (!model.ok() && !absl::IsNotFound(model)) return model;
    checkpoint.manifest = to + kManifestSuffix;
    return absl::OkStatus();
  }

 private:
  static std::string StateSuffix(const std::string& stem) {
    for (const char* const suffix : kStateSuffixes) {
      if (access(absl::StrCat(stem, suffix).c_str(), F_OK) == 0) return suffix;
    }
    return kStateSuffixes[0];
  }
  // Returns its path in the new Job's folder.
  absl::StatusOr<std::string> LinkArray(const std::string& path, const std::string& sha256,
                                        const char* name) const {
    const std::string to = absl::StrCat(dir_, "/", name);
    RETURN_IF_ERROR(LinkVerified(absl::StrCat(state_dir_, source_dir_, path), sha256,
                                 absl::StrCat(state_dir_, to)));
    return to.substr(job_dir_.size());
  }

  const std::string state_dir_, job_dir_, source_dir_, dir_;
};

}  // namespace

std::vector<TrainedFold> ChooseFolds(const std::vector<Job>& sources, const Spec& wanted) {
  std::map<std::tuple<int, int, int>, TrainedFold> best;  // keyed by trial, seed and fold
  const int trials = std::max(1, static_cast<int>(wanted.trials.size()));
  for (const Job& source : sources) {
    for (const Task& task : source.tasks) {
      if (task.kind != TaskKind::kTrain || task.fold >= wanted.folds) continue;
      if (task.seed >= wanted.seeds || task.trial >= trials) continue;
      if (!SameSettings(source.spec, wanted, task.trial)) continue;
      TrainedFold fold = FoldOf(source, task, wanted);
      if (!fold.member && !fold.checkpoint) continue;
      // A fold of shortened epochs is resumed only if the spec asks for that Job.
      if (fold.row_share < 1 && wanted.from.empty()) continue;
      if (IsExtra(fold) && !fold.whole) continue;
      const auto [it, first] = best.try_emplace({fold.trial, fold.seed, fold.fold}, fold);
      const bool better = std::make_tuple(fold.whole, fold.epochs_done) >
                          std::make_tuple(it->second.whole, it->second.epochs_done);
      if (!first && better) it->second = std::move(fold);
    }
  }
  std::vector<TrainedFold> chosen;
  for (auto& [key, fold] : best) chosen.push_back(std::move(fold));
  return chosen;
}

std::vector<TrainedFold> LinkFolds(const std::string& state_dir, const std::string& job,
                                   std::vector<TrainedFold> folds) {
  std::vector<TrainedFold> taken;
  for (TrainedFold& fold : folds) {
    const Files files(state_dir, job, fold);
    const std::string oof = fold.member ? fold.member->oof : "";
    const auto missed = [&](const absl::Status& status) {
      if (status.ok()) return false;
      TRAIND_LOG(INFO) << "job " << job << " trains fold " << fold.fold << ": the files of job "
                       << fold.job << " cannot be reused: " << status.message();
      return true;
    };
    if (fold.member && missed(files.LinkFiles(*fold.member))) {
      fold.member.reset();
      fold.whole = false;
    }
    // A fully trained fold does not resume, but its model may predict later rows.
    if (fold.whole)
      missed(fold.checkpoint ? files.LinkFiles(*fold.checkpoint) : files.LinkModel(oof));
    if (fold.whole || (fold.checkpoint && missed(files.LinkFiles(*fold.checkpoint)))) {
      fold.checkpoint.reset();
    }
    if (fold.member || fold.checkpoint) taken.push_back(std::move(fold));
  }
  return taken;
}

}  // namespace traind
