// How well training uses its devices, and what to do where it does not.
#pragma once

#include <cstdint>
#include <string>

namespace traind {

// Shares of the time of training, 0-1. Validation and saving are left out, except in `pause`.
struct Usage {
  double utilisation = -1;  // in which the devices computed; -1: not known
  double data_wait = 0;     // for putting batches together
  double exchange = 0;      // for the other ranks
  double pause = 0;         // for validation and saving, of all time
  double core = -1;         // in which the process had a core; -1: not known
  double steal = 0;         // of the machine's, that its host gave to others
  bool gpu = false;
  int64_t batch = 0;  // rows of a pass, for the advice; 0: not known
};

// 80-95 % is good, 60-80 % means that training waits, below that it is poor.
inline constexpr double kGoodUtilisation = 0.8, kPoorUtilisation = 0.6;

// "utilisation is 55 % (poor): 30 % of the time goes into ..."; empty where it is good or not
// known.
std::string UsageAdvice(const Usage& usage);

}  // namespace traind
