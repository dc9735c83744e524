// Jobs that wait, the most urgent one first.
#pragma once

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>

#include "server/schedule/scheduler.h"

namespace traind {

struct JobEntry;

// A map whose nodes count what is below them: order_of_key(urgency) says how many Jobs come before,
// without a walk over them.
using JobLine = __gnu_pbds::tree<Urgency, JobEntry*, std::less<Urgency>, __gnu_pbds::rb_tree_tag,
                                 __gnu_pbds::tree_order_statistics_node_update>;

}  // namespace traind
