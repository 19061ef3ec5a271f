#include "noded/gpu/node/commands.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "noded/machine/files.h"

namespace gantry::node {

namespace {

constexpr std::size_t kMostOutput = 64u << 10;  // bytes

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

struct Commands::Running {
  pid_t pid = 0;
  Fd output;
  std::string text;
  CommandEnd end;
  std::function<void(const CommandEnd&)> done;
  loop::Watch reading, ending, limit;
};

Commands::Commands(loop::Loop& loop) : loop_(loop) {}

Commands::~Commands() {
  for (auto& [id, one] : running_)
    if (one->pid > 0) ::kill(-one->pid, SIGKILL);
}

void Commands::run(std::vector<std::string> argv, std::vector<std::string> env, Duration limit,
                   std::function<void(const CommandEnd&)> done) {
  const std::uint64_t id = ++last_;
  Running& one = *(running_[id] = std::make_unique<Running>());
  one.done = std::move(done);
  start(one, argv, env);
  if (one.pid > 0) {
    one.reading = loop_.on_readable(one.output.get(), [this, id] { read(id); });
    auto ending = loop_.on_process_end(one.pid, [this, id](loop::ProcessEnd end) {
      ended(id, end.status.value_or(ExitStatus{}));
    });
    if (ending) {
      one.ending = std::move(*ending);
      one.limit = loop_.after(limit, [&one] {
        one.end.in_time = false;
        ::kill(-one.pid, SIGKILL);
      });
      return;
    }
    one.text = ending.error().message;
    ::kill(-one.pid, SIGKILL);
    one.pid = 0;
  }
  one.limit = loop_.after(Duration{}, [this, id] { ended(id, ExitStatus{127, 0}); });
}

void Commands::start(Running& one, std::vector<std::string>& argv, std::vector<std::string>& env) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return void(one.text = runtime::errno_text("pipe"));
  one.output.reset(ends[0]);
  const Fd write(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  env.insert(env.begin(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write.get(), 1);
  posix_spawn_file_actions_adddup2(&files, write.get(), 2);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&one.pid, argv.front().c_str(), &files, &attributes,
                                  pointers(argv).data(), pointers(env).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return;
  one.pid = 0;
  one.text = runtime::errno_text(argv.front(), error);
}

void Commands::read(std::uint64_t id) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  Running& one = *at->second;
  for (char buffer[4096];;) {
    const ssize_t n = ::read(one.output.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return one.reading.cancel();
    if (one.text.size() < kMostOutput) one.text.append(buffer, static_cast<std::size_t>(n));
  }
}

void Commands::ended(std::uint64_t id, ExitStatus status) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;
  if (at->second->pid > 0) {
    read(id);                           // what is left in the pipe
    ::kill(-at->second->pid, SIGKILL);  // ends processes that the program left behind
  }
  const std::unique_ptr<Running> one = std::move(at->second);
  running_.erase(at);
  one->end.status = status;
  one->end.last_line = last_line(one->text);
  one->done(one->end);
}

}  // namespace gantry::node
