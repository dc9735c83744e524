#include "common/spec/media_rules.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/message.h>

#include <tuple>

#include "common/job_rules/task_rules.h"

namespace traind {
namespace {

constexpr int kMostStages = 8;
constexpr int kMostClasses = 64;  // of masks: so many values a voxel of the predictions

using Add = std::function<void(const std::string&, const std::string&)>;

// The member of a oneof that is set; empty where none is.
std::string ChosenMember(const google::protobuf::Message& message, const char* oneof) {
  const auto* const field = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName(oneof));
  return field == nullptr ? "" : field->name();
}

// what: the rows' media in the plural.
void CheckNetworkTakes(const v1::JobSpec& spec, const char* what, const Add& add) {
  const std::string media = ChosenMember(spec.data(), "media");
  const std::string network = NetworkName(spec.model());
  if (network.empty() || NeedOfNetwork(network) == absl::StrCat("data.", media)) return;
  add("model",
      absl::StrCat("takes no ", what, "; use model.", DefaultNetwork(media), ", or leave it out"));
}

void CheckImages(const v1::JobSpec& spec, const Add& add) {
  const v1::DataSpec& data = spec.data();
  if (spec.task().type() == "forecasting") {
    add("data.image", "is of no use to forecasting");
  }
  if (data.image().channels() == 2) add("data.image.channels", "'2' is neither 1 nor 3");
  const v1::ImageSpec& image = data.image();
  if (image.has_black() != image.has_white()) {
    add(image.has_black() ? "data.image.white" : "data.image.black", "is missing");
  } else if (image.has_black() && image.black() >= image.white()) {
    add("data.image.white", absl::StrCat("'", image.white(), "' is not above data.image.black"));
  }
  const std::string column = image.column().empty() ? plain::ImageSpec().column : image.column();
  if (column == data.target()) {
    add("data.image.column", absl::StrCat("'", column, "' is the target, too"));
  }
  const v1::AugmentSpec& augment = spec.train().augment();
  if (augment.mirror_size() > 0) {
    add("train.augment.mirror", "is of volumes; images have flip");
  }
  if (augment.intensity() > 0) add("train.augment.intensity", "is of volumes; images have colour");
  for (const auto& [field, is_there] : {std::make_pair("rotate", augment.rotate() > 0),
                                        std::make_pair("scale", augment.scale() > 0),
                                        std::make_pair("elastic", augment.elastic() > 0)}) {
    if (!is_there) continue;
    add(absl::StrCat("train.augment.", field), "is of volumes; images have rand_augment");
  }
  CheckNetworkTakes(spec, "images", add);
}

void CheckTokenizer(const v1::JobSpec& spec, const Add& add) {
  const v1::TextSpec& text = spec.data().text();
  const bool folder = !spec.model().pretrained().folder().empty();
  const bool resolved = !spec.model().pretrained().config().empty();
  if (folder && !resolved &&
      (!text.model_file().empty() ||
       (!text.tokenizer().empty() && text.tokenizer() != "pretrained"))) {
    add(text.model_file().empty() ? "data.text.tokenizer" : "data.text.model_file",
        "is not for model.pretrained.folder, which has a tokenizer of its own; leave it out");
  } else if (!folder && text.tokenizer() == "pretrained") {
    add("data.text.tokenizer", "'pretrained' needs model.pretrained.folder");
  } else if (!folder && !text.model_file().empty() && text.tokenizer() != "sentencepiece") {
    add("data.text.model_file", "needs data.text.tokenizer: sentencepiece");
  }
}

void CheckTexts(const v1::JobSpec& spec, const Add& add) {
  const v1::DataSpec& data = spec.data();
  if (spec.task().type() == "forecasting") {
    add("data.text", "is of no use to forecasting");
  }
  for (int i = 0; i < data.text().columns_size(); ++i) {
    const std::string& column = data.text().columns(i);
    const std::string path = absl::StrCat("data.text.columns[", i, "]");
    if (column == data.target()) add(path, absl::StrCat("'", column, "' is the target, too"));
    if (column == data.id()) add(path, absl::StrCat("'", column, "' is the id, too"));
    for (int k = 0; k < i; ++k) {
      if (data.text().columns(k) == column)
        add(path, absl::StrCat("'", column, "' is there twice"));
    }
  }
  CheckTokenizer(spec, add);
  CheckNetworkTakes(spec, "text", add);
}

// They name columns of predictions.csv.
void CheckClasses(const v1::DataSpec& data, const Add& add) {
  const auto& classes = data.volume().classes();
  if (classes.size() > kMostClasses) {
    add("data.volume.classes",
        absl::StrCat("has ", classes.size(), " names; ", kMostClasses, " are the most"));
  }
  for (int i = 0; i < classes.size(); ++i) {
    const std::string path = absl::StrCat("data.volume.classes[", i, "]");
    if (classes[i].empty()) add(path, "is empty");
    if (classes[i] == "background" || classes[i] == "foreground") {
      add(path, absl::StrCat("'", classes[i], "' is no class: the first one has value 1"));
    }
    if (!classes[i].empty() && classes[i] == (data.id().empty() ? "row" : data.id())) {
      add(path, absl::StrCat("'", classes[i], "' is the name of the rows' id, too"));
    }
    for (int k = 0; k < i; ++k) {
      if (classes[k] == classes[i]) add(path, absl::StrCat("'", classes[i], "' is there twice"));
    }
  }
}

// auto, or a number for each axis.
void CheckSpacing(const v1::VolumeSpec& volume, const Add& add) {
  const int numbers = volume.spacings_size();
  if (numbers > 0 && !volume.spacing().empty()) {
    add("data.volume.spacings", "and data.volume.spacing are both set; choose one");
  }
  if (numbers != 0 && numbers != 3) {
    add("data.volume.spacing", absl::StrCat("has ", numbers, numbers == 1 ? " number" : " numbers",
                                            "; depth, height and width are three"));
  }
}

// Axes are there once.
void CheckAxes(const google::protobuf::RepeatedPtrField<std::string>& axes, const char* field,
               const Add& add) {
  for (int i = 0; i < axes.size(); ++i) {
    for (int k = 0; k < i; ++k) {
      if (axes[k] == axes[i]) {
        add(absl::StrCat(field, "[", i, "]"), absl::StrCat("'", axes[i], "' is there twice"));
      }
    }
  }
}

void CheckPatchChanges(const v1::AugmentSpec& augment, const Add& add) {
  for (const auto& [field, is_there, use] :
       {std::make_tuple("flip", augment.flip(), "mirror: [width]"),
        std::make_tuple("crop", augment.crop() > 0, "patches, which are drawn anywhere"),
        std::make_tuple("colour", augment.colour() > 0, "intensity")}) {
    if (!is_there) continue;
    add(absl::StrCat("train.augment.", field), absl::StrCat("is of images; volumes have ", use));
  }
  if (augment.mixup() > 0) {
    add("train.augment.mixup", "is not of masks, whose voxels are one thing each");
  }
  if (augment.cutmix() > 0) add("train.augment.cutmix", "is of images; volumes have masks");
  if (augment.rand_augment() > 0) {
    add("train.augment.rand_augment",
        "is of images; volumes have mirror, rotate, scale, elastic and intensity");
  }
  CheckAxes(augment.mirror(), "train.augment.mirror", add);
}

void CheckVolumes(const v1::JobSpec& spec, const Add& add) {
  const v1::DataSpec& data = spec.data();
  if (!spec.task().type().empty() && spec.task().type() != "segmentation") {
    add("data.volume", "is of task.type segmentation only");
  }
  if (!data.target().empty() || data.targets_size() > 0) {
    add("data.target", "is not of volumes: data.volume.mask is what is learnt");
  }
  CheckNetworkTakes(spec, "volumes", add);
  const plain::VolumeSpec defaults;
  const std::string image = data.volume().image().empty() ? defaults.image : data.volume().image();
  const std::string mask = data.volume().mask().empty() ? defaults.mask : data.volume().mask();
  if (image == mask) add("data.volume.mask", absl::StrCat("'", mask, "' is the volume, too"));
  CheckClasses(data, add);
  CheckSpacing(data.volume(), add);
  CheckPatchChanges(spec.train().augment(), add);
  CheckAxes(spec.model().unet3d().mirror(), "model.unet3d.mirror", add);
  if (spec.predictions().ensemble() == "greedy") {
    add("predictions.ensemble", "'greedy' is not of masks; use mean or weighted");
  }
  if (!spec.predictions().format().empty() && spec.predictions().format() != "csv") {
    add("predictions.format", "is not of masks; see predictions.masks");
  }
  const auto& size = spec.train().patches().size();
  if (!size.empty() && size.size() != 3) {
    return add("train.patches.size",
               absl::StrCat("has ", size.size(), " extents; depth, height and width are three"));
  }
  const int64_t levels = spec.model().unet3d().levels() > 0 ? spec.model().unet3d().levels()
                                                            : plain::Unet3dSpec().levels;
  for (int i = 0; i < size.size(); ++i) {
    if (levels < 1 || levels > 5 || IsPatchExtent(static_cast<size_t>(i), size[i], levels))
      continue;
    add(absl::StrCat("train.patches.size[", i, "]"),
        absl::StrCat("'", size[i], "' is no multiple of ", PatchMultiple(levels), ", which ",
                     levels, " levels need"));
  }
}

}  // namespace

