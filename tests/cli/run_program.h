// Runs one of Gantry's commands as a user would: as a process with its own arguments, environment
// and standard input.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gantry::test {

struct Run {
  int status = 0;  // exit status, or 128 + the number of the signal
  std::string out;
  std::string err;
};

struct Call {
  std::vector<std::string> argv;                   // argv[0] is a command of Gantry, or a path
  std::map<std::string, std::string> environment;  // the whole environment except PATH, HOME, TZ
  std::string input;
  std::string directory;  // "" = a scratch directory
};

Run run_program(const Call& call);

// A directory for the files of one test; it is removed with the object.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace gantry::test
