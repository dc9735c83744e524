#include "common/spec/pretrained_rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/data/weights/image_architectures.h"
#include "common/data/weights/name_map.h"
#include "common/spec/yaml_tree.h"

namespace traind {
namespace {

using Add = std::function<void(const std::string&, const std::string&)>;

constexpr int kMostEntries = 10000;
constexpr size_t kLongestEntry = 4096;
constexpr int kMostScales = 8;

bool IsText(const std::string& text) {
  return text.size() <= kLongestEntry &&
         std::none_of(text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); });
}

void CheckMap(const v1::PretrainedSpec& spec, const Add& add) {
  const std::string path = "model.pretrained.map";
  if (spec.map_size() > kMostEntries) {
    return add(path,
               absl::StrCat("has ", spec.map_size(), " entries; ", kMostEntries, " are the most"));
  }
  for (const auto& [parameter, tensors] : spec.map()) {
    if (IsText(parameter) && IsText(tensors)) continue;
    return add(path, absl::StrCat("has an entry of more than ", kLongestEntry,
                                  " bytes, or with a control character"));
  }
  const auto map = NameMap::Parse({spec.map().begin(), spec.map().end()});
  if (!map.ok()) add(path, absl::StrCat("has a mistake at ", map.status().message()));
}

// The file that intake makes of a folder.
bool IsOfFolder(const v1::PretrainedSpec& spec) { return !spec.config().empty(); }

void CheckFolder(const v1::ModelSpec& model, const Add& add) {
  const v1::PretrainedSpec& spec = model.pretrained();
  if (!spec.file().empty() && !IsOfFolder(spec)) {
    add("model.pretrained.folder", "and model.pretrained.file are both set; choose one");
  }
  if (spec.map_size() > 0 || !spec.map_file().empty()) {
    add("model.pretrained.map", "is of model.pretrained.file; a folder's names are known");
  }
  if (ArchitectureOf(model).empty()) {
    add("model.pretrained.folder",
        "needs a network with an architecture, such as model.text.architecture: bert or "
        "model.cnn.architecture: resnet18; its config.json names it");
  }
}

// Whether a list says something else than the other.
template <class Fields, class Blocks>
bool Differs(const Fields& given, const Blocks& own) {
  return !given.empty() && !std::equal(given.begin(), given.end(), own.begin(), own.end());
}

void CheckImageNetwork(const v1::CnnSpec& cnn, const Add& add) {
  const ImageArchitecture* const known = FindImageArchitecture(cnn.architecture());
  if (known == nullptr) return;  // the rules of the field tell
  for (const auto& [field, differs] :
       {std::make_pair("width", cnn.width() != 0 && cnn.width() != known->width),
        std::make_pair("blocks", Differs(cnn.blocks(), known->stages()))}) {
    if (!differs) continue;
    add(absl::StrCat("model.cnn.", field),
        absl::StrCat("is not for architecture: ", cnn.architecture(),
                     ", which has its own; leave it out"));
  }
}

void CheckViews(const v1::CnnSpec& cnn, const Add& add) {
  if (cnn.view_scales_size() > kMostScales) {
    add("model.cnn.view_scales",
        absl::StrCat("has ", cnn.view_scales_size(), " sizes; ", kMostScales, " are the most"));
  }
  for (int i = 0; i < cnn.view_scales_size(); ++i) {
    for (int k = 0; k < i; ++k) {
      if (cnn.view_scales(k) != cnn.view_scales(i)) continue;
      add(absl::StrCat("model.cnn.view_scales[", i, "]"),
          absl::StrCat("'", cnn.view_scales(i), "' is there twice"));
    }
  }
}

bool HasLinearLayers(ImageFamily family) {
  return family == ImageFamily::kConvnext || family == ImageFamily::kSmallConvnext ||
         family == ImageFamily::kVit;
}

void CheckTextSizes(const v1::ModelSpec& model, const Add& add) {
  const v1::TextEncoderSpec& text = model.text();
  if (model.pretrained().folder().empty()) {
    add("model.text.architecture",
        "needs model.pretrained.folder, whose config.json has the network's sizes");
  }
  if (IsOfFolder(model.pretrained())) return;
  for (const auto& [field, is_there] :
       {std::make_pair("width", text.width() != 0), std::make_pair("heads", text.heads() != 0),
        std::make_pair("layers", text.layers() != 0),
        std::make_pair("feedforward", text.feedforward() != 0),
        std::make_pair("attention", !text.attention().empty())}) {
    if (!is_there) continue;
    add(absl::StrCat("model.text.", field),
        absl::StrCat("is not for architecture: ", text.architecture(),
                     ", whose config.json tells it; leave it out"));
  }
}

}  // namespace

std::string ArchitectureOf(const v1::ModelSpec& model) {
  return model.has_cnn() ? model.cnn().architecture() : model.text().architecture();
}

bool IsFixedByArchitecture(const v1::ModelSpec& model, absl::string_view path) {
  if (!absl::ConsumePrefix(&path, model.has_cnn() ? "model.cnn." : "model.text.")) return false;
  if (path == "architecture") return model.has_pretrained();
  static constexpr absl::string_view kFree[] = {"dropout", "drop_path", "mirror", "view_shift",
                                                "view_scales"};
  return !ArchitectureOf(model).empty() &&
         std::find(std::begin(kFree), std::end(kFree), path) == std::end(kFree);
}

