#include "server/intake/pretrained_file.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/json_text.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/data/weights/image_config.h"
#include "common/spec/pretrained_rules.h"
#include "server/intake/pretrained_text.h"

namespace traind {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{16} << 30;
constexpr size_t kMostMapBytes = 1 << 20;
constexpr size_t kMostConfigBytes = 64 << 10;
constexpr int kDeepestConfig = 32;
// The rates that transformers' own Trainer and AutoGluon (for images) start with.
constexpr double kTextFineTuningRate = 5e-5, kImageFineTuningRate = 1e-4;

absl::Status TakeFile(v1::PretrainedSpec& spec, const DataFiles& files) {
  ASSIGN_OR_RETURN(const std::string path, files.Resolve(spec.file()));
  // The size comes first, because a digest takes seconds for each GiB. If the file grows meanwhile,
  // its digest differs when it is read for training.
  std::error_code unknown;
  if (const uintmax_t bytes = std::filesystem::file_size(path, unknown);
      !unknown && bytes > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than 16 GiB"));
  }
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(path));
  spec.set_file(path);
  spec.set_sha256(digest.sha256);
  return absl::OkStatus();
}

absl::Status TakeMap(v1::PretrainedSpec& spec, const DataFiles& files) {
  ASSIGN_OR_RETURN(const std::string path, files.Resolve(spec.map_file()));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> mapped, MappedFile::Open(path));
  if (mapped->bytes().size() > kMostMapBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than 1 MiB"));
  }
  const absl::StatusOr<std::map<std::string, std::string>> map = ReadNameMap(mapped->bytes());
  if (!map.ok())
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", map.status().message()));
  for (const auto& [parameter, tensors] : *map) (*spec.mutable_map())[parameter] = tensors;
  v1::ModelSpec whole;
  *whole.mutable_pretrained() = spec;
  whole.mutable_pretrained()->clear_map_file();
  absl::Status status;
  CheckPretrained(whole, [&](const std::string&, const std::string& what) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " ", what));
  });
  spec.clear_map_file();
  return status;
}

// Classes have names of their own in each Job.
constexpr const char* kNamesOfClasses[] = {"id2label", "label2id", "task_specific_params",
                                           "label_names", "label_descriptions"};

absl::Status TakeConfig(v1::PretrainedSpec& spec, const DataFiles& files) {
  const std::string path = absl::StrCat(spec.folder(), "/config.json");
  ASSIGN_OR_RETURN(std::string text, ReadFolderFile(files, path));
  auto json = NestedDeeper(text, kDeepestConfig)
                  ? nlohmann::json()
                  : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a JSON object"));
  }
  for (const char* const names : kNamesOfClasses) {
    json.erase(names);
    if (json.contains("pretrained_cfg") && json["pretrained_cfg"].is_object()) {
      json["pretrained_cfg"].erase(names);
    }
  }
  text = json.dump();
  if (text.size() > kMostConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has more than ", kMostConfigBytes, " bytes besides its classes"));
  }
  spec.set_config(text);
  return absl::OkStatus();
}

// The weights of a folder that holds them otherwise.
absl::Status CheckWeights(const v1::PretrainedSpec& spec, bool of_images) {
  const auto has = [&spec](const char* name) {
    std::error_code unknown;
    return std::filesystem::exists(absl::StrCat(spec.folder(), "/", name), unknown);
  };
  if (has("model.safetensors")) return absl::OkStatus();
  const char* const save = of_images
                               ? "; load it with timm and save it by "
                                 "timm.models.save_for_hf(MODEL, DIR, safe_serialization=True)"
                               : "; load it with transformers and save it by save_pretrained(DIR, "
                                 "max_shard_size=\"16GB\")";
  const char* const what = has("model.safetensors.index.json") ? " has its weights in several files"
                           : has("pytorch_model.bin") || has("tf_model.h5")
                               ? " has weights, but not as safetensors"
                               : " has no model.safetensors";
  return absl::InvalidArgumentError(absl::StrCat(spec.folder(), what, save));
}

// The size of images and the scale of their pixels are those that the network has learnt from.
absl::Status TakeImageFolder(const v1::JobSpec& asked, v1::JobSpec& spec) {
  const v1::PretrainedSpec& pretrained = spec.model().pretrained();
  const auto config = ParseImageConfig(spec.model().cnn().architecture(), pretrained.config());
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pretrained.folder(), "/config.json: ", config.status().message()));
  }
  if (!spec.data().has_image()) return absl::OkStatus();  // other rules tell
  v1::ImageSpec& image = *spec.mutable_data()->mutable_image();
  if (asked.data().image().size() == 0) image.set_size(config->size);
  if (image.channels() != static_cast<int>(config->mean.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("its network sees images in colour, and data.image.channels is ",
                     image.channels(), "; leave that out: grey images become colour ones"));
  }
  return absl::OkStatus();
}

absl::Status TakeFolder(const v1::JobSpec& asked, const DataFiles& files, v1::JobSpec& spec) {
  v1::PretrainedSpec& pretrained = *spec.mutable_model()->mutable_pretrained();
  const bool images = spec.model().has_cnn();
  RETURN_IF_ERROR(TakeConfig(pretrained, files));
  RETURN_IF_ERROR(CheckWeights(pretrained, images));
  pretrained.set_file(absl::StrCat(pretrained.folder(), "/model.safetensors"));
  RETURN_IF_ERROR(TakeFile(pretrained, files));
  if (asked.train().learning_rate() == 0) {
    spec.mutable_train()->set_learning_rate(images ? kImageFineTuningRate : kTextFineTuningRate);
  }
  // Norms and biases that have been learnt well are not pulled towards 0.
  if (!asked.train().has_decay_norms()) spec.mutable_train()->set_decay_norms(false);
  if (images) return TakeImageFolder(asked, spec);
  return spec.model().has_text() ? TakeTextFolder(asked, files, spec) : absl::OkStatus();
}

}  // namespace

void TakePretrained(const v1::JobSpec& asked, const DataFiles& files, v1::JobSpec& spec,
                    Mistakes& mistakes) {
  v1::PretrainedSpec& pretrained = *spec.mutable_model()->mutable_pretrained();
  const auto add = [&mistakes](const char* field, const absl::Status& status) {
    if (!status.ok()) mistakes.AddFile(field, status);
  };
  if (!pretrained.folder().empty()) {
    return add("model.pretrained.folder", TakeFolder(asked, files, spec));
  }
  add("model.pretrained.file", TakeFile(pretrained, files));
  if (pretrained.map_file().empty()) return;
  add("model.pretrained.map_file", TakeMap(pretrained, files));
}

}  // namespace traind
