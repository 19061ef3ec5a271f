// The processes of HAProxy: at most one that accepts connections, and replaced ones, which finish
// their requests. A process outlives the gate: a new gate takes it over.
//
// Changes that need a new process (another backend, another key) start one, which takes over the
// listening sockets; all other changes are made in the running processes.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/result.h"
#include "gate/plan/config_text.h"
#include "gate/plan/layout.h"

namespace gantry::gate {

// Reads HAProxy's log lines about requests from a unix socket: each process has a connection, on
// which it sends them in large pieces. If the gate is down, HAProxy keeps some thousand lines.
class LogReader {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  // `writer` is the user of HAProxy: who else connects is not listened to, unless it is root.
  static Result<std::unique_ptr<LogReader>> open(loop::Loop& loop, const std::string& path,
                                                 unsigned writer, OnLine on_line);

 private:
  struct Writer {
    Fd fd;
    loop::Watch watch;
    std::string begun;  // a line whose end has not come yet
  };
  LogReader(loop::Loop& loop, unsigned writer, OnLine on_line)
      : loop_(loop), writer_(writer), on_line_(std::move(on_line)) {}
  void take();
  void read(Writer& writer);

  loop::Loop& loop_;
  unsigned writer_;
  OnLine on_line_;
  Fd listening_;
  std::list<Writer> writers_;
  loop::Watch accepting_;
};

Instant monotonic();
std::string text_of(const std::string& path);  // "" = it cannot be read
// Only the gate's user may read it. Whoever reads it sees the old text or the new one. Durable: the
// text survives a crash of the machine.
Result<void> write_private(const std::string& path, const std::string& text, bool durable);

// A connection to the commands of one process of HAProxy (its stats socket). It stays open: a
// process that was replaced, and still answers what it had, can be reached only by it.
class Admin {
 public:
  // unavailable: nobody is there.
  static Result<Admin> connect(const std::string& path);

  // Sends one command and returns the answer. It blocks for at most kAnswerMs; after an error the
  // connection cannot be used any more.
  Result<std::string> ask(const std::string& command);

  // The process at the other end; 0 = it is not known.
  Result<int> process();

 private:
  Fd fd_;
};

inline constexpr int kAnswerMs = 2'000;

class Haproxy {
 public:
  struct Options {
    std::string program;
    Settings settings;
    Duration stop_time{};  // until processes that are still busy end at once; see stop()
  };
  // `changed` is called when a process has come or gone, and something may be to do.
  Haproxy(Options options, loop::Loop& loop, const Logger& log, std::function<void()> changed);

  // Takes over the process that an earlier gate has started, if there is one.
  void adopt();

  // Brings all processes to the layout, and starts one if none can serve it. May be called at any
  // time; what cannot be done now is done by a later call.
  void bring_to(const Layout& layout, const std::string& issuer, const std::vector<TokenKey>& keys);

  // Reads the state of all processes. Each call sends two commands to each of them.
  void look();
  [[nodiscard]] std::vector<Seen> seen() const;
  [[nodiscard]] std::map<std::string, std::uint32_t> held() const;
  [[nodiscard]] bool serves() const { return current_ != nullptr; }

  // Ends all processes when they have answered what they have; `done` is called then.
  void stop(std::function<void()> done);

 private:
  struct Process {
    int pid = 0;
    loop::Watch ended;
    std::optional<Admin> admin;  // nullopt: it does not answer yet, or not any more
    Blocks blocks;
    Tables tables;
    Seen seen;
    std::map<std::string, std::uint32_t> held;
  };

  Result<void> write_files(const Blocks& blocks, const Layout& layout);
  void start(Blocks&& blocks, const Layout& layout);
  void try_new();
  void gone(int pid, bool killed);
  void watch(Process& process);
  bool tell(Process& process, const std::vector<std::string>& commands);
  void look_at(Process& process);
  [[nodiscard]] std::string why_it_ended() const;
  [[nodiscard]] std::string file(const char* name) const {
    return options_.settings.state_dir + "/" + name;
  }
  [[nodiscard]] std::vector<Process*> all();

  Options options_;
  loop::Loop& loop_;
  const Logger& log_;
  std::function<void()> changed_, stopped_;
  std::unique_ptr<Process> current_, next_;
  std::list<Process> leaving_;
  loop::Watch trying_, ending_;
  Instant not_before_{};  // earliest time of the next start
  int failed_starts_ = 0;
  LogLimit refused_;
};

}  // namespace gantry::gate
