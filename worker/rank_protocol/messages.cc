#include "worker/rank_protocol/messages.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace traind::rank_protocol {
namespace {

using Json = nlohmann::json;

template <class M, class T>
struct Field {
  const char* key;
  T M::*member;
};

template <class M, class T>
constexpr Field<M, T> F(const char* key, T M::*member) {
  return {key, member};
}

// The wire names of a message and its fields, once for both directions.
template <class M>
struct Layout;

#define TRAIND_LAYOUT(Message, type, ...)                    \
  template <>                                                \
  struct Layout<Message> {                                   \
    using M = Message;                                       \
    static constexpr char kType[] = type;                    \
    static constexpr auto kFields = std::tuple(__VA_ARGS__); \
  }

TRAIND_LAYOUT(Prepare, "prepare", F("attempt", &M::attempt), F("job", &M::job),
              F("state_dir", &M::state_dir), F("spec_json", &M::spec_json),
              F("remaining_ms", &M::remaining_ms));
TRAIND_LAYOUT(Rendezvous, "", F("host", &M::host), F("port", &M::port),
              F("timeout_ms", &M::timeout_ms));
TRAIND_LAYOUT(Train, "train", F("attempt", &M::attempt), F("job", &M::job),
              F("state_dir", &M::state_dir), F("spec_json", &M::spec_json), F("table", &M::table),
              F("fold", &M::fold), F("seed", &M::seed), F("rank", &M::rank),
              F("world_size", &M::world_size), F("rendezvous", &M::rendezvous),
              F("device", &M::device), F("threads", &M::threads), F("epochs", &M::epochs),
              F("rows", &M::rows), F("batch", &M::batch), F("precision", &M::precision),
              F("resume", &M::resume), F("stop_ms", &M::stop_ms),
              F("remaining_ms", &M::remaining_ms),
              F("checkpoint_every_ms", &M::checkpoint_every_ms));
TRAIND_LAYOUT(Predict, "predict", F("attempt", &M::attempt), F("job", &M::job),
              F("state_dir", &M::state_dir), F("spec_json", &M::spec_json),
              F("threads", &M::threads), F("remaining_ms", &M::remaining_ms));
TRAIND_LAYOUT(Serve, "serve", F("attempt", &M::attempt), F("job", &M::job),
              F("state_dir", &M::state_dir), F("spec_json", &M::spec_json),
              F("threads", &M::threads), F("remaining_ms", &M::remaining_ms));
TRAIND_LAYOUT(Rows, "rows", F("attempt", &M::attempt), F("request", &M::request),
              F("columns", &M::columns), F("values", &M::values));
TRAIND_LAYOUT(Replan, "replan", F("attempt", &M::attempt), F("epochs", &M::epochs),
              F("stop_ms", &M::stop_ms), F("remaining_ms", &M::remaining_ms), F("rows", &M::rows));
TRAIND_LAYOUT(Stop, "stop", F("attempt", &M::attempt), F("predict", &M::predict));
TRAIND_LAYOUT(Exit, "exit", );
TRAIND_LAYOUT(Ready, "ready", F("pid", &M::pid), F("engine", &M::engine), F("device", &M::device));
TRAIND_LAYOUT(TableReady, "table_ready", F("attempt", &M::attempt), F("table", &M::table),
              F("content_sha256", &M::content_sha256), F("train_rows", &M::train_rows),
              F("test_rows", &M::test_rows), F("features", &M::features), F("classes", &M::classes),
              F("read_ms", &M::read_ms), F("cached", &M::cached), F("warnings", &M::warnings));
TRAIND_LAYOUT(FloorReady, "floor_ready", F("attempt", &M::attempt), F("model", &M::model),
              F("score", &M::score), F("oof_sha256", &M::oof_sha256),
              F("test_sha256", &M::test_sha256));
TRAIND_LAYOUT(Started, "started", F("attempt", &M::attempt), F("parameters", &M::parameters),
              F("precision", &M::precision), F("batch", &M::batch),
              F("steps_per_epoch", &M::steps_per_epoch), F("first_step", &M::first_step),
              F("start_epoch", &M::start_epoch), F("resolved_settings", &M::resolved_settings));
TRAIND_LAYOUT(Probe, "probe", F("attempt", &M::attempt), F("step_s", &M::step_s),
              F("step_p90_s", &M::step_p90_s), F("timed_steps", &M::timed_steps),
              F("evaluate_s", &M::evaluate_s), F("predict_s", &M::predict_s));
TRAIND_LAYOUT(Progress, "progress", F("attempt", &M::attempt), F("step", &M::step),
              F("epoch", &M::epoch), F("loss", &M::loss), F("lr", &M::lr),
              F("steps_per_s", &M::steps_per_s), F("samples_per_s", &M::samples_per_s),
              F("data_wait", &M::data_wait), F("exchange", &M::exchange), F("pause", &M::pause),
              F("utilisation", &M::utilisation), F("gradient_norm", &M::gradient_norm),
              F("loss_scale", &M::loss_scale), F("peak_memory_bytes", &M::peak_memory_bytes),
              F("peak_device_bytes", &M::peak_device_bytes));
TRAIND_LAYOUT(Epoch, "epoch", F("attempt", &M::attempt), F("epoch", &M::epoch), F("step", &M::step),
              F("train_loss", &M::train_loss), F("val_loss", &M::val_loss),
              F("val_metric", &M::val_metric), F("best_metric", &M::best_metric),
              F("epoch_s", &M::epoch_s), F("evaluate_s", &M::evaluate_s), F("rows", &M::rows));
TRAIND_LAYOUT(CheckpointSaved, "checkpoint_saved", F("attempt", &M::attempt), F("step", &M::step),
              F("epoch", &M::epoch), F("manifest", &M::manifest), F("sha256", &M::sha256),
              F("bytes", &M::bytes), F("best_metric", &M::best_metric), F("save_ms", &M::save_ms));
TRAIND_LAYOUT(FoldSaved, "fold_saved", F("attempt", &M::attempt), F("fold", &M::fold),
              F("seed", &M::seed), F("complete", &M::complete), F("last", &M::last),
              F("stopped_by", &M::stopped_by), F("epochs_done", &M::epochs_done),
              F("score", &M::score), F("oof", &M::oof), F("oof_sha256", &M::oof_sha256),
              F("test", &M::test), F("test_sha256", &M::test_sha256), F("predict_s", &M::predict_s),
              F("best_epoch", &M::best_epoch), F("step", &M::step));
TRAIND_LAYOUT(Predicted, "predicted", F("attempt", &M::attempt), F("number", &M::number),
              F("members", &M::members));
TRAIND_LAYOUT(Serving, "serving", F("attempt", &M::attempt), F("members", &M::members));
TRAIND_LAYOUT(Answered, "answered", F("attempt", &M::attempt), F("request", &M::request),
              F("code", &M::code), F("message", &M::message), F("targets", &M::targets),
              F("classes", &M::classes), F("values", &M::values),
              F("probabilities", &M::probabilities), F("members", &M::members),
              F("quality", &M::quality));
TRAIND_LAYOUT(Finished, "finished", F("attempt", &M::attempt));
TRAIND_LAYOUT(Failed, "failed", F("attempt", &M::attempt), F("reason", &M::reason),
              F("message", &M::message));
TRAIND_LAYOUT(Decision, "decision", F("attempt", &M::attempt), F("rule", &M::rule),
              F("cause", &M::cause), F("from", &M::from), F("to", &M::to));
TRAIND_LAYOUT(LogText, "log", F("level", &M::level), F("text", &M::text));

#undef TRAIND_LAYOUT

// ---- to JSON ----------------------------------------------------------------

template <class M>
Json MessageToJson(const M& message);

template <class T>
Json ValueToJson(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return value;
  } else if constexpr (std::is_same_v<T, Rendezvous>) {
    return MessageToJson(value);
  } else {
    return value;
  }
}

