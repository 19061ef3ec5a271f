#include "gate/haproxy.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "common/net/socket.h"
#include "common/time/time.h"

namespace gantry::gate {

namespace {

constexpr Duration kTryAgain = milliseconds(10);  // until a new process answers
constexpr Duration kBetweenStarts = seconds(1);   // between two processes that replace living ones
constexpr Duration kLongestPause = seconds(30);   // after starts that failed
constexpr off_t kMostErrors = 1 << 20;            // octets of its standard error that are kept
constexpr std::size_t kMostLeaving = 8;           // processes that were replaced

std::set<std::string> backends_of(const Blocks& blocks) {
  constexpr std::string_view kHead = "backend ";
  std::set<std::string> out;
  for (const auto& [head, body] : blocks)
    if (head.starts_with(kHead)) out.insert(head.substr(kHead.size()));
  return out;
}

// Starts a program with only its standard files. Returns -1 with errno on failure.
int spawn_program(const std::vector<std::string>& words, const char* errors) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const char* environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0600);
  // Its own session, so that signals of the gate's terminal do not reach it.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  int pid = -1;
  const int error = ::posix_spawn(&pid, words.front().c_str(), &files, &how, argv.data(),
                                  const_cast<char**>(environment));
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  errno = error;
  return error == 0 ? pid : -1;
}

// The address of a unix socket.
Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: the path is too long", path));
  std::memcpy(at.sun_path, path.data(), path.size());
  return at;
}

constexpr std::string_view kPrompt = "\n> ";
constexpr std::size_t kMost = 64u << 20;  // octets of one answer

constexpr std::size_t kPiece = 256u << 10;
constexpr std::size_t kLongestLine = 4'096;
constexpr std::size_t kMostWriters = 32;

}  // namespace

Instant monotonic() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000};
}

