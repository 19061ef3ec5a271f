// gantry-pmi2 NAME NODE NODES TASKS: the PMI server of one step on one node, for --mpi=pmi2. Like
// gantry-pmix (noded/pmi/pmix/main.cc) it is started by gantry-shim beside the step's tasks, inside
// their container and as their user. Its messages to the servers of other nodes go over descriptor
// 4. The tasks' sockets are descriptors from kFirstTask on.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "noded/pmi/pmi2/server.h"
#include "noded/pmi/wire.h"

namespace gantry::pmi2 {
namespace {

using pmix::kFirstTask;
using pmix::say;
using pmix::say_abort;
using pmix::say_to_peer;
using pmix::Word;

// A task's socket, and bytes that the task has not read yet. While there are such bytes, nothing is
// read from the task. So a task that does not read has to wait, and cannot fill this program's
// memory.
struct Line {
  int fd = -1;
  std::string out;
  bool ending = false;
};

class Loop {
 public:
  explicit Loop(const pmix::Layout& layout)
      : lines_(layout.tasks[layout.self]),
        server_(layout,
                {[this](std::uint32_t task, std::string_view bytes) { answer(task, bytes); },
                 [this](std::uint32_t task) { end(task); }, say_to_peer, say_abort,
                 [](std::uint32_t rank, const std::string& why) { say(Word::fault, rank, why); }}) {
    for (std::uint32_t task = 0; task < lines_.size(); ++task) {
      lines_[task].fd = kFirstTask + static_cast<int>(task);
      ::fcntl(lines_[task].fd, F_SETFL, O_NONBLOCK);
    }
  }

  void run() {
    for (std::uint32_t task = 0; task < lines_.size(); ++task) {
      std::string bytes;
      for (const auto& word : server_.environment(task, kFirstTask)) bytes += word + '\0';
      say(Word::environment, task, bytes);
    }
    say(Word::ready, 0, "");
    while (turn()) {
    }
    // The tasks have ended. Their last messages show whether other tasks still wait for them.
    for (std::uint32_t task = 0; task < lines_.size(); ++task)
      while (lines_[task].fd >= 0 && read(task)) {
      }
  }

 private:
  bool turn() {
    std::vector<pollfd> watched{{pmix::kSocket, POLLIN, 0}};
    for (const Line& line : lines_)
      watched.push_back({line.fd, static_cast<short>(line.out.empty() ? POLLIN : POLLOUT), 0});
    if (::poll(watched.data(), watched.size(), -1) < 0) return errno == EINTR;
    for (std::uint32_t task = 0; task < lines_.size(); ++task) {
      const short events = watched[task + 1].revents;
      if (events == 0 || lines_[task].fd < 0) continue;
      if (lines_[task].out.empty())
        read(task);
      else
        write(task);
    }
    return watched[0].revents == 0 || hear();
  }

  // Returns false when the shim has closed its end.
  bool hear() {
    char buffer[32 << 10];
    const ssize_t n = ::read(pmix::kSocket, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    in_.append(buffer, static_cast<std::size_t>(n));
    std::size_t at = 0;
    pmix::Frame frame;
    while (pmix::take(in_, at, frame) == pmix::Taken::frame)
      if (frame.word == Word::peer) server_.from_peer(frame.number, frame.bytes);
    in_.erase(0, at);
    return true;
  }

  // Returns false when there is nothing more for now.
  bool read(std::uint32_t task) {
    char buffer[16 << 10];
    const ssize_t n = ::read(lines_[task].fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
    if (n <= 0) {
      close(task);
      server_.gone(task);
      return false;
    }
    server_.from_task(task, {buffer, static_cast<std::size_t>(n)});
    return true;
  }

  void write(std::uint32_t task) {
    Line& line = lines_[task];
    while (!line.out.empty()) {
      const ssize_t n = ::send(line.fd, line.out.data(), line.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) break;  // the task has closed its end; the next read will report that
      line.out.erase(0, static_cast<std::size_t>(n));
    }
    line.out.clear();
    if (line.ending) close(task);
  }

  void answer(std::uint32_t task, std::string_view bytes) {
    if (lines_[task].fd < 0) return;
    lines_[task].out += bytes;
    write(task);
  }

  void end(std::uint32_t task) {
    lines_[task].ending = true;
    if (lines_[task].fd >= 0 && lines_[task].out.empty()) close(task);
  }

  void close(std::uint32_t task) {
    ::close(lines_[task].fd);
    lines_[task].fd = -1;
  }

  std::vector<Line> lines_;
  Server server_;
  std::string in_;
};

int run(int argc, char** argv) {
  const auto layout = pmix::read_layout(argc, argv);
  if (!layout) {
    std::fputs("usage: gantry-pmi2 NAME NODE NODES TASKS, started by gantry-shim\n", stderr);
    return 2;
  }
  Loop loop(*layout);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace gantry::pmi2

int main(int argc, char** argv) {
  // This program runs with the job's ids. The job's programs must not impersonate it towards the
  // shim, so they must not be able to trace it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return gantry::pmi2::run(argc, argv);
}