template <class M>
Json MessageToJson(const M& message) {
  Json object = Json::object();
  std::apply(
      [&](const auto&... field) {
        ((object[field.key] = ValueToJson(message.*field.member)), ...);
      },
      Layout<M>::kFields);
  return object;
}

template <class Variant>
std::string EncodeVariant(const Variant& message) {
  Json object = std::visit(
      [](const auto& m) {
        Json json = MessageToJson(m);
        json["type"] = Layout<std::decay_t<decltype(m)>>::kType;
        return json;
      },
      message);
  // Bytes that are not UTF-8 (of a file name, say) must not lose the message.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// ---- from JSON --------------------------------------------------------------

absl::Status WrongType(const std::string& key, const char* expected, const Json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("key ", key, ": expected ", expected, ", got ", value.type_name()));
}

template <class M>
absl::Status MessageFromJson(const Json& object, const std::string& prefix, M& message);

absl::Status FromJson(const Json& json, const std::string& key, bool& value) {
  if (!json.is_boolean()) return WrongType(key, "true or false", json);
  value = json.get<bool>();
  return absl::OkStatus();
}

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
absl::Status FromJson(const Json& json, const std::string& key, T& value) {
  if (!json.is_number_integer()) return WrongType(key, "an integer", json);
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("key ", key, ": ", json.dump(), " is too big"));
  }
  const int64_t wide = json.get<int64_t>();
  if (wide < static_cast<int64_t>(std::numeric_limits<T>::min())) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", key, ": ", json.dump(), " is too small"));
  }
  value = static_cast<T>(wide);
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, double& value) {
  if (json.is_number()) {
    value = json.get<double>();
    return absl::OkStatus();
  }
  const std::string* text = json.get_ptr<const std::string*>();
  if (text != nullptr && *text == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (text != nullptr && *text == "Infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (text != nullptr && *text == "-Infinity") {
    value = -std::numeric_limits<double>::infinity();
  } else {
    return WrongType(key, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", json);
  }
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, std::string& value) {
  if (!json.is_string()) return WrongType(key, "a string", json);
  value = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, std::vector<std::string>& value) {
  if (!json.is_array()) return WrongType(key, "a list of strings", json);
  value.clear();
  for (const Json& item : json) {
    absl::Status status = FromJson(item, key, value.emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, std::vector<double>& value) {
  if (!json.is_array()) return WrongType(key, "a list of numbers", json);
  value.clear();
  for (const Json& item : json) {
    absl::Status status = FromJson(item, key, value.emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, Rendezvous& value) {
  if (!json.is_object()) return WrongType(key, "an object", json);
  return MessageFromJson(json, key + ".", value);
}

template <class M>
absl::Status MessageFromJson(const Json& object, const std::string& prefix, M& message) {
  absl::Status status;
  std::apply(
      [&](const auto&... field) {
        [[maybe_unused]] const auto read = [&](const auto& f) {
          const auto found = object.find(f.key);
          if (!status.ok() || found == object.end()) return;
          status = FromJson(*found, prefix + f.key, message.*f.member);
        };
        (read(field), ...);
      },
      Layout<M>::kFields);
  return status;
}

// Tries the alternatives of Variant, one after the other.
template <class Variant, size_t I = 0>
absl::StatusOr<Variant> DecodeAlternative(const std::string& type, const Json& object) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return absl::InvalidArgumentError(absl::StrCat("key type: unknown message \"", type, "\""));
  } else {
    using M = std::variant_alternative_t<I, Variant>;
    if (type != Layout<M>::kType) return DecodeAlternative<Variant, I + 1>(type, object);
    M message;
    if (absl::Status status = MessageFromJson(object, "", message); !status.ok()) return status;
    return Variant(std::move(message));
  }
}

template <class Variant>
absl::StatusOr<Variant> DecodeVariant(absl::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a line of ", line.size(), " bytes; at most ", kMaxLineBytes, " are allowed"));
  }
  const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("the line is not a JSON object");
  const auto type = object.find("type");
  if (type == object.end()) return absl::InvalidArgumentError("key type: missing");
  if (!type->is_string()) return WrongType("type", "a string", *type);
  return DecodeAlternative<Variant>(type->template get<std::string>(), object);
}

}  // namespace

std::string Encode(const ToProcess& message) { return EncodeVariant(message); }
std::string Encode(const FromProcess& message) { return EncodeVariant(message); }

absl::StatusOr<ToProcess> DecodeToProcess(absl::string_view line) {
  return DecodeVariant<ToProcess>(line);
}
absl::StatusOr<FromProcess> DecodeFromProcess(absl::string_view line) {
  return DecodeVariant<FromProcess>(line);
}

}  // namespace traind::rank_protocol
