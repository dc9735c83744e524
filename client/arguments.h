// The parsed command line.
#pragma once

#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

namespace traind {

enum class ColorMode { kAuto, kAlways, kNever };

struct Arguments {
  std::string verb;

  // For all verbs.
  std::string server;
  bool json = false;
  bool csv = false;  // trials
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
  std::optional<std::string> preset;
  std::optional<std::string> cache;
  std::optional<std::string> from;
  std::string owner;

  std::vector<std::string> labels;  // "k=v": labels of the new Job, or to list by

  // update (with budget, deadline and labels)
  std::optional<int> priority;
  std::vector<std::string> unlabels;  // keys

  // predict (with budget, deadline, name, labels)
  std::string data, rows;    // files; rows: - is stdin
  std::string files_column;  // a column of rows whose values are files, whose bytes are sent
  std::optional<int> min_members;
  std::string format;
  bool no_probabilities = false;

  // submit, predict
  std::string request_id;
  bool wait = false;
  bool follow = false;  // also: metrics

  // quota
  std::vector<std::string> words;  // "set", "local", "45h", "per", "7d"
  bool add = false;

  bool dry_run = false;  // gc

  std::string states;    // list: "RUNNING,QUEUED"
  std::string metrics;   // metrics: "train_loss,val_metric"
  bool plot = false;     // metrics
  std::string artifact;  // fetch
  std::string to;        // fetch: a file, or -; predict: a file
};

}  // namespace traind
