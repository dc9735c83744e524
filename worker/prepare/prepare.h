// The PREPARE task: data files in, table, folds and floor out.
#pragma once

#include <functional>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

// Takes the messages of a PREPARE in their order (worker/rank_protocol/messages.h).
using SendMessage = std::function<void(const rank_protocol::FromProcess&)>;

// Runs the task to its end: TableReady, FloorReady once or twice, Finished; or
// Failed. Reads the data once; where the cache has the table of the same bytes
// and options, only their digest is computed. Each step is durable before it is
// told, and may be repeated: a second run makes the same files.
//
// The first floor (class frequencies, or the mean; of a forecast the seasonal naive
// one) is published before TableReady. The better one (logistic or ridge regression,
// of a forecast on what is known by then) takes at most 5 s and a fifth of the time
// that remains, gives way to other programs, and replaces the first one only where it
// scores better out of fold.
void RunPrepare(const rank_protocol::Prepare& task, const Clock& clock, const SendMessage& send);

}  // namespace traind
