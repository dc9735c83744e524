// traind token: who may call; traind init-tls: certificates of one's own.
#pragma once

namespace traind {

// The programs `traind token ...` and `traind init-tls ...`; they return the exit code. argv[0] is
// the command.
int RunToken(int argc, char** argv);
int RunInitTls(int argc, char** argv);

}  // namespace traind
