// Daemon: what training takes of this machine.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "worker/daemon/daemon.h"

namespace traind::worker {
namespace {

constexpr absl::Duration kReadEvery = absl::Milliseconds(500);

}  // namespace

// Reads the resources that running folds use, each half second.
void Daemon::ReadResources(absl::Duration now) {
  if (now < read_resources_) return;
  read_resources_ = now + kReadEvery;
  for (const int64_t attempt : core_.Training()) ReadResourcesOf(attempt, now);
}

void Daemon::AddDeviceFigures(v1::Heartbeat& heartbeat) const {
  if (sampler_ == nullptr) return;
  const std::map<std::string, Nvml::Figures> latest = sampler_->Latest();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto found = latest.find(slots_[i].uuid);
    if (found == latest.end()) continue;
    const Nvml::Figures& figures = found->second;
    v1::SlotFigures& told = *heartbeat.add_figures();
    told.set_slot(static_cast<int>(i));
    v1::DeviceFigures& to = *told.mutable_figures();
    if (figures.utilisation >= 0) to.set_utilisation(figures.utilisation);
    if (figures.memory_bytes >= 0) to.set_memory_bytes(static_cast<int64_t>(figures.memory_bytes));
    if (figures.power_watts >= 0) to.set_power_watts(figures.power_watts);
    if (figures.temperature_celsius >= 0) to.set_temperature_celsius(figures.temperature_celsius);
    if (figures.energy_joules >= 0) to.set_energy_joules(figures.energy_joules);
  }
}

void Daemon::ReadResourcesOf(int64_t attempt, absl::Duration now) {
  ResourceReading reading;
  for (const ProcessId id : core_.ProcessesOf(attempt)) {
    const auto child = children_.find(id);
    if (child == children_.end()) continue;
    const ProcessFigures figures = FiguresOf(child->second.child->pid());
    reading.processes.cpu_s += figures.cpu_s;
    reading.processes.resident_bytes += figures.resident_bytes;
  }
  if (sampler_ != nullptr) {
    const std::map<std::string, Nvml::Figures> latest = sampler_->Latest();
    for (const Slot& slot : SlotsOf(attempt)) {
      if (const auto found = latest.find(slot.uuid); found != latest.end()) {
        reading.devices.push_back(found->second);
      }
    }
  }
  reading.machine = ReadMachineTime();
  resources_.Read(attempt, reading, now);
  if (const std::string advice = resources_.Advice(attempt); !advice.empty()) {
    WriteTaskLog(attempt, LogLevel::kWarning, advice);
  }
}

std::vector<Slot> Daemon::SlotsOf(int64_t attempt) const {
  std::vector<Slot> slots;
  const TaskStart* const task = core_.TaskOf(attempt);
  if (task == nullptr) return slots;
  for (const int slot : task->slots) slots.push_back(slots_[static_cast<size_t>(slot)]);
  return slots;
}

void Daemon::WriteTaskLog(int64_t attempt, LogLevel level, const std::string& line) {
  const std::vector<ProcessId> processes = core_.ProcessesOf(attempt);
  const auto child = processes.empty() ? children_.end() : children_.find(processes.front());
  if (child != children_.end()) child->second.child->WriteLog(level, line);
}

// Adds what was measured to what the process tells. More to tell, after the fact or before it.
void Daemon::NoteResources(ReportAction& fact, absl::Duration now) {
  const int64_t attempt = fact.attempt;
  if (const auto* started = std::get_if<facts::Started>(&fact.fact)) {
    const TaskStart* const task = core_.TaskOf(attempt);
    if (task == nullptr || task->kind != TaskKind::kTrain || resources_.Sum(attempt)) return;
    std::vector<SummaryDevice> devices;
    for (const Slot& slot : SlotsOf(attempt)) {
      devices.push_back({slot.device, slot.name, slot.uuid, slot.memory_bytes});
    }
    std::string summary =
        absl::StrCat(DeviceSummary(devices, options_.driver), "; ", started->resolved_settings);
    const int ranks = std::max(1, task->world_size);
    if (ranks > 1) absl::StrAppend(&summary, " ranks=", ranks);
    WriteTaskLog(attempt, LogLevel::kInfo, absl::StrCat("resources: ", summary));
    resources_.Start(attempt, static_cast<int>(task->slots.size()), sampler_ != nullptr,
                     started->batch, std::move(summary), now);
    ReadResourcesOf(attempt, now);
    read_resources_ = std::min(read_resources_, now + kReadEvery);
    ReportFact({attempt, *resources_.Sum(attempt)}, now);
  } else if (auto* progress = std::get_if<facts::Progress>(&fact.fact)) {
    resources_.Fill(attempt, *progress);
  } else if (const auto* epoch = std::get_if<facts::Epoch>(&fact.fact)) {
    const std::string line = resources_.Epoch(attempt, *epoch, now);
    if (!line.empty()) WriteTaskLog(attempt, LogLevel::kInfo, line);
  } else if (std::holds_alternative<facts::FoldSaved>(fact.fact)) {
    ReadResourcesOf(attempt, now);  // while its processes are there
  } else if (std::holds_alternative<Ended>(fact.fact)) {
    const std::optional<facts::Resources> sum = resources_.Sum(attempt);
    resources_.Forget(attempt);
    if (sum) ReportFact({attempt, *sum}, now);
  }
}

}  // namespace traind::worker
