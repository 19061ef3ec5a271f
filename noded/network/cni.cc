#include "noded/network/cni.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/codec/json_io.h"
#include "common/fd.h"

namespace gantry::network {

namespace {

// Version of the specification; before 0.3 a plugin does not get the result of the previous one.
constexpr std::string_view kVersions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0"};
constexpr std::string_view kFirstWithCheck = "0.4.0";
constexpr std::size_t kMostPlugins = 16;
constexpr int kMostDepth = 32;

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

void copy(codec::JsonNode node, codec::JsonWriter& to, int depth);

void copy_members(codec::JsonNode node, codec::JsonWriter& to, int depth) {
  for (std::size_t i = 0; i < node.size(); ++i) {
    to.key(node.name(i));
    copy(node.member(i), to, depth + 1);
  }
}

void copy(codec::JsonNode node, codec::JsonWriter& to, int depth) {
  if (depth > kMostDepth) return to.null();
  if (node.is_object()) {
    to.begin_object();
    copy_members(node, to, depth);
    to.end_object();
  } else if (node.is_array()) {
    to.begin_array();
    for (std::size_t i = 0; i < node.size(); ++i) copy(node.item(i), to, depth + 1);
    to.end_array();
  } else if (const auto text = node.string()) {
    to.string(*text);
  } else if (const auto truth = node.boolean()) {
    to.boolean(*truth);
  } else if (const auto whole = node.uint()) {
    to.uint(*whole);
  } else if (const auto number = node.sint()) {
    to.sint(*number);
  } else if (const auto real = node.real()) {
    to.real(*real);
  } else {
    to.null();
  }
}

std::string text_in(codec::JsonNode node, std::string_view name) {
  const auto found = node.find(name);
  const auto text = found ? found->string() : std::nullopt;
  return std::string(text.value_or(""));
}

std::string program_of(const std::vector<std::string>& directories, const std::string& type) {
  for (const std::string& directory : directories) {
    std::string path = directory + "/" + type;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// The text with which the plugin refuses: its error is a JSON object with a sentence.
std::string complaint_of(const ProgramEnd& end) {
  if (!end.in_time) return fmt::format("it had not ended after {} s", kCniPatience.us / 1'000'000);
  if (const auto said = codec::JsonDocument::parse(end.output); said && said->root().is_object()) {
    std::string text = text_in(said->root(), "msg");
    if (const std::string more = text_in(said->root(), "details"); !more.empty())
      text += (text.empty() ? "" : ": ") + more;
    if (!text.empty()) return text;
  }
  const std::string line = end.errors.substr(0, end.errors.find('\n'));
  return line.empty() ? fmt::format("it ended with {}", end.status) : line;
}

constexpr std::size_t kMostOutput = 1 << 20;

struct Pipe {
  Fd read, write;
};

// Both ends are close-on-exec; the program gets copies with other numbers.
Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

pid_t spawn(const std::string& path, const std::vector<std::string>& env, const Pipe& in,
            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  sigset_t none{}, all{};
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  std::vector<char*> variables;
  for (const std::string& one : env) variables.push_back(const_cast<char*>(one.c_str()));
  variables.push_back(nullptr);
  std::array<char*, 2> argv{const_cast<char*>(path.c_str()), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, path.c_str(), &actions, &attributes, argv.data(), variables.data()) !=
      0)
    child = -1;
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return child;
}

// Reads what is there; returns false at the end.
bool drain(const Fd& from, std::string& to) {
  std::array<char, 16384> buffer{};
  const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (to.size() < kMostOutput) to.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace

Result<Cni> Cni::open(Options options) {
  Cni out(std::move(options));
  const std::string& list = out.options_.list;
  const auto bad = [&](const std::string& what) {
    return fail(ErrorCode::invalid_argument, fmt::format("noded.cni: {} {}", list, what));
  };
  const auto text = read_text(list);
  if (!text) return bad(fmt::format("cannot be read: {}", std::strerror(errno)));
  const auto document = codec::JsonDocument::parse(*text);
  if (!document) return bad("is not JSON: " + document.error().message);
  const codec::JsonNode root = document->root();
  out.name_ = text_in(root, "name");
  out.version_ = text_in(root, "cniVersion");
  if (out.name_.empty()) return bad("has no name");
  if (std::find(std::begin(kVersions), std::end(kVersions), out.version_) == std::end(kVersions))
    return bad(fmt::format("has the cniVersion \"{}\", which is none of {}", out.version_,
                           fmt::join(kVersions, ", ")));
  const auto off = root.find("disableCheck");
  out.checks_ = out.version_ >= kFirstWithCheck && !(off && off->boolean().value_or(false));
  const auto plugins = root.find("plugins");
  if (!plugins || !plugins->is_array() || plugins->size() == 0 || plugins->size() > kMostPlugins)
    return bad(fmt::format("has no list of 1 to {} plugins", kMostPlugins));
  for (std::size_t i = 0; i < plugins->size(); ++i) {
    const codec::JsonNode one = plugins->item(i);
    Plugin& plugin = out.plugins_.emplace_back();
    plugin.type = text_in(one, "type");
    if (plugin.type.empty() || plugin.type.find('/') != std::string::npos)
      return bad(fmt::format("has a plugin without a type, the {}. one", i + 1));
    plugin.program = program_of(out.options_.plugins, plugin.type);
    if (plugin.program.empty())
      return bad(fmt::format("names the plugin {}, which is in none of {}", plugin.type,
                             fmt::join(out.options_.plugins, ", ")));
    codec::JsonWriter writer(codec::JsonStyle::compact);
    copy(one, writer, 0);
    plugin.config = writer.take();
  }
  std::error_code error;
  std::filesystem::create_directories(out.options_.directory, error);
  if (error) return bad(fmt::format("needs {}: {}", out.options_.directory, error.message()));
  return out;
}

std::string Cni::file_of(const proto::AttemptKey& key) const {
  return fmt::format("{}/{}.{}", options_.directory, key.job.value(), key.attempt.value());
}

std::string Cni::said_of(const proto::AttemptKey& key) const {
  return read_text(file_of(key)).value_or("");
}

std::vector<proto::AttemptKey> Cni::attempts() const {
  std::vector<proto::AttemptKey> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, error)) {
    const std::string name = entry.path().filename();
    std::uint64_t job = 0;
    std::uint32_t attempt = 0;
    const char* end = name.data() + name.size();
    const auto [dot, first] = std::from_chars(name.data(), end, job);
    if (first != std::errc() || dot == end || *dot != '.') continue;
    const auto [rest, second] = std::from_chars(dot + 1, end, attempt);
    if (second == std::errc() && rest == end) out.push_back({JobId(job), Attempt(attempt)});
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> Cni::addresses(const proto::AttemptKey& key) const {
  std::vector<std::string> out;
  const auto said = codec::JsonDocument::parse(said_of(key));
  if (!said) return out;
  const auto all = said->root().find("ips");
  for (std::size_t i = 0; all && all->is_array() && i < all->size(); ++i)
    if (std::string text = text_in(all->item(i), "address"); !text.empty())
      out.push_back(std::move(text));
  return out;
}

// Returns the plugin's output. Its input has the list's name and version, and the results of the
// previous plugins.
Result<std::string> Cni::run(const Plugin& plugin, const char* command,
                             const proto::AttemptKey& key, const std::string& space,
                             const std::string& before) const {
  ASSIGN(config, codec::JsonDocument::parse(plugin.config));
  codec::JsonWriter writer(codec::JsonStyle::compact);
  writer.begin_object();
  copy_members(config->root(), writer, 0);
  writer.key("name");
  writer.string(name_);
  writer.key("cniVersion");
  writer.string(version_);
  if (const auto said = codec::JsonDocument::parse(before); said) {
    writer.key("prevResult");
    copy(said->root(), writer, 0);
  }
  writer.end_object();
  const std::vector<std::string> env{
      fmt::format("CNI_COMMAND={}", command),
      fmt::format("CNI_CONTAINERID=gantry-{}-{}.{}", options_.node, key.job.value(),
                  key.attempt.value()),
      "CNI_NETNS=" + space,
      fmt::format("CNI_IFNAME={}", kCniLink),
      fmt::format("CNI_PATH={}", fmt::join(options_.plugins, ":")),
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  const ProgramEnd end = run_program(plugin.program, env, writer.take(), kCniPatience);
  if (end.in_time && end.status == 0) return end.output;
  return fail(ErrorCode::unavailable, fmt::format("the CNI plugin {} of {}: {}", plugin.type,
                                                  options_.list, complaint_of(end)));
}

Result<void> Cni::add(const proto::AttemptKey& key, const std::string& space) {
  const auto note = [&](const std::string& text) -> Result<void> {
    const std::string next = file_of(key) + ".new";
    const Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file &&
        ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::fdatasync(file.get()) == 0 && ::rename(next.c_str(), file_of(key).c_str()) == 0)
      return {};
    return fail(ErrorCode::io_error,
                fmt::format("{} cannot be written: {}", file_of(key), std::strerror(errno)));
  };
  TRY(note(""));
  std::string said;
  for (const Plugin& plugin : plugins_) {
    auto result = run(plugin, "ADD", key, space, said);
    if (!result) {
      (void)remove_all(key, space, said);
      ::unlink(file_of(key).c_str());
      return tl::unexpected(result.error());
    }
    if (!result->empty()) said = std::move(*result);
  }
  return note(said);
}

// All plugins are called, also those after one that fails.
Result<void> Cni::remove_all(const proto::AttemptKey& key, const std::string& space,
                             const std::string& said) const {
  const std::string there = ::access(space.c_str(), F_OK) == 0 ? space : std::string();
  Result<void> out;
  for (auto plugin = plugins_.rbegin(); plugin != plugins_.rend(); ++plugin)
    if (auto r = run(*plugin, "DEL", key, there, said); !r && out) out = tl::unexpected(r.error());
  return out;
}

Result<void> Cni::remove(const proto::AttemptKey& key, const std::string& space) {
  if (::access(file_of(key).c_str(), F_OK) != 0) return {};
  TRY(remove_all(key, space, said_of(key)));
  ::unlink(file_of(key).c_str());
  return {};
}

Result<void> Cni::check(const proto::AttemptKey& key, const std::string& space) const {
  if (!checks_ || ::access(file_of(key).c_str(), F_OK) != 0) return {};
  const std::string said = said_of(key);
  for (const Plugin& plugin : plugins_) TRY(run(plugin, "CHECK", key, space, said));
  return {};
}

ProgramEnd run_program(const std::string& path, const std::vector<std::string>& env,
                       const std::string& input, Duration patience) {
  ProgramEnd end;
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  const Fd limit(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec time{{}, {patience.us / 1'000'000, patience.us % 1'000'000 * 1'000}};
  if (!in.read || !out.read || !err.read || ::timerfd_settime(limit.get(), 0, &time, nullptr) != 0)
    return end;
  const pid_t child = spawn(path, env, in, out, err);
  if (child < 0) return end;
  in.read.reset();
  out.write.reset();
  err.write.reset();
  ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  std::size_t written = 0;
  while (out.read || err.read) {
    // poll() ignores entries with descriptor -1.
    std::array<pollfd, 4> ready{{{limit.get(), POLLIN, 0},
                                 {in.write ? in.write.get() : -1, POLLOUT, 0},
                                 {out.read ? out.read.get() : -1, POLLIN, 0},
                                 {err.read ? err.read.get() : -1, POLLIN, 0}}};
    (void)::poll(ready.data(), ready.size(), -1);
    if (ready[0].revents != 0) {
      end.in_time = false;
      ::kill(-child, SIGKILL);
      break;
    }
    if (ready[1].revents != 0) {
      const ssize_t n = ::write(in.write.get(), input.data() + written, input.size() - written);
      if (n > 0) written += static_cast<std::size_t>(n);
      if (written == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.write.reset();
    }
    if (ready[2].revents != 0 && !drain(out.read, end.output)) out.read.reset();
    if (ready[3].revents != 0 && !drain(err.read, end.errors)) err.read.reset();
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace gantry::network
