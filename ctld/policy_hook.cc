#include "ctld/policy_hook.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/codec/define.h"
#include "common/fd.h"
#include "common/text/printable.h"
#include "ctld/users_program.h"

namespace gantry {
GANTRY_CODEC_INSTANTIATE(ctld::HookQuestion)
GANTRY_CODEC_INSTANTIATE(ctld::HookAnswer)
}  // namespace gantry

namespace gantry::ctld {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostMessage = 500;  // bytes

tl::unexpected<Error> no_answer(std::string why) {
  return fail(ErrorCode::unavailable, std::move(why));
}
tl::unexpected<Error> no_answer_errno(std::string_view what) {
  return no_answer(fmt::format("{}: {}", what, std::strerror(errno)));
}

int left_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// Makes a file in memory with the text, or with room for at most this many bytes.
Fd memory_file(std::string_view text, std::size_t room) {
  Fd fd(::memfd_create("policy_hook", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fd;
  if (room > 0) {
    if (::ftruncate(fd.get(), static_cast<off_t>(room)) != 0 ||
        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)
      return Fd();
    return fd;
  }
  while (!text.empty()) {
    const ssize_t n = ::write(fd.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fd();
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return Fd();
  return fd;
}

std::string content_of(const Fd& fd) {
  std::string out(kMostHookAnswerBytes, '\0');
  const ssize_t n = ::pread(fd.get(), out.data(), out.size(), 0);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return out.substr(0, out.find('\0'));
}

}  // namespace

Result<HookAnswer> read_answer(std::string_view text) {
  auto answer = codec::from_json<HookAnswer>(text);
  if (!answer) return fail(ErrorCode::malformed, "its answer: " + answer.error().message);
  const std::string& action = answer->action;
  if (action != "allow" && action != "warn" && action != "deny")
    return fail(ErrorCode::malformed,
                fmt::format("its answer has the action \"{:.40}\"; it is allow, warn or deny",
                            printable(action)));
  answer->message = printable(answer->message.substr(0, kMostMessage));
  return answer;
}

PolicyHook::PolicyHook(std::string path, Duration timeout, Post post)
    : path_(std::move(path)), timeout_(timeout.us), post_(std::move(post)) {
  for (std::size_t i = 0; i < kHookThreads; ++i) threads_.emplace_back([this] { serve(); });
}

PolicyHook::~PolicyHook() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<void> PolicyHook::ask(const HookQuestion& question, Done done) {
  {
    std::lock_guard guard(mutex_);
    if (!waiting_.push(
            {question.uid, codec::to_json(question), Clock::now() + timeout_, std::move(done)}))
      return fail(ErrorCode::too_many,
                  "too many submits wait for the site's policy hook: try again later");
  }
  wake_.notify_one();
  return {};
}

void PolicyHook::serve() {
  std::unique_lock guard(mutex_);
  while (true) {
    auto item = waiting_.take([&](const Item& one) {
      const auto it = running_.find(one.uid.value());
      return it == running_.end() || it->second < kHookThreadsOfUser;
    });
    if (stopping_) return;
    if (!item) {
      wake_.wait(guard);
      continue;
    }
    ++running_[item->uid.value()];
    guard.unlock();
    auto text = answer_to(*item);
    auto answer = text ? read_answer(*text) : tl::unexpected(text.error());
    post_([done = std::move(item->done), answer = std::move(answer)] { done(answer); });
    guard.lock();
    if (--running_[item->uid.value()] == 0) running_.erase(item->uid.value());
    wake_.notify_one();  // another question of this user may have waited for this thread
  }
}

Result<std::string> PolicyHook::answer_to(const Item& item) const {
  if (Clock::now() >= item.until) return no_answer("it was too busy");
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) return no_answer_errno(path_);
  return S_ISSOCK(info.st_mode) ? ask_socket(item) : run_program(item);
}

Result<std::string> PolicyHook::run_program(const Item& item) const {
  const Fd input = memory_file(item.json, 0), output = memory_file({}, kMostHookAnswerBytes);
  if (!input || !output) return no_answer_errno("a file in memory");
  const auto pid = start_words({path_}, input.get(), OwnSession::yes, output.get());
  if (!pid) return no_answer(pid.error().message);
  const Fd watch(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  pollfd ended{watch.get(), POLLIN, 0};
  int got = ::poll(&ended, 1, left_until(item.until));
  while (got < 0 && errno == EINTR) got = ::poll(&ended, 1, left_until(item.until));
  if (got <= 0) ::kill(-*pid, SIGKILL);  // also ends processes that the program started
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (got <= 0) return no_answer(fmt::format("it took more than {} ms", timeout_.count() / 1'000));
  if (const auto failed = failed_ending(status)) return no_answer("it " + *failed);
  return content_of(output);
}

// Writes the question and shuts down the sending side; then reads the answer until the other side
// closes.
Result<std::string> PolicyHook::ask_socket(const Item& item) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path)
    return no_answer("the path of its socket is too long");
  std::copy(path_.begin(), path_.end(), address.sun_path);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return no_answer_errno(path_);
  std::string_view left = item.json;
  std::string out;
  while (true) {
    pollfd one{fd.get(), static_cast<short>(left.empty() ? POLLIN : POLLOUT), 0};
    const int got = ::poll(&one, 1, left_until(item.until));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return no_answer(fmt::format("it took more than {} ms", timeout_.count() / 1'000));
    if (!left.empty()) {
      const ssize_t n = ::send(fd.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return no_answer_errno(path_);
      if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
      if (left.empty()) ::shutdown(fd.get(), SHUT_WR);
      continue;
    }
    std::array<char, 4096> piece{};
    const ssize_t n = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (n == 0) return out;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return no_answer_errno(path_);
    if (n > 0) out.append(piece.data(), static_cast<std::size_t>(n));
    if (out.size() > kMostHookAnswerBytes) return no_answer("its answer is too long");
  }
}

}  // namespace gantry::ctld
