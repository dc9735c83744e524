#include "common/spec/presets.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include "common/spec/automatic_rules.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Models that are tried with other settings (model.automatic) are not tried with other seeds, too.
constexpr absl::string_view kSeeds = "train.seeds";
constexpr PresetField kFast1[] = {
    {"data.folds", "3"},
    {"train.epochs", "12"},
    {"train.patience", "3"},
    {"model.mlp.hidden", "[128, 128]"},
    {"model.lstm.hidden", "64"},
    {"model.transformer.width", "32"},
    {"model.transformer.feedforward", "64"},
};
constexpr PresetField kBalanced1[] = {
    {"data.folds", "5"},
    {"train.epochs", "20"},
    {"train.patience", "4"},
};
constexpr PresetField kBest1[] = {
    {"data.folds", "8"},
    {"train.epochs", "35"},
    {"train.patience", "5"},
};
constexpr PresetField kBest2[] = {
    {"data.folds", "8"},
    {"train.epochs", "35"},
    {"train.patience", "5"},
    {kSeeds, "3"},
};

struct Preset {
  absl::string_view pinned;
  absl::Span<const PresetField> fields;
};
// The newest version of each name comes first.
const Preset kPresets[] = {
    {"fast@1", kFast1}, {"balanced@1", kBalanced1}, {"best@2", kBest2}, {"best@1", kBest1}};

// The message and field of a path; null: it lies in a model that is not the spec's.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
};
Place Find(absl::string_view path, Message* message) {
  const std::vector<absl::string_view> steps = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const FieldDescriptor* const field =
        message->GetDescriptor()->FindFieldByName(std::string(steps[i]));
    const Reflection& access = *message->GetReflection();
    if (field->real_containing_oneof() != nullptr && !access.HasField(*message, field)) return {};
    message = access.MutableMessage(message, field);
  }
  return {message, message->GetDescriptor()->FindFieldByName(std::string(steps.back()))};
}

void Set(const Place& place, absl::string_view value) {
  absl::ConsumePrefix(&value, "[");
  absl::ConsumeSuffix(&value, "]");
  for (absl::string_view item : absl::StrSplit(value, ", ")) {
    ScalarText scalar;
    scalar.text = item;
    // A test sets every field of every preset; it cannot fail on input.
    SetFieldFromText(*place.field, scalar, *place.message).IgnoreError();
  }
}

}  // namespace

std::string PinnedPreset(absl::string_view preset) {
  for (const Preset& known : kPresets) {
    const bool newest = absl::StartsWith(known.pinned, absl::StrCat(preset, "@"));
    if (known.pinned == preset || newest) return std::string(known.pinned);
  }
  return "";
}

absl::Span<const PresetField> PresetFields(absl::string_view pinned) {
  for (const Preset& preset : kPresets) {
    if (preset.pinned == pinned) return preset.fields;
  }
  return {};
}

std::vector<std::string> ApplyPreset(v1::JobSpec& spec) {
  std::vector<std::string> filled;
  if (spec.preset().empty()) return filled;
  spec.set_preset(PinnedPreset(spec.preset()));
  ChooseModel(spec);
  if (spec.kind_case() == v1::JobSpec::KIND_NOT_SET) spec.mutable_train();
  for (const PresetField& field : PresetFields(spec.preset())) {
    if (spec.model().has_automatic() && field.path == kSeeds) continue;
    const Place place = Find(field.path, &spec);
    if (place.message == nullptr || IsSet(*place.message, *place.field)) continue;
    Set(place, field.value);
    filled.push_back(absl::StrCat(field.path, ": ", field.value));
  }
  return filled;
}

}  // namespace traind