void FillArchitecture(v1::ModelSpec& model) {
  const ImageArchitecture* const known = FindImageArchitecture(model.cnn().architecture());
  if (known == nullptr) return;
  model.mutable_cnn()->set_width(known->width);
  const auto stages = known->stages();
  model.mutable_cnn()->mutable_blocks()->Assign(stages.begin(), stages.end());
}

void CheckPretrained(const v1::ModelSpec& model, const Add& add) {
  CheckImageNetwork(model.cnn(), add);
  CheckViews(model.cnn(), add);
  if (!model.text().architecture().empty()) CheckTextSizes(model, add);
  if (!model.has_pretrained()) return;
  const v1::PretrainedSpec& spec = model.pretrained();
  if (!spec.folder().empty()) {
    CheckFolder(model, add);
  } else if (spec.file().empty()) {
    add("model.pretrained.file", "is missing; or give model.pretrained.folder");
  }
  if (model.has_script()) {
    add("model.pretrained", "is of no use to model.script, which brings its own weights");
  }
  if (spec.map_size() > 0 && !spec.map_file().empty()) {
    add("model.pretrained.map_file", "and model.pretrained.map are both set; choose one");
  }
  CheckMap(spec, add);
}

void CheckFineTuning(const v1::JobSpec& spec, const Add& add) {
  const v1::TrainSpec& train = spec.train();
  const bool has_architecture = !ArchitectureOf(spec.model()).empty();
  const bool pretrained = has_architecture && spec.model().has_pretrained();
  if (train.layer_decay() != 0 && train.layer_decay() != 1 && !has_architecture) {
    add("train.layer_decay",
        "needs a network with an architecture, such as model.cnn.architecture: resnet18");
  }
  const ImageArchitecture* const images = FindImageArchitecture(spec.model().cnn().architecture());
  if (images != nullptr && spec.data().image().size() % images->multiple != 0) {
    add("data.image.size",
        absl::StrCat("is no multiple of ", images->multiple, ", as ", images->name, " needs it"));
  }
  if (images != nullptr && spec.model().cnn().drop_path() > 0 &&
      (images->family == ImageFamily::kResnet ||
       images->family == ImageFamily::kBottleneckResnet)) {
    add("model.cnn.drop_path", absl::StrCat("is not for architecture: ", images->name));
  }
  if (images == nullptr && spec.model().cnn().drop_path() > 0) {
    add("model.cnn.drop_path", "needs an architecture, such as convnext_tiny");
  }
  if (spec.model().has_lora() && !pretrained) {
    add("model.lora",
        "needs model.pretrained for a network with an architecture, such as "
        "model.text.architecture: bert; what starts at random cannot stay as it is");
  }
  if (spec.model().has_lora() && images != nullptr && !HasLinearLayers(images->family)) {
    add("model.lora", absl::StrCat("is not for architecture: ", images->name,
                                   ", whose body has no linear layers"));
  }
  if (train.swa() > 0 && train.ema() > 0) {
    add("train.swa", "and train.ema are both set; one average predicts");
  }
  if (train.ema_warmup() && train.ema() == 0 && !spec.search().space().contains("train.ema")) {
    add("train.ema_warmup", "needs train.ema, the decay that it leads to");
  }
  for (const auto& [field, is_there] :
       {std::make_pair("epochs", train.freeze().epochs() > 0),
        std::make_pair("thaw_layers", train.freeze().thaw_layers() > 0)}) {
    if (!is_there || pretrained) continue;
    add(absl::StrCat("train.freeze.", field),
        "needs model.pretrained for a network with an architecture, such as "
        "model.cnn.architecture: resnet18; what starts at random cannot stay as it is");
  }
}

absl::StatusOr<std::map<std::string, std::string>> ReadNameMap(absl::string_view text) {
  const auto wrong = [](int line, int column, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ", column ", column, ": ", what));
  };
  YamlTree tree;
  YamlError error;
  const std::optional<int> root = tree.Parse(text, 0, error);
  if (!root.has_value()) return wrong(error.line, error.column, error.message);
  const YamlNode& map = tree.at(*root);
  if (map.kind != YamlNode::Kind::kMap) {
    return wrong(map.line, map.column, "expected lines of the form PARAMETER: TENSOR");
  }
  std::map<std::string, std::string> entries;
  for (const auto& [key, value] : map.entries) {
    const YamlNode& name = tree.at(key);
    const YamlNode& tensors = tree.at(value);
    if (name.kind != YamlNode::Kind::kScalar || tensors.kind != YamlNode::Kind::kScalar) {
      return wrong(name.line, name.column, "expected PARAMETER: TENSOR, both of them texts");
    }
    if (!entries.emplace(name.text, tensors.text).second) {
      return wrong(name.line, name.column, absl::StrCat("'", name.text, "' is there twice"));
    }
  }
  return entries;
}

}  // namespace traind
