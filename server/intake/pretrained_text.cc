#include "server/intake/pretrained_text.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/base/json_text.h"
#include "common/base/status_macros.h"
#include "common/data/weights/text_config.h"

namespace traind {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr int64_t kUsualTokens = 256;

bool Exists(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

// The settings that tokenizing by a vocab.txt depends on.
absl::StatusOr<std::string> SettingsOf(const std::string& path, const std::string& text) {
  constexpr int kDeepest = 64;
  const auto json = NestedDeeper(text, kDeepest)
                        ? nlohmann::json()
                        : nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a JSON object"));
  }
  auto settings = nlohmann::json::object();
  for (const char* const key : {"do_lower_case", "strip_accents", "tokenize_chinese_chars"}) {
    if (json.contains(key) && json[key].is_boolean()) settings[key] = json[key];
  }
  return settings.dump();
}

absl::Status TakeTokenizer(const DataFiles& files, v1::JobSpec& spec) {
  v1::PretrainedSpec& pretrained = *spec.mutable_model()->mutable_pretrained();
  const std::string& folder = pretrained.folder();
  const std::string& architecture = spec.model().text().architecture();
  const bool pieces = architecture == "bert" || architecture == "distilbert";
  std::string path = absl::StrCat(folder, "/tokenizer.json");
  if (!Exists(path) && pieces && Exists(absl::StrCat(folder, "/vocab.txt"))) {
    path = absl::StrCat(folder, "/vocab.txt");
    const std::string config = absl::StrCat(folder, "/tokenizer_config.json");
    ASSIGN_OR_RETURN(const std::string text,
                     Exists(config) ? ReadFolderFile(files, config) : std::string("{}"));
    ASSIGN_OR_RETURN(*pretrained.mutable_tokenizer_config(), SettingsOf(config, text));
  } else if (!Exists(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " has no tokenizer.json", pieces ? " and no vocab.txt" : "",
        "; AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes it"));
  }
  ASSIGN_OR_RETURN(path, files.Resolve(path));
  spec.mutable_data()->mutable_text()->set_tokenizer("pretrained");
  spec.mutable_data()->mutable_text()->set_model_file(path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFolderFile(const DataFiles& files, const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, files.ReadStart(path));
  if (text.size() >= kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has 1 MiB or more"));
  }
  return text;
}

absl::Status TakeTextFolder(const v1::JobSpec& asked, const DataFiles& files, v1::JobSpec& spec) {
  v1::TextEncoderSpec& text = *spec.mutable_model()->mutable_text();
  const std::string path = absl::StrCat(spec.model().pretrained().folder(), "/config.json");
  const auto config = ParseTextConfig(text.architecture(), spec.model().pretrained().config());
  if (!config.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " ", config.status().message()));
  }
  text.set_width(static_cast<int32_t>(config->width));
  text.set_heads(static_cast<int32_t>(config->heads));
  text.set_layers(static_cast<int32_t>(config->layers));
  text.set_feedforward(static_cast<int32_t>(config->feedforward));
  text.set_attention(config->buckets > 0 ? "disentangled" : "plain");
  if (!asked.model().text().has_dropout()) text.set_dropout(config->dropout);
  const int64_t wanted = asked.data().text().max_tokens();
  if (wanted > config->max_tokens()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", config->max_tokens(), " positions for the tokens of a text; ",
                     "data.text.max_tokens: ", wanted, " is above that"));
  }
  spec.mutable_data()->mutable_text()->set_max_tokens(
      static_cast<int32_t>(wanted > 0 ? wanted : std::min(kUsualTokens, config->max_tokens())));
  return TakeTokenizer(files, spec);
}

}  // namespace traind
