// The command line, understood.
#pragma once

#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

namespace traind {

enum class ColorMode { kAuto, kAlways, kNever };

struct Arguments {
  std::string verb;

  // Everywhere.
  std::string server;
  bool json = false;
  bool progress = true;
  ColorMode color = ColorMode::kAuto;
  std::optional<absl::Duration> timeout;

  std::string job;  // id or name

  // submit, plan
  std::string file;
  std::vector<std::string> sets;  // "a.b=v"
  std::optional<std::string> budget;
  std::optional<std::string> deadline;
  std::optional<std::string> name;

  std::vector<std::string> labels;  // "k=v": of the new Job, or to list by

  // update (with budget, deadline and labels)
  std::optional<int> priority;
  std::vector<std::string> unlabels;  // keys

  // submit
  std::string request_id;
  bool wait = false;
  bool follow = false;  // also: metrics

  std::string states;    // list: "RUNNING,QUEUED"
  std::string metrics;   // metrics: "train_loss,val_metric"
  std::string artifact;  // fetch
  std::string to;        // fetch: a file, or -
};

}  // namespace traind