void CheckMedia(const v1::JobSpec& spec, bool partial,
                const std::function<void(const std::string&, const std::string&)>& add) {
  const std::string network = NetworkName(spec.model()), need = NeedOfNetwork(network);
  const std::string media = ChosenMember(spec.data(), "media");
  if (!partial && !need.empty() && need != absl::StrCat("data.", media)) {
    add(absl::StrCat("model.", network), absl::StrCat("needs ", need));
  }
  if (spec.data().has_image()) {
    CheckImages(spec, add);
  } else if (!partial && spec.train().has_augment() && !spec.data().has_volume()) {
    add("train.augment", "needs data.image or data.volume");
  }
  if (spec.data().has_text()) CheckTexts(spec, add);
  if (spec.data().has_volume()) {
    CheckVolumes(spec, add);
  } else if (!partial) {
    if (spec.task().type() == "segmentation") add("data.volume", "is missing");
    if (spec.train().has_patches()) add("train.patches", "needs data.volume");
    if (!spec.predictions().masks().empty()) add("predictions.masks", "needs data.volume");
  }
  const int stages = spec.model().cnn().blocks_size();
  if (stages > kMostStages) {
    add("model.cnn.blocks",
        absl::StrCat("has ", stages, " stages; ", kMostStages, " are the most"));
  }
}

std::string MediaOf(const v1::DataSpec& data) { return ChosenMember(data, "media"); }

bool Resamples(const v1::VolumeSpec& volume) {
  return !volume.spacing().empty() || volume.spacings_size() > 0;
}

std::string NetworkName(const v1::ModelSpec& model) { return ChosenMember(model, "architecture"); }

}  // namespace traind
