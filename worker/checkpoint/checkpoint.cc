#include "worker/checkpoint/checkpoint.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <list>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "worker/checkpoint/checkpoint_manifest.h"
#include "worker/checkpoint/safetensors.h"

namespace traind {
namespace {

constexpr char kStem[] = "checkpoint-";
constexpr char kManifestSuffix[] = ".json";
constexpr char kTensorsSuffix[] = ".safetensors";

std::string ManifestPath(const std::string& dir, int64_t step) {
  return absl::StrCat(dir, "/", kStem, step, kManifestSuffix);
}

// Returns the step in "checkpoint-<step><suffix>".
std::optional<int64_t> StepOf(absl::string_view name, absl::string_view suffix) {
  int64_t step = 0;
  if (!absl::ConsumePrefix(&name, kStem) || !absl::ConsumeSuffix(&name, suffix) ||
      !absl::SimpleAtoi(name, &step) || step < 0) {
    return std::nullopt;
  }
  return step;
}

std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

absl::Status CheckRelative(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  if (absl::StartsWith(path, "/") || std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint \"", path, "\" is not a path inside the state folder"));
  }
  return absl::OkStatus();
}

// Returns the steps of the manifests in a folder, newest first; none if the folder cannot be
// read.
std::vector<int64_t> ManifestSteps(const std::string& absolute_dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (std::filesystem::directory_iterator it(absolute_dir, error), end; !error && it != end;
       it.increment(error)) {
    const auto step = StepOf(it->path().filename().string(), kManifestSuffix);
    if (step.has_value()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

// A file that is mapped for reading. Checkpoints are never changed in place.
class Mapping {
 public:
  static absl::StatusOr<std::shared_ptr<const Mapping>> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
    auto mapping = std::make_shared<Mapping>();
    struct stat info;
    absl::Status status;
    if (fstat(fd, &info) != 0) {
      status = ErrnoStatus(errno, path);
    } else if (info.st_size > 0) {
      mapping->size_ = static_cast<size_t>(info.st_size);
      // Populated, because every byte will be read in order.
      void* base = mmap(nullptr, mapping->size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
      if (base == MAP_FAILED) {
        status = ErrnoStatus(errno, absl::StrCat("cannot map ", path));
      } else {
        mapping->base_ = static_cast<const char*>(base);
      }
    }
    close(fd);
    if (!status.ok()) return status;
    return mapping;
  }
  Mapping() = default;
  ~Mapping() {
    if (base_ != nullptr) munmap(const_cast<char*>(base_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  absl::string_view bytes() const {
    return base_ == nullptr ? absl::string_view() : absl::string_view(base_, size_);
  }

 private:
  const char* base_ = nullptr;
  size_t size_ = 0;
};

absl::Status CheckBelongs(const Checkpoint& found, const Checkpoint& expected,
                          const std::string& path) {
  const auto other = [&path](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", path, " belongs to another ", what));
  };
  if (found.table_sha256 != expected.table_sha256) return other("table");
  if (found.fold != expected.fold) return other("fold");
  if (found.seed != expected.seed) return other("seed");
  if (found.model != expected.model) {
    return other(absl::StrCat("model: ", found.model, ", not ", expected.model));
  }
  if (found.optimizer != expected.optimizer) {
    return other(absl::StrCat("optimizer: ", found.optimizer, ", not ", expected.optimizer));
  }
  return absl::OkStatus();
}

// Returns the values of one slot. If its tensors are contiguous, as this program writes them,
// the values are not copied.
absl::StatusOr<absl::Span<const float>> ReadSlot(const SafetensorsFile& file,
                                                 const std::string& slot,
                                                 const ParameterLayout& layout,
                                                 const std::string& path,
                                                 std::list<std::vector<float>>& copies) {
  const auto other = [&](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", path, " belongs to another model: ", what));
  };
  std::vector<absl::string_view> parts;
  bool in_place = true;
  for (const ParameterInfo& parameter : layout) {
    const std::string name = SlotPrefix(slot) + parameter.name;
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end() || found->second.shape != parameter.shape) {
      return other(absl::StrCat("tensor \"", name, "\" is missing or has another shape"));
    }
    if (found->second.dtype != DType::kF32) {
      return other(absl::StrCat("tensor \"", name, "\" is not float32"));
    }
    const absl::string_view data = found->second.data;
    in_place =
        in_place && (parts.empty() || parts.back().data() + parts.back().size() == data.data());
    parts.push_back(data);
  }
  const size_t total = static_cast<size_t>(TotalSize(layout));
  if (total == 0) return absl::Span<const float>();
  in_place = in_place && reinterpret_cast<uintptr_t>(parts[0].data()) % alignof(float) == 0;
  if (in_place) {
    return absl::MakeConstSpan(reinterpret_cast<const float*>(parts[0].data()), total);
  }
  std::vector<float>& copy = copies.emplace_back(total);
  char* out = reinterpret_cast<char*>(copy.data());
  for (const absl::string_view part : parts) {
    std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
  return absl::MakeConstSpan(copy);
}

// Owns the memory of a checkpoint's slots.
struct Owner {
  std::shared_ptr<const Mapping> mapping;
  std::list<std::vector<float>> copies;
};

void AddSlot(const std::string& slot, absl::Span<const float> values, const ParameterLayout& layout,
             std::vector<NamedTensorView>& tensors) {
  const char* bytes = reinterpret_cast<const char*>(values.data());
  for (const ParameterInfo& parameter : layout) {
    const size_t size = static_cast<size_t>(parameter.size) * sizeof(float);
    tensors.push_back({SlotPrefix(slot) + parameter.name,
                       {DType::kF32, parameter.shape, absl::string_view(bytes, size)}});
    bytes += size;
  }
}

}  // namespace

absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const std::string& state_dir,
                                                const std::string& dir,
                                                const ParameterLayout& layout,
                                                const Checkpoint& checkpoint) {
  const auto& slots = checkpoint.slots;
  const bool has_best = slots.count("best_weights") > 0;
  std::vector<NamedTensorView> tensors;
  AddSlot("best_weights", slots.at(has_best ? "best_weights" : "weights"), layout, tensors);
  for (const auto& [slot, values] : slots) {
    if (slot != "best_weights") AddSlot(slot, values, layout, tensors);
  }
  const std::string head = SafetensorsHeader(tensors, {{"format", "pt"}, {"job", checkpoint.job}});
  std::vector<absl::string_view> parts{head};
  for (const NamedTensorView& named : tensors) parts.push_back(named.tensor.data);
  SavedCheckpoint saved;
  saved.sha256 = Sha256Hex(parts);
  for (const absl::string_view part : parts) saved.bytes += static_cast<int64_t>(part.size());
  saved.manifest = ManifestPath(dir, checkpoint.step);
  const std::string tensors_path =
      absl::StrCat(state_dir, "/", dir, "/", kStem, checkpoint.step, kTensorsSuffix);
  RETURN_IF_ERROR(WriteFileDurably(tensors_path, parts));
  const std::string text = EncodeManifest(checkpoint, {saved.sha256, saved.bytes});
  RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(state_dir, "/", saved.manifest), text));
  return saved;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& state_dir, const std::string& manifest,
                                          const ParameterLayout& layout,
                                          const Checkpoint& expected) {
  RETURN_IF_ERROR(CheckRelative(manifest));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat(state_dir, "/", manifest)));
  ASSIGN_OR_RETURN(CheckpointManifest sealed, DecodeManifest(text, manifest));
  Checkpoint checkpoint = std::move(sealed.fields);
  RETURN_IF_ERROR(CheckBelongs(checkpoint, expected, manifest));
  const std::string tensors_path =
      absl::StrCat(state_dir, "/", absl::StripSuffix(manifest, kManifestSuffix), kTensorsSuffix);
  auto owner = std::make_shared<Owner>();
  ASSIGN_OR_RETURN(owner->mapping, Mapping::Open(tensors_path));
  const absl::string_view bytes = owner->mapping->bytes();
  if (static_cast<int64_t>(bytes.size()) != sealed.tensors.bytes ||
      Sha256Hex(bytes) != sealed.tensors.sha256) {
    return absl::DataLossError(
        absl::StrCat(tensors_path, " is damaged: its SHA-256 differs from the manifest's"));
  }
  ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  for (const std::string& slot : sealed.slots) {
    ASSIGN_OR_RETURN(checkpoint.slots[slot], ReadSlot(file, slot, layout, manifest, owner->copies));
  }
  if (checkpoint.slots.count("weights") == 0 ||
      file.tensors.size() != layout.size() * checkpoint.slots.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", manifest, " belongs to another model: its tensors differ"));
  }
  for (const auto& [slot, values] : expected.slots) {
    if (checkpoint.slots.count(slot) == 0) {
      return absl::FailedPreconditionError(absl::StrCat("checkpoint ", manifest, " lacks ", slot,
                                                        ": it was written with other settings"));
    }
  }
  checkpoint.owner = std::move(owner);
  return checkpoint;
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& state_dir,
                                               const std::string& manifest,
                                               const ParameterLayout& layout,
                                               const Checkpoint& expected,
                                               std::vector<std::string>& warnings) {
  RETURN_IF_ERROR(CheckRelative(manifest));
  const std::string dir(SplitPath(manifest).first);
  for (const int64_t step : ManifestSteps(absl::StrCat(state_dir, "/", dir))) {
    const std::string candidate = ManifestPath(dir, step);
    absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(state_dir, candidate, layout, expected);
    if (checkpoint.ok()) return FoundCheckpoint{*std::move(checkpoint), candidate};
    warnings.push_back(std::string(checkpoint.status().message()));
  }
  return absl::NotFoundError(absl::StrCat("no sound checkpoint beside ", manifest));
}

absl::Status PruneCheckpoints(const std::string& state_dir, const std::string& dir, int newest,
                              const std::set<int64_t>& keep) {
  const std::string absolute = absl::StrCat(state_dir, "/", dir);
  const std::vector<int64_t> steps = ManifestSteps(absolute);
  for (size_t i = static_cast<size_t>(newest); i < steps.size(); ++i) {
    if (keep.count(steps[i]) > 0) continue;
    for (const char* suffix : {kManifestSuffix, kTensorsSuffix}) {
      const std::string path = absl::StrCat(absolute, "/", kStem, steps[i], suffix);
      std::error_code error;
      std::filesystem::remove(path, error);
      if (error)
        return absl::InternalError(absl::StrCat("cannot remove ", path, ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind
