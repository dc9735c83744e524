#include "server/retention/scrub.h"

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/publish/publisher.h"
#include "server/reuse/checkpoint_files.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kDamaged[] = ".damaged";
constexpr char kMisfit[] = "it does not fit its digest";

// Reads and paces; false: stop.
class Reader {
 public:
  Reader(const std::string& state_dir, const std::string& job, const ReadPace& pace)
      : state_dir_(state_dir), job_(job), pace_(pace) {}

  bool Checkpoints(const std::string& folder) {
    std::error_code error;
    std::vector<std::string> manifests;
    for (fs::recursive_directory_iterator entry(state_dir_ + "/" + folder, error), end;
         !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (absl::StartsWith(name, kCheckpointPrefix) && absl::EndsWith(name, kCheckpointManifest)) {
        manifests.push_back(entry->path().lexically_relative(state_dir_).string());
      }
    }
    std::sort(manifests.begin(), manifests.end());
    return std::all_of(manifests.begin(), manifests.end(),
                       [this](const std::string& manifest) { return Checkpoint(manifest); });
  }

  bool Prediction() {
    const auto standing = ReadStandingPrediction(state_dir_, job_);
    if (!standing.ok()) {
      if (absl::IsDataLoss(standing.status())) {
        damaged_.push_back({job_, CurrentLink(job_), std::string(standing.status().message()), ""});
      }
      return true;
    }
    const auto digest = DigestFile(Full(standing->path));
    if (digest.ok() && digest->sha256 != standing->sha256) {
      damaged_.push_back({job_, standing->path, kMisfit, ""});
    }
    return !digest.ok() || pace_(digest->bytes);
  }

  std::vector<DamagedFile> Take() { return std::move(damaged_); }

 private:
  std::string Full(const std::string& path) const { return absl::StrCat(state_dir_, "/", path); }

  bool Checkpoint(const std::string& manifest) {
    const auto text = ReadFile(Full(manifest));
    if (!text.ok()) return true;  // removed meanwhile
    const auto found = ParseCheckpointManifest(*text);
    if (!found) {
      damaged_.push_back({job_, manifest, "it is no whole manifest", manifest});
      return pace_(static_cast<int64_t>(text->size()));
    }
    const std::string path =
        absl::StrCat(absl::StripSuffix(manifest, kCheckpointManifest), found->suffix);
    const auto digest = DigestFile(Full(path));
    // Without its data it is no checkpoint: a Rank is just removing it, or a backup met it so.
    const bool misfits =
        digest.ok() ? digest->sha256 != found->saved.sha256 : !absl::IsNotFound(digest.status());
    if (misfits && fs::exists(Full(manifest))) {
      damaged_.push_back(
          {job_, path, digest.ok() ? kMisfit : std::string(digest.status().message()), manifest});
    }
    return pace_(digest.ok() ? digest->bytes : 0);
  }

  const std::string& state_dir_;
  const std::string& job_;
  const ReadPace& pace_;
  std::vector<DamagedFile> damaged_;
};

}  // namespace

std::string Text(const DamagedFile& file) {
  return absl::StrCat("job ", file.job, ": ", file.path, " is damaged: ", file.why);
}

std::vector<DamagedFile> FindDamage(const std::string& state_dir, const std::string& job,
                                    const ReadPace& pace) {
  Reader reader(state_dir, job, pace);
  if (reader.Checkpoints(JobDir(job) + "/attempts") &&
      reader.Checkpoints(JobDir(job) + "/reused")) {
    reader.Prediction();
  }
  return reader.Take();
}

std::vector<std::string> JobsOnDisk(const std::string& state_dir) {
  std::vector<std::string> jobs;
  std::error_code error;
  for (fs::directory_iterator entry(state_dir + "/jobs", error), end; !error && entry != end;
       entry.increment(error)) {
    jobs.push_back(entry->path().filename().string());
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

// ---- the scrubber -------------------------------------------------------------

Scrubber::Scrubber(ScrubberOptions options, std::function<bool(const std::string&)> resumes,
                   std::function<void(const DamagedFile&)> tell)
    : options_(std::move(options)), resumes_(std::move(resumes)), tell_(std::move(tell)) {}

Scrubber::~Scrubber() { Stop(); }

void Scrubber::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Scrubber::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stopped_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool Scrubber::Wait(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return !stopped_.Await(mutex_, time, [this] {
    mutex_.AssertReaderHeld();
    return stopping_;
  });
}

void Scrubber::Run() {
  while (Wait(options_.every)) RunOnce();
}

void Scrubber::RunOnce() {
  for (const std::string& job : JobsOnDisk(options_.state_dir)) {
    const auto pace = [this](int64_t bytes) {
      return Wait(
          absl::Seconds(static_cast<double>(bytes) / static_cast<double>(options_.bytes_per_s)));
    };
    for (DamagedFile& file : FindDamage(options_.state_dir, job, pace)) {
      if (!told_.insert(file.path).second) continue;
      if (!file.manifest.empty() && resumes_(job)) {
        const std::string manifest = absl::StrCat(options_.state_dir, "/", file.manifest);
        if (RenameDurably(manifest, manifest + kDamaged).ok()) {
          absl::StrAppend(&file.why, "; it was set aside, the fold resumes from the one before");
        }
      }
      tell_(file);
    }
    if (!Wait(absl::ZeroDuration())) return;
  }
}

}  // namespace traind
