// The PREPARE task: reads the data files, and writes table, folds and floor.
#pragma once

#include <functional>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

// Receives the messages of a PREPARE in their order (worker/rank_protocol/messages.h).
using SendMessage = std::function<void(const rank_protocol::FromProcess&)>;

// Runs the task to its end. Sends TableReady, FloorReady once or twice, and Finished; or
// Failed. Reads the data once; if the cache has the table of the same bytes and options, only
// their digest is computed. Each step is durable before its message is sent and may be
// repeated: a second run makes the same files.
//
// The first floor (class frequencies or the mean; for a forecast the seasonal naive floor) is
// published before TableReady. The better floor (logistic or ridge regression; for a forecast
// a mix with statistical models of each series) takes at most 5 s and a fifth of the remaining time, runs at low
// priority, and replaces the first floor only if its out-of-fold score is better.
void RunPrepare(const rank_protocol::Prepare& task, const Clock& clock, const SendMessage& send);

}  // namespace traind
