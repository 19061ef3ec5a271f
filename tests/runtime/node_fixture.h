// A node's runtime in a directory of its own, for tests with real containers: starts attempts,
// waits for their events, and leaves no process, cgroup, mount or directory behind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "noded/machine/files.h"
#include "noded/runtime/runtime.h"

namespace gantry::runtime::test {

// Returns true if tests with real containers can run, which needs root. Otherwise prints on stderr
// why not.
bool can_run();

class Node {
 public:
  explicit Node(const std::function<void(RuntimeOptions&)>& change = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Runtime& runtime() { return *runtime_; }
  [[nodiscard]] const std::string& dir() const { return dir_; }    // belongs to root
  [[nodiscard]] const std::string& home() const { return home_; }  // belongs to the test's user
  [[nodiscard]] std::string state_dir() const { return dir_ + "/state"; }

  // Makes a job of the test's user (uid 20001, which has no account) with this script; its output
  // goes to home()/out.
  LaunchRequest job(const std::string& script);
  // Starts a job and waits until it has ended.
  ExitRecord run(const LaunchRequest& request);
  ExitRecord run(const std::string& script) { return run(job(script)); }
  ExitRecord wait_end(const AttemptKey& key);
  ExitRecord wait_step(const AttemptKey& key, StepId step);
  bool wait_for(const AttemptKey& key, EventKind kind);
  void pump(int ms);  // takes the runtime's events once; waits for them for at most `ms`
  // Restarts noded, which loses everything in its memory. `meanwhile` runs before the new noded
  // looks at the jobs.
  std::vector<RecoveredAttempt> restart(const std::function<void()>& meanwhile = {});
  [[nodiscard]] int shim_pid(const AttemptKey& key) const;

  [[nodiscard]] std::string output() const;  // contents of home()/out
  [[nodiscard]] std::string read(const std::string& path) const;
  void write(const std::string& path, const std::string& text, unsigned mode, bool as_user);

 private:
  void open();
  std::string dir_, home_;
  RuntimeOptions options_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<RuntimeEvent> events_;
  std::uint64_t next_job_ = 1;
};

inline constexpr std::uint32_t kTestUid = 20001;

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Lists what this node has left on the machine: processes of its jobs, cgroups, mounts.
std::vector<std::string> remains(const Node& node);

}  // namespace gantry::runtime::test
