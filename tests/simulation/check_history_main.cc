// check_history FILE: checks histories written by `simulate --history FILE`, one
// JSON object a line; each begins with its "seed" record. Prints the violations.
// Exits 1 if there is one, 2 if the file cannot be read.
#include <fstream>
#include <iostream>
#include <string>

#include "tests/simulation/checker.h"

int main(int argc, char** argv) {
  std::ifstream in(argc == 2 ? argv[1] : "");
  if (!in) {
    std::cerr << "usage: check_history FILE\n";
    return 2;
  }
  std::vector<nlohmann::json> history;
  int histories = 0, violations = 0;
  const auto check = [&] {
    if (history.empty()) return;
    ++histories;
    for (const auto& violation : traind::simulation::CheckHistory(history)) {
      std::cout << "history " << histories << ": " << violation << "\n";
      ++violations;
    }
    history.clear();
  };
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("kind")) {
      std::cerr << argv[1] << ":" << number << ": not a record\n";
      return 2;
    }
    if (record["kind"] == "seed") check();
    history.push_back(std::move(record));
  }
  check();
  std::cout << histories << " histories, " << violations << " violations\n";
  return violations == 0 ? 0 : 1;
}
