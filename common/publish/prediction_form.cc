#include "common/publish/prediction_form.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

std::string FormatName(FileFormat format) {
  switch (format) {
    case FileFormat::kCsv:
      break;
    case FileFormat::kNpy:
      return "npy";
    case FileFormat::kZip:
      return "zip";
  }
  return "csv";
}

}  // namespace

FileFormat FileFormatByName(const std::string& name) {
  for (const FileFormat format : {FileFormat::kNpy, FileFormat::kZip}) {
    if (name == FormatName(format)) return format;
  }
  return FileFormat::kCsv;
}

PredictionForm FormOf(const plain::PredictionsSpec& spec) {
  PredictionForm form;
  form.ensemble = EnsembleByName(spec.ensemble);
  form.format = FileFormatByName(spec.format);
  form.probabilities = spec.probabilities;
  form.masks = spec.masks.value_or("");
  form.quantiles = spec.quantiles;
  return form;
}

absl::Status WritePredictionForm(const std::string& state_dir, const std::string& job,
                                 const PredictionForm& form) {
  if (form.plain()) return absl::OkStatus();
  Json json = {{"format", 1},
               {"ensemble", EnsembleName(form.ensemble)},
               {"file_format", FormatName(form.format)},
               {"probabilities", form.probabilities}};
  if (!form.masks.empty()) json["masks"] = form.masks;
  if (!form.quantiles.empty()) json["quantiles"] = form.quantiles;
  return WriteFileDurably(absl::StrCat(state_dir, "/", PredictionFormPath(job)),
                          json.dump(1) + "\n");
}

absl::StatusOr<PredictionForm> ReadPredictionForm(const std::string& state_dir,
                                                  const std::string& job) {
  const std::string path = absl::StrCat(state_dir, "/", PredictionFormPath(job));
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return PredictionForm();
  RETURN_IF_ERROR(text.status());
  const Json json = Json::parse(*text, nullptr, false);
  const auto is = [&](const char* key, auto check) {
    return json.contains(key) && check(json[key]);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_flag = [](const Json& value) { return value.is_boolean(); };
  if (!json.is_object() || !is("ensemble", is_text) || !is("file_format", is_text) ||
      !is("probabilities", is_flag)) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  PredictionForm form;
  form.ensemble = EnsembleByName(json["ensemble"].get<std::string>());
  form.format = FileFormatByName(json["file_format"].get<std::string>());
  form.probabilities = json["probabilities"].get<bool>();
  if (is("masks", is_text)) {
    form.masks = json["masks"].get<std::string>();
  } else if (is("tiff_masks", is_flag) && json["tiff_masks"].get<bool>()) {
    form.masks = "tiff";  // as earlier versions wrote it
  }
  if (json.contains("quantiles")) {
    for (const Json& level : json["quantiles"]) {
      if (!level.is_number()) return absl::DataLossError(absl::StrCat(path, " is damaged"));
      form.quantiles.push_back(level.get<double>());
    }
  }
  return form;
}

}  // namespace traind
