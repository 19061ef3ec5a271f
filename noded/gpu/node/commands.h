// Runs programs for the node daemon without blocking its loop. Each program has a time limit and a
// process group of its own, which is killed when the limit is over.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/loop/loop.h"
#include "common/result.h"

namespace gantry::node {

struct CommandEnd {
  ExitStatus status;      // code 127: it could not be started
  bool in_time = true;    // false: its time was over, and it was killed
  std::string last_line;  // last line of its output; only the first 64 KiB count
  [[nodiscard]] bool good() const { return in_time && status.code == 0 && status.signal == 0; }
};

class Commands {
 public:
  explicit Commands(loop::Loop& loop);
  ~Commands();  // kills what runs; no `done` is called any more
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // argv[0] is a path. The program gets `env` and PATH, and no other variable. `done` comes in a
  // later turn.
  void run(std::vector<std::string> argv, std::vector<std::string> env, Duration limit,
           std::function<void(const CommandEnd&)> done);

 private:
  struct Running;
  void start(Running& one, std::vector<std::string>& argv, std::vector<std::string>& env);
  void read(std::uint64_t id);
  void ended(std::uint64_t id, ExitStatus status);

  loop::Loop& loop_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Running>> running_;
};

}  // namespace gantry::node
