#include "worker/rank_protocol/messages.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "common/facts/list_fields.h"
#include "worker/rank_protocol/json_line.h"

namespace traind::rank_protocol {

#define F TRAIND_FIELD

std::vector<Field> Prepare::Fields() {
  return ListFields(
      *this, {F(attempt), F(job), F(state_dir), F(spec_json), F(remaining_ms), F(data_roots)});
}

std::vector<Field> Rendezvous::Fields() {
  return ListFields(*this, {F(host), F(port), F(timeout_ms)});
}

std::vector<Field> Train::Fields() {
  return ListFields(*this, {F(attempt),
                            F(job),
                            F(state_dir),
                            F(spec_json),
                            F(table),
                            F(fold),
                            F(rank),
                            F(world_size),
                            F(rendezvous),
                            F(device),
                            F(threads),
                            F(loader_threads),
                            F(epochs),
                            F(row_share),
                            F(batch),
                            F(precision),
                            F(resume),
                            F(stop_ms),
                            F(remaining_ms),
                            F(checkpoint_every_ms),
                            F(trial),
                            F(seed),
                            F(files_travel)});
}

std::vector<Field> Predict::Fields() {
  return ListFields(*this, {F(attempt), F(job), F(state_dir), F(spec_json), F(threads),
                            F(remaining_ms), F(data_roots)});
}

std::vector<Field> Serve::Fields() {
  return ListFields(*this,
                    {F(attempt), F(job), F(state_dir), F(spec_json), F(threads), F(remaining_ms)});
}

std::vector<Field> Rows::Fields() {
  return ListFields(*this, {F(attempt), F(request), F(columns), F(values)});
}

std::vector<Field> Replan::Fields() {
  return ListFields(*this, {F(attempt), F(epochs), F(stop_ms), F(remaining_ms), F(row_share)});
}

std::vector<Field> Stop::Fields() { return ListFields(*this, {F(attempt), F(predict), F(reason)}); }

std::vector<Field> Exit::Fields() { return {}; }

std::vector<Field> Ready::Fields() { return ListFields(*this, {F(pid), F(engine), F(device)}); }

std::vector<Field> Predicted::Fields() {
  return ListFields(*this, {F(attempt), F(number), F(members)});
}

std::vector<Field> Serving::Fields() { return ListFields(*this, {F(attempt), F(members)}); }

std::vector<Field> Answered::Fields() {
  return ListFields(*this, {F(attempt), F(request), F(code), F(message), F(targets), F(classes),
                            F(values), F(probabilities), F(quantile_columns), F(quantiles),
                            F(members), F(quality), F(more)});
}

std::vector<Field> Finished::Fields() { return ListFields(*this, {F(attempt)}); }

std::vector<Field> Failed::Fields() {
  return ListFields(*this, {F(attempt), F(reason), F(message)});
}

std::vector<Field> LogText::Fields() { return ListFields(*this, {F(level), F(text)}); }

#undef F

namespace {

template <class Variant>
std::string EncodeVariant(const Variant& message) {
  return std::visit([](const auto& m) { return ToJsonLine(m.kType, ReadableFields(m)); }, message);
}

// Tries the alternatives of Variant, one after the other.
template <class Variant, size_t I = 0>
absl::StatusOr<Variant> DecodeAlternative(const JsonLine& line) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return absl::InvalidArgumentError(
        absl::StrCat("key type: unknown message \"", line.type(), "\""));
  } else {
    using M = std::variant_alternative_t<I, Variant>;
    if (line.type() != M::kType) return DecodeAlternative<Variant, I + 1>(line);
    M message;
    absl::Status status = line.Read(message.Fields());
    if (!status.ok()) return status;
    return Variant(std::move(message));
  }
}

template <class Variant>
absl::StatusOr<Variant> DecodeVariant(absl::string_view text) {
  absl::StatusOr<JsonLine> line = JsonLine::Parse(text);
  if (!line.ok()) return line.status();
  return DecodeAlternative<Variant>(*line);
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