std::string text_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  char piece[65536];
  for (ssize_t n = 0; fd && (n = ::read(fd.get(), piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<std::size_t>(n));
  return out;
}

Result<void> write_private(const std::string& path, const std::string& text, bool durable) {
  const std::string fresh = path + ".new";
  const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      (durable && ::fdatasync(fd.get()) != 0) || ::rename(fresh.c_str(), path.c_str()) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  return {};
}

Haproxy::Haproxy(Options options, loop::Loop& loop, const Logger& log,
                 std::function<void()> changed)
    : options_(std::move(options)), loop_(loop), log_(log), changed_(std::move(changed)) {}

std::vector<Haproxy::Process*> Haproxy::all() {
  std::vector<Process*> out;
  if (current_) out.push_back(current_.get());
  for (Process& p : leaving_) out.push_back(&p);
  return out;
}

void Haproxy::adopt() {
  auto admin = Admin::connect(file("admin.sock"));
  if (!admin) return;
  const auto pid = admin->process();
  if (!pid || *pid <= 0) return;
  auto process = std::make_unique<Process>();
  process->pid = *pid;
  process->admin = std::move(*admin);
  process->blocks = read_blocks(text_of(file("haproxy.cfg")));
  for (const std::string& name : table_names())
    if (const auto rows =
            process->admin->ask(fmt::format("show map {}", table_file(options_.settings, name)));
        rows)
      process->tables[name] = read_table(*rows);
  watch(*process);
  look_at(*process);
  if (!process->admin) return;
  log_.info("took over HAProxy", {{"pid", *pid}});
  current_ = std::move(process);
}

void Haproxy::watch(Process& process) {
  const int pid = process.pid;
  auto watched = loop_.on_process_end(
      pid, [this, pid](loop::ProcessEnd end) { gone(pid, end.status && end.status->signal != 0); });
  if (watched)
    process.ended = std::move(*watched);
  else
    loop_.post([this, pid] { gone(pid, false); });
}

Result<void> Haproxy::write_files(const Blocks& blocks, const Layout& layout) {
  for (const std::string& name : table_names()) {
    const auto rows = layout.tables.find(name);
    const std::string text = rows == layout.tables.end() ? "" : table_text(rows->second);
    TRY(write_private(table_file(options_.settings, name), text, false));
  }
  TRY(write_private(file("hold.lua"), kHoldProgram, false));
  return write_private(file("haproxy.cfg"), config_text(blocks, layout), false);
}

void Haproxy::start(Blocks&& blocks, const Layout& layout) {
  not_before_ = monotonic() + kBetweenStarts;
  if (auto r = write_files(blocks, layout); !r) {
    log_.write(refused_, LogLevel::error, "HAProxy cannot be started",
               {{"why", r.error().message}});
    return;
  }
  std::vector<std::string> words{options_.program, "-db", "-f", file("haproxy.cfg")};
  if (current_) {
    words.insert(words.end(), {"-x", file("admin.sock"), "-sf", std::to_string(current_->pid)});
    for (const Process& p : leaving_) words.push_back(std::to_string(p.pid));
  }
  const std::string errors = file("haproxy.errors");
  (void)!::truncate(errors.c_str(), 0);
  const int pid = spawn_program(words, errors.c_str());
  if (pid < 0) {
    log_.write(refused_, LogLevel::error, "HAProxy cannot be started",
               {{"program", options_.program}, {"why", std::strerror(errno)}});
    return;
  }
  next_ = std::make_unique<Process>();
  next_->pid = pid;
  next_->blocks = std::move(blocks);
  next_->tables = layout.tables;
  watch(*next_);
  trying_ = loop_.every(kTryAgain, [this] { try_new(); });
}

// The new process has the socket's name once it runs.
void Haproxy::try_new() {
  auto admin = Admin::connect(file("admin.sock"));
  if (!admin) return;
  const auto pid = admin->process();
  if (!pid || !next_ || *pid != next_->pid) return;
  next_->admin = std::move(*admin);
  log_.info("HAProxy serves", {{"pid", next_->pid}, {"instead_of", current_ ? current_->pid : 0}});
  if (current_) leaving_.push_back(std::move(*current_));
  current_ = std::move(next_);
  failed_starts_ = 0;
  trying_.cancel();
  look_at(*current_);
  changed_();
}

std::string Haproxy::why_it_ended() const {
  const std::string said = text_of(file("haproxy.errors"));
  std::string first;
  const std::size_t alert = said.find("[ALERT]");
  if (alert != std::string::npos) first = said.substr(alert, said.find('\n', alert) - alert);
  return first.empty() ? "it gives no reason" : first;
}

void Haproxy::gone(int pid, bool killed) {
  if (next_ && next_->pid == pid) {
    // The end of a killed process does not mean that its configuration is wrong, so after the first
    // such end another one starts at once.
    if (const int failed = ++failed_starts_; killed && failed == 1)
      not_before_ = {};
    else
      not_before_ =
          monotonic() + std::min(seconds(std::int64_t{1} << std::min(failed, 5)), kLongestPause);
    trying_.cancel();
    next_.reset();
    log_.error("HAProxy ended at its start", {{"why", why_it_ended()}});
  } else if (current_ && current_->pid == pid) {
    current_.reset();
    if (!stopped_) {
      not_before_ = {};
      log_.error("HAProxy has ended; it is started again", {{"pid", pid}});
    }
  } else {
    leaving_.remove_if([pid](const Process& p) { return p.pid == pid; });
  }
  if (stopped_ && !current_ && !next_ && leaving_.empty()) return std::exchange(stopped_, {})();
  changed_();
}

// Returns false if the process does not answer any more.
bool Haproxy::tell(Process& process, const std::vector<std::string>& commands) {
  for (const std::string& command : commands) {
    const auto said = process.admin->ask(command);
    if (!said) {
      log_.warning("HAProxy does not answer",
                   {{"pid", process.pid}, {"why", said.error().message}});
      process.admin.reset();
      return false;
    }
    // A server with connections cannot be deleted yet; that is no fault.
    const bool expected = said->empty() || said->starts_with("New server registered") ||
                          said->starts_with("Server deleted") || command.starts_with("del server");
    if (!expected)
      log_.write(refused_, LogLevel::warning, "HAProxy refuses",
                 {{"command", command.substr(0, command.find(" send-proxy"))}, {"answer", *said}});
  }
  return true;
}

void Haproxy::look_at(Process& process) {
  if (!process.admin) return;
  auto stat = process.admin->ask("show stat -1 6 -1");
  if (stat) process.seen = read_stat(*stat);
  auto held = process.admin->ask("show held");
  if (held) process.held = read_held(*held);
  if (stat && held) return;
  process.admin.reset();
}

void Haproxy::look() {
  // HAProxy's messages about each change of a server are useless later.
  const std::string errors = file("haproxy.errors");
  struct stat said {};
  if (::stat(errors.c_str(), &said) == 0 && said.st_size > kMostErrors)
    (void)!::truncate(errors.c_str(), 0);
  for (Process* process : all()) look_at(*process);
  // It lives, as its end would be known, and may be too busy to answer: ask on a new connection.
  if (current_ && !current_->admin)
    if (auto admin = Admin::connect(file("admin.sock"))) {
      const auto pid = admin->process();
      if (pid && *pid == current_->pid) current_->admin = std::move(*admin);
    }
  // A process without open requests ends by itself once nobody connects to it any more.
  leaving_.remove_if([](Process& p) {
    const bool idle = std::ranges::all_of(p.seen, [](const auto& backend) {
      return backend.second.waiting == 0 &&
             std::ranges::all_of(backend.second.servers,
                                 [](const auto& s) { return s.second.running == 0; });
    });
    if (idle && p.held.empty()) p.admin.reset();
    return false;
  });
}

std::vector<Seen> Haproxy::seen() const {
  std::vector<Seen> out;
  if (current_) out.push_back(current_->seen);
  for (const Process& p : leaving_)
    if (p.admin) out.push_back(p.seen);
  return out;
}

std::map<std::string, std::uint32_t> Haproxy::held() const {
  std::map<std::string, std::uint32_t> out;
  if (current_) out = current_->held;
  for (const Process& p : leaving_)
    if (p.admin)
      for (const auto& [service, n] : p.held) out[service] += n;
  return out;
}

void Haproxy::bring_to(const Layout& layout, const std::string& issuer,
                       const std::vector<TokenKey>& keys) {
  if (stopped_) return;
  for (Process* process : all()) {
    if (!process->admin) continue;
    const auto& dir = options_.settings.state_dir;
    const ServerCommands servers = server_commands(layout, process->seen);
    Tables tables = tables_for(layout.tables, backends_of(process->blocks));
    const auto rows = table_commands(tables, process->tables, dir);
    if (servers.before.empty() && servers.after.empty() && rows.empty()) continue;
    if (!tell(*process, servers.before) || !tell(*process, rows)) continue;
    process->tables = std::move(tables);
    if (tell(*process, servers.after)) look_at(*process);
  }
  if (next_ || monotonic() < not_before_ || leaving_.size() >= kMostLeaving) return;
  Blocks wanted = blocks_of(options_.settings, layout, issuer, keys);
  if (current_ && can_serve(current_->blocks, wanted)) return;
  start(std::move(wanted), layout);
}

void Haproxy::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  trying_.cancel();
  if (next_) ::kill(next_->pid, SIGTERM);
  for (Process* process : all()) {
    process->admin.reset();
    ::kill(process->pid, SIGUSR1);
  }
  ending_ = loop_.after(options_.stop_time, [this] {
    for (const Process* process : all()) ::kill(process->pid, SIGTERM);
  });
  if (!current_ && !next_ && leaving_.empty())
    loop_.post([this] { std::exchange(stopped_, {})(); });
}

