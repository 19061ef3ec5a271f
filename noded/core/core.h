// The node daemon as a function: state, input and time go in; actions and messages come out. The
// daemon (noded/daemon.cc) and the simulator run this same code.
//
// In one turn the shell (the code around this class) calls step() for each input that it has, then
// take_turn(). It carries out the turn's actions in their order, and only then sends its messages;
// a RememberEpoch that cannot be made durable ends the process; other failed actions do not. The
// result of an action comes back as an event, at once or later. The shell calls step() again no
// later than Turn::wake, with a Wake.
//
// The following holds, whatever is lost, doubled, late or killed:
//   - An attempt runs at most once. Begin and Resume are the only actions that run anything: Begin
//     once per (job, attempt), Resume only for an attempt that the runtime has proved never to have
//     started.
//   - An exit is reported until the controller has acknowledged it, and is forgotten only then.
//   - A controller older than the newest ever seen is refused, over restarts as well.
// After a restart the runtime lists what the disk and the shims report (Recovered), and a new Core
// starts from that list. The code is deterministic: it has no clock, no I/O and no randomness.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "noded/core/core_values.h"

namespace gantry::node {

struct Turn {
  std::vector<Action> actions;
  std::vector<Report> messages;
  std::optional<Instant> wake;
};

// ---- start

// The state of one attempt when the daemon starts, according to the disk and the shims.
struct Recovered {
  enum class Stage : std::uint8_t {
    // The launch record exists, and it is proved that nothing ran; nothing will run without Resume.
    never_started,
    preparing,  // its shim is alive and has not reported anything yet
    held,
    running,
    ended,  // its exit record exists; or its shim is gone, and all its processes were killed
  };
  AttemptKey key;
  Stage stage = Stage::never_started;
  std::optional<Instant> started;
  Exit exit;            // stage ended
  bool frozen = false;  // stage running
};

// The facts that the daemon read from the state directory; all are unset at the first start.
struct Memory {
  Epoch epoch{};
  JobId highest_job{};
  std::optional<Duration> fence_after;
  std::optional<Instant> last_contact;
};

// Counters for status and tests: input that was refused or had no effect.
struct Counters {
  std::uint64_t old_epoch = 0;
  std::uint64_t other_session = 0;
  std::uint64_t old_seq = 0;
  std::uint64_t no_effect = 0;  // an input for which the table in state.h has no move
};

class Core {
 public:
  // `facts` is a NodeRegister without attempts, epoch and time. Except for the GPUs it stays the
  // same for the life of the daemon.
  Core(proto::NodeRegister facts, Memory memory, std::vector<Recovered> recovered, Instant now);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void step(Instant now, Input input);
  Turn take_turn();

  [[nodiscard]] bool registered() const;
  [[nodiscard]] std::vector<proto::AttemptStatus> attempts() const;  // in key order
  [[nodiscard]] const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gantry::node
