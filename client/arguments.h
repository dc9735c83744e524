// The parsed command line.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/formats.h"

namespace traind {

enum class ColorMode { kAuto, kAlways, kNever };

struct LogArguments {
  bool worker = false;
  std::optional<int> fold, rank;
  std::string level, grep, since;
  int tail = 0;  // 0: all
};

struct RunArguments {
  std::vector<std::string> command, expect, environment, checkpoints;
  std::string sample;    // a file; empty: none
  bool offline = false;  // the program has no network
  int folds = 1;
  int epochs = 0;  // 0: the program does not say
  uint64_t seed = 0;
  int slots = 0;  // 0: one
  bool detach = false;
};

struct InitArguments {
  std::string data, test, target;
  bool force = false;
};

struct Arguments {
  std::string verb;

  // For all verbs.
  std::string server;
  std::string reach;  // flags that led to that server, with a blank after each; empty: none did
  std::string tls_dir, token_file;
  OutputFormat output = OutputFormat::kTable;
  bool json = false;  // the verb writes a JSON document; `output` may turn it into another form
  bool progress = true;
  bool quiet = false;    // no hints either
  bool verbose = false;  // Decisions with their arithmetic
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
  std::vector<std::string> after;
  std::string owner;

  // submit
  std::vector<std::string> arrays;  // "train.learning_rate=0.1,0.01"
  std::optional<int> at_once;       // Jobs of the array
  std::string array;                // list, wait, cancel: an array's id

  std::vector<std::string> labels;  // "k=v": labels of the new Job, or to list by

  // update (with budget, deadline and labels)
  std::optional<int> priority;
  std::vector<std::string> unlabels;  // keys

  // predict (with budget, deadline, name, labels); doctor has data
  std::string data, rows;    // files; rows: - is stdin
  std::string files_column;  // a column of rows whose values are files, whose bytes are sent
  std::optional<int> min_members;
  std::string format;
  bool no_probabilities = false;

  bool upload = false;  // submit, plan, predict: send the files

  // submit, predict
  std::string request_id;
  bool wait = false;
  bool follow = false;  // also: metrics, events, logs

  std::string grace;  // workers

  // quota, config, workers
  std::vector<std::string> words;  // "set", "local", "45h", "per", "7d"
  bool add = false;

  bool dry_run = false;  // gc

  std::string states;    // list: "RUNNING,QUEUED"
  std::string metrics;   // metrics: "train_loss,val_metric"
  bool plot = false;     // metrics
  std::string artifact;  // fetch
  std::string to;        // fetch, init: a file, or -; predict: a file

  std::vector<std::string> jobs;  // diff, wait
  bool all = false;               // wait
  bool any = false;               // wait
  LogArguments logs;
  InitArguments init;
  RunArguments run;
  std::string field;       // explain
  bool recursive = false;  // explain
  std::string shell;       // completion
  bool markdown = false;   // man
  std::string every;       // top
  bool once = false;       // top
};

}  // namespace traind
