// Rules of the users' files that a Job's tasks read, for a Worker whose state folder is its own:
// which of them travel to it.
//
// Threads: all functions are safe.
#pragma once

#include <string>
#include <vector>

#include "proto/plain/job.h"

namespace traind {

struct NamedFile {
  enum Kind {
    kFile,
    kMedia,    // it may be a folder, or a table with columns of files, which travel with it
    kProgram,  // the folder of a program
  };
  std::string field;  // of the spec: "data.train"
  std::string path;
  Kind kind = kFile;
};

// Returns the files that PREPARE or a program reads, or that are predicted, and that travel.
std::vector<NamedFile> TravellingFiles(const plain::JobSpec& spec);

// Returns the files of the cache that PREPARE writes and later tasks read, relative to the state
// folder. table: the path of the table; empty: it is not there yet, and the files beside it are
// left out. A Job of `run` has none: what stands for it is a folder.
std::vector<std::string> CachedFiles(const plain::JobSpec& spec, const std::string& table);

// Returns the Job whose models the Job predicts with; empty: it trains its own.
std::string ModelsFrom(const plain::JobSpec& spec);

// Returns the columns of data.train, data.test and later files that name files; none: rows have
// none. The first one is always there.
std::vector<std::string> MediaColumns(const plain::DataSpec& data);

// Points a field that TravellingFiles has named to another path.
void SetTravellingFile(plain::JobSpec& spec, const std::string& field, const std::string& path);

}  // namespace traind