Result<Admin> Admin::connect(const std::string& path) {
  Admin admin;
  ASSIGN(to, address_of(path));
  admin.fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(admin.fd_.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to) != 0)
    return fail(ErrorCode::unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  TRY(admin.ask("prompt"));
  TRY(admin.ask("set timeout cli 1d"));
  return admin;
}

Result<std::string> Admin::ask(const std::string& command) {
  const net::Deadline deadline{milliseconds(kAnswerMs)};
  const std::string line = command + "\n";
  for (std::size_t at = 0; at < line.size();) {
    ASSIGN(sent, net::write_some(fd_.get(), std::string_view(line).substr(at)));
    at += *sent;
    if (*sent > 0) continue;
    TRY(net::wait_for(fd_.get(), net::Wait::write, deadline));
  }
  std::string said;
  std::array<char, 64u << 10> piece;
  while (!said.ends_with(kPrompt) && said != kPrompt.substr(1)) {
    ASSIGN(got, net::read_some(fd_.get(), piece.data(), piece.size()));
    said.append(piece.data(), *got);
    if (said.size() > kMost) return fail(ErrorCode::malformed, "HAProxy's answer is too long");
    if (*got > 0) continue;
    TRY(net::wait_for(fd_.get(), net::Wait::read, deadline));
  }
  said.resize(said.size() - std::min(said.size(), kPrompt.size()));
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

Result<int> Admin::process() {
  ASSIGN(info, ask("show info"));
  constexpr std::string_view kPid = "\nPid: ";
  const std::size_t at = info->find(kPid);
  int pid = 0;
  if (at != std::string::npos)
    std::from_chars(info->data() + at + kPid.size(), info->data() + info->size(), pid);
  return pid;
}

Result<std::unique_ptr<LogReader>> LogReader::open(loop::Loop& loop, const std::string& path,
                                                   unsigned writer, OnLine on_line) {
  std::unique_ptr<LogReader> reader(new LogReader(loop, writer, std::move(on_line)));
  ASSIGN(at, address_of(path));
  ::unlink(path.c_str());
  reader->listening_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = reader->listening_.get();
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&*at), sizeof *at) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(fd, 8) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  reader->accepting_ = loop.on_readable(fd, [raw = reader.get()] { raw->take(); });
  return reader;
}

void LogReader::take() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                       (peer.uid == writer_ || peer.uid == 0);
    if (!known || writers_.size() >= kMostWriters) continue;
    Writer& writer = writers_.emplace_back();
    writer.fd = std::move(fd);
    writer.watch = loop_.on_readable(writer.fd.get(), [this, &writer] { read(writer); });
  }
}

void LogReader::read(Writer& writer) {
  static std::array<char, kPiece> piece;
  const ssize_t n = ::recv(writer.fd.get(), piece.data(), piece.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    writers_.remove_if([&](const Writer& w) { return &w == &writer; });
    return;
  }
  std::string_view text(piece.data(), static_cast<std::size_t>(n));
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (writer.begun.size() + part.size() <= kLongestLine) writer.begun += part;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    on_line_(writer.begun);
    writer.begun.clear();
  }
}

}  // namespace gantry::gate
