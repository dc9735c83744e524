#include "common/facts/facts.h"

#include "common/facts/list_fields.h"

namespace traind::facts {

#define F TRAIND_FIELD

std::vector<Field> TableReady::Fields() {
  return ListFields(*this, {F(table), F(content_sha256), F(train_rows), F(test_rows), F(features),
                            F(classes), F(read_ms), F(cached), F(warnings)});
}

std::vector<Field> FloorReady::Fields() {
  return ListFields(*this, {F(model), F(score), F(oof_sha256), F(test_sha256)});
}

std::vector<Field> Started::Fields() {
  return ListFields(*this, {F(parameters), F(precision), F(batch), F(steps_per_epoch),
                            F(first_step), F(start_epoch), F(resolved_settings)});
}

std::vector<Field> Probe::Fields() {
  return ListFields(*this, {F(step_s), F(step_p90_s), F(timed_steps), F(evaluate_s), F(predict_s)});
}

std::vector<Field> Progress::Fields() {
  return ListFields(*this, {F(step),
                            F(epoch),
                            F(loss),
                            F(lr),
                            F(steps_per_s),
                            F(samples_per_s),
                            F(data_wait),
                            F(exchange),
                            F(pause),
                            F(utilisation),
                            F(gradient_norm),
                            F(loss_scale),
                            F(peak_memory_bytes),
                            F(peak_device_bytes),
                            F(cpu_cores),
                            F(resident_bytes),
                            F(steal),
                            F(device_utilisation),
                            F(device_memory_bytes),
                            F(power_watts),
                            F(temperature_celsius)});
}

std::vector<Field> Resources::Fields() {
  return ListFields(*this, {F(summary), F(seconds), F(epochs), F(utilisation), F(advice), F(cpu_s),
                            F(energy_joules), F(peak_memory_bytes), F(peak_device_bytes)});
}

std::vector<Field> Transfers::Fields() {
  return ListFields(*this, {F(fetched_bytes), F(fetch_s), F(sent_bytes), F(send_s)});
}

std::vector<Field> Epoch::Fields() {
  return ListFields(*this, {F(epoch), F(step), F(train_loss), F(val_loss), F(val_metric),
                            F(best_metric), F(epoch_s), F(evaluate_s), F(row_share), F(head_only)});
}

std::vector<Field> CheckpointSaved::Fields() {
  return ListFields(
      *this, {F(step), F(epoch), F(manifest), F(sha256), F(bytes), F(best_metric), F(save_ms)});
}

std::vector<Field> FoldSaved::Fields() {
  return ListFields(*this, {F(fold), F(complete), F(last), F(stopped_by), F(epochs_done), F(score),
                            F(oof), F(oof_sha256), F(test), F(test_sha256), F(predict_s),
                            F(best_epoch), F(step), F(trial), F(seed)});
}

std::vector<Field> Importance::Fields() { return ListFields(*this, {F(columns), F(drops)}); }

std::vector<Field> Ended::Fields() { return ListFields(*this, {F(reason), F(message)}); }

std::vector<Field> Decision::Fields() {
  return ListFields(*this, {F(rule), F(cause), F(from), F(to)});
}

#undef F

std::vector<std::pair<const char*, double>> Signals(const Progress& progress) {
  std::vector<std::pair<const char*, double>> signals;
  const auto add = [&signals](const char* name, double value, bool known) {
    if (known) signals.emplace_back(name, value);
  };
  const auto add_positive = [&add](const char* name, double value) { add(name, value, value > 0); };
  const auto add_known = [&add](const char* name, double value) { add(name, value, value >= 0); };
  add_known("cpu_cores", progress.cpu_cores);
  add("data_wait", progress.data_wait, true);
  add_known("device_memory_bytes", progress.device_memory_bytes);
  add_known("device_utilisation", progress.device_utilisation);
  add_positive("exchange", progress.exchange);
  add_positive("gradient_norm", progress.gradient_norm);
  add_positive("loss_scale", progress.loss_scale);
  add("pause", progress.pause, true);
  add_positive("peak_device_bytes", static_cast<double>(progress.peak_device_bytes));
  add_positive("peak_memory_bytes", static_cast<double>(progress.peak_memory_bytes));
  add_known("power_watts", progress.power_watts);
  add_known("resident_bytes", progress.resident_bytes);
  add_known("steal", progress.steal);
  add_known("temperature_celsius", progress.temperature_celsius);
  add_known("utilisation", progress.utilisation);
  return signals;
}

}  // namespace traind::facts
