#include "worker/checkpoint/safetensors_header.h"

#include <absl/status/status.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kMostExtents = 64;

// The level of an event in the header {"name": {"shape": [1]}}.
enum class Level { kStart, kHeader, kTensor, kShape, kOffsets, kMetadata, kEnd };

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  SafetensorsEntries entries;
  std::string mistake;  // the first one

  bool start_object(size_t) override {
    if (level_ == Level::kStart) return Enter(Level::kHeader);
    if (level_ != Level::kHeader) return Unexpected("an object");
    if (name_ == kMetadata) return Enter(Level::kMetadata);
    entry_ = {};
    has_dtype_ = has_shape_ = false;
    offsets_.reset();
    return Enter(Level::kTensor);
  }

  bool key(std::string& key) override {
    if (level_ == Level::kHeader) {
      name_ = key;
      const bool known =
          key == kMetadata ? std::exchange(has_metadata_, true) : entries.tensors.count(key) > 0;
      return !known || Refuse(absl::StrCat("the name ", Shown(), " occurs twice"));
    }
    if (level_ == Level::kMetadata) {
      key_ = key;
      return entries.metadata.count(key) == 0 || Refuse("a key of __metadata__ occurs twice");
    }
    key_ = key;
    const bool twice = (key == "dtype" && has_dtype_) || (key == "shape" && has_shape_) ||
                       (key == "data_offsets" && offsets_.has_value());
    if (twice) return Refuse(absl::StrCat(Shown(), " has its ", key, " twice"));
    if (key == "dtype" || key == "shape" || key == "data_offsets") return true;
    return Refuse(
        absl::StrCat(Shown(), ": expected dtype, shape and data_offsets, not ", Quoted(key)));
  }

  bool start_array(size_t) override {
    if (level_ == Level::kTensor && key_ == "shape") {
      has_shape_ = true;
      return Enter(Level::kShape);
    }
    if (level_ == Level::kTensor && key_ == "data_offsets") {
      offsets_.emplace();
      return Enter(Level::kOffsets);
    }
    return Unexpected("a list");
  }
  bool end_array() override { return Enter(Level::kTensor); }

  bool end_object() override {
    if (level_ == Level::kHeader) return Enter(Level::kEnd);
    if (level_ == Level::kTensor) {
      if (!has_dtype_ || !has_shape_ || !offsets_.has_value()) {
        return Refuse(absl::StrCat(Shown(), ": expected dtype, shape and data_offsets"));
      }
      if (offsets_->size() != 2) {
        return Refuse(absl::StrCat(Shown(), ": data_offsets are not two numbers"));
      }
      entry_.begin = (*offsets_)[0];
      entry_.end = (*offsets_)[1];
      entries.tensors.emplace(name_, std::move(entry_));
    }
    return Enter(Level::kHeader);
  }

  bool string(std::string& text) override {
    if (level_ == Level::kMetadata) {
      entries.metadata[key_] = std::move(text);
      return true;
    }
    if (level_ != Level::kTensor || key_ != "dtype") return Unexpected("a string");
    has_dtype_ = true;
    entry_.dtype = std::move(text);
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (level_ != Level::kShape && level_ != Level::kOffsets) return Unexpected("a number");
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return NoCount();
    std::vector<int64_t>& list = level_ == Level::kShape ? entry_.shape : *offsets_;
    list.push_back(static_cast<int64_t>(number));
    if (list.size() <= kMostExtents) return true;
    return Refuse(absl::StrCat(Shown(), ": ", key_, " has more than ", kMostExtents, " numbers"));
  }
  bool number_integer(int64_t) override { return Number(); }
  bool number_float(double, const std::string&) override { return Number(); }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool binary(Json::binary_t&) override { return Unexpected("bytes"); }

  bool parse_error(size_t place, const std::string&, const Json::exception&) override {
    return Refuse(
        absl::StrCat("the header is not a JSON object: there is an error at byte ", place));
  }

 private:
  bool Enter(Level level) {
    level_ = level;
    return true;
  }
  bool Refuse(std::string what) {
    if (mistake.empty()) mistake = std::move(what);
    return false;
  }
  bool Number() {
    const bool listed = level_ == Level::kShape || level_ == Level::kOffsets;
    return listed ? NoCount() : Unexpected("a number");
  }
  bool NoCount() {
    return Refuse(absl::StrCat(Shown(), ": a number of its ", key_,
                               " is negative, broken or beyond 63 bits"));
  }
  bool Unexpected(absl::string_view what) {
    switch (level_) {
      case Level::kStart:
      case Level::kEnd:
        return Refuse(absl::StrCat("the header is not a JSON object but ", what));
      case Level::kHeader:
        return Refuse(absl::StrCat(Shown(), " is ", what, ", not an object"));
      case Level::kMetadata:
        return Refuse(absl::StrCat("__metadata__ has ", what, " instead of a string"));
      case Level::kTensor:
        return Refuse(absl::StrCat(Shown(), " has ", what, " as its ", key_));
      case Level::kShape:
      case Level::kOffsets:
        return Refuse(absl::StrCat(Shown(), " has ", what, " in its ", key_));
    }
    return false;
  }
  std::string Shown() const { return TensorNamed(name_); }

  Level level_ = Level::kStart;
  std::string name_, key_;
  HeaderEntry entry_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false;
  std::optional<std::vector<int64_t>> offsets_;
};

}  // namespace

std::string Quoted(absl::string_view text) {
  constexpr size_t kMost = 200;
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "...\"" : "\"");
}

std::string TensorNamed(absl::string_view name) { return absl::StrCat("tensor ", Quoted(name)); }

absl::StatusOr<SafetensorsEntries> ParseSafetensorsHeader(absl::string_view text) {
  const auto bad = [](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("safetensors: ", what));
  };
  if (text.empty() || text[0] != '{') return bad("the header does not start with '{'");
  HeaderReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) {
    return bad(reader.mistake.empty() ? "the header is not a JSON object" : reader.mistake);
  }
  return std::move(reader.entries);
}

}  // namespace traind
